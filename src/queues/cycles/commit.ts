/**
 * One cycle's transaction: applies a batch and deals to the waiters under the settings in the store. A cycle whose assumptions fail
 * (settings changed, an id not leased) is rolled back and run again.
 */
import type { Clock } from '../../core/clock.ts'
import { failure } from '../../core/errors.ts'
import type { Log } from '../../core/log.ts'
import type { Registers } from '../../letters/registers.ts'
import type { Database, Transaction } from '../../store/database.ts'
import { isDividedByNone } from '../../store/missing-value.ts'
import type { DeathTurn } from '../death/death-order.ts'
import type { ProduceReceipt } from '../queue.ts'
import {
  insistOnVersion,
  itemIdIn,
  type Partition,
  type QueueRecord,
  readQueue,
  readQueueVersion,
} from '../records.ts'
import type { DueBatch } from '../sql/due.ts'
import { type LeaseMarks, readLeaseMarks } from '../sql/inspect.ts'
import { isUncounted } from '../sql/remove.ts'
import { type ProduceAsk, produce, produceAlone } from '../verbs/produce.ts'
import { complete, extend, problemAmong, retryLeased } from '../verbs/settle.ts'
import { type Batch, Cycle, type Job, Mismatch, NotCompletable, StaleQueue } from './cycle.ts'
import type { Dealer, Waiter } from './dealer.ts'
import { claimEnded, sweep } from './sweep.ts'

export interface CommitContext {
  readonly db: Database
  readonly clock: Clock
  readonly log: Log
  readonly dedupeWindowUs: bigint
  readonly registers: Registers
}

/** Result of a cycle; `more` means that more items may be ready than one cycle can give out. */
export interface Committed {
  readonly cycle: Cycle
  readonly more: boolean
}

/** Reruns allowed after failed assumptions. */
const MAX_RERUNS = 5

/**
 * Careful cycles after a wrong one: they read dying items first and complete in a trip of their own. Where sent-back items pass, every
 * other cycle would be wrong.
 */
const CAREFUL_CYCLES = 50

/**
 * How the verbs of a cycle travel to PostgreSQL; SQLite always takes steps.
 *
 *   steps      one after the other, because some need several statements or an earlier answer
 *   flight     one statement per verb, issued before the first wait: one trip instead of three, then the COMMIT
 *   trip       the COMMIT travels too: statements count what they find and fail when it is not what was meant
 *   statement  produces alone: their one statement commits by itself
 */
type Way = 'steps' | 'flight' | 'trip' | 'statement'

export class Committer {
  #queue: QueueRecord
  readonly #context: CommitContext
  readonly #dealer: Dealer
  readonly #onChange: (queue: QueueRecord) => void
  #carefulCycles = 0

  constructor(
    queue: QueueRecord,
    context: CommitContext,
    dealer: Dealer,
    onChange: (queue: QueueRecord) => void,
  ) {
    this.#queue = queue
    this.#context = context
    this.#dealer = dealer
    this.#onChange = onChange
  }

  get queue(): QueueRecord {
    return this.#queue
  }

  replaceQueue(queue: QueueRecord): void {
    this.#queue = queue
    this.#onChange(queue)
  }

  /** Reads the settings again. Throws `queue_unknown` when the queue is gone or was created anew. */
  async refresh(): Promise<void> {
    const { queueName, queueId } = this.#queue
    const stored = await this.#context.db.session('queue.refresh', (session) => readQueue(session, queueName))
    if (stored?.queueId !== queueId) throw failure('queue_unknown', { name: queueName })
    this.replaceQueue(stored)
  }

