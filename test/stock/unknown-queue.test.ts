/**
 * A queue that was just filled, on a server that knows nothing about it: autovacuum looks once a minute. PostgreSQL before 17 read all of
 * a partition for every lease and every completion, and a storm of the first minute went at a tenth of its rate.
 */
import pg from 'pg'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { Office } from '../../src/office.ts'
import { describeDebianPostgres } from '../world/debian.ts'
import type { PostgresServer } from '../world/postgres.ts'

const ITEMS = 20_000
const BATCH = 500
const ROUNDS = 4
/** Leased, then gone: each row is met a few times, and so are those before it that are gone already. */
const MOST_READ = 40 * BATCH * ROUNDS

describeDebianPostgres('a queue that PostgreSQL knows nothing about', (postgres) => {
  let server: PostgresServer
  beforeAll(async () => {
    server = await postgres.start()
    const client = new pg.Client({ connectionString: server.url })
    await client.connect()
    await client.query('ALTER SYSTEM SET autovacuum = off')
    await client.query('SELECT pg_reload_conf()')
    await client.end()
  })
  afterAll(() => server?.stop())

  async function inOffice<T>(work: (office: Office) => Promise<T>): Promise<T> {
    const office = await Office.open({ store: server.url })
    try {
      return await work(office)
    } finally {
      await office.close()
    }
  }

  /** Rows of items that statements have read so far. Connections tell at the latest when they are closed. */
  async function rowsRead(): Promise<number> {
    const client = new pg.Client({ connectionString: server.url })
    await client.connect()
    const { rows } = await client.query<{ read: string }>(
      `SELECT seq_tup_read + (SELECT sum(idx_tup_read) FROM pg_stat_user_indexes WHERE relname = 'items') AS read
       FROM pg_stat_user_tables WHERE relname = 'items'`,
    )
    await client.end()
    return Number(rows[0]?.read)
  }

  type Settle = (
    queues: Office['queues'],
    at: { queueName: string; partition: number },
    ids: readonly string[],
  ) => Promise<unknown>

  it.each<[string, Settle]>([
    ['completed', (queues, at, ids) => queues.complete({ ...at, ids })],
    ['dead', (queues, at, ids) => queues.retry({ ...at, items: ids.map((id) => ({ id, dead: true })) })],
  ])('is read no further than what is leased, and then %s', async (queueName, settle) => {
    await inOffice(async ({ queues }) => {
      const settings = { leaseTimeout: '1h', expireTimeout: '24h', requestedPartitions: 1 }
      await queues.create({ ...settings, queueName })
      for (let made = 0; made < ITEMS; made += 1_000) {
        const items = Array.from({ length: 1_000 }, () => ({ payload: 'x' }))
        await queues.produce({ queueName, items, requestTimeout: '1m' })
      }
    })
    const before = await rowsRead()
    await inOffice(async ({ queues }) => {
      const asked = { queueName, clientId: 'reader', batchSize: BATCH, requestTimeout: '10s' }
      for (let round = 0; round < ROUNDS; round++) {
        const { partition, items } = await queues.lease(asked)
        expect(items).toHaveLength(BATCH)
        const ids = items.map(({ id }) => id)
        await settle(queues, { queueName, partition }, ids)
      }
    })
    expect((await rowsRead()) - before).toBeLessThan(MOST_READ)
  })
})
