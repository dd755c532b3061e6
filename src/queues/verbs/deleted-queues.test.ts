import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { PATIENCE_MS } from '../../../test/world/limits.ts'
import { type FreshStore, stores } from '../../../test/world/stores.ts'
import { instant } from '../../core/clock.ts'
import { TestClock } from '../../core/test-clock.ts'
import { Office } from '../../office.ts'
import { type Database, type Integer, sql } from '../../store/database.ts'
import { openDatabase } from '../../store/open.ts'
import { REMOVAL } from './clear.ts'

const TABLES = ['items', 'lease_batches', 'partition_totals', 'dropped_parts']
const COUNTS = TABLES.map((table) => sql(`test.${table}`, `SELECT count(*) AS rows FROM bartleby.${table}`))
const DROPPED = sql('test.dropped', 'SELECT min(part) AS part FROM bartleby.dropped_parts')
const INSERT = sql(
  'test.lateItem',
  'INSERT INTO bartleby.items (id, part, shelf, leased, attempts, created_at) VALUES (1000000, $1, 0, 0, 0, 0)',
)

describe.each(stores)('a deleted queue on $name', (store) => {
  let place: FreshStore
  let office: Office
  let db: Database

  beforeAll(async () => {
    place = await store.fresh()
    const clock = new TestClock()
    clock.freeze(instant(1_800_000_000_000_000n))
    office = await Office.open({ store: place.url, clock })
    db = openDatabase(place.url, { poolSize: 1 })
  })

  afterAll(async () => {
    await db?.close()
    await office?.close()
    await place?.dispose()
  })

  /** Rows of items, lease batches, totals and partitions that are to be looked at again. */
  const rows = () =>
    db.session('test', async (session) => {
      const found = await Promise.all(COUNTS.map((each) => session.rows<{ rows: Integer }>(each)))
      return found.map(([row]) => Number(row?.rows))
    })

  const ended = (count: number) =>
    vi.waitFor(
      async () => {
        const runs = await office.runs.list({ kinds: [REMOVAL], states: null, before: null, limit: 10 })
        expect(runs.map(({ state }) => state)).toEqual(Array.from({ length: count }, () => 'done'))
        return runs
      },
      { timeout: PATIENCE_MS, interval: 10 },
    )

  it('is removed by a run: items on every shelf, leases and counts', async () => {
    const queueName = 'orders'
    const settings = { queueName, leaseTimeout: '1m', expireTimeout: '1h', requestedPartitions: 1 }
    await office.queues.create(settings)
    const items = Array.from({ length: 1_000 }, () => ({ payload: 'x' }))
    const enqueueAt = instant(1_900_000_000_000_000n)
    for (const more of [items, items, items.map((item) => ({ ...item, enqueueAt }))])
      await office.queues.produce({ queueName, items: more })
    await office.queues.lease({ queueName, clientId: 'worker', batchSize: 10 })
    await office.queues.delete({ queueName })
    const [run] = await ended(1)
    expect(run).toMatchObject({ about: 'orders', actor: 'queues.delete', done: 3_000 })
    expect(await rows()).toEqual([0, 0, 0, 1])
  })

  it('is looked at again ten minutes later, for what a server wrote that did not know', async () => {
    await db.transaction('test', async (tx) => {
      const [row] = await tx.rows<{ part: Integer }>(DROPPED)
      await tx.run(INSERT, Number(row?.part))
    })
    await office.advanceClock(601_000_000n)
    const [round] = await ended(2)
    expect(round).toMatchObject({ about: 'what is left of deleted queues', done: 1 })
    expect(await rows()).toEqual([0, 0, 0, 0])
  })
})
