/**
 * What becomes of leased items: done (complete), given back, put off or dead (retry), held on to (extend); and why a request
 * about them is refused.
 */
import { type Instant, later } from '../../core/clock.ts'
import { type BartlebyError, failure } from '../../core/errors.ts'
import { checkKsuid, serialFromId } from '../../core/ksuid.ts'
import { type HistoryEntry, recordHistory } from '../../history/record.ts'
import { closeCasesOf } from '../../letters/confirm.ts'
import type { LetterId } from '../../letters/letter.ts'
import type { Session } from '../../store/database.ts'
import { instantSum, negated, sumOfInstants } from '../counts.ts'
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
import { bury, type DeathDesk, type Dying } from '../death/bury.ts'
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
 * complete: removes the items of all requests, and resolves letters of a dead queue; one statement per partition. Requests are all or
 * nothing, so one bad id throws `Mismatch`: rolling back is cheaper, over all requests, than locking every item to look first.
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

/** History of the runs, and the end of the items' cases. */
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

interface Fates {
  readonly dying: Dying[]
  readonly scheduled: (Failed & { readonly enqueueAt: Instant })[]
  readonly requeued: (Failed & { readonly unspent: boolean })[]
}

/** A request that is granted. */
interface Granted {
  readonly job: Job<RetryAsk, void>
  readonly fates: Fates
}

interface Settled {
  readonly partition: Partition
  readonly granted: readonly Granted[]
}

/** An item that lives on, with the run that failed on it, or the error. */
interface Failed {
  readonly item: ItemFacts
  readonly run: FailedRun | null
  readonly error: GivenError | null
}

/**
 * retry: items go back to the tail, onto the schedule, or die. A few statements per partition, however many requests there
 * are. Each request is granted whole or not at all; it is answered after the commit.
 */
export async function retryLeased(
  cycle: Cycle,
  { retries, deaths }: Pick<Batch, 'retries' | 'deaths'>,
  desk: DeathDesk,
): Promise<void> {
  const sorted = Map.groupBy(deaths, ({ ask }) => mayDieUnread(cycle, ask))
  const partitionOf = ({ ask }: Job<RetryAsk, void>) => cycle.partition(ask.partition)
  const dying = Map.groupBy(sorted.get(true) ?? [], partitionOf)
  const partitions = Map.groupBy([...(sorted.get(false) ?? []), ...retries], partitionOf)
  const settled: Settled[] = [...dying].map(([partition, mine]) => ({
    partition,
    granted: mine.map((job) => ({ job, fates: deathsIn(job.ask) })),
  }))
  for (const [partition, mine] of partitions) {
    const serials = mine.flatMap(({ ask }) => ask.items.map(({ serial }) => serial)).sort((a, b) => a - b)
    const items = await readItems(cycle.tx, partition, serials)
    const found = new Map(items.map((item) => [item.serial, item]))
    const granted: Granted[] = []
    for (const job of mine) {
      const fates = fatesOf(cycle, job.ask, found)
      // The settings have changed since it was taken for dead.
      if (fates !== null && fates.requeued.length > 0 && deaths.includes(job)) throw new NotDead()
      if (fates !== null) granted.push({ job, fates })
      else await refuse(cycle, job)
    }
    settled.push({ partition, granted })
  }
  const there = settled.map(({ partition, granted }) => ({
    partition,
    dying: granted.flatMap(({ fates }) => fates.dying),
  }))
  // First, because it is the only step that can refuse: then the requests it concerns have no effect at all.
  const burial = await bury(cycle, SHELF.queue, there, desk)
  for (const each of settled) await applyFates(cycle, each, burial === 'held')
}

/**
 * Whether the items of a request can die without being read first: whatever they are, they die, and nothing but their rows says what else
 * has to be done. What is not as believed, not leased or with a case, is a mismatch, after which the cycle reads them.
 */
const mayDieUnread = ({ queue, readsFirst }: Cycle, ask: RetryAsk): boolean =>
  !(readsFirst || queue.holdsLetters || (queue.onDeath === 'delete' && queue.deadQueue === '')) &&
  killsAll(ask, queue)

const deathsIn = ({ items }: RetryAsk): Fates => ({
  dying: items.map(({ serial, dead, run, error }) => ({
    ...{ item: unread(serial), reason: dead ? 'rejected' : 'attempts', run, error },
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

/** What becomes of those that live on, and the answers. */
async function applyFates(cycle: Cycle, { partition, granted }: Settled, refused: boolean): Promise<void> {
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

/**
 * Why an item dies now whose lease is over, or that nobody leased in time; null when it lives on:
 *
 *            lease over ──► attempts used up? ──► dead (attempts)
 *                  │        expired?          ──► dead (expired)
 *                  └──────► otherwise         ──► back to the tail
 *            not leased ──► expired?          ──► dead (expired)
 *
 * The settings of the queue at this moment count. Dead letters are exempt: they always go back to the tail.
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

/** extend: leases get a later deadline. Applies one request, all of it or nothing, and answers it with the deadline. */
export async function extend(cycle: Cycle, { ask, resolve, reject }: Job<ExtendAsk, Instant>): Promise<void> {
  const partition = cycle.partition(ask.partition)
  const { part } = partition
  const ascending = [...ask.serials].sort((a, b) => a - b)
  // Locked: two extensions at once would both take the same old deadline off the sum of deadlines.
  const found = new Map((await lockItems(cycle.tx, partition, ascending)).map((item) => [item.serial, item]))
  if (!ask.serials.every((serial) => found.get(serial)?.leased)) {
    const ids = ask.serials.map((serial) => itemIdIn(partition, serial))
    const problem = await firstProblem(cycle.tx, partition, ids, 'extend_not_leased')
    cycle.afterCommit(() => reject(problem ?? failure('store_write_failed')))
    return
  }
  const deadline = later(cycle.now, ask.leaseUs)
  await extendLeases(cycle.tx, partition, ascending, deadline)
  const before = sumOfInstants([...found.values()].flatMap(({ leaseDeadline }) => leaseDeadline ?? []))
  cycle.changes.add(part, { deadline: negated(before) })
  cycle.changes.add(part, { deadline: instantSum(deadline, ascending.length) })
  cycle.expectAt(later(deadline, LEASE_GRACE_US))
  cycle.afterCommit(() => resolve(deadline))
}

type NotLeasedCode = 'complete_not_leased' | 'retry_not_leased' | 'extend_not_leased'

/** The serials of the ids, or null when an id is malformed, foreign to the partition or repeated. */
export function serialsOf(partition: Partition, ids: readonly string[]): number[] | null {
  const serials: number[] = []
  for (const id of ids) {
    const serial = serialFromId(partition.idPrefix, id)
    if (serial === null) return null
    serials.push(serial)
  }
  return new Set(serials).size === serials.length ? serials : null
}

/** Checks form, existence and lease of each id in turn; null when there is nothing wrong (any more). */
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

/** The same by marks that were read. */
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
