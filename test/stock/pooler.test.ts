/** PgBouncer in transaction mode between servers and PostgreSQL: everything works, and nothing is left in a session. */
import pg from 'pg'
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest'
import type { Log } from '../../src/core/log.ts'
import { Office } from '../../src/office.ts'
import { openDatabase } from '../../src/store/open.ts'
import { describeProgram } from '../world/debian.ts'
import { PATIENCE_MS } from '../world/limits.ts'
import { startPgBouncer } from '../world/pgbouncer.ts'
import type { Pooler } from '../world/pooler.ts'
import { RedriveOffice } from '../world/redrive-office.ts'
import { type FreshStore, freshPostgres } from '../world/stores.ts'
import { violationsIn } from '../world/verified.ts'

/** What somebody left in this session; who asks has a name and an encoding, which the pooler carries along. */
const LEFT_BEHIND = `
  SELECT 'setting ' || name AS what FROM pg_settings
    WHERE source = 'session' AND name NOT IN ('application_name', 'client_encoding', 'DateStyle', 'TimeZone', 'standard_conforming_strings')
  UNION ALL SELECT 'statement ' || name FROM pg_prepared_statements
  UNION ALL SELECT 'channel ' || channel FROM pg_listening_channels() AS channel
  UNION ALL SELECT 'table ' || relname FROM pg_class WHERE relpersistence = 't' AND relnamespace = pg_my_temp_schema()
  UNION ALL SELECT 'lock ' || objid FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()`

const warnings = () => {
  const said: string[] = []
  const log: Log = { debug() {}, info() {}, warn: (_, message) => said.push(message), error() {} }
  return { said, log }
}

describeProgram('pgbouncer', 'a server behind PgBouncer in transaction mode', (program) => {
  let place: FreshStore
  let pooler: Pooler
  let desk: RedriveOffice

  beforeAll(async () => {
    place = await freshPostgres()
    pooler = await startPgBouncer(program, place.url)
  })
  afterAll(async () => {
    await pooler?.close()
    await place?.dispose()
  })
  beforeEach(async () => {
    // The tests share the store; each has queues of its own.
    const fresh = async () => ({ ...place, url: pooler.url, dispose: async () => {} })
    desk = await RedriveOffice.open({ name: 'postgres', fresh })
  })
  afterEach(() => desk?.close())

  it('works, together with another, and the store is whole', async () => {
    const other = await desk.another()
    try {
      await desk.createQueue('jobs')
      const payloads = Array.from({ length: 200 }, (_, n) => `${n}`)
      await desk.dead('jobs', payloads)
      const done = await desk.run()
      expect(done).toMatchObject({ state: 'done' })
      expect(await desk.work('jobs')).toEqual(payloads)
      // Both servers at once, each transaction on whichever connection is free.
      await Promise.all(
        payloads.map((payload, n) =>
          (n % 2 === 0 ? desk.office : other).queues.produce({
            queueName: 'jobs',
            items: [{ payload }],
            requestTimeout: '1m',
          }),
        ),
      )
      const leases = await Promise.all(
        payloads.map((_, n) =>
          (n % 2 === 0 ? desk.office : other).queues.lease({
            queueName: 'jobs',
            clientId: `worker-${n}`,
            batchSize: 1,
            requestTimeout: '1m',
          }),
        ),
      )
      const ids = leases.flatMap(({ items }) => items.map(({ id }) => id))
      expect(new Set(ids).size).toBe(payloads.length)
      await other.queues.complete({ queueName: 'jobs', partition: 0, ids })
    } finally {
      await other.close()
    }
    const db = openDatabase(pooler.url, { poolSize: 2 })
    try {
      expect(await violationsIn(db)).toEqual([])
    } finally {
      await db.close()
    }
  })

  it('leaves nothing behind for others who get the same connections', async () => {
    await desk.createQueue('traces')
    await desk.dead('traces', ['a', 'b'])
    await desk.run()
    // At once, so that each gets another connection, and held until all were asked.
    const clients = Array.from({ length: 3 }, () => new pg.Client({ connectionString: pooler.url }))
    const left: unknown[] = []
    await desk.office.close()
    for (const client of clients) {
      await client.connect()
      await client.query('BEGIN')
      left.push(...(await client.query(LEFT_BEHIND)).rows)
    }
    await Promise.all(clients.map((client) => client.end()))
    desk.office = await desk.another()
    expect(left).toEqual([])
  })

  it('says once that others are not heard, and finds what they do all the same', async () => {
    const { said, log } = warnings()
    const deaf = await Office.open({ store: pooler.url, log })
    try {
      await desk.createQueue('heard')
      const waiting = deaf.queues.lease({
        queueName: 'heard',
        clientId: 'waiting',
        batchSize: 1,
        requestTimeout: '1m',
      })
      await desk.office.queues.produce({
        queueName: 'heard',
        items: [{ payload: 'a' }],
        requestTimeout: '1m',
      })
      expect((await waiting).items).toHaveLength(1)
      expect(said.filter((message) => message.includes('pooler'))).toHaveLength(1)
    } finally {
      await deaf.close()
    }
  })

  it("hears others at PostgreSQL's own address", async () => {
    const { said, log } = warnings()
    const postgres = { poolSize: 2, listenUrl: place.url }
    const db = openDatabase(pooler.url, { ...postgres, log })
    try {
      const heard: string[] = []
      await db.listen('news', (payload) => heard.push(payload))
      await db.notify('news', 'through the pooler')
      await expect.poll(() => heard, { timeout: PATIENCE_MS }).toEqual(['through the pooler'])
      expect(said).toEqual([])
    } finally {
      await db.close()
    }
  })
})
