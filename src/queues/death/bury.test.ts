import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type FreshStore, stores } from '../../../test/world/stores.ts'
import { silentLog } from '../../core/log.ts'
import { TestClock } from '../../core/test-clock.ts'
import { newRegisters } from '../../letters/registers.ts'
import { officeRuns } from '../../letters/work.ts'
import { MIGRATIONS } from '../../migrations.ts'
import type { Database, Transaction } from '../../store/database.ts'
import { migrate } from '../../store/migrations.ts'
import { openDatabase } from '../../store/open.ts'
import { recordEngineQueues } from '../engines/engine-queues.ts'
import { StoreQueues } from '../queues.ts'

/** The database, with `told` called for each statement of a cycle. */
function listened(db: Database, told: () => void): Database {
  const listenedTo = <T extends object>(target: T, names: readonly string[]): T =>
    new Proxy(target, {
      get(_, name) {
        const value: unknown = Reflect.get(target, name, target)
        if (typeof value !== 'function') return value
        return (...given: unknown[]) => {
          if (names.includes(String(name))) told()
          return value.apply(target, given)
        }
      },
    })
  return new Proxy(db, {
    get(_, name) {
      const value: unknown = Reflect.get(db, name, db)
      if (typeof value !== 'function') return value
      if (name !== 'transaction') return value.bind(db)
      return (verb: string, work: (tx: Transaction) => Promise<unknown>) =>
        db.transaction(verb, (tx) =>
          work(verb === 'queue.cycle' ? listenedTo(tx, ['rows', 'run', 'runEach']) : tx),
        )
    },
  })
}

describe.each(stores.filter(({ name }) => name === 'postgres'))('many deaths on $name', (kind) => {
  let place: FreshStore
  let db: Database
  let queues: StoreQueues
  let statements = 0

  beforeAll(async () => {
    place = await kind.fresh()
    db = openDatabase(place.url, { poolSize: 2 })
    await migrate(db, MIGRATIONS)
    await recordEngineQueues(db, silentLog, [{ queue: 'worked', engine: 'hmac' }])
    const counted = listened(db, () => statements++)
    const clock = new TestClock()
    queues = new StoreQueues(counted, clock, silentLog, {
      runs: officeRuns(db, clock, silentLog),
      registers: newRegisters(),
      maxPendingRequests: 1_000,
      dedupeWindowUs: 300_000_000n,
    })
    for (const queueName of ['worked', 'plain'])
      await queues.create({ queueName, leaseTimeout: '1m', expireTimeout: '1h', requestedPartitions: 1 })
  })
  afterAll(async () => {
    await queues?.stop()
    await db?.close()
    await place?.dispose()
  })

  /** Gives back `count` items, one of each instance and one of all, and lets them die; how many statements both took. */
  const statementsOf = async (queueName: string, count: number): Promise<number[]> => {
    const payloads = Array.from({ length: count }, (_, i) => ({ payload: `{"instanceId":"i${i % 7}"}` }))
    await queues.produce({ queueName, items: payloads })
    const taken: number[] = []
    for (const dead of [false, true]) {
      const lease = { queueName, clientId: 'consumer', batchSize: count, requestTimeout: '1s' }
      const { partition, items } = await queues.lease(lease)
      expect(items).toHaveLength(count)
      statements = 0
      await queues.retry({
        queueName,
        partition,
        items: items.map(({ id }) => ({ id, dead, errorClass: 'Jammed', errorMessage: 'no key' })),
      })
      taken.push(statements)
    }
    return taken
  }

  it.each(['worked', 'plain'])('in a %s queue take as many statements as one', async (queueName) => {
    // Registers are looked up once.
    await statementsOf(queueName, 1)
    const one = await statementsOf(queueName, 1)
    expect(await statementsOf(queueName, 30)).toEqual(one)
  })
})
