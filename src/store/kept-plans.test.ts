import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { PATIENCE_MS } from '../../test/world/limits.ts'
import { type Pooler, startPooler } from '../../test/world/pooler.ts'
import { barePostgres, type FreshStore, freshPostgres } from '../../test/world/stores.ts'
import { type Database, sql } from './database.ts'
import { openDatabase } from './open.ts'

const ROWS = 200_000
/** PostgreSQL plans for the values of so many calls, and then perhaps once for all. */
const UNTIL_KEPT = 8

const find = sql('test.findRow', 'SELECT value FROM test_rows WHERE id = $1')
const findAnew = sql('test.findRowAnew', 'SELECT value FROM test_rows WHERE id = $1', { plan: 'anew' })
/** Rows that the transaction has read so far by going through the table. */
const countRead = sql(
  'test.rowsRead',
  `SELECT seq_tup_read AS rows FROM pg_stat_xact_user_tables WHERE relname = 'test_rows'`,
)

describe('a plan that was made on an empty table', () => {
  let place: FreshStore
  let client: pg.Client
  let db: Database

  beforeAll(async () => {
    place = await barePostgres()
    client = new pg.Client({ connectionString: place.url })
    await client.connect()
    // Analysed while it is empty: no plan is better than going through it.
    await client.query(`CREATE TABLE test_rows (id bigint PRIMARY KEY, value text)
      WITH (autovacuum_enabled = off); ANALYZE test_rows`)
    db = openDatabase(place.url, { poolSize: 1 })
  })
  afterAll(async () => {
    await client?.end()
    await db?.close()
    await place?.dispose()
  })

  const rowsRead = (statement: typeof find) =>
    db.transaction('test', async (tx) => {
      await tx.rows(statement, 7)
      const [read] = await tx.rows<{ rows: string }>(countRead)
      return Number(read?.rows)
    })

  it('is given up soon after rows have arrived, and a plan for each call at once', async () => {
    for (let call = 0; call < UNTIL_KEPT; call++) {
      await rowsRead(find)
      await rowsRead(findAnew)
    }
    await client.query(`INSERT INTO test_rows SELECT n, 'value' FROM generate_series(1, ${ROWS}) AS n`)
    expect(await rowsRead(findAnew)).toBe(0)
    await expect.poll(() => rowsRead(find), { timeout: PATIENCE_MS, interval: 100 }).toBe(0)
  })
})

/** Settings that somebody has changed on this connection; who asks has an own name and encoding. */
const CHANGED = `SELECT name FROM pg_settings
  WHERE source = 'session' AND name NOT IN ('application_name', 'client_encoding') AND name NOT LIKE 'transaction%'`
const changed = sql('test.changedSettings', CHANGED)
const failing = sql('test.divides', 'SELECT 1 / $1::int')

describe('a connection that a pooler lends to others', () => {
  let place: FreshStore
  let pooler: Pooler
  let db: Database

  beforeAll(async () => {
    place = await freshPostgres()
    pooler = await startPooler(place.url)
    db = openDatabase(pooler.url, { poolSize: 1 })
  })

  afterAll(async () => {
    await pooler?.close()
    await place?.dispose()
  })

  it('has the settings of the server, for our statements and when others use it', async () => {
    const ask = (session: { rows: (statement: typeof changed) => Promise<unknown[]> }) =>
      session.rows(changed)
    expect(await db.session('test', ask)).toEqual([])
    expect(await db.statement('test', ask)).toEqual([])
    expect(await db.transaction('test', ask)).toEqual([])
    expect(await db.snapshot('test', ask)).toEqual([])
    await expect(db.session('test', (session) => session.rows(failing, 0))).rejects.toThrow('zero')
    await expect(db.transaction('test', (tx) => tx.rows(failing, 0))).rejects.toThrow('zero')
    await db.notify('test', '')
    await db.close()
    const other = new pg.Client({ connectionString: pooler.url })
    await other.connect()
    try {
      expect((await other.query(CHANGED)).rows).toEqual([])
    } finally {
      await other.end()
    }
  })
})
