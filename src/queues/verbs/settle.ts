/** What becomes of leased items: complete, retry (back, later or dead), extend; and why a request about them is refused. */
import { type Instant, later } from '../../core/clock.ts'
import { type BartlebyError, failure } from '../../core/errors.ts'
import { checkKsuid, serialFromId } from '../../core/ksuid.ts'
import { type HistoryEntry, recordHistory } from '../../history/record.ts'
import { closeCasesOf } from '../../letters/confirm.ts'
import type { LetterId } from '../../letters/letter.ts'
import type { Session } from '../../store/database.ts'
import { instantSum, leaseDeadlines, negated, sumOfInstants } from '../counts.ts'
import {
  type Batch,
  type CompleteAsk,
  type Cycle,
  type ExtendAsk,
  type Job,
  killsAll,
  NotCompletable,
  NotDead,
  type RetryAsk,
} from '../cycles/cycle.ts'
import { bury, type DeathContext, type Dying } from '../death/bury.ts'
import { fileRuns, succeededRun } from '../death/cases.ts'
import { resolveFromDeadQueue } from '../death/dead-queue.ts'
import type { DeathReason, FailedRun, GivenError, Run } from '../queue.ts'
import { itemIdIn, type Partition } from '../records.ts'
import { SHELF } from '../schema.ts'
import {
  type ItemFacts,
  type LeaseMarks,
  lockItems,
  readItems,
  readLeaseMarks,
  unread,
} from '../sql/inspect.ts'
import { extendLeases, LEASE_GRACE_US } from '../sql/lease.ts'
import { scheduleItems, sendToTail, takeBackAttempts } from '../sql/move.ts'
import { removeCounted, removeLeased } from '../sql/remove.ts'
import { isNearNow } from './produce.ts'

/**
 * complete: removes items and resolves letters of a dead queue, one statement per partition. One bad id throws `Mismatch`: rolling back is
 * cheaper, over all requests, than locking every item to look first.
 */
export async function complete(cycle: Cycle, jobs: readonly Job<CompleteAsk, void>[]): Promise<void> {
  for (const [partition, mine] of Map.groupBy(jobs, ({ ask }) => cycle.partition(ask.partition))) {
    // Ascending: servers that meet on the same rows lock them in the same order.
    const serials = mine.flatMap(({ ask }) => ask.serials).sort((a, b) => a - b)
    const runs = new Map(mine.flatMap(({ ask }) => [...(ask.runs ?? [])]))
    await completeIn(cycle, partition, serials, runs)
  }
  for (const job of jobs) cycle.afterCommit(job.resolve)
}

async function completeIn(
  cycle: Cycle,
  partition: Partition,
  serials: readonly number[],
  runs: ReadonlyMap<number, Run>,
): Promise<void> {
  const records = new Map([...runs].map(([serial, run]) => [serial, succeededRun(run, cycle.now)]))
  let items = serials
  if (partition.holdsLetters) {
    const letters = await resolveFromDeadQueue(cycle, partition, serials, {
      act: 'complete',
      by: null,
      runs: records,
      leasedOnly: true,
      shelves: [SHELF.queue],
    })
    cycle.changes.add(partition.part, letters.change)
    items = serials.filter((serial) => !letters.serials.has(serial))
    for (const serial of letters.serials) records.delete(serial)
    if (items.length === 0) return
  }
  if (cycle.oneTrip) return removeCounted(cycle.tx, partition.part, items)
  const { count, change, cases } = await removeLeased(cycle.tx, partition.part, items)
  if (count !== items.length) throw new NotCompletable(`${count} of ${items.length} items were leased`)
  cycle.changes.add(partition.part, change)
  await recordOutcomes(cycle, records, cases)
}

async function recordOutcomes(
  cycle: Cycle,
  records: ReadonlyMap<number, HistoryEntry>,
  cases: ReadonlyMap<number, LetterId>,
): Promise<void> {
  const plain: HistoryEntry[] = []
  const ofCases = new Map<LetterId, HistoryEntry>()
  for (const [serial, entry] of records) {
    const caseId = cases.get(serial)
    if (caseId === undefined) plain.push(entry)
    else ofCases.set(caseId, entry)
  }
  if (plain.length > 0) await recordHistory(cycle.tx, plain)
  if (cases.size > 0) await closeCasesOf(cycle, [...cases.values()].sort(ascending), ofCases)
}

const ascending = (a: bigint, b: bigint): number => (a < b ? -1 : 1)

interface Outcomes {
  readonly dying: Dying[]
  readonly scheduled: (Failed & { readonly enqueueAt: Instant })[]
  readonly requeued: (Failed & { readonly unspent: boolean })[]
}

interface Granted {
  readonly job: Job<RetryAsk, void>
  readonly outcomes: Outcomes
}

