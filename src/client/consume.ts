/**
 * A consumer: a worker on one queue of a server, whose runs are those of a handler. At most `concurrency` run,
 * `prefetch` wait, and one call's worth is settling. It outlives restarts of the server; an error that waiting cannot
 * cure (an unknown queue, a wrong token) ends it.
 *
 * Only elapsed time is measured here. The server's clock is derived from the deadlines it sends, so a wrong clock on
 * this machine does no harm.
 */
import { backoffDelayMs, SETBACK } from '../core/backoff.ts'
import { type Alarm, type Clock, type Instant, instant, later } from '../core/clock.ts'
import type { Held } from '../core/work/held.ts'
import type { Blame, Claimed, Settlement, Trouble, WorkTable } from '../core/work/work-table.ts'
import { Worker } from '../core/work/worker.ts'
import type { QueueClient } from './client.ts'
import { DeadLetterError, givenError, LARGEST_FAILED_BATCH, QueueClientError } from './errors.ts'
import { durationMs } from './times.ts'
import type { LeasedItem, RetryItem } from './types.ts'

export interface ItemContext {
  readonly queueName: string
  readonly partition: number
  /** Aborts when the lease is lost or `stop` waits no longer. */
  readonly signal: AbortSignal
}

export type ItemHandler = (item: LeasedItem, context: ItemContext) => void | Promise<void>

export interface ConsumerProblem {
  readonly during: 'handler' | 'lease' | 'extend' | 'complete' | 'retry'
  readonly error: unknown
  readonly item?: LeasedItem
}

export interface ConsumerOptions {
  /** Handlers that run at the same time; 10 unless said otherwise. */
  readonly concurrency?: number
  /**
   * Items leased ahead of those that run; none unless said otherwise. Raise it when handlers take less time than a
   * call. Other consumers do not get them.
   */
  readonly prefetch?: number
  /** Unique among the queue's consumers; random unless said otherwise. */
  readonly clientId?: string
  /** How long one poll waits for items; 30s unless said otherwise. */
  readonly pollTimeout?: string
  /** Delay after a handler threw; 1 s, 2 s, 4 s … up to 5 minutes unless said otherwise. */
  readonly retryDelayMs?: (attempts: number, error: unknown) => number
  /** How long `stop` waits for running handlers; 30 s unless said otherwise. */
  readonly stopTimeoutMs?: number
  /** Called for every failure, also those that are tried again. Left out: the console. */
  readonly onError?: (problem: ConsumerProblem) => void
}

const RETRY = { baseMs: 1_000, factor: 2, maxMs: 300_000, jitter: 0.5 }
/** Older settings of the queue are read again. */
const TERMS_AGE_MS = 30_000
const MOST_SETTLING = 1_000
/** The server's limit for one call. */
const LARGEST_BATCH = 1_000

const defaultRetryDelayMs = (attempts: number): number => backoffDelayMs(attempts, RETRY)

function logProblem({ during, error, item }: ConsumerProblem): void {
  console.error(
    `bartleby consumer: ${during} failed${item === undefined ? '' : ` for item ${item.id}`}:`,
    error,
  )
}

const afterMs = (ms: number, wake: () => void): Alarm => {
  const timer = setTimeout(wake, ms)
  return { cancel: () => clearTimeout(timer) }
}

/** Time since this process started. Its timers hold the process. */
const elapsed: Clock = {
  now: () => instant(BigInt(Math.round(performance.now() * 1_000))),
  alarm: (deadline, wake) => afterMs(Number(deadline) / 1_000 - performance.now() + 1, wake),
  after: (us, wake) => afterMs(Number(us) / 1_000, wake),
}

interface Terms {
  /** As on the wire: "1m0s". */
  readonly leaseTimeout: string
  readonly leaseMs: number
  readonly maxAttempts: number
  readonly readAtMs: number
}

interface Leased {
  readonly item: LeasedItem
  readonly partition: number
  readonly terms: Terms
  /** The server's clock less ours: the lease began at its deadline less its length. */
  readonly serverAheadMs: number
  during: 'complete' | 'retry'
}

/** Without a retry the item is completed. */
type Fate = { readonly retry: RetryItem | null }

const COMPLETED: Fate = { retry: null }

export class Consumer {
  /** Resolves when the consumer has stopped; rejects when an error ended it. */
  readonly done: Promise<void>

  readonly #handler: ItemHandler
  readonly #queueName: string
  readonly #options: Required<ConsumerOptions>
  readonly #table: LeaseTable
  readonly #worker: Worker<Leased, Fate>
  #failure: { readonly error: unknown } | undefined

