/** Adopting tables of PostgreSQL: what it adds, what it leaves alone, what it refuses, and whom it does not disturb. */
import type pg from 'pg'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { adoptTable } from '../../src/sources/outbox/adopt/adopt.ts'
import type { AdoptOptions } from '../../src/sources/outbox/adopt/report.ts'
import { readLayout } from '../../src/sources/outbox/table/layout.ts'
import { COLUMN_NAMES, nameTable } from '../../src/sources/outbox/table/table-names.ts'
import { startPooler } from '../world/pooler.ts'
import { reused } from '../world/reused-store.ts'
import { barePostgres, type FreshStore } from '../world/stores.ts'
import { connect, everythingIn, makeLegacyTable } from './legacy-table.ts'

const PASCAL = { naming: 'pascal' } as const
const KEY = '0d5b3a8e-6f0e-4f0b-9f59-0c1d6d1b7a11'

const kind = reused({ name: 'postgres', fresh: barePostgres })
let place: FreshStore
let client: pg.Client
let other: pg.Client

beforeEach(async () => {
  place = await kind.fresh()
  client = await connect(place.url)
  other = await connect(place.url, 'night-report')
})

afterEach(async () => {
  await Promise.all([client.end(), other.end()])
  await place.dispose()
})

const adopt = (options: AdoptOptions = {}) => adoptTable(place.url, { ...PASCAL, ...options })

/** The first column of the first row. */
const theOne = async (sql: string): Promise<unknown> =>
  Object.values((await client.query({ text: sql })).rows[0] ?? {})[0]

const columnsOf = async (table: string): Promise<string[]> => {
  const { rows } = await client.query(
    'SELECT attname FROM pg_attribute WHERE attrelid = $1::regclass AND attnum > 0',
    [table],
  )
  return rows.map(({ attname }) => attname)
}

const indexNames = async (): Promise<string[]> => {
  const { rows } = await client.query(
    `SELECT relname FROM pg_index JOIN pg_class ON oid = indexrelid WHERE indrelid = '"OutboxMessages"'::regclass AND indisvalid`,
  )
  return rows.map(({ relname }) => relname)
}

const insertMessage = (through: pg.Client) =>
  through.query(
    `INSERT INTO "OutboxMessages" ("TenantId", "EventType", "Payload") VALUES (gen_random_uuid(), 'OrderPlaced', '{}')`,
  )

/** Resolves when the adoption says that it waits for something like this. */
function waiting(word: RegExp) {
  const { promise, resolve } = Promise.withResolvers<string>()
  return { waits: promise, onWait: (reason: string) => word.test(reason) && resolve(reason) }
}

