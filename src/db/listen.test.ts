import pg from 'pg'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { bareStores, type FreshStore } from '../../test/harness/stores.ts'
import type { Database } from './database.ts'
import { openDatabase } from './open.ts'

describe.each(bareStores.filter(({ name }) => name === 'postgres'))('listening on $name', (kind) => {
  let store: FreshStore
  let db: Database
  let other: pg.Client

  beforeEach(async () => {
    store = await kind.fresh()
    db = openDatabase(store.url, { poolSize: 1 })
    other = new pg.Client(store.url)
    await other.connect()
  })
  afterEach(async () => {
    await other.end()
    await db.close()
    await store.dispose()
  })

  const LISTENERS = `FROM pg_stat_activity WHERE application_name = 'bartleby-listen' AND datname = current_database()`

  it('outlives an administrator who ends the connection, with one connection in its place', async () => {
    const heard: string[] = []
    await db.listen('news', (payload) => heard.push(payload))
    // The server says that it ends the connection, and then it does: two errors.
    const ended = await other.query(`SELECT pg_terminate_backend(pid) ${LISTENERS}`)
    expect(ended.rowCount).toBe(1)
    const asked = async () => {
      await db.notify('news', 'again')
      return heard.length
    }
    await expect.poll(asked, { interval: 100 }).toBeGreaterThan(0)
    const left = await other.query(`SELECT count(*)::int AS n ${LISTENERS}`)
    expect(left.rows).toEqual([{ n: 1 }])
  })
})
