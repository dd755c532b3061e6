import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Pooler, startPooler } from '../../test/harness/pooler.ts'
import { type FreshStore, freshPostgres } from '../../test/harness/stores.ts'
import { type Database, type Session, sql } from './database.ts'
import { openDatabase } from './open.ts'

/** Settings that somebody has changed on this connection; who asks has an own name and encoding. */
const CHANGED = `SELECT name FROM pg_settings
  WHERE source = 'session' AND name NOT IN ('application_name', 'client_encoding')`
const readJit = sql('test.jit', `SELECT current_setting('jit') AS jit`)
const failing = sql('test.failing', 'SELECT 1 / $1::int')

describe('settings of ours on a connection that a pooler lends to others', () => {
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

  it('are in force for our statements, and gone when others use it', async () => {
    const jitOf = async (session: Session) => (await session.rows<{ jit: string }>(readJit))[0]?.jit
    expect(await db.session('test', jitOf)).toBe('off')
    expect(await db.statement('test', jitOf)).toBe('off')
    expect(await db.transaction('test', jitOf)).toBe('off')
    expect(await db.snapshot('test', jitOf)).toBe('off')
    await expect(db.session('test', (session) => session.rows(failing, 0))).rejects.toThrow('zero')
    await expect(db.transaction('test', (tx) => tx.rows(failing, 0))).rejects.toThrow('zero')
    await db.notify('test', '')
    await db.close()
    const other = new pg.Client({ connectionString: pooler.url })
    await other.connect()
    try {
      expect(
        (await other.query('SELECT count(*)::int AS left_behind FROM pg_prepared_statements')).rows,
      ).toEqual([{ left_behind: 2 }])
      expect((await other.query(CHANGED)).rows).toEqual([])
    } finally {
      await other.end()
    }
  })
})
