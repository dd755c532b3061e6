/**
 * One cycle of one queue: the batch of requests it takes and the transaction that applies them. Verbs write through the cycle and leave
 * replies and wake-ups to `afterCommit`.
 */
import type { Instant } from '../../core/clock.ts'
import { LetterChanges } from '../../letters/numbers/counts.ts'
import type { OfficeWork } from '../../letters/work.ts'
import type { Dialect, Transaction } from '../../store/database.ts'
import { CountChanges, instantSum } from '../counts.ts'
import type { DeathTurn } from '../death/death-order.ts'
import type { FailedRun, GivenError, ProduceReceipt, Run } from '../queue.ts'
import type { Partition, QueueRecord } from '../records.ts'
import type { DueWork } from '../sql/due.ts'
import type { ProduceAsk } from '../verbs/produce.ts'

/** Items became leasable from this serial on. */
export interface Arrival {
  readonly queueName: string
  readonly part: number
  readonly firstSerial: number
}

/** A partition of a dead queue that letters go to. */
export interface InDeadQueue {
  readonly deadQueue: string
  readonly part: number
}

/** The settings of the cycle are older than the stored ones; nothing may be committed. */
export class StaleQueue extends Error {
  override readonly name = 'StaleQueue'
}

/** Items changed between reading and writing: gone, or no longer leased. The cycle is rolled back and run again. */
export class Mismatch extends Error {
  override readonly name = 'Mismatch'
}

/** A mismatch of completions: an item is not leased, or has a case the cycle did not look for. */
export class NotCompletable extends Mismatch {}

/** An item expected to die goes back to the tail, and its cycle may not put items there. */
export class NotDead extends Error {
  override readonly name = 'NotDead'
}

export function insistOn(expected: number, found: number): void {
  if (found !== expected) throw new Mismatch(`${found} of ${expected} items were as expected`)
}

/** Defaults: no turn, several trips, items read first. */
type CycleKind = Partial<Pick<Cycle, 'turn' | 'oneTrip' | 'readsFirst'>>

export class Cycle implements OfficeWork {
  readonly tx: Transaction
  readonly queue: QueueRecord
  readonly now: Instant
  /** Set when deaths of other cycles may overlap. */
  readonly turn: DeathTurn | null
  /** Statements travel with the COMMIT, so they count and note their rows themselves. */
  readonly oneTrip: boolean
  /** Dying items are read first, because earlier ones were not as believed. */
  readonly readsFirst: boolean
  readonly changes = new CountChanges()
  readonly letters = new LetterChanges()
  readonly arrivals: Arrival[] = []
  readonly #effects: (() => void)[] = []
  #nextDeadline: Instant | null = null

  constructor(
    tx: Transaction,
    queue: QueueRecord,
    now: Instant,
    { turn = null, oneTrip = false, readsFirst = true }: CycleKind = {},
  ) {
    this.tx = tx
    this.queue = queue
    this.now = now
    this.turn = turn
    this.oneTrip = oneTrip
    this.readsFirst = readsFirst
  }

  /** Runs `effect` once the transaction is durable: replies, log lines, wake-ups. */
  afterCommit(effect: () => void): void {
    this.#effects.push(effect)
  }

  /** The partition under this cycle's settings; a request may have been made under older ones. */
  partition(asked: Partition): Partition {
    return this.queue.partitions[asked.number] ?? asked
  }

  arrived(queueName: string, part: number, firstSerial: number): void {
    this.arrivals.push({ queueName, part, firstSerial })
  }

  lettersArrived({ deadQueue, part }: InDeadQueue, letters: number, firstSerial: number): void {
    this.changes.add(part, { ready: letters, dead: letters, created: instantSum(this.now, letters) })
    this.arrived(deadQueue, part, firstSerial)
  }

