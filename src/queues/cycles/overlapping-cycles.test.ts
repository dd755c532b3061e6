/** A worker that renews its lease while it completes, beside consumers that wait: neither call waits for the other's look at the queue. */
import { setTimeout as pause } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { freshPostgres } from '../../../test/world/stores.ts'
import { BartlebyError } from '../../core/errors.ts'
import { Office } from '../../office.ts'

/** Queues side by side: most of the time everybody waits. */
const QUEUES = 10
const ROUNDS = 6
/** Two cycles overlap when so much is wanted. */
const BATCH = 8

it('extends and completes the same item at once, while leases wait', async () => {
  const place = await freshPostgres()
  const office = await Office.open({ store: place.url })
  try {
    const { queues } = office
    const unexpected: unknown[] = []
    const expectAnswer = (call: Promise<unknown>): Promise<unknown> =>
      call.catch((error: unknown) => {
        const isTooLate =
          error instanceof BartlebyError && /not_leased|timed_out|item_unknown/.test(error.code)
        if (!isTooLate) unexpected.push(error)
      })
    const overlap = async (queueName: string): Promise<void> => {
      await queues.create({ queueName, leaseTimeout: '1m', expireTimeout: '1h', requestedPartitions: 1 })
      for (let round = 0; round < ROUNDS; round++) {
        await queues.produce({ queueName, items: [{ payload: 'a' }] })
        const { partition, items } = await queues.lease({ queueName, clientId: 'worker', batchSize: 1 })
        const ids = items.map(({ id }) => id)
        const wait = (clientId: string) =>
          expectAnswer(queues.lease({ queueName, clientId, batchSize: BATCH, requestTimeout: '100ms' }))
        const calls = [wait('first'), expectAnswer(queues.extend({ queueName, partition, ids }))]
        await pause(round % 4)
        calls.push(wait('second'), expectAnswer(queues.complete({ queueName, partition, ids })))
        await Promise.all(calls)
      }
    }
    await Promise.all(Array.from({ length: QUEUES }, (_, i) => overlap(`orders-${i}`)))
    expect(unexpected).toEqual([])
  } finally {
    await office.close()
    await place.dispose()
  }
})
