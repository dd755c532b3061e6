/**
 * An engine at work: leases messages of its queue, runs the handler on each, and settles them by the verdict.
 *
 *   start ─► leasing ⇄ full ─► stop: leases no more, waits for handlers (bounded), gives the other leases back
 *              └─► held ─► run ─► settled (history row and fate of the message in one transaction)
 *
 * It holds at most `concurrency` messages, and a message holds its place until it is settled. It outlives outages of
 * the store; a crash costs the leases it held, and nothing else.
 */
import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import { backoffDelayMs, SETBACK } from '../../core/backoff.ts'
import type { Clock } from '../../core/clock.ts'
import { BartlebyError } from '../../core/errors.ts'
import type { Log } from '../../core/log.ts'
import { Signal } from '../../core/signal.ts'
import { pause } from '../../core/waiting.ts'
import { engineQueueSettings } from '../../queues/engine-queues.ts'
import type { LeasedBatch, Queues } from '../../queues/queue.ts'
import type { EngineDirectory } from './definitions.ts'
import { EngineStopped, Holding, LeaseKeeper } from './lease-keeper.ts'
import { type EngineOptions, type EngineTerms, termsOf } from './options.ts'
import { type RunOffice, runOn } from './run.ts'
import { Settler } from './settle.ts'

/** What an engine needs of the office it belongs to. */
export interface EngineOffice {
  readonly queues: Queues
  readonly clock: Clock
  readonly log: Log
  readonly directory: EngineDirectory
  readonly readCase: RunOffice['readCase']
  /** Records in the store that the queue is the engine's. */
  readonly claimQueue: (engine: string, queue: string) => Promise<void>
}

/** A worker that an application started. */
export interface Engine {
  readonly name: string
  /**
   * Creates the queue when it is missing and begins to lease. An engine is started once, and holds the process until it
   * is stopped.
   */
  start(): Promise<void>
  /** Waits for running handlers, at most `timeoutMs` (10 s unless said otherwise), and gives the other leases back. */
  stop(options?: { readonly timeoutMs?: number }): Promise<void>
}

const POLL_TIMEOUT = '1m'
/** The longest a timer can be: it is never meant to ring. */
const LONGEST_TIMER_MS = 2 ** 31 - 1
const DEFAULT_STOP_MS = 10_000

/** Makes an engine of checked options; refuses wrong ones with the option's name. */
export function createEngine<Message>(office: EngineOffice, options: EngineOptions<Message>): Engine {
  return new QueueEngine(office, termsOf(office.directory, options))
}

class QueueEngine implements Engine {
  readonly name: string
  readonly #office: EngineOffice
  readonly #terms: EngineTerms
  readonly #clientId: string
  readonly #runOffice: RunOffice
  readonly #keeper: LeaseKeeper
  readonly #settler: Settler

  readonly #polling = new AbortController()
  /** Aborts when stop waits no longer: results that could not be written by then are given up. */
  readonly #quitting = new AbortController()
  readonly #changes = new Signal()
  readonly #held = new Set<Holding>()
  readonly #tasks = new Set<Promise<void>>()
  /** Leased messages without a verdict, to be given back. */
  readonly #unfinished: Holding[] = []
  /** What the process lives for. Everything else that waits here waits on timers that do not hold it. */
  #life: NodeJS.Timeout | undefined
  #started: Promise<void> | undefined
  #leasing: Promise<void> = Promise.resolve()
  #stopped: Promise<void> | undefined