  /** Runs the cycle. Everything it decided is durable on return; replies wait in the cycle's effects. */
  async commit(batch: Batch, waiters: readonly Waiter[], turn: DeathTurn | null = null): Promise<Committed> {
    for (let reruns = 0; ; reruns++) {
      try {
        const way = this.#wayOf(batch, waiters)
        if (way === 'statement') return await this.#commitProduces(batch)
        if (way === 'trip' && reruns === 0) return await this.#commitInOneTrip(batch, waiters)
        return await this.#commitAll(batch, waiters, turn)
      } catch (thrown) {
        const error = meaningOf(thrown)
        if (reruns >= MAX_RERUNS) throw error
        // Items leased before the rollback are ready again.
        this.#dealer.lookAgainEverywhere()
        if (!(error instanceof StaleQueue || error instanceof Mismatch)) throw error
        // A mismatch too: this server may not know yet that the queue holds letters.
        await this.refresh()
        if (!(error instanceof Mismatch)) continue
        // Requests that name unleased ids are rejected; they say nothing about other items.
        const isAnswered = error instanceof NotCompletable && (await this.#rejectMismatched(batch))
        if (!isAnswered) this.#carefulCycles = CAREFUL_CYCLES
      }
    }
  }

  async #commitAll(batch: Batch, waiters: readonly Waiter[], turn: DeathTurn | null): Promise<Committed> {
    await turn?.before
    const { db, clock } = this.#context
    let attempts = 0
    const isCareful = this.#carefulCycles > 0
    if (isCareful) this.#carefulCycles--
    return db.transaction('queue.cycle', (tx) => {
      // Items leased by an attempt that was rolled back are ready again.
      if (attempts++ > 0) this.#dealer.lookAgainEverywhere()
      const readsFirst = isCareful || attempts > 1
      return this.#apply(new Cycle(tx, this.#queue, clock.now(), { turn, readsFirst }), batch, waiters)
    })
  }