describe('a legacy table', () => {
  it('gets the columns, keys, indexes and side tables of an outbox, and keeps its own', async () => {
    await makeLegacyTable(client, 'bigint', 1_000)
    const before = await columnsOf('"OutboxMessages"')
    const report = await adopt({ chunk: 300 })
    expect(report).toMatchObject({
      table: 'OutboxMessages',
      created: false,
      rows: 1_000,
      keysMissing: 0,
      keysFilled: 1_000,
      duplicateCount: 0,
      complete: true,
      notes: [],
    })
    const after = await columnsOf('"OutboxMessages"')
    expect(after.slice(0, before.length)).toEqual(before)
    expect(after).toEqual(expect.arrayContaining(COLUMN_NAMES.map((name) => nameTable(PASCAL).columns[name])))
    expect(await indexNames()).toEqual(
      expect.arrayContaining([
        'OutboxMessages_tenant_key',
        'OutboxMessages_due',
        'IX_OutboxMessages_Unprocessed',
      ]),
    )
    const run = async (sql: string, parameters: readonly unknown[]) =>
      (await client.query(sql, [...parameters])).rows
    expect(await readLayout('postgres', PASCAL, run)).toMatchObject({ hasKeys: true, hasWake: true })
  })

  it('is not rewritten', async () => {
    await makeLegacyTable(client, 'uuid', 10)
    const file = await theOne(`SELECT pg_relation_filenode('"OutboxMessages"')`)
    await adopt({ enforce: true })
    expect(await theOne(`SELECT pg_relation_filenode('"OutboxMessages"')`)).toBe(file)
  })

  it('has no row delivered again that its flag calls processed', async () => {
    await makeLegacyTable(client, 'bigint', 10)
    await adopt()
    const pending = `SELECT count(*)::int FROM "OutboxMessages" WHERE "ProcessedAt" IS NULL`
    expect(await theOne(pending)).toBe(5)
    expect(await theOne(`${pending} AND "IsProcessed"`)).toBe(0)
    // From now on: the first purge takes nothing away that was there before.
    const justNow = `now() - "ProcessedAt" < interval '10 minutes'`
    expect(await theOne(`SELECT bool_and(${justNow}) FROM "OutboxMessages" WHERE "IsProcessed"`)).toBe(true)
  })

  it('gives keys to the rows of producers that know nothing of them', async () => {
    await makeLegacyTable(client, 'bigint', 1)
    await adopt()
    await insertMessage(other)
    expect(await theOne('SELECT count(DISTINCT "IdempotencyKey")::int FROM "OutboxMessages"')).toBe(2)
  })

  it('keeps the keys that it has, whatever type they are', async () => {
    await makeLegacyTable(client, 'bigint', 10)
    await client.query(`ALTER TABLE "OutboxMessages" ADD COLUMN "IdempotencyKey" varchar(36);
      UPDATE "OutboxMessages" SET "IdempotencyKey" = '${KEY}' WHERE "Id" = 3`)
    expect(await adopt()).toMatchObject({ keysFilled: 9, keysMissing: 0 })
    expect(await theOne('SELECT "IdempotencyKey" FROM "OutboxMessages" WHERE "Id" = 3')).toBe(KEY)
  })

  it('may call its columns and its flag as it likes', async () => {
    await client.query(`CREATE SCHEMA sales; CREATE TABLE sales.events (no text PRIMARY KEY, tenant int, name text, body text, at timestamp, sent boolean);
      INSERT INTO sales.events VALUES ('a', 1, 'E', '{}', '2026-01-02 03:04:05', true), ('b', 1, 'E', '{}', '2026-01-02 03:04:06', NULL)`)
    const report = await adoptTable(place.url, {
      table: 'sales.events',
      columns: {
        id: 'no',
        tenantId: 'tenant',
        eventType: 'name',
        payload: 'body',
        createdAt: 'at',
        isProcessed: 'sent',
      },
      chunk: 1,
    })
    expect(report).toMatchObject({ rows: 2, keysFilled: 2, complete: true })
    expect(await theOne(`SELECT processed_at IS NOT NULL FROM sales.events WHERE no = 'a'`)).toBe(true)
    expect(await theOne(`SELECT processed_at FROM sales.events WHERE no = 'b'`)).toBe(null)
    expect(await theOne(`SELECT to_regclass('sales.events_keys')::text`)).toBe('sales.events_keys')
  })

  it('is left as it is by a second adoption', async () => {
    await makeLegacyTable(client, 'uuid', 50)
    await adopt({ enforce: true })
    const before = await everythingIn(client)
    const report = await adopt({ enforce: true })
    expect(report.steps.map(({ outcome }) => outcome)).toEqual(report.steps.map(() => 'already there'))
    expect(await everythingIn(client)).toEqual(before)
  })

  it('refuses rows without a key once that is enforced', async () => {
    await makeLegacyTable(client, 'bigint', 10)
    await adopt({ enforce: true })
    const taken = 'UPDATE "OutboxMessages" SET "IdempotencyKey" = NULL'
    await expect(client.query(taken)).rejects.toMatchObject({ code: '23502' })
    expect(await theOne(`SELECT count(*)::int FROM pg_constraint WHERE conname LIKE '%key_given'`)).toBe(0)
    await insertMessage(other)
  })

  it('is enforced from wherever a killed adoption left off', async () => {
    await makeLegacyTable(client, 'bigint', 10)
    await adopt()
    await client.query(
      `ALTER TABLE "OutboxMessages" ADD CONSTRAINT "OutboxMessages_key_given" CHECK ("IdempotencyKey" IS NOT NULL) NOT VALID`,
    )
    const { steps } = await adopt({ enforce: true })
    expect(steps.slice(-4).map(({ outcome }) => outcome)).toEqual(['already there', 'done', 'done', 'done'])
    await client.query(
      `ALTER TABLE "OutboxMessages" ADD CONSTRAINT "OutboxMessages_key_given" CHECK ("IdempotencyKey" IS NOT NULL)`,
    )
    const again = await adopt({ enforce: true })
    expect(again.steps.slice(-4).map(({ outcome }) => outcome)).toEqual([
      'already there',
      'already there',
      'already there',
      'done',
    ])
  })

  it('with no index on its ids is adopted, and its owner is told what to make', async () => {
    await makeLegacyTable(client, 'bigint', 100)
    await client.query('ALTER TABLE "OutboxMessages" DROP CONSTRAINT "OutboxMessages_pkey"')
    expect(await adopt({ chunk: 7 })).toMatchObject({
      complete: true,
      notes: [expect.stringContaining('CREATE UNIQUE INDEX CONCURRENTLY ON "OutboxMessages" ("Id")')],
    })
  })
})

