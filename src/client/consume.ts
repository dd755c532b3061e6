/**
 * A consumer: leases items of one queue, runs a handler for each, and settles them by what it does.
 *
 *   poll ─► waiting ─► running ─► settling ─► gone
 *              └── on stop: given back
 *
 * Everything it holds is bounded: at most `concurrency` running, `prefetch` waiting, one call's worth settling.
 * It outlives restarts of the server; an error that no waiting can cure (an unknown queue, a wrong token) ends it.
 */
import { backoffDelayMs, SETBACK } from '../core/backoff.ts'
import { Signal } from '../core/signal.ts'
import { sleep } from '../core/waiting.ts'
import type { QueueClient } from './client.ts'
import { DeadLetterError, QueueClientError } from './errors.ts'
import { HeldItem, LeaseKeeper, type LeaseTerms } from './held.ts'
import { givenError, LARGEST_FAILED_BATCH, Settler } from './settle.ts'
import { durationMs } from './times.ts'
import type { LeasedBatch, LeasedItem, RetryItem } from './types.ts'

export interface ItemContext {
  readonly queueName: string
  readonly partition: number
  /** Aborts when the lease was lost (somebody else may get the item) or `stop` waits no longer. */
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
   * Items leased ahead, beyond those that run; none unless said otherwise. Raise it when handlers take less
   * time than a call to the server. Other consumers do not get at items that wait here.
   */
  readonly prefetch?: number
  /** Unique among the queue's consumers; random unless said otherwise. */
  readonly clientId?: string
  /** How long one poll waits for items; 30s unless said otherwise. */
  readonly pollTimeout?: string
  /** How long an item waits after its handler threw; 1 s, 2 s, 4 s … up to 5 minutes unless said otherwise. */
  readonly retryDelayMs?: (attempts: number, error: unknown) => number
  /** How long `stop` waits for running handlers; 30 s unless said otherwise. */
  readonly stopTimeoutMs?: number
  /** Told of every failure, also those that are tried again. Left out: they go to the console. */
  readonly onError?: (problem: ConsumerProblem) => void
}

const RETRY = { baseMs: 1_000, factor: 2, maxMs: 300_000, jitter: 0.5 }
/** The queue's settings are read again when they are older than this. */
const TERMS_AGE_MS = 30_000
const MOST_SETTLING = 1_000
const LARGEST_LEASE = 1_000

const defaultRetryDelayMs = (attempts: number): number => backoffDelayMs(attempts, RETRY)

function logProblem({ during, error, item }: ConsumerProblem): void {
  console.error(
    `bartleby consumer: ${during} failed${item === undefined ? '' : ` for item ${item.id}`}:`,
    error,
  )
}

export class Consumer {
  /** Resolves when the consumer has stopped; rejects when an error ended it. */
  readonly done: Promise<void>

  readonly #client: QueueClient
  readonly #queueName: string
  readonly #handler: ItemHandler
  readonly #options: Required<ConsumerOptions>

  readonly #polling = new AbortController()
  readonly #settling = new AbortController()
  readonly #changed = new Signal()
  readonly #keeper: LeaseKeeper
  readonly #completions: Settler<{ id: string }>
  readonly #retries: Settler<RetryItem>

  readonly #waiting: HeldItem[] = []
  readonly #running = new Set<HeldItem>()
  readonly #tasks = new Set<Promise<void>>()
  #terms: (LeaseTerms & { readonly maxAttempts: number; readonly readAtMs: number }) | undefined
  #finished = false
  #failure: { readonly error: unknown } | undefined

