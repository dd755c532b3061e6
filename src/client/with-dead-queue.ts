/**
 * A queue together with its dead queue: creating a queue refuses a missing dead queue. The queue is tried first, so
 * that nothing is made for one that is refused for another reason.
 */
import type { QueueErrorCode } from './errors.ts'

export interface QueueCreation {
  create(): Promise<unknown>
  createDeadQueue(): Promise<unknown>
  /** Null for anything but a refusal. */
  codeOf(thrown: unknown): QueueErrorCode | null
}

/** Creates the queue, and before it a dead queue that is missing. */
export async function createWithDeadQueue(creation: QueueCreation): Promise<{ deadQueueMade: boolean }> {
  try {
    await creation.create()
    return { deadQueueMade: false }
  } catch (error) {
    if (creation.codeOf(error) !== 'dead_queue_unknown') throw error
  }
  const deadQueueMade = await made(creation)
  await creation.create()
  return { deadQueueMade }
}

/** False when somebody else was quicker. */
async function made({ createDeadQueue, codeOf }: QueueCreation): Promise<boolean> {
  try {
    await createDeadQueue()
    return true
  } catch (error) {
    if (codeOf(error) === 'queue_exists') return false
    throw error
  }
}