interface Settled {
  readonly partition: Partition
  readonly granted: readonly Granted[]
}

/** An item that lives on, with its failed run or the error given. */
interface Failed {
  readonly item: ItemFacts
  readonly run: FailedRun | null
  readonly error: GivenError | null
}

/**
 * retry: items go back to the tail, onto the schedule, or die. A few statements per partition, whatever the number of requests. Each
 * request is granted whole or not at all, and answered after the commit.
 */
export async function retryLeased(
  cycle: Cycle,
  { retries, deaths }: Pick<Batch, 'retries' | 'deaths'>,
  context: DeathContext,
): Promise<void> {
  const sorted = Map.groupBy(deaths, ({ ask }) => mayDieUnread(cycle, ask))
  const partitionOf = ({ ask }: Job<RetryAsk, void>) => cycle.partition(ask.partition)
  const dying = Map.groupBy(sorted.get(true) ?? [], partitionOf)
  const partitions = Map.groupBy([...(sorted.get(false) ?? []), ...retries], partitionOf)
  const settled: Settled[] = [...dying].map(([partition, mine]) => ({
    partition,
    granted: mine.map((job) => ({ job, outcomes: deathsIn(job.ask) })),
  }))
  for (const [partition, mine] of partitions) {
    const serials = mine.flatMap(({ ask }) => ask.items.map(({ serial }) => serial)).sort((a, b) => a - b)
    const items = await readItems(cycle.tx, partition, serials)
    const found = new Map(items.map((item) => [item.serial, item]))
    const granted: Granted[] = []
    for (const job of mine) {
      const outcomes = outcomesOf(cycle, job.ask, found)
      // The settings have changed since it was taken for dead.
      if (outcomes !== null && outcomes.requeued.length > 0 && deaths.includes(job)) throw new NotDead()
      if (outcomes !== null) granted.push({ job, outcomes })
      else await refuse(cycle, job)
    }
    settled.push({ partition, granted })
  }
  const there = settled.map(({ partition, granted }) => ({
    partition,
    dying: granted.flatMap(({ outcomes }) => outcomes.dying),
  }))
  // First, because only this step can refuse; the requests it concerns then have no effect at all.
  const burial = await bury(cycle, SHELF.queue, there, context)
  for (const each of settled) await applyOutcomes(cycle, each, burial === 'held')
}

/**
 * Whether the items of a request can die unread: they die in any case, and only their rows say what else is to be done. One that is not
 * leased or has a case is a mismatch, after which the cycle reads them.
 */
const mayDieUnread = ({ queue, readsFirst }: Cycle, ask: RetryAsk): boolean =>
  !(readsFirst || queue.holdsLetters || (queue.onDeath === 'delete' && queue.deadQueue === '')) &&
  killsAll(ask, queue)

const deathsIn = ({ items }: RetryAsk): Outcomes => ({
  dying: items.map(({ serial, dead, run, error }) => ({
    item: unread(serial),
    reason: dead ? 'rejected' : 'attempts',
    run,
    error,
  })),
  scheduled: [],
  requeued: [],
})

async function refuse(cycle: Cycle, { ask, reject }: Job<RetryAsk, void>): Promise<void> {
  const partition = cycle.partition(ask.partition)
  const ids = ask.items.map(({ serial }) => itemIdIn(partition, serial))
  const problem = await firstProblem(cycle.tx, partition, ids, 'retry_not_leased')
  cycle.afterCommit(() => reject(problem ?? failure('store_write_failed')))
}

/** Outcome of each item of a request; null when not all are leased. */
function outcomesOf(cycle: Cycle, ask: RetryAsk, found: ReadonlyMap<number, ItemFacts>): Outcomes | null {
  const outcomes: Outcomes = { dying: [], scheduled: [], requeued: [] }
  for (const { serial, retryAt, dead, run, error, unspent } of ask.items) {
    const item = found.get(serial)
    if (item?.leased !== true) return null
    // Expiry does not end a retry: the item goes back, and the sweep finds it.
    const reason = dead
      ? 'rejected'
      : deathReason({ ...item, expireAt: null }, unspent ? 0 : cycle.queue.maxAttempts, cycle.now)
    // Deliveries without end would make errors without end: only the last one is kept.
    const kept = cycle.queue.maxAttempts === 0 ? null : error
    if (reason !== null) outcomes.dying.push({ item, reason, run, error })
    else if (retryAt !== null && !isNearNow(retryAt, cycle.now))
      outcomes.scheduled.push({ item, run, error: kept, enqueueAt: retryAt })
    else outcomes.requeued.push({ item, run, error: kept, unspent })
  }
  return outcomes
}