  /** The shortest way right now; it may close while the cycle waits, so waiters ask again. */
  #wayOf(batch: Batch, waiters: readonly Waiter[]): Way {
    const { produces, completes, retries, deaths, extensions, sweeps } = batch
    const [only, ...more] = this.#queue.partitions
    const isOneFlight =
      this.#context.db.dialect === 'postgres' &&
      !this.#queue.holdsLetters &&
      only !== undefined &&
      more.length === 0 &&
      retries.length + deaths.length + extensions.length + sweeps.length === 0 &&
      produces.every(({ ask }) => ask.items.every(({ dedupeKey }) => dedupeKey === null)) &&
      completes.every(({ ask }) => ask.partition.number === only.number)
    if (!isOneFlight) return 'steps'
    if (waiters.length + completes.length === 0 && produces.length > 0) return 'statement'
    const isOneTrip =
      (waiters.length === 0 || this.#dealer.isQuick(only)) &&
      !(completes.length > 0 && this.#carefulCycles > 0) &&
      completes.every(({ ask }) => ask.runs === undefined)
    return isOneTrip ? 'trip' : 'flight'
  }

  /** Statements and COMMIT in one trip. A statement that misses its rows fails, and the transaction with it. */
  #commitInOneTrip(batch: Batch, waiters: readonly Waiter[]): Promise<Committed> {
    const { db, clock } = this.#context
    let attempts = 0
    const run = async (tx: Transaction): Promise<Committed> => {
      // Asked again after waiting for a connection or losing a race: a lease that has to wait would run after the COMMIT.
      if (this.#wayOf(batch, waiters) !== 'trip') throw new StaleQueue()
      if (attempts++ > 0) this.#dealer.lookAgainEverywhere()
      const cycle = new Cycle(tx, this.#queue, clock.now(), { oneTrip: true })
      const insisting = insistOnVersion(tx, cycle.queue)
      const verbs = this.#startVerbs(cycle, batch, waiters)
      cycle.writeCounts()
      await Promise.allSettled([insisting, ...verbs])
      await insisting
      const [, , more] = await Promise.all(verbs)
      return { cycle, more }
    }
    return db.transaction('queue.cycle', run, { oneTrip: true })
  }

  /** Produces alone: their one statement commits by itself. */
  #commitProduces(batch: Batch): Promise<Committed> {
    const { db, clock } = this.#context
    const { produces } = batch
    const asks = produces.map((job) => job.ask)
    return db.statement('queue.produce', async (tx) => {
      if (this.#wayOf(batch, []) !== 'statement') throw new StaleQueue()
      const cycle = new Cycle(tx, this.#queue, clock.now())
      answerProduces(cycle, produces, await produceAlone(cycle, asks))
      return { cycle, more: false }
    })
  }

  async #apply(cycle: Cycle, batch: Batch, waiters: readonly Waiter[]): Promise<Committed> {
    const version = readQueueVersion(cycle.tx, cycle.queue.queueId)
    // Awaited below; until then a failed connection must not count as an unhandled rejection.
    version.catch(() => {})
    if (this.#wayOf(batch, waiters) !== 'steps') {
      const verbs = this.#startVerbs(cycle, batch, waiters)
      // All run to their end even if one fails: a statement sent after the rollback would commit by itself.
      await Promise.allSettled(verbs)
      const [, , more] = await Promise.all(verbs)
      if ((await version) !== cycle.queue.version) throw new StaleQueue()
      cycle.writeCounts()
      return { cycle, more }
    }
    const sweeps: (readonly [Batch['sweeps'][number], readonly DueBatch[]])[] = []
    for (const job of batch.sweeps) sweeps.push([job, await claimEnded(cycle, job.ask)])
    // Before anything is locked: see death-order.ts.
    await retryLeased(cycle, batch, this.#context)
    await complete(cycle, batch.completes)
    for (const job of batch.extensions) await extend(cycle, job)
    for (const [job, claimed] of sweeps) {
      await sweep(cycle, job.ask, claimed, this.#context)
      cycle.afterCommit(job.resolve)
    }
    // After the sweep, so that expired items do not count when a partition is chosen.
    await this.#produce(cycle, batch.produces)
    if ((await version) !== cycle.queue.version) throw new StaleQueue()
    const more = await this.#deal(cycle, waiters)
    cycle.writeCounts()
    return { cycle, more }
  }

  #startVerbs(cycle: Cycle, batch: Batch, waiters: readonly Waiter[]) {
    return [
      complete(cycle, batch.completes),
      this.#produce(cycle, batch.produces),
      this.#deal(cycle, waiters),
    ] as const
  }

  async #produce(cycle: Cycle, jobs: Batch['produces']): Promise<void> {
    if (jobs.length === 0) return
    const asks = jobs.map((job) => job.ask)
    answerProduces(cycle, jobs, await produce(cycle, asks, this.#context.dedupeWindowUs))
  }

  async #deal(cycle: Cycle, waiters: readonly Waiter[]): Promise<boolean> {
    return waiters.length > 0 && (await this.#dealer.deal(cycle, waiters))
  }

  /** Rejects the completions that cannot be granted and removes them from the batch; true if there were any. */
  async #rejectMismatched(batch: Batch): Promise<boolean> {
    const jobs = [...batch.completes]
    const partitionOf = ({ ask }: (typeof jobs)[number]) =>
      this.#queue.partitions[ask.partition.number] ?? ask.partition
    const marks = await this.#context.db.session('queue.diagnose', async (session) => {
      const found = new Map<Partition, LeaseMarks>()
      for (const [partition, mine] of Map.groupBy(jobs, partitionOf)) {
        const serials = mine.flatMap(({ ask }) => ask.serials)
        found.set(partition, await readLeaseMarks(session, partition, serials))
      }
      return found
    })
    batch.completes.length = 0
    for (const job of jobs) {
      const partition = partitionOf(job)
      const ids = job.ask.serials.map((serial) => itemIdIn(partition, serial))
      const problem = problemAmong(marks.get(partition) ?? new Map(), partition, ids, 'complete_not_leased')
      if (problem === null) batch.completes.push(job)
      else job.reject(problem)
    }
    return batch.completes.length < jobs.length
  }
}

/** Store failures of a one-trip cycle, as what they mean. */
function meaningOf(error: unknown): unknown {
  if (isDividedByNone(error)) return new StaleQueue()
  return isUncounted(error) ? new NotCompletable('not all items were leased, or some have cases') : error
}

function answerProduces(
  cycle: Cycle,
  jobs: readonly Job<ProduceAsk, ProduceReceipt>[],
  receipts: readonly ProduceReceipt[],
): void {
  cycle.afterCommit(() => {
    for (const [i, job] of jobs.entries()) {
      const receipt = receipts[i]
      if (receipt !== undefined) job.resolve(receipt)
    }
  })
}