  constructor(office: EngineOffice, terms: EngineTerms) {
    const { queues, clock, log, readCase } = office
    this.name = terms.name
    this.#office = office
    this.#terms = terms
    const actor = `${terms.name}@${hostname()}`
    this.#clientId = `${actor}-${randomUUID()}`
    this.#keeper = new LeaseKeeper({
      clock,
      log,
      extend: (partition, ids) => queues.extend({ queueName: terms.queueName, partition, ids }),
    })
    this.#settler = new Settler(queues, clock, log, terms)
    this.#runOffice = { clock, log, actor, readCase, extendLease: (holding) => this.#keeper.renew(holding) }
  }

  start(): Promise<void> {
    if (this.#stopped !== undefined) return Promise.reject(new Error(`engine '${this.name}' was stopped`))
    this.#started ??= this.#start()
    return this.#started
  }

  stop({ timeoutMs = DEFAULT_STOP_MS }: { readonly timeoutMs?: number } = {}): Promise<void> {
    this.#stopped ??= this.#stop(timeoutMs)
    return this.#stopped
  }

  async #start(): Promise<void> {
    this.#life = setInterval(() => {}, LONGEST_TIMER_MS)
    try {
      await this.#ensureQueue()
      // Before the first lease: what dies in the queue from now on is the engine's.
      await this.#office.claimQueue(this.name, this.#terms.queueName)
    } catch (error) {
      clearInterval(this.#life)
      throw error
    }
    if (!this.#polling.signal.aborted) this.#leasing = this.#leaseMessages(this.#polling.signal)
  }

  async #stop(timeoutMs: number): Promise<void> {
    try {
      await this.#finish(timeoutMs)
    } finally {
      clearInterval(this.#life)
    }
  }

  async #finish(timeoutMs: number): Promise<void> {
    this.#polling.abort()
    this.#changes.notify()
    // A start that failed has told its caller.
    await this.#started?.catch(() => {})
    await this.#leasing
    const finished = new AbortController()
    const tasks = Promise.all(this.#tasks).then(() => finished.abort())
    await pause(this.#office.clock, BigInt(Math.round(timeoutMs * 1_000)), finished.signal)
    this.#quitting.abort()
    for (const { abort } of this.#held) abort.abort(new EngineStopped(`engine '${this.name}' was stopped`))
    await tasks
    await this.#keeper.stop()
    await this.#settler.giveBack(this.#unfinished)
  }

  /** Creates the queue when it is missing. One that exists keeps its settings, and may let messages die by itself. */
  async #ensureQueue(): Promise<void> {
    const { queues, log } = this.#office
    const { queueName } = this.#terms
    try {
      await queues.create(engineQueueSettings(this.name, queueName))
    } catch (error) {
      if (!isCode(error, 'queue_exists')) throw error
      const { maxAttempts } = await queues.info(queueName)
      if (maxAttempts !== 0 && maxAttempts < this.#terms.maxAttempts) {
        const about = { engine: this.name, queueName, maxAttempts }
        log.warn(about, 'the queue allows fewer attempts than its engine; the fewer count')
      }
    }
  }

  async #leaseMessages(signal: AbortSignal): Promise<void> {
    const { queues, clock, log } = this.#office
    const { queueName, concurrency } = this.#terms
    for (let setbacks = 0; !signal.aborted; ) {
      await this.#changes.until(() => this.#held.size < concurrency || signal.aborted)
      if (signal.aborted) return
      const room = concurrency - this.#held.size
      try {
        const request = { queueName, clientId: this.#clientId, batchSize: room, requestTimeout: POLL_TIMEOUT }
        this.#accept(await queues.lease(request, signal))
        setbacks = 0
      } catch (error) {
        if (signal.aborted || isCode(error, 'service_stopping')) return
        if (isCode(error, 'lease_timed_out')) continue
        setbacks += 1
        log.warn({ err: error, engine: this.name, queueName }, 'no messages could be leased, trying again')
        await pause(clock, BigInt(Math.round(backoffDelayMs(setbacks, SETBACK) * 1_000)), signal)
        if (isCode(error, 'queue_unknown')) await this.#restoreQueue()
      }
    }
  }

  /** Somebody deleted the queue under the engine. */
  async #restoreQueue(): Promise<void> {
    try {
      await this.#ensureQueue()
    } catch (error) {
      this.#office.log.warn({ err: error, engine: this.name }, 'the queue of the engine could not be created')
    }
  }

  #accept({ partition, items }: LeasedBatch): void {
    for (const item of items) {
      const holding = new Holding(item, partition)
      // What was leased while the engine stopped.
      if (this.#polling.signal.aborted) {
        this.#unfinished.push(holding)
        continue
      }
      this.#held.add(holding)
      this.#keeper.keep(holding)
      const task = this.#work(holding).finally(() => {
        this.#keeper.release(holding)
        this.#held.delete(holding)
        this.#tasks.delete(task)
        this.#changes.notify()
      })
      this.#tasks.add(task)
    }
  }

  /** From lease to settled. Never rejects. */
  async #work(holding: Holding): Promise<void> {
    try {
      const result = await runOn(holding, this.#terms, this.#runOffice)
      if (result.verdict !== 'none') await this.#settler.settle(holding, result, this.#quitting.signal)
      else if (result.reason instanceof EngineStopped) this.#unfinished.push(holding)
    } catch (error) {
      const { log } = this.#office
      log.warn(
        { err: error, engine: this.name, itemId: holding.item.id },
        'a message could not be run; it is delivered again when its lease ends',
      )
    }
  }
}

const isCode = (error: unknown, code: BartlebyError['code']): boolean =>
  error instanceof BartlebyError && error.code === code