  constructor(client: QueueClient, queueName: string, handler: ItemHandler, options: ConsumerOptions = {}) {
    this.#client = client
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
    checkCount('concurrency', this.#options.concurrency, 1)
    checkCount('prefetch', this.#options.prefetch, 0)

    this.#keeper = new LeaseKeeper({
      extend: (partition, ids, leaseTimeout) => client.extend({ queueName, partition, ids, leaseTimeout }),
      onProblem: (error, item) => this.#report('extend', error, item),
    })
    const { signal } = this.#settling
    this.#completions = new Settler({
      send: (partition, items) =>
        client.complete({ queueName, partition, ids: items.map(({ id }) => id) }, { signal }),
      onSetback: (error) => this.#report('complete', error),
      signal,
    })
    this.#retries = new Settler({
      send: (partition, items) => client.retry({ queueName, partition, items }, { signal }),
      onSetback: (error) => this.#report('retry', error),
      signal,
      largestBatch: LARGEST_FAILED_BATCH,
    })
    this.done = this.#run()
  }

  /** Leases no more, gives back what was not begun, waits for running handlers; resolves when all is done. */
  stop(): Promise<void> {
    this.#polling.abort()
    this.#giveBack()
    this.#changed.notify()
    return this.done
  }

  async #run(): Promise<void> {
    const keeping = this.#keeper.run()
    try {
      await this.#leaseItems()
    } finally {
      this.#polling.abort()
      await this.#finish()
      this.#keeper.stop()
      await keeping
    }
    if (this.#failure !== undefined) throw this.#failure.error
  }

  async #leaseItems(): Promise<void> {
    const { signal } = this.#polling
    let failures = 0
    while (!signal.aborted) {
      await this.#changed.until(() => signal.aborted || this.#room() > 0)
      if (signal.aborted) return
      const room = this.#room()
      try {
        const terms = await this.#readTerms(signal)
        this.#accept(await this.#poll(room, signal), terms)
        failures = 0
      } catch (error) {
        if (signal.aborted) return
        if (!(error instanceof QueueClientError)) throw error
        if (error.code === 'lease_timed_out') continue
        // The server may not have noticed yet that an earlier poll of ours lost its connection.
        if (!error.retryable && error.code !== 'client_id_waiting') throw error
        this.#report('lease', error)
        await sleep(backoffDelayMs(++failures, SETBACK), signal)
      }
    }
  }

  #poll(batchSize: number, signal: AbortSignal): Promise<LeasedBatch> {
    const { clientId, pollTimeout } = this.#options
    const request = { queueName: this.#queueName, clientId, batchSize, requestTimeout: pollTimeout }
    return this.#client.lease(request, { signal })
  }

  async #readTerms(signal: AbortSignal): Promise<LeaseTerms> {
    const known = this.#terms
    if (known !== undefined && performance.now() - known.readAtMs < TERMS_AGE_MS) return known
    const { leaseTimeout, maxAttempts } = await this.#client.info(this.#queueName, { signal })
    const leaseMs = durationMs(leaseTimeout)
    if (leaseMs === undefined) throw new Error(`queue '${this.#queueName}' has no readable lease timeout`)
    this.#terms = { leaseTimeout, leaseMs, maxAttempts, readAtMs: performance.now() }
    return this.#terms
  }

  /** How many items may be leased now. */
  #room(): number {
    const settling = this.#tasks.size - this.#running.size
    if (settling >= MOST_SETTLING) return 0
    const held = this.#running.size + this.#waiting.length
    return Math.min(LARGEST_LEASE, this.#options.concurrency + this.#options.prefetch - held)
  }

  #accept({ partition, items }: LeasedBatch, terms: LeaseTerms): void {
    for (const item of items) {
      const held = new HeldItem(item, partition, terms)
      this.#keeper.keep(held)
      this.#waiting.push(held)
    }
    // A reply may cross a stop.
    if (this.#polling.signal.aborted) this.#giveBack()
    else this.#startWaiting()
  }

  #startWaiting(): void {
    while (this.#running.size < this.#options.concurrency) {
      const held = this.#waiting.shift()
      if (held === undefined) return
      if (held.lost) continue
      this.#running.add(held)
      this.#track(this.#work(held))
    }
  }

  /** Keeps `task` until it has ended, so that `stop` can wait for it. */
  #track(task: Promise<void>): void {
    const tracked = task
      .catch((error) => this.#fail(error))
      .finally(() => {
        this.#tasks.delete(tracked)
        this.#changed.notify()
      })
    this.#tasks.add(tracked)
  }

  /** Ends the consumer with `error`: one of the caller's own functions threw where nothing may be thrown. */
  #fail(error: unknown): void {
    this.#failure ??= { error }
    this.#polling.abort()
    this.#changed.notify()
  }

  async #work(held: HeldItem): Promise<void> {
    const { item, partition, abort } = held
    let settle = (): Promise<void> => this.#settle('complete', held, this.#completions, { id: item.id })
    try {
      await this.#handler(item, { queueName: this.#queueName, partition, signal: abort.signal })
    } catch (error) {
      this.#report('handler', error, item)
      settle = () => this.#settle('retry', held, this.#retries, this.#retryFor(held, error))
    }
    this.#running.delete(held)
    this.#changed.notify()
    this.#startWaiting()
    this.#keeper.release(held)
    if (!held.lost && !this.#finished) await settle()
  }

  #retryFor(held: HeldItem, error: unknown): RetryItem {
    const failed = { id: held.item.id, ...givenError(error) }
    if (error instanceof DeadLetterError) return { ...failed, dead: true }
    const delayMs = this.#options.retryDelayMs(held.item.attempts, error)
    return { ...failed, retryAt: held.serverTimeIn(delayMs) }
  }

  async #settle<Entry extends { readonly id: string }>(
    during: 'complete' | 'retry',
    held: HeldItem,
    settler: Settler<Entry>,
    entry: Entry,
  ): Promise<void> {
    try {
      await settler.settle(held.partition, entry)
    } catch (error) {
      this.#report(during, error, held.item)
    }
  }

  async #finish(): Promise<void> {
    this.#giveBack()
    const timeUp = new AbortController()
    const limit = sleep(this.#options.stopTimeoutMs, timeUp.signal).then(() => 'late')
    while (this.#tasks.size > 0) {
      if ((await Promise.race([limit, Promise.all(this.#tasks)])) === 'late') break
    }
    timeUp.abort()
    this.#finished = true
    // Leases of handlers that still run are left to end by themselves: the handler may yet have its effect.
    for (const held of this.#running) held.abort.abort()
    this.#settling.abort()
  }

  /** Returns what was not begun. An item on its last attempt would die of being returned, so that it is run. */
  #giveBack(): void {
    const maxAttempts = this.#terms?.maxAttempts ?? 0
    for (const held of this.#waiting.splice(0)) {
      if (held.lost) continue
      if (maxAttempts !== 0 && held.item.attempts >= maxAttempts) {
        this.#waiting.push(held)
      } else {
        this.#keeper.release(held)
        this.#track(this.#settle('retry', held, this.#retries, { id: held.item.id }))
      }
    }
    this.#startWaiting()
  }

  #report(during: ConsumerProblem['during'], error: unknown, item?: LeasedItem): void {
    try {
      this.#options.onError({ during, error, ...(item !== undefined && { item }) })
    } catch (thrown) {
      this.#fail(thrown)
    }
  }
}

function checkCount(name: string, value: number, least: number): void {
  if (!Number.isInteger(value) || value < least) {
    throw new RangeError(`${name} is ${value}; it must be a whole number of at least ${least}`)
  }
}
