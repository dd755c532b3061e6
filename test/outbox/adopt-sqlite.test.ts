/** Adopting tables of SQLite files, while another process writes them. */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { adoptTable } from '../../src/sources/outbox/adopt/adopt.ts'
import type { AdoptOptions } from '../../src/sources/outbox/adopt/report.ts'
import { readLayout } from '../../src/sources/outbox/table/layout.ts'
import { seededRandom } from '../world/random.ts'
import { type FreshStore, freshSqlite } from '../world/stores.ts'
import { type Adoption, startAdoption } from './adopt-process.ts'

const PASCAL = { naming: 'pascal' } as const

let place: FreshStore
let db: DatabaseSync

beforeEach(async () => {
  place = await freshSqlite()
  db = new DatabaseSync(pathOf(place), { timeout: 5_000 })
  db.exec('PRAGMA journal_mode = WAL')
})

afterEach(async () => {
  db.close()
  await place.dispose()
})

const pathOf = ({ url }: FreshStore): string => url.slice('sqlite:'.length)
const adopt = (options: AdoptOptions = {}) => adoptTable(place.url, { ...PASCAL, ...options })
const theOne = (sql: string): unknown => Object.values(db.prepare(sql).get() ?? {})[0]

/** Rows of the last days, every second of them processed. */
function makeLegacyTable(rows: number, id = 'INTEGER PRIMARY KEY AUTOINCREMENT'): void {
  db.exec(`
    CREATE TABLE "Orders" ("Id" INTEGER PRIMARY KEY, "Total" NUMERIC NOT NULL);
    CREATE TABLE "OutboxMessages" ("Id" ${id}, "TenantId" TEXT NOT NULL, "EventType" TEXT NOT NULL, "Payload" TEXT NOT NULL,
      "CreatedAt" TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')), "RetryCount" INTEGER NOT NULL DEFAULT 0, "IsProcessed" INTEGER NOT NULL DEFAULT 0);
    WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${rows})
    INSERT INTO "OutboxMessages" ("Id", "TenantId", "EventType", "Payload", "CreatedAt", "IsProcessed")
    SELECT ${id.startsWith('TEXT') ? 'hex(randomblob(16))' : 'i'}, 't' || (i % 50), 'OrderPlaced', '{}', strftime('%Y-%m-%dT%H:%M:%fZ', 1767225600 + i, 'unixepoch'), i % 2 FROM n`)
}

/** The schema and all rows. */
const everything = (): unknown => [
  db.prepare('SELECT type, name, sql FROM sqlite_schema ORDER BY name').all(),
  db.prepare('SELECT rowid, * FROM "OutboxMessages"').all(),
]

