/** Due work of one queue's items: ended leases, expiries, schedules, held items. */
import { instant, later } from '../../core/clock.ts'
import { leaseDeadlines, negated, sumOfInstants } from '../counts.ts'
import { bury, type DeathContext, type Dying } from '../death/bury.ts'
import { allocateSerials, type Partition } from '../records.ts'
import { SHELF } from '../schema.ts'
import { claimLeaseBatches, type DueBatch, type DueItem, type DueWork } from '../sql/due.ts'
import { type ItemFacts, lockItems } from '../sql/inspect.ts'
import { LEASE_GRACE_US, parseRuns } from '../sql/lease.ts'
import { holdItems, placeAtTail, sendToTail } from '../sql/move.ts'
import { deathReason } from '../verbs/settle.ts'
import type { Cycle } from './cycle.ts'

const ZERO = instant(0n)

/**
 * Claims the ended leases so that no other server does. First in a cycle: one that had locked items would wait here for a server that
 * waits for those items.
 */
export async function claimEnded(cycle: Cycle, { leases }: DueWork): Promise<readonly DueBatch[]> {
  if (leases.length === 0) return []
  const claimed = await claimLeaseBatches(
    cycle.tx,
    leases.map(({ batchId }) => batchId),
  )
  return leases.filter(({ batchId }) => claimed.has(batchId))
}

/** Applies due work. Items that another server has settled meanwhile are left alone. */
export async function sweep(
  cycle: Cycle,
  due: DueWork,
  claimed: readonly DueBatch[],
  context: DeathContext,
): Promise<void> {
  const partitions = new Map(cycle.queue.partitions.map((partition) => [partition.part, partition]))
  const ended = await endedLeases(cycle, claimed, partitions)
  const scheduled = byPartition(due.scheduled, partitions)
  for (const partition of new Set([...ended.keys(), ...scheduled.keys()])) {
    const over = ended.get(partition) ?? []
    const { dying, living } = judge(cycle, over, cycle.queue.maxAttempts)
    await settleDying(cycle, partition, dying, context)
    const ready = await lockItems(cycle.tx, partition, scheduled.get(partition) ?? [], SHELF.scheduled)
    await queueAtTail(cycle, partition, living, ready)
  }
  for (const [partition, serials] of byPartition(due.expired, partitions)) {
    const items = (await lockItems(cycle.tx, partition, serials)).filter((item) => !item.leased)
    // Only an ended lease can use up attempts.
    await settleDying(cycle, partition, judge(cycle, items, 0).dying, context)
  }
  for (const [partition, serials] of byPartition(due.held, partitions)) {
    await releaseHeld(cycle, partition, serials, context)
  }
}

async function endedLeases(
  cycle: Cycle,
  claimed: readonly DueBatch[],
  partitions: ReadonlyMap<number, Partition>,
): Promise<Map<Partition, ItemFacts[]>> {
  const ended = new Map<Partition, ItemFacts[]>()
  for (const [part, batches] of Map.groupBy(claimed, (batch) => batch.part)) {
    const partition = partitions.get(part)
    if (partition === undefined) continue
    // Extensions leave several batches that name the same items.
    const deadlines = new Map<number, Set<bigint>>()
    for (const { runs, deadline } of batches) {
      for (const serial of parseRuns(runs)) {
        deadlines.set(serial, (deadlines.get(serial) ?? new Set()).add(deadline))
      }
    }
    // Ascending, in one statement: all servers lock rows in the same order.
    const serials = [...deadlines.keys()].sort((a, b) => a - b)
    const items = await lockItems(cycle.tx, partition, serials)
    // A lease extended or given anew has another deadline and its own batch.
    const over = items.filter(
      (item) => item.leased && deadlines.get(item.serial)?.has(item.leaseDeadline ?? 0n),
    )
    if (over.length > 0) ended.set(partition, over)
  }
  return ended
}

