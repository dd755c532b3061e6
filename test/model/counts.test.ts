/**
 * The law of counts: whatever several writers do, at every moment the books of every partition say what counting
 * its items would say, the sums behind the average ages included, and while deltas are folded too.
 */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { instant } from '../../src/core/clock.ts'
import { TestClock } from '../../src/core/test-clock.ts'
import { Office } from '../../src/office.ts'
import { partitionCounter } from '../../src/queues/counts.ts'
import { foldCounts } from '../../src/store/fold.ts'
import { openDatabase } from '../../src/store/open.ts'
import { checkPrograms } from '../world/model.ts'
import { countPartitions } from '../world/recount.ts'
import { type FreshStore, stores } from '../world/stores.ts'
import { type Held, type Turn, turns, write } from './traffic.ts'

const QUEUES = { orders: 1, mails: 3, gone: 2 }

async function openBranch(place: FreshStore, servers: number) {
  const clock = new TestClock()
  clock.freeze(instant(1_800_000_000_123_457n))
  const offices: Office[] = []
  for (let i = 0; i < servers; i++) offices.push(await Office.open({ store: place.url, clock }))
  const [first] = offices
  if (first === undefined) throw new Error('there is no office')
  const settings = { leaseTimeout: '1s', expireTimeout: '3s', maxAttempts: 2 }
  await first.queues.create({ ...settings, queueName: 'dead', requestedPartitions: 2 })
  await first.queues.create({ ...settings, queueName: 'vanishing', requestedPartitions: 1 })
  for (const [queueName, requestedPartitions] of Object.entries(QUEUES)) {
    const deadQueue = queueName === 'gone' ? 'vanishing' : 'dead'
    await first.queues.create({ ...settings, queueName, requestedPartitions, deadQueue })
  }
  // What dies in one of the queues is held from now on.
  await first.queues.delete({ queueName: 'vanishing', force: true })
  return { first, offices }
}

describe.each(stores)('the books of a queue on $name', (store) => {
  const servers = store.name === 'sqlite' ? 1 : 2

  it('say what counting would say, at every moment', async () => {
    const place = await store.fresh()
    const { first, offices } = await openBranch(place, servers)
    const db = openDatabase(place.url, { poolSize: 1 })
    const held: Held = new Map()
    let audits = 0

    const check = async (): Promise<void> => {
      const { books, found } = await countPartitions(db)
      expect(books).toEqual(found)
      audits++
    }
    const during = async (writers: readonly (readonly Turn[])[]): Promise<void> => {
      let writing = true
      const names = [...Object.keys(QUEUES), 'dead']
      const written = Promise.all(
        writers.map((all, i) => {
          const [mine = first, rival = first] = i % 2 === 0 ? offices : offices.toReversed()
          return write(mine, rival, names, `writer-${i}`, all, held)
        }),
      ).finally(() => {
        writing = false
      })
      written.catch(() => {})
      while (writing) {
        await check()
        // Without the lock of the servers' own folders: folds at the same time must be right too.
        if (store.name === 'postgres')
          await foldCounts(db, { ...partitionCounter, lock: 'test' }, { clock: first.clock, owner: 'test' })
        await new Promise((resolve) => setImmediate(resolve))
      }
      await written
    }

    try {
      const traffic = fc.array(turns, { minLength: 2, maxLength: 4 })
      const run = async (writers: readonly (readonly Turn[])[]) => {
        await during(writers)
        await first.queues.settle()
        await check()
      }
      // A store with a past is not the same the next time.
      await checkPrograms(traffic, 7, run, { shrinks: false })
      await expectStatsFromLists(first)
      expect(audits).toBeGreaterThan(12)
    } finally {
      for (const office of offices) await office.close()
      await db.close()
      await place.dispose()
    }
  })
})

async function expectStatsFromLists({ queues, clock }: Office): Promise<void> {
  for (const { queueName, requestedPartitions } of await queues.list()) {
    const stats = await queues.stats(queueName)
    for (let partition = 0; partition < requestedPartitions; partition++) {
      const items = await queues.listItems({ queueName, partition, limit: 100_000 })
      const scheduled = await queues.listScheduled({ queueName, partition, limit: 100_000 })
      const ages = items.reduce((sum, { createdAt }) => sum + createdAt, 0n)
      expect(stats.partitions[partition]).toMatchObject({
        total: items.length,
        totalLeased: items.filter(({ isLeased }) => isLeased).length,
        scheduled: scheduled.length,
        averageAgeUs: items.length === 0 ? 0n : clock.now() - ages / BigInt(items.length),
      })
    }
  }
}