  constructor(client: QueueClient, queueName: string, handler: ItemHandler, options: ConsumerOptions = {}) {
    this.#queueName = queueName
    this.#handler = handler
    this.#options = {
      concurrency: options.concurrency ?? 10,
      prefetch: options.prefetch ?? 0,
      clientId: options.clientId ?? `consumer-${crypto.randomUUID()}`,
      pollTimeout: options.pollTimeout ?? '30s',
      retryDelayMs: options.retryDelayMs ?? defaultRetryDelayMs,
      stopTimeoutMs: options.stopTimeoutMs ?? 30_000,
      onError: options.onError ?? logProblem,
    }
    const { concurrency, prefetch } = this.#options
    checkCount('concurrency', concurrency, 1)
    checkCount('prefetch', prefetch, 0)
    this.#table = new LeaseTable(client, queueName, this.#options)
    this.#worker = new Worker<Leased, Fate>({
      clock: elapsed,
      table: this.#table,
      room: ({ held, settling }) =>
        settling >= MOST_SETTLING ? 0 : Math.min(LARGEST_BATCH, concurrency + prefetch - (held - settling)),
      run: (held) => this.#run(held),
      unbegun: ({ job }, why) => (why === 'lost' ? null : givenBack(job)),
      reasonOf: (why, { item }) =>
        new Error(why === 'lost' ? `the lease of item ${item.id} was lost` : 'the consumer was stopped'),
      onTrouble: (during, error, held) => this.#tell(during, error, held),
      // The server may still wait on an earlier poll whose connection was lost.
      claimsAgain: (error) =>
        error instanceof QueueClientError && (error.retryable || error.code === 'client_id_waiting'),
      concurrency,
      outage: SETBACK,
      mostSettled: ({ retry }) => (retry === null ? LARGEST_BATCH : LARGEST_FAILED_BATCH),
      mostRefusals: 1,
      lastTries: Number.POSITIVE_INFINITY,
      // Leases of handlers that still run end by themselves: the handler may yet have its effect.
      lastWritesMs: 0,
    })
    this.done = this.#work()
  }

  /** Leases no more, gives back what was not begun, waits for running handlers. */
  stop(): Promise<void> {
    void this.#worker.stop(this.#options.stopTimeoutMs)
    return this.done
  }

  async #work(): Promise<void> {
    try {
      await this.#worker.start()
    } finally {
      await this.#worker.stop(this.#options.stopTimeoutMs)
      this.#table.close()
    }
    if (this.#failure !== undefined) throw this.#failure.error
  }

  async #run(held: Held<Leased>): Promise<Fate | null> {
    const { job, signal } = held
    const { item, partition } = job
    try {
      await this.#handler(item, { queueName: this.#queueName, partition, signal })
    } catch (error) {
      this.#report('handler', error, item)
      return held.isLost ? null : this.#retried(job, error)
    }
    return held.isLost ? null : COMPLETED
  }

  #retried(job: Leased, error: unknown): Fate {
    const { id, attempts } = job.item
    job.during = 'retry'
    const failed = { id, ...givenError(error) }
    if (error instanceof DeadLetterError) return { retry: { ...failed, dead: true } }
    const delayMs = this.#options.retryDelayMs(attempts, error)
    return { retry: { ...failed, retryAt: new Date(job.serverAheadMs + performance.now() + delayMs) } }
  }

  #tell(during: Trouble, error: unknown, held: readonly Held<Leased>[]): void {
    const [first] = held
    if (during === 'claim') this.#report('lease', error)
    else if (during === 'renew') this.#report('extend', error)
    else if (during === 'lost') this.#report('extend', error, first?.job.item)
    // The caller's own function threw where nothing may be thrown.
    else if (during === 'run') this.#fail(error)
    else if (during === 'settle') this.#report(first?.job.during ?? 'complete', error)
    else
      for (const each of held)
        if (!this.#table.isSettled(each, error)) this.#report(each.job.during, error, each.job.item)
  }

  #report(during: ConsumerProblem['during'], error: unknown, item?: LeasedItem): void {
    try {
      this.#options.onError({ during, error, ...(item !== undefined && { item }) })
    } catch (thrown) {
      this.#fail(thrown)
    }
  }

  #fail(error: unknown): void {
    this.#failure ??= { error }
    void this.#worker.stop(this.#options.stopTimeoutMs)
  }
}

/** An item on its last attempt would die of being returned, so it is run. */
function givenBack(job: Leased): Fate | 'run' {
  const { item, terms } = job
  if (terms.maxAttempts !== 0 && item.attempts >= terms.maxAttempts) return 'run'
  job.during = 'retry'
  return { retry: { id: item.id } }
}