/** Sends ended leases and due schedules to the tail together, in the order they came due. */
async function queueAtTail(
  cycle: Cycle,
  { part }: Partition,
  leases: readonly ItemFacts[],
  scheduled: readonly ItemFacts[],
): Promise<void> {
  const arriving = [
    ...leases.map((item) => ({
      item,
      shelf: SHELF.queue,
      at: later(item.leaseDeadline ?? ZERO, LEASE_GRACE_US),
    })),
    ...scheduled.map((item) => ({ item, shelf: SHELF.scheduled, at: item.enqueueAt ?? ZERO })),
  ].sort((a, b) => (a.at < b.at ? -1 : a.at > b.at ? 1 : a.item.serial - b.item.serial))
  if (arriving.length === 0) return
  const tail = await allocateSerials(cycle.tx, arriving.length)
  for (const shelf of [SHELF.queue, SHELF.scheduled]) {
    const indexes = arriving.flatMap((each, i) => (each.shelf === shelf ? i : []))
    if (indexes.length === 0) continue
    await placeAtTail(
      cycle.tx,
      { part, shelf, leased: shelf === SHELF.queue },
      indexes.flatMap((i) => arriving[i]?.item ?? []),
      indexes.map((i) => tail[i] ?? 0),
    )
  }
  cycle.changes.add(part, {
    leased: -leases.length,
    scheduled: -scheduled.length,
    ready: arriving.length,
    created: sumOfInstants(scheduled.map(({ createdAt }) => createdAt)),
    deadline: negated(leaseDeadlines(leases)),
  })
  for (const { item } of arriving) if (item.expireAt !== null) cycle.expectAt(item.expireAt)
  cycle.arrived(cycle.queue.queueName, part, tail[0] ?? 0)
}

/** Tries held items again; under changed settings they may live. */
async function releaseHeld(
  cycle: Cycle,
  partition: Partition,
  serials: readonly number[],
  context: DeathContext,
): Promise<void> {
  const items = await lockItems(cycle.tx, partition, serials, SHELF.held)
  const { dying, living } = judge(cycle, items, cycle.queue.maxAttempts)
  await bury(cycle, SHELF.held, [{ partition, dying }], context)
  if (living.length === 0) return
  const tail = await sendToTail(cycle.tx, { part: partition.part, shelf: SHELF.held, leased: false }, living)
  cycle.changes.add(partition.part, { held: -living.length, ready: living.length })
  cycle.arrived(cycle.queue.queueName, partition.part, tail[0] ?? 0)
}

async function settleDying(
  cycle: Cycle,
  partition: Partition,
  dying: readonly Dying[],
  context: DeathContext,
): Promise<void> {
  if ((await bury(cycle, SHELF.queue, [{ partition, dying }], context)) === 'held')
    await hold(cycle, partition, dying)
}

/** Holds dying items whose dead queue is missing, until a sweep finds one. */
async function hold(cycle: Cycle, partition: Partition, dying: readonly Dying[]): Promise<void> {
  await holdItems(
    cycle.tx,
    partition.part,
    dying.map(({ item }) => item.serial),
  )
  const leased = dying.map(({ item }) => item).filter((item) => item.leased)
  cycle.changes.add(partition.part, {
    ready: leased.length - dying.length,
    leased: -leased.length,
    held: dying.length,
    deadline: negated(leaseDeadlines(leased)),
  })
}

function judge(cycle: Cycle, items: readonly ItemFacts[], maxAttempts: number) {
  const dying: Dying[] = []
  const living: ItemFacts[] = []
  for (const item of items) {
    const reason = deathReason(item, maxAttempts, cycle.now)
    if (reason === null) living.push(item)
    else dying.push({ item, reason, run: null, error: null })
  }
  return { dying, living }
}

/** Serials by partition, ascending: all servers lock rows in the same order. */
function byPartition(
  due: readonly DueItem[],
  partitions: ReadonlyMap<number, Partition>,
): Map<Partition, number[]> {
  const grouped = new Map<Partition, number[]>()
  for (const [part, items] of Map.groupBy(due, (item) => item.part)) {
    const partition = partitions.get(part)
    const serials = items.map(({ serial }) => serial).sort((a, b) => a - b)
    if (partition !== undefined) grouped.set(partition, serials)
  }
  return grouped
}
