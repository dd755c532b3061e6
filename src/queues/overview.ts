/** Depths of many queues at one moment, in a fixed number of statements: counts, and the heads of partitions that hold something. */
import type { Instant } from '../core/clock.ts'
import { headsOfDeadQueues } from '../letters/in-dead-queue/read.ts'
import type { Session } from '../store/database.ts'
import { COUNTED, type PartitionCounts, readCounts } from './counts.ts'
import type { QueueOverview } from './queue.ts'
import { type QueuePage, type QueueRecord, readQueueRecords } from './records.ts'
import { type Head, headsOfItems } from './sql/inspect.ts'

/** All reads must see the same moment. */
export async function readOverview(session: Session, page: QueuePage): Promise<QueueOverview[]> {
  const queues = await readQueueRecords(session, page)
  const parts = queues.flatMap(({ partitions }) => partitions.map(({ part }) => part))
  const counts = new Map<number, PartitionCounts>()
  for (const [place, count] of (await readCounts(session, parts)).entries()) {
    const part = parts[place]
    if (part !== undefined) counts.set(part, count)
  }
  const partsWith = (isThere: (count: PartitionCounts) => boolean): number[] =>
    [...counts].flatMap(([part, count]) => (isThere(count) ? part : []))
  const items = await headsOfItems(
    session,
    partsWith(({ ready, leased }) => ready + leased > 0),
  )
  const letters = await headsOfDeadQueues(
    session,
    partsWith(({ dead }) => dead > 0),
  )
  const heads = firstOf([...items, ...letters])
  return queues.map((queue) => overviewOf(queue, counts, heads))
}

/** The head with the lowest serial per part: items and letters of a dead queue form one line. */
function firstOf(heads: readonly Head[]): ReadonlyMap<number, Head> {
  const first = new Map<number, Head>()
  for (const head of heads) {
    const known = first.get(head.part)
    if (known === undefined || head.serial < known.serial) first.set(head.part, head)
  }
  return first
}

function overviewOf(
  { queueId, version, holdsLetters, partitions, ...info }: QueueRecord,
  counts: ReadonlyMap<number, PartitionCounts>,
  heads: ReadonlyMap<number, Head>,
): QueueOverview {
  const depth = { ready: 0, leased: 0, scheduled: 0, held: 0, dead: 0 }
  let oldestAt: Instant | null = null
  for (const { part } of partitions) {
    const count = counts.get(part)
    const at = heads.get(part)?.at
    if (at !== undefined && (oldestAt === null || at < oldestAt)) oldestAt = at
    if (count === undefined) continue
    for (const counted of COUNTED) depth[counted] += count[counted]
  }
  return { ...info, ...depth, oldestAt, partitions: partitions.length }
}

export function partitionStats(
  { ready, leased, scheduled, held, createdSumUs, deadlineSumUs }: PartitionCounts,
  now: Instant,
) {
  const total = ready + leased + held
  return {
    total,
    totalLeased: leased,
    scheduled,
    averageAgeUs: total === 0 ? 0n : now - createdSumUs / BigInt(total),
    averageLeasedAgeUs: leased === 0 ? 0n : deadlineSumUs / BigInt(leased) - now,
  }
}
