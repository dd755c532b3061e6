/** `npm run schema`: writes docs/schema.*.sql. A test compares the files with what this would write. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { migrateStore } from '../src/office.ts'
import { startPostgres } from '../test/world/postgres.ts'
import { postgresSchema, sqliteSchema } from './schema-doc.ts'

function write(name: string, text: string): void {
  writeFileSync(new URL(`../docs/${name}`, import.meta.url), text)
  console.log(`wrote docs/${name}`)
}

const folder = mkdtempSync(join(tmpdir(), 'bartleby-schema-'))
try {
  const file = join(folder, 'store.db')
  await migrateStore(`sqlite:${file}`)
  write('schema.sqlite.sql', sqliteSchema(file))
} finally {
  rmSync(folder, { recursive: true, force: true })
}

const postgres = await startPostgres()
try {
  await migrateStore(postgres.url)
  write('schema.postgres.sql', await postgresSchema(postgres.url))
} finally {
  await postgres.stop()
}
