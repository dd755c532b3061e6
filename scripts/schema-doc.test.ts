import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { migrateStore } from '../src/office.ts'
import { freshPostgres, freshSqlite } from '../test/world/stores.ts'
import { postgresSchema, sqliteSchema } from './schema-doc.ts'

const checkedIn = (name: string) => readFileSync(new URL(`../docs/${name}`, import.meta.url), 'utf8')

describe('the schema in docs (`npm run schema` writes it)', () => {
  it('is what the migrations make of an empty SQLite store', async () => {
    const store = await freshSqlite()
    try {
      await migrateStore(store.url)
      expect(sqliteSchema(store.url.slice('sqlite:'.length))).toBe(checkedIn('schema.sqlite.sql'))
    } finally {
      await store.dispose()
    }
  })

  it('is what the migrations make of an empty PostgreSQL store', async () => {
    const store = await freshPostgres()
    try {
      await migrateStore(store.url)
      expect(await postgresSchema(store.url)).toBe(checkedIn('schema.postgres.sql'))
    } finally {
      await store.dispose()
    }
  })
})
