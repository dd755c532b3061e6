import { setTimeout as pause } from 'node:timers/promises'
import pg from 'pg'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { PATIENCE_MS } from '../../test/world/limits.ts'
import { startPooler } from '../../test/world/pooler.ts'
import { doorTo } from '../../test/world/proxy.ts'
import { bareStores, type FreshStore, freshPostgres } from '../../test/world/stores.ts'
import { silentLog } from '../core/log.ts'
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

  it('ends also when its connection has fallen silent', async () => {
    const door = await doorTo(store.url)
    const far = openDatabase(door.url, { poolSize: 1 })
    await far.listen('news', () => {})
    door.block()
    const closed = far.close().then(() => 'closed')
    expect(await Promise.race([closed, pause(PATIENCE_MS, 'waits', { ref: false })])).toBe('closed')
    await door.close()
  })
})

describe('two who begin to listen at once', () => {
  it('leave nothing behind on the connection of a pooler', async () => {
    const store = await freshPostgres()
    const pooler = await startPooler(store.url)
    const said: string[] = []
    const log = { ...silentLog, warn: (_: object, message: string) => said.push(message) }
    const db = openDatabase(pooler.url, { poolSize: 1, log })
    try {
      // The first client of all is told the process that answers it: the pooler is known to the second.
      const first = new pg.Client(pooler.url)
      await first.connect()
      await first.end()
      await Promise.all(['news', 'gossip', 'rumours'].map((channel) => db.listen(channel, () => {})))
      await db.listen('late', () => {})
      const next = new pg.Client(pooler.url)
      await next.connect()
      expect((await next.query('SELECT * FROM pg_listening_channels()')).rows).toEqual([])
      await next.end()
      expect(said).toEqual([expect.stringMatching(/for the store as postgres\.listenUrl, for an outbox/)])
    } finally {
      await db.close()
      await pooler.close()
      await store.dispose()
    }
  })

  it('are both heard', async () => {
    const store = await freshPostgres()
    const db = openDatabase(store.url, { poolSize: 1 })
    try {
      const heard: string[] = []
      const channels = ['news', 'gossip']
      await Promise.all(channels.map((channel) => db.listen(channel, (payload) => heard.push(payload))))
      for (const channel of channels) await db.notify(channel, channel)
      await expect.poll(() => heard, { timeout: PATIENCE_MS }).toEqual(channels)
    } finally {
      await db.close()
      await store.dispose()
    }
  })
})