describe('a dry run', () => {
  it('changes nothing, and tells exactly the SQL that is run afterwards', async () => {
    await makeLegacyTable(client, 'bigint', 100)
    const before = await everythingIn(client)
    const planned = await adopt({ dryRun: true, enforce: true })
    expect(await everythingIn(client)).toEqual(before)
    expect(planned).toMatchObject({ rows: 100, keysMissing: 100, keysFilled: 0, complete: false })
    const done = await adopt({ enforce: true })
    const sqlOf = (steps: typeof done.steps, outcome: string) =>
      steps.filter((step) => step.outcome === outcome).map(({ sql }) => sql)
    expect(sqlOf(planned.steps, 'skipped')).toEqual(sqlOf(done.steps, 'done'))
  })

  it('says what each step is for in plain words, and explains parameters beside the SQL', async () => {
    await makeLegacyTable(client, 'bigint', 1)
    const { steps } = await adopt({ dryRun: true })
    expect(steps.filter(({ what }) => /[$?]\d/.test(what))).toEqual([])
    expect(steps.find(({ what }) => what.startsWith('give keys'))).toMatchObject({
      what: 'give keys to rows without one, 10000 at a time, until none is left',
      sql: expect.stringMatching(
        /^-- \$1: 10000, the rows of a chunk; \$2: the last id of the chunk before\n/,
      ),
    })
  })

  it('tells the table that would be made', async () => {
    const { steps, created } = await adopt({ dryRun: true })
    expect(created).toBe(false)
    expect(steps).toMatchObject([{ outcome: 'skipped', sql: expect.stringContaining('CREATE TABLE') }])
    expect(await theOne(`SELECT to_regclass('"OutboxMessages"')`)).toBe(null)
  })
})

describe('a table that does not exist', () => {
  it('is made whole, and then there is nothing more to adopt', async () => {
    expect(await adopt({ enforce: true })).toMatchObject({ created: true, rows: 0, complete: true })
    const before = await everythingIn(client)
    const again = await adopt({ enforce: true })
    expect(new Set(again.steps.map(({ outcome }) => outcome))).toEqual(new Set(['already there']))
    expect(await everythingIn(client)).toEqual(before)
  })
})

