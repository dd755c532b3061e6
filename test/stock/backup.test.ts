/** Backup and restore as docs/operations.md says, command by command, with the tools of Debian. */
import { spawnSync } from 'node:child_process'
import { mkdirSync, readFileSync, rmSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest'
import { Office } from '../../src/office.ts'
import { openDatabase } from '../../src/store/open.ts'
import { verifyStore } from '../../src/verify/verify.ts'
import { describeDebianPostgres, describeProgram } from '../world/debian.ts'
import { createDatabase, type PostgresServer, type TestDatabase } from '../world/postgres.ts'
import { reportOf } from '../world/report.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const LETTERS = 3

/** The commands under the heading Backup, each block a script. */
const BACKUP = /^## Backup\n(.*?)^## /ms.exec(readFileSync(join(ROOT, 'docs/operations.md'), 'utf8'))?.[1]
const [copySqlite = '', restoreSqlite = '', dumpPostgres = '', restorePostgres = ''] = Array.from(
  BACKUP?.matchAll(/```sh\n(.*?)```/gs) ?? [],
  ([, script = '']) => script,
)

/** Runs a script as a reader would, with `bartleby` installed. */
function run(script: string, folder: string, env: Readonly<Record<string, string>> = {}) {
  const bartleby = `bartleby() { "${process.execPath}" "${ROOT}bin/bartleby.js" "$@"; }\n`
  const { status, stdout, stderr } = spawnSync('sh', ['-ec', bartleby + script], {
    cwd: folder,
    env: { ...process.env, ...env },
    encoding: 'utf8',
  })
  return { status, output: stdout + stderr }
}

/** An office that is open, with some letters. */
async function officeWithLetters(store: string): Promise<Office> {
  const office = await Office.open({ store })
  for (let number = 0; number < LETTERS; number++) {
    await office.letters.capture(reportOf(number, office.clock.now()))
  }
  return office
}

async function lettersIn(store: string): Promise<number> {
  const office = await Office.open({ store })
  try {
    return (await office.letters.numbers.gauges()).reduce((sum, { captured }) => sum + captured, 0)
  } finally {
    await office.close()
  }
}

describeProgram('sqlite3', 'the documented backup of a SQLite store', () => {
  let folder: string
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'bartleby-backup-'))
  })
  afterEach(() => rm(folder, { recursive: true, force: true }))

  it('is restored whole', async () => {
    mkdirSync(join(folder, 'data'))
    const file = join(folder, 'data/bartleby.db')
    const office = await officeWithLetters(`sqlite:${file}`)
    expect(run(copySqlite, folder)).toEqual({ status: 0, output: '' })
    await office.close()
    rmSync(file)
    expect(run(restoreSqlite, folder)).toMatchObject({ status: 0, output: expect.stringContaining('✓ S1') })
    expect(await lettersIn(`sqlite:${file}`)).toBe(LETTERS)
  })
})

describeDebianPostgres('the documented backup of a PostgreSQL store', (postgres) => {
  let server: PostgresServer
  let folder: string
  let store: TestDatabase
  let restored: TestDatabase
  let office: Office
  const PATH = `${postgres.bin}:${process.env.PATH ?? ''}`

  beforeAll(async () => {
    server = await postgres.start()
    folder = await mkdtemp(join(tmpdir(), 'bartleby-backup-'))
    store = await createDatabase(server.url)
    office = await officeWithLetters(store.url)
  })
  afterAll(async () => {
    await office?.close()
    await rm(folder, { recursive: true, force: true })
    await server?.stop()
  })
  beforeEach(async () => {
    restored = await createDatabase(server.url)
  })

  it('is restored whole', async () => {
    const env = { PATH, STORE: store.url, NEW_STORE: restored.url }
    expect(run(dumpPostgres, folder, env)).toEqual({ status: 0, output: '' })
    expect(run(restorePostgres, folder, env)).toMatchObject({
      status: 0,
      output: expect.stringContaining('✓ S1'),
    })
    expect(await lettersIn(restored.url)).toBe(LETTERS)
  })

  it('is found wanting without its extension, and repaired', async () => {
    const halfway = `pg_dump --schema=bartleby "$STORE" | psql --quiet --output=/dev/null --set=ON_ERROR_STOP=1 "$NEW_STORE"`
    const env = { PATH, STORE: store.url, NEW_STORE: restored.url }
    expect(run(halfway, folder, env).output).toContain('gin_trgm_ops')
    await expect(Office.open({ store: restored.url })).rejects.toThrow(
      /the store lacks .*unique index letters_by_source.*bartleby migrate --repair/s,
    )
    const before = await invariantS1(restored.url)
    expect(before).toContain('extension pg_trgm is missing; `bartleby migrate --repair` makes it')
    expect(before.length).toBeGreaterThan(30)
    const repair = run('bartleby migrate --repair --store "$NEW_STORE"', folder, env)
    expect(repair).toMatchObject({
      status: 0,
      output: expect.stringContaining('unique index letters_by_source'),
    })
    expect(await invariantS1(restored.url)).toEqual([])
    expect(await lettersIn(restored.url)).toBe(LETTERS)
  })
})

/** What verify says of the schema. */
async function invariantS1(store: string): Promise<readonly string[]> {
  const db = openDatabase(store, { poolSize: 1 })
  try {
    const { invariants } = await verifyStore(db)
    const schema = invariants.find(({ invariant }) => invariant === 'S1')
    return schema?.violations.map(({ what }) => what) ?? ['not checked']
  } finally {
    await db.close()
  }
}