async function applyOutcomes(cycle: Cycle, { partition, granted }: Settled, refused: boolean): Promise<void> {
  const applied = granted.filter(({ outcomes }) => !refused || outcomes.dying.length === 0)
  const scheduled = applied.flatMap(({ outcomes }) => outcomes.scheduled)
  const requeued = applied.flatMap(({ outcomes }) => outcomes.requeued)
  if (scheduled.length > 0) await schedule(cycle, partition, scheduled)
  if (requeued.length > 0) await requeue(cycle, partition, requeued)
  for (const { job, outcomes } of granted) {
    if (refused && outcomes.dying.length > 0)
      cycle.afterCommit(() => job.reject(failure('store_write_failed')))
    else cycle.afterCommit(job.resolve)
  }
}

async function schedule(cycle: Cycle, { part }: Partition, scheduled: Outcomes['scheduled']): Promise<void> {
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

/** Sends leased items to the tail in order, leasable at once. */
async function requeue(cycle: Cycle, { part }: Partition, requeued: Outcomes['requeued']): Promise<void> {
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

/**
 * Why an item dies now; null when it lives on. The queue's present settings count. Dead letters always go back to the tail.
 *
 *            lease over ──► attempts used up? ──► dead (attempts)
 *                  │        expired?          ──► dead (expired)
 *                  └──────► otherwise         ──► back to the tail
 *            not leased ──► expired?          ──► dead (expired)
 */
export function deathReason(
  item: Pick<ItemFacts, 'attempts' | 'expireAt' | 'isLetter'>,
  maxAttempts: number,
  now: Instant,
): DeathReason | null {
  if (item.isLetter) return null
  if (maxAttempts !== 0 && item.attempts >= maxAttempts) return 'attempts'
  if (item.expireAt !== null && now > item.expireAt) return 'expired'
  return null
}

/** extend: applies one request, all or nothing, and answers with the new deadline. */
export async function extend(cycle: Cycle, { ask, resolve, reject }: Job<ExtendAsk, Instant>): Promise<void> {
  const partition = cycle.partition(ask.partition)
  const { part } = partition
  const ascending = [...ask.serials].sort((a, b) => a - b)
  // Locked: two extensions at once would both take the old deadline off the sum.
  const found = new Map((await lockItems(cycle.tx, partition, ascending)).map((item) => [item.serial, item]))
  if (!ask.serials.every((serial) => found.get(serial)?.leased)) {
    const ids = ask.serials.map((serial) => itemIdIn(partition, serial))
    const problem = await firstProblem(cycle.tx, partition, ids, 'extend_not_leased')
    cycle.afterCommit(() => reject(problem ?? failure('store_write_failed')))
    return
  }
  const deadline = later(cycle.now, ask.leaseUs)
  await extendLeases(cycle.tx, partition, ascending, deadline)
  cycle.changes.add(part, { deadline: negated(leaseDeadlines([...found.values()])) })
  cycle.changes.add(part, { deadline: instantSum(deadline, ascending.length) })
  cycle.expectAt(later(deadline, LEASE_GRACE_US))
  cycle.afterCommit(() => resolve(deadline))
}

type NotLeasedCode = 'complete_not_leased' | 'retry_not_leased' | 'extend_not_leased'

/** null when an id is malformed, foreign to the partition or repeated. */
export function serialsOf(partition: Partition, ids: readonly string[]): number[] | null {
  const serials: number[] = []
  for (const id of ids) {
    const serial = serialFromId(partition.idPrefix, id)
    if (serial === null) return null
    serials.push(serial)
  }
  return new Set(serials).size === serials.length ? serials : null
}

/** Checks form, existence and lease of each id in turn; null when nothing is wrong any more. */
export async function firstProblem(
  session: Session,
  partition: Partition,
  ids: readonly string[],
  notLeased: NotLeasedCode,
): Promise<BartlebyError | null> {
  const wellFormed = ids.filter((id) => checkKsuid(id) === null)
  const serials = wellFormed.flatMap((id) => serialFromId(partition.idPrefix, id) ?? [])
  return problemAmong(await readLeaseMarks(session, partition, serials), partition, ids, notLeased)
}

export function problemAmong(
  marks: LeaseMarks,
  partition: Partition,
  ids: readonly string[],
  notLeased: NotLeasedCode,
): BartlebyError | null {
  const seen = new Set<number>()
  for (const id of ids) {
    const reason = checkKsuid(id)
    if (reason !== null) return failure('item_id_malformed', { id, reason })
    const serial = serialFromId(partition.idPrefix, id)
    if (serial === null || seen.has(serial)) return failure('item_unknown', { id })
    seen.add(serial)
    const leased = marks.get(serial)
    if (leased === undefined) return failure('item_unknown', { id })
    if (!leased) return failure(notLeased, { id })
  }
  return null
}
