/**
 * The single writer of one queue on this server. Requests that arrive while a cycle is in flight form the next
 * one; nothing waits on a timer, and every reply is sent after the commit.
 *
 *   idle ──request, wake-up──► cycle ──more gathered──► cycle …
 *     ▲                          │
 *     └────────nothing left──────┘          paused: requests gather, nothing runs
 */
import type { Clock, Instant } from '../core/clock.ts'
import { BartlebyError, failure } from '../core/errors.ts'
import { idFromSerial } from '../core/ksuid.ts'
import type { Log } from '../core/log.ts'
import { type Database, StoreUnavailable } from '../db/database.ts'
import { complete, Mismatch } from './complete.ts'
import { type Arrival, Cycle } from './cycle.ts'
import { Dealer } from './dealer.ts'
import { extend } from './extend.ts'
import {
  type Batch,
  type CompleteAsk,
  type ExtendAsk,
  emptyBatch,
  type Job,
  jobsOf,
  takeBatch,
} from './jobs.ts'
import { type ProduceAsk, produce } from './produce.ts'
import type { LeasedBatch, ProduceReceipt } from './queue.ts'
import { type QueueRecord, readQueue, readQueueVersion } from './records.ts'
import { type RetryAsk, retryLeased } from './retry.ts'
import type { DueWork } from './sql/due.ts'
import { readLeaseMarks } from './sql/inspect.ts'
import { sweep } from './sweep.ts'
import { type LeaseAsk, Waiter } from './waiter.ts'

export interface LoopContext {
  readonly db: Database
  readonly clock: Clock
  readonly log: Log
  readonly maxPendingRequests: number
  readonly dedupeWindowUs: bigint
  /** Called after a commit: wakes other queues and servers, and tells when something comes due. */
  readonly onCommit: (arrivals: readonly Arrival[], nextDeadline: Instant | null) => void
  /** The queue was deleted, or made anew under the same name, behind this server's back. */
  readonly onGone: (loop: QueueLoop) => void
}

/** The cached settings are older than the stored ones. */
class StaleQueue extends Error {}

/** How often a cycle may be run again because its assumptions did not hold. */
const MAX_RERUNS = 5

export class QueueLoop {
  #queue: QueueRecord
  readonly #context: LoopContext
  readonly #dealer: Dealer
  readonly #pending: Batch = emptyBatch()
  readonly #waiters = new Set<Waiter>()
  readonly #clients = new Map<string, Waiter>()
  #inCycle = 0
  #running: Promise<void> | undefined
  #paused = false
  #stir = false
  #closedBy: BartlebyError | undefined
  #failures = 0

  constructor(queue: QueueRecord, context: LoopContext) {
    this.#queue = queue
    this.#context = context
    this.#dealer = new Dealer()
  }

  get queue(): QueueRecord {
    return this.#queue
  }

  get paused(): boolean {
    return this.#paused
  }

  get waiters(): Iterable<Waiter> {
    return this.#waiters
  }

  get hasWaiters(): boolean {
    return this.#waiters.size > 0
  }

  /** What is going on, for `stats`. */
  get load() {
    const { produces, completes, retries, extensions } = this.#pending
    const waiting = produces.length + completes.length + retries.length + extensions.length
    return {
      produceWaiting: produces.length,
      completeWaiting: completes.length + retries.length,
      leaseWaiting: this.#waiters.size,
      inFlight: waiting + this.#inCycle + this.#waiters.size,
      failures: this.#failures,
    }
  }

  produce(ask: ProduceAsk): Promise<ProduceReceipt> {
    return this.#submit(this.#pending.produces, ask)
  }

  complete(ask: CompleteAsk): Promise<void> {
    return this.#submit(this.#pending.completes, ask)
  }

  retry(ask: RetryAsk): Promise<void> {
    return this.#submit(this.#pending.retries, ask)
  }

  extend(ask: ExtendAsk): Promise<Instant> {
    return this.#submit(this.#pending.extensions, ask)
  }

