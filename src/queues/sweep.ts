/** The lifecycle of one queue's items, applied when it is due: ended leases, expiry, schedules, held items. */
import type { Log } from '../core/log.ts'
import { bury, type Dying, hold } from './bury.ts'
import { sumOfInstants } from './counts.ts'
import type { Cycle } from './cycle.ts'
import { deathReason } from './fate.ts'
import type { Partition } from './records.ts'
import { requeue } from './retry.ts'
import { parseRuns } from './runs.ts'
import { SHELF } from './schema.ts'
import { claimLeaseBatches, type DueItem, type DueWork } from './sql/due.ts'
import { type ItemFacts, lockItems } from './sql/inspect.ts'
import { sendToTail } from './sql/move.ts'

/** Applies due work of the cycle's queue. What another server has done meanwhile is left alone. */
export async function sweep(cycle: Cycle, due: DueWork, log: Log): Promise<void> {
  const partitions = new Map(cycle.queue.partitions.map((partition) => [partition.part, partition]))
  await endLeases(cycle, due, partitions, log)
  await queueScheduled(cycle, due.scheduled, partitions)
  for (const [partition, serials] of byPartition(due.expired, partitions)) {
    const items = (await lockItems(cycle.tx, partition.part, ascending(serials))).filter(
      (item) => !item.leased,
    )
    // An un-leased item never dies of its attempts: only a lease that ended can have been the last one.
    await settleDying(cycle, partition, dyingOf(cycle, items, 0), log)
  }
  for (const [partition, serials] of byPartition(due.held, partitions)) {
    await releaseHeld(cycle, partition, serials, log)
  }
}

/** Ended leases, in order of their deadline and then of their id. */
async function endLeases(
  cycle: Cycle,
  due: DueWork,
  partitions: ReadonlyMap<number, Partition>,
  log: Log,
): Promise<void> {
  if (due.leases.length === 0) return
  const claimed = await claimLeaseBatches(
    cycle.tx,
    due.leases.map(({ batchId }) => batchId),
  )
  const ended = new Map<Partition, ItemFacts[]>()
  for (const batch of due.leases) {
    const partition = partitions.get(batch.part)
    if (partition === undefined || !claimed.has(batch.batchId)) continue
    const items = await lockItems(cycle.tx, batch.part, parseRuns(batch.runs))
    // A lease that was extended or given anew has another deadline and a batch of its own.
    const over = items.filter((item) => item.leased && (item.leaseDeadline ?? 0n) === batch.deadline)
    ended.set(partition, [...(ended.get(partition) ?? []), ...over])
  }
  for (const [partition, items] of ended) {
    const dying = dyingOf(cycle, items, cycle.queue.maxAttempts)
    const dead = new Set(dying.map(({ item }) => item))
    const living = items.filter((item) => !dead.has(item))
    await settleDying(cycle, partition, dying, log)
    if (living.length > 0) await requeue(cycle, partition, living)
  }
}

async function queueScheduled(
  cycle: Cycle,
  due: readonly DueItem[],
  partitions: ReadonlyMap<number, Partition>,
): Promise<void> {
  for (const [partition, serials] of byPartition(due, partitions)) {
    const present = new Map(
      (await lockItems(cycle.tx, partition.part, ascending(serials), SHELF.scheduled)).map((item) => [
        item.serial,
        item,
      ]),
    )
    const items = serials.flatMap((serial) => present.get(serial) ?? [])
    if (items.length === 0) continue
    const tail = await sendToTail(
      cycle.tx,
      partition.part,
      items.map(({ serial }) => serial),
      SHELF.scheduled,
    )
    cycle.changes.add(partition.part, {
      scheduled: -items.length,
      ready: items.length,
      created: sumOfInstants(items.map(({ createdAt }) => createdAt)),
    })
    for (const { expireAt } of items) if (expireAt !== null) cycle.expectAt(expireAt)
    cycle.arrived(cycle.queue.queueName, partition.part, tail[0] ?? 0)
  }
}

/** Tries held items again; with changed settings they may live after all. */
async function releaseHeld(
  cycle: Cycle,
  partition: Partition,
  serials: readonly number[],
  log: Log,
): Promise<void> {
  const items = await lockItems(cycle.tx, partition.part, serials, SHELF.held)
  const dying = dyingOf(cycle, items, cycle.queue.maxAttempts)
  const dead = new Set(dying.map(({ item }) => item))
  const living = items.filter((item) => !dead.has(item))
  if (dying.length > 0) await bury(cycle, partition, SHELF.held, dying, log)
  if (living.length === 0) return
  const tail = await sendToTail(
    cycle.tx,
    partition.part,
    living.map(({ serial }) => serial),
    SHELF.held,
  )
  cycle.changes.add(partition.part, { held: -living.length, ready: living.length })
  cycle.arrived(cycle.queue.queueName, partition.part, tail[0] ?? 0)
}

async function settleDying(
  cycle: Cycle,
  partition: Partition,
  dying: readonly Dying[],
  log: Log,
): Promise<void> {
  if (dying.length === 0) return
  if ((await bury(cycle, partition, SHELF.queue, dying, log)) === 'held') await hold(cycle, partition, dying)
}

const dyingOf = (cycle: Cycle, items: readonly ItemFacts[], maxAttempts: number): Dying[] =>
  items.flatMap((item) => {
    const reason = deathReason(item, maxAttempts, cycle.now)
    return reason === null ? [] : [{ item, reason }]
  })

function byPartition(
  due: readonly DueItem[],
  partitions: ReadonlyMap<number, Partition>,
): Map<Partition, number[]> {
  const grouped = new Map<Partition, number[]>()
  for (const { part, serial } of due) {
    const partition = partitions.get(part)
    if (partition === undefined) continue
    const serials = grouped.get(partition)
    if (serials === undefined) grouped.set(partition, [serial])
    else serials.push(serial)
  }
  return grouped
}

const ascending = (serials: readonly number[]): number[] => [...serials].sort((a, b) => a - b)
