/** retry: leased items go back to the tail, onto the schedule, or die. */

import type { Instant } from '../core/clock.ts'
import { failure } from '../core/errors.ts'
import { bury, type Dying, type Undertaking } from './bury.ts'
import { fileRuns } from './cases.ts'
import { negated, sumOfInstants } from './counts.ts'
import type { Cycle, Job } from './cycle.ts'
import { problemWithSerials } from './diagnose.ts'
import { deathReason } from './fate.ts'
import { isNearNow } from './near-now.ts'
import type { FailedRun, GivenError } from './queue.ts'
import type { Partition } from './records.ts'
import { SHELF } from './schema.ts'
import { type ItemFacts, readItems } from './sql/inspect.ts'
import { scheduleItems, sendToTail, takeBackAttempts } from './sql/move.ts'

export interface RetryAsk {
  readonly partition: Partition
  readonly items: readonly {
    readonly serial: number
    readonly retryAt: Instant | null
    readonly dead: boolean
    /** The run that failed; null when the caller does not say. */
    readonly run: FailedRun | null
    /** What failed, when the caller says that instead of a run; else null. */
    readonly error: GivenError | null
    /** This delivery does not count. */
    readonly unspent: boolean
  }[]
}

interface Fates {
  readonly dying: Dying[]
  readonly scheduled: (Failed & { readonly enqueueAt: Instant })[]
  readonly requeued: (Failed & { readonly unspent: boolean })[]
}

/** An item that lives on, with the run that failed on it, or the error. */
interface Failed {
  readonly item: ItemFacts
  readonly run: FailedRun | null
  readonly error: GivenError | null
}

/**
 * Applies the retry requests of a cycle: a few statements per partition, however many requests there are. Each
 * request is granted whole or not at all; it is answered after the commit.
 */
export async function retryLeased(
  cycle: Cycle,
  jobs: readonly Job<RetryAsk, void>[],
  undertaking: Undertaking,
): Promise<void> {
  for (const [partition, mine] of Map.groupBy(jobs, ({ ask }) => cycle.partition(ask.partition))) {
    const serials = mine.flatMap(({ ask }) => ask.items.map(({ serial }) => serial)).sort((a, b) => a - b)
    const items = await readItems(cycle.tx, partition, serials)
    const found = new Map(items.map((item) => [item.serial, item]))
    const granted: { readonly job: Job<RetryAsk, void>; readonly fates: Fates }[] = []
    for (const job of mine) {
      const fates = fatesOf(cycle, job.ask, found)
      if (fates !== null) granted.push({ job, fates })
      else await refuse(cycle, job)
    }
    await applyFates(cycle, partition, granted, undertaking)
  }
}

async function refuse(cycle: Cycle, { ask, reject }: Job<RetryAsk, void>): Promise<void> {
  const serials = ask.items.map(({ serial }) => serial)
  const problem = await problemWithSerials(
    cycle.tx,
    cycle.partition(ask.partition),
    serials,
    'retry_not_leased',
  )
  cycle.afterCommit(() => reject(problem ?? failure('store_write_failed')))
}

/** What becomes of each item of a request, or null when not all of them are leased. */
function fatesOf(cycle: Cycle, ask: RetryAsk, found: ReadonlyMap<number, ItemFacts>): Fates | null {
  const fates: Fates = { dying: [], scheduled: [], requeued: [] }
  for (const { serial, retryAt, dead, run, error, unspent } of ask.items) {
    const item = found.get(serial)
    if (item?.leased !== true) return null
    // Expiry does not end a retry: the item goes back and the sweep finds it.
    const reason = dead
      ? 'rejected'
      : deathReason({ ...item, expireAt: null }, unspent ? 0 : cycle.queue.maxAttempts, cycle.now)
    // Errors of an item whose deliveries have no end would have none either: only the one that it dies of is kept.
    const kept = cycle.queue.maxAttempts === 0 ? null : error
    if (reason !== null) fates.dying.push({ item, reason, run, error })
    else if (retryAt !== null && !isNearNow(retryAt, cycle.now))
      fates.scheduled.push({ item, run, error: kept, enqueueAt: retryAt })
    else fates.requeued.push({ item, run, error: kept, unspent })
  }
  return fates
}

async function applyFates(
  cycle: Cycle,
  partition: Partition,
  granted: readonly { readonly job: Job<RetryAsk, void>; readonly fates: Fates }[],
  undertaking: Undertaking,
): Promise<void> {
  const dying = granted.flatMap(({ fates }) => fates.dying)
  // First, because it is the only step that can refuse: then the requests it concerns have no effect at all.
  const refused =
    dying.length > 0 && (await bury(cycle, partition, SHELF.queue, dying, undertaking)) === 'held'
  const applied = granted.filter(({ fates }) => !refused || fates.dying.length === 0)
  const scheduled = applied.flatMap(({ fates }) => fates.scheduled)
  const requeued = applied.flatMap(({ fates }) => fates.requeued)
  if (scheduled.length > 0) await schedule(cycle, partition, scheduled)
  if (requeued.length > 0) await requeue(cycle, partition, requeued)
  for (const { job, fates } of granted) {
    if (refused && fates.dying.length > 0) cycle.afterCommit(() => job.reject(failure('store_write_failed')))
    else cycle.afterCommit(job.resolve)
  }
}

async function schedule(cycle: Cycle, { part }: Partition, scheduled: Fates['scheduled']): Promise<void> {
  await scheduleItems(
    cycle.tx,
    part,
    scheduled.map(({ item, enqueueAt }) => ({ ...item, enqueueAt })),
  )
  const items = scheduled.map(({ item }) => item)
  cycle.changes.add(part, {
    leased: -items.length,
    scheduled: items.length,
    created: negated(sumOfInstants(items.map(({ createdAt }) => createdAt))),
    deadline: negated(leaseDeadlines(items)),
  })
  for (const { enqueueAt } of scheduled) cycle.expectAt(enqueueAt)
  await fileRuns(
    cycle,
    part,
    scheduled.map(({ item, run, error }) => ({ item, run, error, serial: item.serial })),
  )
}

/** Sends leased items to the tail, in the order given, leasable at once. */
async function requeue(cycle: Cycle, { part }: Partition, requeued: Fates['requeued']): Promise<void> {
  const items = requeued.map(({ item }) => item)
  const tail = await sendToTail(cycle.tx, { part, shelf: SHELF.queue, leased: true }, items)
  cycle.changes.add(part, {
    leased: -items.length,
    ready: items.length,
    deadline: negated(leaseDeadlines(items)),
  })
  for (const { expireAt } of items) if (expireAt !== null) cycle.expectAt(expireAt)
  const unspent = tail.filter((_, i) => requeued[i]?.unspent === true)
  if (unspent.length > 0) await takeBackAttempts(cycle.tx, part, unspent)
  cycle.arrived(cycle.queue.queueName, part, tail[0] ?? 0)
  await fileRuns(
    cycle,
    part,
    requeued.map(({ item, run, error }, i) => ({ item, run, error, serial: tail[i] ?? 0 })),
  )
}

const leaseDeadlines = (items: readonly ItemFacts[]) =>
  sumOfInstants(items.flatMap(({ leaseDeadline }) => leaseDeadline ?? []))
