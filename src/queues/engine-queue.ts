/** The queue that is made for an engine, by its first worker or by the first letter that goes back to it. */
import type { OfficeWork } from '../letters/work.ts'
import { readEngineOf } from './engine-queues.ts'
import type { QueueSettings } from './queue.ts'
import { readQueue, takeSettingsTurn } from './records.ts'
import { createInTurn } from './settings.ts'

/** Long enough for a pause of the worker, short enough that a crashed one is noticed soon. */
const LEASE_TIMEOUT = '1m'
/** The longest there is: messages of engines do not expire, they succeed or become letters. */
const EXPIRE_TIMEOUT = '2562047h47m16s'

/** How the queue of an engine is made. */
export const engineQueueSettings = (engine: string, queueName: string): QueueSettings => ({
  queueName,
  leaseTimeout: LEASE_TIMEOUT,
  expireTimeout: EXPIRE_TIMEOUT,
  maxAttempts: 0,
  requestedPartitions: 1,
  reference: `engine ${engine}`,
})

/**
 * Makes a queue that is missing, if it is the engine's own; false when it is not. Of two transactions at once the second waits
 * for the first and finds its queue.
 */
export async function makeEngineQueue(
  { tx, now }: Pick<OfficeWork, 'tx' | 'now'>,
  engine: string,
  queueName: string,
): Promise<boolean> {
  if ((await readEngineOf(tx, queueName)) !== engine) return false
  await takeSettingsTurn(tx)
  if ((await readQueue(tx, queueName)) === null) {
    await createInTurn(tx, now, engineQueueSettings(engine, queueName))
  }
  return true
}