describe('a legacy table in an SQLite file', () => {
  it.each(['INTEGER PRIMARY KEY AUTOINCREMENT', 'TEXT PRIMARY KEY'])(
    'becomes an outbox; ids: %s',
    async (id) => {
      makeLegacyTable(1_000, id)
      expect(await adopt({ chunk: 300 })).toMatchObject({
        created: false,
        rows: 1_000,
        keysFilled: 1_000,
        keysMissing: 0,
        complete: true,
        notes: [],
      })
      expect(theOne('SELECT count(DISTINCT "IdempotencyKey") FROM "OutboxMessages"')).toBe(1_000)
      const run = async (sql: string, parameters: readonly unknown[]) =>
        // Names of tables, all of them.
        db.prepare(sql).all(...(parameters as string[]))
      expect(await readLayout('sqlite', PASCAL, run)).toMatchObject({ hasFlag: true, hasKeys: true })
      // In microseconds, and not long ago.
      const agoUs = `unixepoch('subsec') * 1e6 - min("ProcessedAt")`
      expect(theOne(`SELECT ${agoUs} BETWEEN 0 AND 600e6 FROM "OutboxMessages"`)).toBe(1)
      expect(
        theOne('SELECT count(*) FROM "OutboxMessages" WHERE "ProcessedAt" IS NULL AND "IsProcessed"'),
      ).toBe(0)
      expect(theOne('SELECT count(*) FROM "OutboxMessages" WHERE "ProcessedAt" IS NULL')).toBe(500)
    },
  )

  it('gives keys to the rows of producers that know nothing of them', async () => {
    makeLegacyTable(1)
    await adopt()
    db.exec(`INSERT INTO "OutboxMessages" ("TenantId", "EventType", "Payload") VALUES ('t', 'E', '{}')`)
    expect(theOne('SELECT "IdempotencyKey" FROM "OutboxMessages" WHERE "Id" = 2')).toMatch(/^[0-9a-f-]{36}$/)
  })

  it('keeps its keys once that is enforced, and still takes rows without one', async () => {
    makeLegacyTable(10)
    await adopt({ enforce: true })
    expect(() => db.exec('UPDATE "OutboxMessages" SET "IdempotencyKey" = NULL')).toThrow('NOT NULL')
    db.exec(
      `INSERT INTO "OutboxMessages" ("TenantId", "EventType", "Payload", "IdempotencyKey") VALUES ('t', 'E', '{}', NULL)`,
    )
    expect(theOne('SELECT count(*) FROM "OutboxMessages" WHERE "IdempotencyKey" IS NULL')).toBe(0)
  })

  it('is left as it is by a second adoption', async () => {
    makeLegacyTable(50)
    await adopt({ enforce: true })
    const before = everything()
    const { steps } = await adopt({ enforce: true })
    expect(new Set(steps.map(({ outcome }) => outcome))).toEqual(new Set(['already there']))
    expect(everything()).toEqual(before)
  })

  it('is not changed by a dry run, which tells exactly the SQL that is run afterwards', async () => {
    makeLegacyTable(50)
    const before = everything()
    const planned = await adopt({ dryRun: true, enforce: true })
    expect(planned).toMatchObject({ rows: 50, keysMissing: 50, keysFilled: 0 })
    expect(everything()).toEqual(before)
    const done = await adopt({ enforce: true })
    const sqlOf = (steps: typeof done.steps, outcome: string) =>
      steps.filter((step) => step.outcome === outcome).map(({ sql }) => sql)
    expect(sqlOf(planned.steps, 'skipped')).toEqual(sqlOf(done.steps, 'done'))
  })

  it('lists duplicates, and gives all but the oldest a key of their own when that is wanted', async () => {
    makeLegacyTable(60)
    db.exec(`ALTER TABLE "OutboxMessages" ADD COLUMN "IdempotencyKey" TEXT;
      UPDATE "OutboxMessages" SET "IdempotencyKey" = 'k', "TenantId" = 't' WHERE "Id" IN (3, 7, 8)`)
    expect(await adopt()).toMatchObject({
      complete: false,
      duplicateCount: 1,
      duplicates: [{ tenantId: 't', idempotencyKey: 'k', rows: 3, ids: ['3', '7', '8'] }],
    })
    expect(theOne(`SELECT count(*) FROM sqlite_schema WHERE name = 'OutboxMessages_tenant_key'`)).toBe(0)
    expect(await adopt({ rekeyDuplicates: true, chunk: 1 })).toMatchObject({ rekeyed: 2, complete: true })
    expect(theOne(`SELECT group_concat("Id") FROM "OutboxMessages" WHERE "IdempotencyKey" = 'k'`)).toBe('3')
    expect(theOne(`SELECT count(*) FROM sqlite_schema WHERE name = 'OutboxMessages_tenant_key'`)).toBe(1)
  })

  it('counts a unique index of another name', async () => {
    makeLegacyTable(5)
    db.exec(`ALTER TABLE "OutboxMessages" ADD COLUMN "IdempotencyKey" TEXT;
      CREATE UNIQUE INDEX ux ON "OutboxMessages" ("TenantId", "IdempotencyKey")`)
    expect(await adopt()).toMatchObject({ complete: true })
    expect(theOne(`SELECT count(*) FROM sqlite_schema WHERE name = 'OutboxMessages_tenant_key'`)).toBe(0)
  })

  it('waits for the file without blocking this process, and gives up in time', async () => {
    makeLegacyTable(5)
    db.exec('BEGIN IMMEDIATE')
    expect(await adopt({ lockWaitSeconds: 0.2 }).catch((error: Error) => error)).toMatchObject({
      name: 'AdoptionBlocked',
      message: expect.stringContaining('another program holds the file for writing'),
    })
    const { promise: waits, resolve: onWait } = Promise.withResolvers<unknown>()
    const adoption = adopt({ onWait })
    await waits
    db.exec('COMMIT')
    expect(await adoption).toMatchObject({ complete: true })
  })
})

