/** Where the next item or letter of a queue goes: the partition with the fewest ready items. */
import type { Session } from '../db/database.ts'
import { readCounts } from './counts.ts'
import { emptiest } from './deal.ts'
import type { Partition, QueueRecord } from './records.ts'

/** The emptiest partition; `gained` is what the transaction at hand has added to a part already. */
export async function emptiestPartition(
  session: Session,
  queue: QueueRecord,
  gained: (part: number) => number = () => 0,
): Promise<Partition> {
  const [first] = queue.partitions
  if (first === undefined) throw new Error(`queue '${queue.queueName}' has no partitions`)
  if (queue.partitions.length === 1) return first
  const counts = await readCounts(
    session,
    queue.partitions.map(({ part }) => part),
  )
  const ready = queue.partitions.map(({ part }, i) => (counts[i]?.ready ?? 0) + gained(part))
  return queue.partitions[emptiest(ready)] ?? first
}