describe('a table that cannot be adopted', () => {
  it('is refused with the columns that it lacks, and not touched', async () => {
    await client.query('CREATE TABLE "OutboxMessages" ("Id" int PRIMARY KEY, "TenantId" int, "Body" text)')
    const before = await everythingIn(client)
    await expect(adopt()).rejects.toMatchObject({
      code: 'outbox_columns_missing',
      message: expect.stringContaining('it lacks EventType, Payload, CreatedAt'),
    })
    expect(await everythingIn(client)).toEqual(before)
  })

  it('is refused where a column of a name that is needed has a type that does not serve', async () => {
    await makeLegacyTable(client, 'bigint', 1)
    await client.query('ALTER TABLE "OutboxMessages" ADD COLUMN "NextAttemptAt" timestamp')
    await expect(adopt()).rejects.toMatchObject({
      code: 'outbox_option_invalid',
      message: expect.stringContaining(
        "'NextAttemptAt' is of type timestamp without time zone and has to be timestamptz",
      ),
    })
    expect(await adopt({ columns: { nextAttemptAt: 'DueAt' } })).toMatchObject({ complete: true })
  })

  it('is refused where the names of dispatchers do not fit', async () => {
    await makeLegacyTable(client, 'bigint', 1)
    await client.query('ALTER TABLE "OutboxMessages" ADD COLUMN "ClaimedBy" varchar(64)')
    await expect(adopt()).rejects.toThrow("'ClaimedBy' is of type character varying(64) and has to be text")
    await client.query('ALTER TABLE "OutboxMessages" ALTER COLUMN "ClaimedBy" TYPE varchar(128)')
    expect(await adopt()).toMatchObject({ complete: true })
  })

  it('is refused when the flag that was named is not there: everything would be delivered again', async () => {
    await makeLegacyTable(client, 'bigint', 1)
    await expect(adopt({ columns: { isProcessed: 'Sent' } })).rejects.toThrow(
      "the table has no column 'Sent'",
    )
  })

  it.each([
    ['view', 'CREATE VIEW "OutboxMessages" AS SELECT * FROM base'],
    ['partitioned table', 'CREATE TABLE "OutboxMessages" (LIKE base) PARTITION BY RANGE ("CreatedAt")'],
  ])('is refused when it is a %s', async (kind, sql) => {
    await client.query(
      `CREATE TABLE base ("Id" int, "TenantId" text, "EventType" text, "Payload" text, "CreatedAt" timestamptz); ${sql}`,
    )
    await expect(adopt()).rejects.toThrow(`'OutboxMessages' is a ${kind}`)
  })

  it.each([
    [{ chunk: 0 }, 'chunk'],
    [{ chunk: 2.5 }, 'chunk'],
    [{ lockWaitSeconds: -1 }, 'lockWaitSeconds'],
    [{ table: 'a.b.c' }, 'table'],
  ])('is refused with wrong options: %o', async (options, option) => {
    await expect(adopt(options)).rejects.toMatchObject({ details: { option } })
  })

  it('is refused without its password when the URL is none', async () => {
    const refusal = await adoptTable('mysql://app:secret@db/shop').catch((error: Error) => error.message)
    expect(refusal).toMatch(/^option url is invalid/)
    expect(refusal).not.toContain('secret')
  })
})