describe('a table that is not in the file', () => {
  it('is made whole, and then there is nothing more to adopt', async () => {
    expect(await adopt()).toMatchObject({ created: true, rows: 0, complete: true })
    const before = everything()
    const { steps } = await adopt()
    expect(new Set(steps.map(({ outcome }) => outcome))).toEqual(new Set(['already there']))
    expect(everything()).toEqual(before)
  })

  it('is not made in a file that does not exist', async () => {
    await expect(adoptTable(`${place.url}-typo`)).rejects.toThrow('there is no database at')
  })
})

describe('a table that cannot be adopted', () => {
  it('is refused with the columns that it lacks', async () => {
    db.exec('CREATE TABLE "OutboxMessages" ("Id" INTEGER PRIMARY KEY, "Payload" TEXT)')
    await expect(adopt()).rejects.toMatchObject({
      code: 'outbox_columns_missing',
      message: expect.stringContaining('it lacks TenantId, EventType, CreatedAt'),
    })
  })

  it('is refused when its rows have no rowid', async () => {
    db.exec(
      `CREATE TABLE "OutboxMessages" ("Id" TEXT PRIMARY KEY, "TenantId" TEXT, "EventType" TEXT, "Payload" TEXT, "CreatedAt" TEXT) WITHOUT ROWID`,
    )
    await expect(adopt()).rejects.toThrow('WITHOUT ROWID')
  })
})

describe('an adoption that is asked to stop', () => {
  it('ends in good order, and the next one goes on from there', async () => {
    makeLegacyTable(20_000)
    const adoption = startAdoption('--url', place.url, '--naming', 'pascal', '--chunk', '50')
    await adoption.said(/OutboxMessagesKeys/)
    adoption.child.kill('SIGINT')
    const { code, err } = await adoption.ended
    expect(code).toBe(1)
    expect(err).toContain('bartleby: stopped; the same command goes on from there')
    expect(await adopt()).toMatchObject({ rows: 20_000, complete: true })
  })
})

describe('a file that another process writes', () => {
  it('is adopted through kills, and nothing of the other process fails', async () => {
    const random = seededRandom()
    const seed = `BARTLEBY_TEST_SEED=${random.seed}`
    makeLegacyTable(60_000)
    const program = fork(fileURLToPath(new URL('old-sqlite-program.ts', import.meta.url)), [pathOf(place)])
    await once(program, 'message')
    const start = () =>
      startAdoption('--url', place.url, '--naming', 'pascal', '--enforce', '--chunk', '2000')
    let adoption: Adoption | undefined
    try {
      for (const word of [/columns/, /./, /✓ give keys to rows/]) {
        adoption = start()
        await adoption.said(word)
        await pause(random.whole(0, 300))
        adoption.child.kill('SIGKILL')
        await adoption.ended
      }
      adoption = start()
      const { code, err } = await adoption.ended
      expect(code, `${seed}\n${err}`).toBe(0)
      program.send('stop')
      const [told] = await once(program, 'message')
      expect(told, seed).toMatchObject({ failures: [] })
      expect(told.done, seed).toBeGreaterThan(10)
      expect(theOne('SELECT count(*) FROM "OutboxMessages"')).toBe(60_000 + told.done)
      expect(theOne('SELECT count(*) FROM "OutboxMessages" WHERE "IdempotencyKey" IS NULL'), seed).toBe(0)
      const forgotten = `SELECT count(*) FROM "OutboxMessages" WHERE "IsProcessed" AND "RetryCount" = 0 AND "ProcessedAt" IS NULL`
      expect(theOne(forgotten), seed).toBe(0)
      expect(theOne('PRAGMA integrity_check')).toBe('ok')
    } finally {
      adoption?.child.kill('SIGKILL')
      program.kill('SIGKILL')
    }
  })
})
