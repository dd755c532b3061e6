/**
 * A queue together with its dead queue, for people: the call that creates a queue refuses a dead queue that is missing.
 * The queue is tried first, so that nothing is made for one that is refused for another reason.
 */
import type { QueueErrorCode } from './errors.ts'

export interface QueueCreation {
  create(): Promise<unknown>
  createDeadQueue(): Promise<unknown>
  /** The code of what a call threw; null for anything else than a refusal. */
  codeOf(thrown: unknown): QueueErrorCode | null
}

/** Creates the queue; when its dead queue is missing, that one first. Gives whether it was. */
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