describe('duplicates', () => {
  const makeDuplicates = async () => {
    await makeLegacyTable(client, 'bigint', 60)
    // Three rows share one key, and twenty-four pairs another each; a tenant has nothing to do with the keys of another.
    await client.query(`ALTER TABLE "OutboxMessages" ADD COLUMN "IdempotencyKey" uuid;
      UPDATE "OutboxMessages" SET "TenantId" = '${KEY}', "IdempotencyKey" = md5(least(("Id" + 1) / 2, 25)::text)::uuid WHERE "Id" <= 51;
      UPDATE "OutboxMessages" SET "IdempotencyKey" = md5('25')::uuid WHERE "Id" = 60`)
  }

  it('are listed, and the unique index is left out until they are gone', async () => {
    await makeDuplicates()
    const report = await adopt()
    expect(report).toMatchObject({ duplicateCount: 25, complete: false, keysMissing: 0, rekeyed: 0 })
    expect(report.duplicates).toHaveLength(20)
    // Rows were created in the reverse order of their ids.
    expect(report.duplicates[0]).toMatchObject({ tenantId: KEY, rows: 3, ids: ['51', '50', '49'] })
    expect(await indexNames()).not.toContain('OutboxMessages_tenant_key')
    expect(await indexNames()).toContain('OutboxMessages_due')
  })

  it('are told by a dry run', async () => {
    await makeDuplicates()
    expect(await adopt({ dryRun: true })).toMatchObject({ duplicateCount: 25 })
  })

  it('get keys of their own when that is wanted, all but the oldest', async () => {
    await makeDuplicates()
    const report = await adopt({ rekeyDuplicates: true, chunk: 10 })
    expect(report).toMatchObject({ duplicateCount: 25, rekeyed: 26, complete: true })
    expect(await indexNames()).toContain('OutboxMessages_tenant_key')
    expect(
      await theOne(
        `SELECT array_agg("Id" ORDER BY "Id")::text FROM "OutboxMessages" WHERE "IdempotencyKey" = md5('25')::uuid`,
      ),
    ).toBe('{51,60}')
    expect(await adopt()).toMatchObject({ duplicateCount: 0, complete: true })
  })

  it('are kept out by an index of another name as well', async () => {
    await makeLegacyTable(client, 'bigint', 10)
    await client.query(`ALTER TABLE "OutboxMessages" ADD COLUMN "IdempotencyKey" uuid;
      CREATE UNIQUE INDEX "UX_Outbox_Tenant_Idem" ON "OutboxMessages" ("TenantId", "IdempotencyKey")`)
    expect(await adopt()).toMatchObject({ complete: true })
    expect(await indexNames()).toContain('UX_Outbox_Tenant_Idem')
    expect(await indexNames()).not.toContain('OutboxMessages_tenant_key')
  })

  it('are not kept out by an index on some of the rows', async () => {
    await makeLegacyTable(client, 'bigint', 10)
    await client.query(`ALTER TABLE "OutboxMessages" ADD COLUMN "IdempotencyKey" uuid;
      CREATE UNIQUE INDEX "UX_Part" ON "OutboxMessages" ("TenantId", "IdempotencyKey") WHERE NOT "IsProcessed"`)
    await adopt()
    expect(await indexNames()).toContain('OutboxMessages_tenant_key')
  })
})

describe('a duplicate that is committed while the unique index is built', () => {
  it('is listed like one that was there before, and leaves no half index', async () => {
    await makeLegacyTable(client, 'bigint', 10)
    await adopt()
    await client.query('DROP INDEX "OutboxMessages_tenant_key"')
    await other.query('BEGIN')
    await other.query(
      `INSERT INTO "OutboxMessages" ("TenantId", "EventType", "Payload", "IdempotencyKey") SELECT "TenantId", 'E', '{}', "IdempotencyKey" FROM "OutboxMessages" WHERE "Id" = 1`,
    )
    const { waits, onWait } = waiting(/building OutboxMessages_tenant_key waits/)
    const adoption = adopt({ onWait })
    await waits
    await other.query('COMMIT')
    expect(await adoption).toMatchObject({ complete: false, duplicateCount: 1 })
    expect(await theOne('SELECT count(*)::int FROM pg_index WHERE NOT indisvalid')).toBe(0)
  })
})