class LeaseTable implements WorkTable<Leased, Fate> {
  readonly #client: QueueClient
  readonly #queueName: string
  readonly #options: Required<ConsumerOptions>
  readonly #closed = new AbortController()
  /** A call about them had no reply, and may have done its work. */
  readonly #uncertain = new WeakSet<Held<Leased>>()
  #terms: Terms | undefined

  constructor(client: QueueClient, queueName: string, options: Required<ConsumerOptions>) {
    this.#client = client
    this.#queueName = queueName
    this.#options = options
  }

  /** Ends all calls. */
  close(): void {
    this.#closed.abort()
  }

  async claim({ most, signal }: { most: number; signal: AbortSignal }): Promise<Claimed<Leased>> {
    const { clientId, pollTimeout } = this.#options
    const terms = await this.#readTerms(signal)
    const poll = { queueName: this.#queueName, clientId, batchSize: most, requestTimeout: pollTimeout }
    try {
      const { partition, items } = await this.#client.lease(poll, { signal })
      const jobs = items.map((item): Leased => {
        const serverAheadMs = item.leaseDeadline.getTime() - terms.leaseMs - performance.now()
        return { item, partition, terms, serverAheadMs, during: 'complete' }
      })
      return { jobs, until: endOf(terms), again: 'now' }
    } catch (error) {
      if (!(error instanceof QueueClientError) || error.code !== 'lease_timed_out') throw error
      return { jobs: [], until: elapsed.now(), again: 'now' }
    }
  }

  async #readTerms(signal: AbortSignal): Promise<Terms> {
    const known = this.#terms
    if (known !== undefined && performance.now() - known.readAtMs < TERMS_AGE_MS) return known
    const { leaseTimeout, maxAttempts } = await this.#client.info(this.#queueName, { signal })
    const leaseMs = durationMs(leaseTimeout)
    if (leaseMs === undefined) throw new Error(`queue '${this.#queueName}' has no readable lease timeout`)
    this.#terms = { leaseTimeout, leaseMs, maxAttempts, readAtMs: performance.now() }
    return this.#terms
  }

  async renew(held: readonly Held<Leased>[]): Promise<ReadonlyMap<Held<Leased>, Instant>> {
    const [first] = held
    if (first === undefined) return new Map()
    const { partition, terms } = first.job
    const until = endOf(terms)
    const ids = held.map(({ job }) => job.item.id)
    const { leaseTimeout } = terms
    await this.#client.extend({ queueName: this.#queueName, partition, ids, leaseTimeout })
    return new Map(held.map((each) => [each, until]))
  }

  groupOf({ partition, terms }: Leased, fate?: Fate): string {
    return `${partition} ${fate === undefined ? terms.leaseTimeout : fate.retry === null}`
  }

  async settle(settlements: readonly Settlement<Leased, Fate>[]): Promise<void> {
    const place = { queueName: this.#queueName, partition: settlements[0]?.held.job.partition ?? 0 }
    const { signal } = this.#closed
    // A group has either.
    const items = settlements.flatMap(({ result }) => result.retry ?? [])
    const ids = settlements.map(({ held }) => held.job.item.id)
    try {
      if (items.length > 0) await this.#client.retry({ ...place, items }, { signal })
      else await this.#client.complete({ ...place, ids }, { signal })
    } catch (error) {
      if (error instanceof QueueClientError && error.retryable)
        for (const { held } of settlements) this.#uncertain.add(held)
      throw error
    }
  }

  blame(error: unknown, held: readonly Held<Leased>[], during: 'renew' | 'settle'): Blame<Leased> {
    // A token being changed, or a proxy that knows no such path for a moment, takes no lease away.
    const otherwise = during === 'renew' ? 'away' : 'refused'
    if (!(error instanceof QueueClientError)) return otherwise
    const refused = held.find(({ job }) => error.message.includes(`'${job.item.id}'`))
    return refused ?? (error.retryable ? 'away' : otherwise)
  }

  /** After a call without a reply an unknown item may be one that was settled. */
  isSettled(held: Held<Leased>, error: unknown): boolean {
    return this.#uncertain.has(held) && error instanceof QueueClientError && error.code === 'item_unknown'
  }
}

const endOf = ({ leaseMs }: Terms): Instant => later(elapsed.now(), BigInt(Math.round(leaseMs * 1_000)))

function checkCount(name: string, value: number, least: number): void {
  if (!Number.isInteger(value) || value < least) {
    throw new RangeError(`${name} is ${value}; it must be a whole number of at least ${least}`)
  }
}
