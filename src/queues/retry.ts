/** retry: leased items go back to the tail, onto the schedule, or to the dead queue. */

import type { Instant } from '../core/clock.ts'
import { type BartlebyError, failure } from '../core/errors.ts'
import { idFromSerial } from '../core/ksuid.ts'
import type { Log } from '../core/log.ts'
import { bury, type Dying } from './bury.ts'
import { negated, sumOfInstants } from './counts.ts'
import type { Cycle } from './cycle.ts'
import { deathReason } from './fate.ts'
import { isNearNow } from './near-now.ts'
import type { Partition } from './records.ts'
import { SHELF } from './schema.ts'
import { type ItemFacts, readItems } from './sql/inspect.ts'
import { scheduleItems, sendToTail } from './sql/move.ts'

export interface RetryAsk {
  readonly partition: Partition
  readonly items: readonly {
    readonly serial: number
    readonly retryAt: Instant | null
    readonly dead: boolean
  }[]
}

/**
 * Applies one retry request, all of it or nothing. Returns the error of the request, or null; on an error
 * nothing has been written.
 */
export async function retryLeased(cycle: Cycle, ask: RetryAsk, log: Log): Promise<BartlebyError | null> {
  const { tx, queue, now } = cycle
  const { part, idPrefix } = ask.partition
  const ascending = ask.items.map(({ serial }) => serial).sort((a, b) => a - b)
  const found = new Map((await readItems(tx, part, ascending)).map((item) => [item.serial, item]))

  const dying: Dying[] = []
  const scheduled: { item: ItemFacts; enqueueAt: Instant }[] = []
  const requeued: ItemFacts[] = []
  for (const { serial, retryAt, dead } of ask.items) {
    const item = found.get(serial)
    if (item === undefined) return failure('item_unknown', { id: idFromSerial(idPrefix, serial) })
    if (!item.leased) return failure('retry_not_leased', { id: idFromSerial(idPrefix, serial) })
    // Expiry does not end a retry: the item goes back and the sweep finds it.
    const reason = dead ? 'rejected' : deathReason({ ...item, expireAt: null }, queue.maxAttempts, now)
    if (reason !== null) dying.push({ item, reason })
    else if (retryAt !== null && !isNearNow(retryAt, now)) scheduled.push({ item, enqueueAt: retryAt })
    else requeued.push(item)
  }

  // First, because it is the only step that can refuse, and then nothing has been written yet.
  if (dying.length > 0 && (await bury(cycle, ask.partition, SHELF.queue, dying, log)) === 'held') {
    return failure('store_write_failed')
  }
  if (scheduled.length > 0) {
    await scheduleItems(
      tx,
      part,
      scheduled.map(({ item, enqueueAt }) => ({ serial: item.serial, enqueueAt })),
    )
    const items = scheduled.map(({ item }) => item)
    cycle.changes.add(part, {
      leased: -items.length,
      scheduled: items.length,
      created: negated(sumOfInstants(items.map(({ createdAt }) => createdAt))),
      deadline: negated(leaseDeadlines(items)),
    })
    for (const { enqueueAt } of scheduled) cycle.expectAt(enqueueAt)
  }
  if (requeued.length > 0) await requeue(cycle, ask.partition, requeued)
  return null
}

/** Sends leased items to the tail, in the order given, leasable at once. */
async function requeue(cycle: Cycle, { part }: Partition, items: readonly ItemFacts[]): Promise<void> {
  const tail = await sendToTail(
    cycle.tx,
    { part, shelf: SHELF.queue, leased: true },
    items.map(({ serial }) => serial),
  )
  cycle.changes.add(part, {
    leased: -items.length,
    ready: items.length,
    deadline: negated(leaseDeadlines(items)),
  })
  for (const { expireAt } of items) if (expireAt !== null) cycle.expectAt(expireAt)
  cycle.arrived(cycle.queue.queueName, part, tail[0] ?? 0)
}

const leaseDeadlines = (items: readonly ItemFacts[]) =>
  sumOfInstants(items.flatMap(({ leaseDeadline }) => leaseDeadline ?? []))