describe('what others hold', () => {
  it('is named when a long transaction keeps the table, and producers do not queue behind the adoption', async () => {
    await makeLegacyTable(client, 'bigint', 10)
    await other.query('BEGIN')
    await other.query('SELECT count(*) FROM "OutboxMessages"')
    const adoption = adopt({ lockWaitSeconds: 1 }).catch((error: Error) => error)
    // The transaction stays open: who queued behind it would not come to an end.
    for (let i = 0; i < 20; i++) await insertMessage(client)
    expect(await adoption).toMatchObject({
      name: 'AdoptionBlocked',
      message: expect.stringMatching(
        /^the lock on the table is held: process \d+ \(night-report, .*transaction open for \d+ s\)/,
      ),
    })
    expect(await columnsOf('"OutboxMessages"')).not.toContain('IdempotencyKey')
  })

  it('is waited for when it is let go in time', async () => {
    await makeLegacyTable(client, 'bigint', 10)
    await other.query('BEGIN')
    await other.query('SELECT count(*) FROM "OutboxMessages"')
    const { waits, onWait } = waiting(/lock on the table/)
    const adoption = adopt({ onWait })
    expect(await waits).toContain('night-report')
    await other.query('COMMIT')
    expect(await adoption).toMatchObject({ complete: true })
  })

  it('is passed over when it is a row, and met again', async () => {
    await makeLegacyTable(client, 'bigint', 10)
    await adopt()
    await client.query('UPDATE "OutboxMessages" SET "IdempotencyKey" = NULL WHERE "Id" IN (3, 4)')
    await other.query('BEGIN')
    await other.query('SELECT 1 FROM "OutboxMessages" WHERE "Id" = 3 FOR UPDATE')
    expect(await adopt({ lockWaitSeconds: 0.3 }).catch((error: Error) => error.message)).toMatch(
      /^1 rows without a key are locked by others: process \d+ \(night-report/,
    )
    const { waits, onWait } = waiting(/locked by others/)
    const adoption = adopt({ onWait })
    await waits
    await other.query('COMMIT')
    expect(await adoption).toMatchObject({ keysFilled: 1, keysMissing: 0, complete: true })
  })
})

describe('an adoption that is stopped while it builds an index', () => {
  it('leaves half an index, which the next one builds anew', async () => {
    await makeLegacyTable(client, 'bigint', 10)
    await adopt()
    await client.query('DROP INDEX "OutboxMessages_line"')
    // Building waits for transactions that wrote the table, and this one did.
    await other.query('BEGIN')
    await insertMessage(other)
    const stop = new AbortController()
    const { waits, onWait } = waiting(/building OutboxMessages_line waits/)
    const adoption = adopt({ onWait, signal: stop.signal }).catch((error: Error) => error)
    expect(await waits).toContain('night-report')

    const second = await adopt({ lockWaitSeconds: 0.2 }).catch((error: Error) => error)
    expect(second).toMatchObject({
      message: expect.stringMatching(
        /^another adoption of 'OutboxMessages' is running: process \d+ \(bartleby-adopt/,
      ),
    })

    stop.abort()
    expect(await adoption).toMatchObject({ name: 'AbortError' })
    expect(await theOne('SELECT indexrelid::regclass::text FROM pg_index WHERE NOT indisvalid')).toBe(
      '"OutboxMessages_line"',
    )
    await other.query('COMMIT')
    const { steps } = await adopt()
    expect(steps.filter(({ outcome }) => outcome === 'done').map(({ sql }) => sql)).toEqual([
      expect.stringMatching(
        /^DROP INDEX CONCURRENTLY IF EXISTS "public"\."OutboxMessages_line";\nCREATE INDEX CONCURRENTLY/,
      ),
    ])
    expect(await indexNames()).toContain('OutboxMessages_line')
  })
})

describe('an adoption through a pooler', () => {
  it('is refused before anything is touched, and says what to give', async () => {
    await makeLegacyTable(client, 'bigint', 10)
    const before = await columnsOf('"OutboxMessages"')
    const pooler = await startPooler(place.url)
    try {
      // Who comes first signs in at the server itself.
      await (await connect(pooler.url)).end()
      await expect(adoptTable(pooler.url, PASCAL)).rejects.toThrow(
        /a pooler stands between.*give PostgreSQL's own address/,
      )
    } finally {
      await pooler.close()
    }
    expect(await columnsOf('"OutboxMessages"')).toEqual(before)
  })
})
