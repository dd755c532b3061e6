/** Items put into a queue inside somebody else's transaction, such as messages that leave an outbox. */
import { type Instant, later } from '../../core/clock.ts'
import { usFromNs } from '../../core/duration.ts'
import { failure } from '../../core/errors.ts'
import type { OfficeWork } from '../../letters/work.ts'
import { count, emptiestPartition, instantSum } from '../counts.ts'
import type { Arrival } from '../cycles/cycle.ts'
import type { ItemContent } from '../queue.ts'
import { readQueue } from '../records.ts'
import { insertItems } from '../sql/insert.ts'

export type Announce = (arrivals: readonly Arrival[], nextDeadline: Instant | null) => void

/** Bounds of one statement: PostgreSQL refuses a parameter of a gigabyte, and everything is copied for it. */
const MOST_ITEMS = 1_000
const MOST_BYTES = 16_000_000

/** Puts items in order at the tail of the emptiest partition, in one insert unless they are many or large. Waiters wake after the commit. */
export async function putItems(
  work: OfficeWork,
  queueName: string,
  items: readonly ItemContent[],
  announce: Announce,
): Promise<void> {
  const { tx, now } = work
  const queue = await readQueue(tx, queueName)
  if (queue === null) throw failure('queue_unknown', { name: queueName })
  const { part } = await emptiestPartition(tx, queue)
  const expireAt = later(now, usFromNs(queue.expireTimeoutNs))
  let firstSerial: number | undefined
  for (const batch of batchesOf(items)) {
    const rows = batch.map((item) => ({ ...item, enqueueAt: null }))
    const [first] = await insertItems(tx, { part, createdAt: now, expireAt, items: rows })
    firstSerial ??= first
  }
  if (firstSerial === undefined) return
  count(tx, part, { ready: items.length, created: instantSum(now, items.length) })
  const arrival = { queueName, part, firstSerial }
  work.afterCommit(() => announce([arrival], expireAt))
}

function* batchesOf(items: readonly ItemContent[]): Iterable<readonly ItemContent[]> {
  let batch: ItemContent[] = []
  let bytes = 0
  for (const item of items) {
    const size = item.payload.length
    if (batch.length === MOST_ITEMS || (batch.length > 0 && bytes + size > MOST_BYTES)) {
      yield batch
      batch = []
      bytes = 0
    }
    batch.push(item)
    bytes += size
  }
  if (batch.length > 0) yield batch
}