  /** Applies due work of this queue in the next cycle; resolves when it is durable. */
  sweep(due: DueWork): Promise<void> {
    if (this.#closedBy !== undefined) return Promise.resolve()
    return this.#enqueue(this.#pending.sweeps, due)
  }

  lease(ask: LeaseAsk, signal?: AbortSignal): Promise<LeasedBatch> {
    if (this.#closedBy !== undefined) return Promise.reject(this.#closedBy)
    if (this.#clients.has(ask.clientId)) return Promise.reject(failure('client_id_waiting'))
    const drop = () => waiter.drop()
    const waiter = new Waiter(ask, this.#context.clock, () => {
      signal?.removeEventListener('abort', drop)
      this.#waiters.delete(waiter)
      this.#clients.delete(ask.clientId)
    })
    this.#waiters.add(waiter)
    this.#clients.set(ask.clientId, waiter)
    waiter.startTimeout(this.#context.clock, () => this.#paused)
    signal?.addEventListener('abort', drop)
    if (signal?.aborted) drop()
    this.wake()
    return waiter.answer
  }

  /** Items may have become leasable; from `firstSerial` on when that is known, anywhere otherwise. */
  wake(arrival?: { readonly part: number; readonly firstSerial: number }): void {
    if (arrival !== undefined) this.#dealer.lookAgainFrom(arrival.part, arrival.firstSerial)
    this.#stir = true
    this.#start()
  }

  /** Looks at the store with fresh eyes: settings, scan positions, failures. */
  async reload(): Promise<void> {
    this.#failures = 0
    this.#dealer.lookAgainEverywhere()
    await this.#refresh()
    this.wake()
  }

  /** The settings were changed here. */
  replaceQueue(queue: QueueRecord): void {
    this.#queue = queue
    this.wake()
  }

  pause(paused: boolean): void {
    if (this.#paused === paused) return
    this.#paused = paused
    if (paused) return
    for (const waiter of [...this.#waiters]) waiter.endIfTimedOut()
    this.wake()
  }

  /** Resolves when nothing is left to do now. */
  async idle(): Promise<void> {
    while (this.#running !== undefined && !this.#paused) await this.#running
  }

  /** Ends the loop: waiters and later requests are refused, accepted writes are still applied. */
  async close(waitersGet: BartlebyError, othersGet: BartlebyError): Promise<void> {
    this.#closedBy = othersGet
    this.#paused = false
    for (const waiter of [...this.#waiters]) if (waiter.waiting) waiter.fail(waitersGet)
    this.#start()
    await this.idle()
    for (const waiter of [...this.#waiters]) waiter.fail(waitersGet)
  }

  #submit<Ask, Answer>(list: Job<Ask, Answer>[], ask: Ask): Promise<Answer> {
    if (this.#closedBy !== undefined) return Promise.reject(this.#closedBy)
    const { produces, completes, retries, extensions } = this.#pending
    const waiting = produces.length + completes.length + retries.length + extensions.length
    if (waiting >= this.#context.maxPendingRequests) return Promise.reject(failure('queue_overloaded'))
    return this.#enqueue(list, ask)
  }

  #enqueue<Ask, Answer>(list: Job<Ask, Answer>[], ask: Ask): Promise<Answer> {
    const { promise, resolve, reject } = Promise.withResolvers<Answer>()
    list.push({ ask, resolve, reject })
    this.#start()
    return promise
  }

  #start(): void {
    if (this.#running !== undefined || this.#paused || !this.#hasWork()) return
    // After this turn of the event loop: calls made in the same turn share the cycle.
    this.#running = new Promise((resolve) => setImmediate(resolve)).then(() => this.#run())
  }

  #hasWork(): boolean {
    return jobsOf(this.#pending).length > 0 || (this.#stir && this.#waiters.size > 0)
  }

  async #run(): Promise<void> {
    while (!this.#paused && this.#hasWork()) await this.#runCycle(takeBatch(this.#pending))
    this.#running = undefined
    // Un-paused between the last check and now.
    this.#start()
  }

  async #runCycle(batch: Batch): Promise<void> {
    this.#stir = false
    const waiters = [...this.#waiters]
    for (const waiter of waiters) waiter.deal()
    this.#inCycle = jobsOf(batch).length
    try {
      const cycle = await this.#commit(batch, waiters)
      this.#failures = 0
      cycle.runEffects()
      this.#context.onCommit(cycle.arrivals, cycle.nextDeadline)
    } catch (error) {
      await this.#fail(error, batch, waiters)
    } finally {
      this.#inCycle = 0
      for (const waiter of waiters) waiter.undeal(this.#paused)
    }
  }

  /** The transaction of a cycle: when this returns, everything it decided is durable. */
  async #commit(batch: Batch, waiters: readonly Waiter[]): Promise<Cycle> {
    for (let reruns = 0; ; reruns++) {
      try {
        return await this.#context.db.transaction('queue.cycle', (tx) =>
          this.#apply(new Cycle(tx, this.#queue, this.#context.clock.now()), batch, waiters),
        )
      } catch (error) {
        if (reruns >= MAX_RERUNS) throw error
        if (error instanceof StaleQueue) await this.#refresh()
        else if (error instanceof Mismatch) await this.#rejectMismatched(batch)
        else throw error
      }
    }
  }

  async #apply(cycle: Cycle, batch: Batch, waiters: readonly Waiter[]): Promise<Cycle> {
    const { log, dedupeWindowUs } = this.#context
    const version = readQueueVersion(cycle.tx, cycle.queue.queueId)
    // Awaited below; a failure of the connection must not count as unhandled before that.
    version.catch(() => {})
    await complete(cycle, batch.completes)
    for (const job of batch.retries) {
      const problem = await retryLeased(cycle, job.ask, log)
      cycle.afterCommit(() => (problem === null ? job.resolve() : job.reject(problem)))
    }
    for (const job of batch.extensions) await extend(cycle, job)
    for (const job of batch.sweeps) {
      await sweep(cycle, job.ask, log)
      cycle.afterCommit(job.resolve)
    }
    // After the sweep: expired items no longer count when a partition is chosen.
    if (batch.produces.length > 0) {
      const asks = batch.produces.map((job) => job.ask)
      const receipts = await produce(cycle, asks, dedupeWindowUs)
      cycle.afterCommit(() => {
        for (const [i, job] of batch.produces.entries()) {
          const receipt = receipts[i]
          if (receipt !== undefined) job.resolve(receipt)
        }
      })
    }
    if ((await version) !== cycle.queue.version) throw new StaleQueue()
    if (waiters.length > 0 && (await this.#dealer.deal(cycle, waiters))) {
      cycle.afterCommit(() => {
        this.#stir = true
      })
    }
    cycle.changes.write(cycle.tx)
    return cycle
  }

  /** Answers the completions that cannot be granted and takes them out of the batch. */
  async #rejectMismatched(batch: Batch): Promise<void> {
    const jobs = batch.completes.splice(0)
    await this.#context.db.session('queue.diagnose', async (session) => {
      for (const job of jobs) {
        const { partition, serials } = job.ask
        const marks = await readLeaseMarks(session, partition.part, serials)
        const bad = serials.find((serial) => marks.get(serial) !== true)
        if (bad === undefined) {
          batch.completes.push(job)
          continue
        }
        const id = idFromSerial(partition.idPrefix, bad)
        job.reject(failure(marks.has(bad) ? 'complete_not_leased' : 'item_unknown', { id }))
      }
    })
  }

  async #refresh(): Promise<void> {
    const { db, onGone } = this.#context
    const stored = await db.session('queue.refresh', (session) => readQueue(session, this.#queue.queueName))
    if (stored !== null && stored.queueId === this.#queue.queueId) {
      this.#queue = stored
      return
    }
    onGone(this)
    throw failure('queue_unknown', { name: this.#queue.queueName })
  }

  /** A cycle failed and nothing of it was written. */
  async #fail(error: unknown, batch: Batch, waiters: readonly Waiter[]): Promise<void> {
    this.#dealer.lookAgainEverywhere()
    if (error instanceof BartlebyError) {
      for (const job of jobsOf(batch)) job.reject(error)
      for (const waiter of waiters) waiter.fail(failure('queue_stopping'))
      return
    }
    this.#failures++
    const queue = this.#queue.queueName
    if (!(error instanceof StoreUnavailable) && jobsOf(batch).length > 1) {
      // One request may be what the store cannot take: each gets a cycle of its own, so that only it fails.
      this.#context.log.error({ queue, err: error }, 'cycle failed; its requests are tried one by one')
      for (const single of singly(batch)) await this.#runCycle(single)
      return
    }
    this.#context.log.error({ queue, err: error }, 'cycle failed')
    const answer = failure('store_write_failed', undefined, { cause: error })
    for (const job of jobsOf(batch)) job.reject(answer)
    for (const waiter of waiters) waiter.fail(answer)
  }
}

function* singly(batch: Batch): Iterable<Batch> {
  for (const job of batch.produces) yield { ...emptyBatch(), produces: [job] }
  for (const job of batch.completes) yield { ...emptyBatch(), completes: [job] }
  for (const job of batch.retries) yield { ...emptyBatch(), retries: [job] }
  for (const job of batch.extensions) yield { ...emptyBatch(), extensions: [job] }
  for (const job of batch.sweeps) yield { ...emptyBatch(), sweeps: [job] }
}