  expectAt(deadline: Instant): void {
    if (this.#nextDeadline === null || deadline < this.#nextDeadline) this.#nextDeadline = deadline
  }

  /** Adds all count changes to the transaction. Call it last. */
  writeCounts(): void {
    this.changes.write(this.tx)
    this.letters.write(this.tx, this.now)
  }

  get nextDeadline(): Instant | null {
    return this.#nextDeadline
  }

  runEffects(): void {
    for (const effect of this.#effects) effect()
  }
}

/** A request that waits for the next cycle of its queue. */
export interface Job<Ask, Answer> {
  readonly ask: Ask
  readonly resolve: (answer: Answer) => void
  readonly reject: (error: unknown) => void
}

export interface CompleteAsk {
  readonly partition: Partition
  readonly serials: readonly number[]
  readonly runs?: ReadonlyMap<number, Run>
}

export interface RetryAsk {
  readonly partition: Partition
  readonly items: readonly {
    readonly serial: number
    readonly retryAt: Instant | null
    readonly dead: boolean
    /** The failed run; null when the caller gives none. */
    readonly run: FailedRun | null
    /** The error given instead of a run. */
    readonly error: GivenError | null
    readonly unspent: boolean
  }[]
}

/** Whether every item of a request dies whatever its row says, so that none goes to the tail. */
export const killsAll = ({ items }: RetryAsk, { maxAttempts, holdsLetters }: QueueRecord): boolean =>
  items.every(({ dead, unspent }) => dead || (maxAttempts === 1 && !unspent && !holdsLetters))

export interface ExtendAsk {
  readonly partition: Partition
  readonly serials: readonly number[]
  readonly leaseUs: bigint
}

/** What a cycle may do beside those in flight. */
export interface Permits {
  /** Put items at the tail of the queue: produce, retry, sweep. */
  readonly inserts: boolean
  /** Put letters at the tail of the dead queue: deaths, retry, sweep. */
  readonly buries: boolean
  readonly deals: boolean
}

const EVERYTHING: Permits = { inserts: true, buries: true, deals: true }

/**
 * Upper bounds that keep transactions and memory small. PostgreSQL takes less because two overlapping cycles beat one large one; on
 * SQLite every cycle waits for the disk.
 */
export interface Breadth {
  /** Items of one cycle. */
  readonly items: number
  /** Cycles of one queue in flight at once; SQLite has a single writer anyway. */
  readonly cycles: number
}
export const BREADTH: Readonly<Record<Dialect, Breadth>> = {
  postgres: { items: 1_000, cycles: 2 },
  sqlite: { items: 4_000, cycles: 1 },
}
const MAX_BYTES = 16_000_000

/** A run records its message, so it is as large. */
const bytesOfRuns = (runs: Iterable<Run | null>): number => {
  let bytes = 0
  for (const run of runs) bytes += (run?.input?.length ?? 0) + (run?.output?.length ?? 0)
  return bytes
}
const bytesOfProduce = ({ items }: ProduceAsk): number =>
  items.reduce((bytes, { payload }) => bytes + payload.length, 0)
const bytesOfComplete = ({ runs }: CompleteAsk): number => bytesOfRuns(runs?.values() ?? [])
const bytesOfRetry = ({ items }: RetryAsk): number => bytesOfRuns(items.map(({ run }) => run))

const KINDS = ['produces', 'completes', 'retries', 'deaths', 'extensions', 'sweeps'] as const

/** Requests of all kinds: those that wait, or those of one cycle. */
export class Batch {
  readonly produces: Job<ProduceAsk, ProduceReceipt>[] = []
  readonly completes: Job<CompleteAsk, void>[] = []
  readonly retries: Job<RetryAsk, void>[] = []
  /** Retries whose items all die. */
  readonly deaths: Job<RetryAsk, void>[] = []
  readonly extensions: Job<ExtendAsk, Instant>[] = []
  readonly sweeps: Job<DueWork, void>[] = []

  get jobs(): Job<unknown, never>[] {
    return KINDS.flatMap((kind): Job<unknown, never>[] => this[kind])
  }

  /** Whether it puts items at the tail of the queue. */
  get inserts(): boolean {
    return this.produces.length + this.retries.length + this.sweeps.length > 0
  }

  /** Whether it may put letters at the tail of the dead queue. */
  get buries(): boolean {
    return this.retries.length + this.deaths.length + this.sweeps.length > 0
  }

  /** Requests, without sweeps. */
  get requests(): number {
    const { produces, completes, retries, deaths, extensions } = this
    return produces.length + completes.length + retries.length + deaths.length + extensions.length
  }

  /** One batch per job. */
  singly(): Batch[] {
    return KINDS.flatMap((kind) => this[kind].map((job) => Object.assign(new Batch(), { [kind]: [job] })))
  }

  /** Puts a taken batch back in front; deaths become plain retries. */
  putBack(taken: Batch): void {
    this.retries.unshift(...taken.deaths, ...taken.retries)
    this.produces.unshift(...taken.produces)
    this.completes.unshift(...taken.completes)
    this.extensions.unshift(...taken.extensions)
    this.sweeps.unshift(...taken.sweeps)
  }

  /** Permitted items that have gathered; a sweep counts as one. */
  gathered(permits: Permits): number {
    let items = 0
    for (const { ask } of this.completes) items += ask.serials.length
    for (const { ask } of this.extensions) items += ask.serials.length
    if (permits.buries) for (const { ask } of this.deaths) items += ask.items.length
    if (!permits.inserts) return items
    for (const { ask } of this.produces) items += ask.items.length
    if (permits.buries) for (const { ask } of this.retries) items += ask.items.length
    return items + this.sweeps.length
  }

  /** Whether a cycle could take all of it and more. */
  leavesRoom({ items }: Breadth): boolean {
    if (this.gathered(EVERYTHING) >= items) return false
    let bytes = 0
    for (const { ask } of this.produces) bytes += bytesOfProduce(ask)
    for (const { ask } of this.completes) bytes += bytesOfComplete(ask)
    for (const { ask } of [...this.deaths, ...this.retries]) bytes += bytesOfRetry(ask)
    return bytes < MAX_BYTES
  }

  /**
   * Takes the batch of the next cycle out, oldest first. A request for an item that an earlier request of the batch names waits for the
   * next cycle, because its outcome depends on the other. At least one request of every kind is taken, so no flood starves the others.
   */
  take(breadth: Breadth, permits: Permits = EVERYTHING): Batch {
    const batch = new Batch()
    const named = new Set<number>()
    let items = 0
    let bytes = 0
    const isOpen = (): boolean => items < breadth.items && bytes < MAX_BYTES
    const claim = (serials: readonly number[], isFirst: boolean, weight = 0): boolean => {
      if (!(isFirst || isOpen()) || serials.some((serial) => named.has(serial))) return false
      for (const serial of serials) named.add(serial)
      items += serials.length
      bytes += weight
      return true
    }

    takeWhile(this.completes, batch.completes, (ask, isFirst) =>
      claim(ask.serials, isFirst, bytesOfComplete(ask)),
    )
    takeWhile(this.extensions, batch.extensions, (ask, isFirst) => claim(ask.serials, isFirst))
    const claimRetry = (ask: RetryAsk, isFirst: boolean): boolean =>
      claim(
        ask.items.map(({ serial }) => serial),
        isFirst,
        bytesOfRetry(ask),
      )
    if (permits.buries) takeWhile(this.deaths, batch.deaths, claimRetry)
    if (!permits.inserts) return batch
    takeWhile(this.produces, batch.produces, (ask, isFirst) => {
      if (!(isFirst || isOpen())) return false
      items += ask.items.length
      bytes += bytesOfProduce(ask)
      return true
    })
    if (permits.buries) takeWhile(this.retries, batch.retries, claimRetry)
    batch.sweeps.push(...this.sweeps.splice(0, 1))
    return batch
  }
}

/** Moves jobs in order until one does not fit. */
function takeWhile<Ask, Answer>(
  from: Job<Ask, Answer>[],
  to: Job<Ask, Answer>[],
  fits: (ask: Ask, isFirst: boolean) => boolean,
): void {
  let taken = 0
  for (const job of from) {
    if (!fits(job.ask, taken === 0)) break
    to.push(job)
    taken++
  }
  from.splice(0, taken)
}
