/**
 * An engine at work: a worker on its queue, whose runs are those of a handler. A message is held until its history row
 * and its fate are written, in one transaction. Outages of the store are waited out; a crash costs the leases held.
 */
import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import { backoffDelayMs, SETBACK } from '../../core/backoff.ts'
import { type Clock, type Instant, later } from '../../core/clock.ts'
import { BartlebyError } from '../../core/errors.ts'
import type { Log } from '../../core/log.ts'
import type { Held } from '../../core/work/held.ts'
import type { Blame, Claimed, Settlement, Trouble, WorkTable } from '../../core/work/work-table.ts'
import { Worker } from '../../core/work/worker.ts'
import type { EngineDirectory } from '../../queues/engines/engine-directory.ts'
import { engineQueueSettings } from '../../queues/engines/engine-queues.ts'
import type { RetryItem, Run } from '../../queues/queue.ts'
import type { Queues } from '../../queues/queues.ts'
import { StoreUnavailable } from '../../store/database.ts'
import { type EngineOptions, type EngineTerms, termsOf } from './options.ts'
import { EngineStopped, HandlerTimedOut, type Leased, LeaseLost, type RunOffice, runOn } from './run.ts'

export interface EngineOffice {
  readonly queues: Queues
  readonly clock: Clock
  readonly log: Log
  readonly directory: EngineDirectory
  readonly readCase: RunOffice['readCase']
  readonly claimQueue: (engine: string, queue: string) => Promise<void>
}

export interface Engine {
  readonly name: string
  /** Creates a missing queue and begins to lease. Once only; holds the process until it is stopped. */
  start(): Promise<void>
  /** Waits for running handlers, at most `timeoutMs` (10 s unless given), and gives the other leases back. */
  stop(options?: { readonly timeoutMs?: number }): Promise<void>
}

const POLL_TIMEOUT = '1m'
const DEFAULT_STOP_MS = 10_000
const MOST_SETTLED = 50

/** Refuses wrong options by name. */
export function createEngine<Message>(office: EngineOffice, options: EngineOptions<Message>): Engine {
  return new QueueEngine(office, termsOf(office.directory, options))
}

type Fate = { readonly completed: Run } | { readonly retried: Omit<RetryItem, 'id'> }

class QueueEngine implements Engine, WorkTable<Leased, Fate> {
  readonly name: string
  readonly #office: EngineOffice
  readonly #terms: EngineTerms
  readonly #clientId: string
  readonly #runOffice: RunOffice
  readonly #worker: Worker<Leased, Fate>
  #started: Promise<void> | undefined
  #stopped: Promise<void> | undefined
  /** The queue was deleted. */
  #isQueueGone = false

  constructor(office: EngineOffice, terms: EngineTerms) {
    const { clock, log, readCase } = office
    const { name, concurrency, timeout, timeoutUs } = terms
    this.name = name
    this.#office = office
    this.#terms = terms
    const actor = `${name}@${hostname()}`
    this.#clientId = `${actor}-${randomUUID()}`
    this.#runOffice = { clock, log, actor, readCase, extendLease: (held) => this.#worker.renew(held) }
    this.#worker = new Worker<Leased, Fate>({
      clock,
      table: this,
      room: ({ held }) => concurrency - held,
      run: (held) => this.#run(held),
      unbegun: () => GIVEN_BACK,
      reasonOf: (why, { item }) => {
        if (why === 'late') return new HandlerTimedOut(`the handler did not return within ${timeout}`)
        if (why === 'lost') return new LeaseLost(`the lease of message ${item.id} was lost`)
        return new EngineStopped(`engine '${name}' was stopped`)
      },
      onTrouble: (during, error, held) => this.#tell(during, error, held),
      claimsAgain: (error) => !isCode(error, 'service_stopping'),
      holdsProcess: true,
      timeoutUs,
      // The table cannot tell this worker from the next holder.
      settlesInTime: true,
      outage: SETBACK,
      mostSettled: () => MOST_SETTLED,
      mostRefusals: 1,
      lastWritesMs: Number.POSITIVE_INFINITY,
    })
  }

  start(): Promise<void> {
    if (this.#stopped !== undefined) return Promise.reject(new Error(`engine '${this.name}' was stopped`))
    this.#started ??= this.#start()
    return this.#started
  }

  stop({ timeoutMs = DEFAULT_STOP_MS }: { readonly timeoutMs?: number } = {}): Promise<void> {
    // A failed start has rejected already.
    this.#stopped ??= Promise.allSettled([this.#worker.stop(timeoutMs), this.#started]).then(() => {})
    return this.#stopped
  }

  async #start(): Promise<void> {
    await this.#ensureQueue()
    // Before the first lease: from now on deaths in the queue are the engine's.
    await this.#office.claimQueue(this.name, this.#terms.queueName)
    this.#worker.start().catch(() => {})
  }

  /** An existing queue keeps its settings, and may let messages die by itself. */
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

  async claim({ most, signal }: { most: number; signal: AbortSignal }): Promise<Claimed<Leased>> {
    const { queues, clock } = this.#office
    const { queueName } = this.#terms
    if (this.#isQueueGone) await this.#ensureQueue()
    try {
      const request = { queueName, clientId: this.#clientId, batchSize: most, requestTimeout: POLL_TIMEOUT }
      const { partition, items } = await queues.lease(request, signal)
      this.#isQueueGone = false
      const jobs = items.map((item) => ({ item, partition }))
      return { jobs, until: items[0]?.leaseDeadline ?? clock.now(), again: 'now' }
    } catch (error) {
      this.#isQueueGone = isCode(error, 'queue_unknown')
      if (isCode(error, 'lease_timed_out')) return { jobs: [], until: clock.now(), again: 'now' }
      throw error
    }
  }

  async renew(held: readonly Held<Leased>[]): Promise<ReadonlyMap<Held<Leased>, Instant>> {
    const until = await this.#office.queues.extend({ ...this.#place(held), ids: idsOf(held) })
    return new Map(held.map((each) => [each, until]))
  }

  groupOf({ partition }: Leased, fate?: Fate): string {
    return `${partition} ${fate !== undefined && 'completed' in fate}`
  }

  async settle(settlements: readonly Settlement<Leased, Fate>[]): Promise<void> {
    const { queues } = this.#office
    const held = settlements.map((each) => each.held)
    const runs = new Map<string, Run>()
    const items: RetryItem[] = []
    for (const { held, result } of settlements) {
      const { id } = held.job.item
      if ('completed' in result) runs.set(id, result.completed)
      else items.push({ id, ...result.retried })
    }
    // A group has one or the other.
    if (items.length > 0) await queues.retry({ ...this.#place(held), items })
    else await queues.complete({ ...this.#place(held), ids: idsOf(held), runs })
  }

  blame(error: unknown, held: readonly Held<Leased>[], during: 'renew' | 'settle'): Blame<Leased> {
    if (error instanceof StoreUnavailable || (error instanceof BartlebyError && error.retryable))
      return 'away'
    if (during === 'renew' && !(error instanceof BartlebyError)) return 'away'
    const text = error instanceof Error ? error.message : ''
    return held.find(({ job }) => text.includes(`'${job.item.id}'`)) ?? 'refused'
  }

  async #run(held: Held<Leased>): Promise<Fate | null> {
    const result = await runOn(held, this.#terms, this.#runOffice)
    if (result.verdict === 'succeeded') return { completed: result.run }
    if (result.verdict === 'none') return result.reason instanceof EngineStopped ? GIVEN_BACK : null
    const { run, permanent } = result
    const { attempts } = held.job.item
    if (permanent || attempts >= this.#terms.maxAttempts) return { retried: { dead: true, run } }
    const delayUs = BigInt(Math.round(backoffDelayMs(attempts, this.#terms.backoff) * 1_000))
    return { retried: { retryAt: later(this.#office.clock.now(), delayUs), run } }
  }

  #tell(during: Trouble, error: unknown, held: readonly Held<Leased>[]): void {
    const { log } = this.#office
    const about = { err: error, engine: this.name, itemIds: idsOf(held) }
    if (during === 'late') log.error(about, TROUBLE[during])
    else log.warn(about, TROUBLE[during])
  }

  #place([first]: readonly Held<Leased>[]): { readonly queueName: string; readonly partition: number } {
    return { queueName: this.#terms.queueName, partition: first?.job.partition ?? 0 }
  }
}

const GIVEN_BACK: Fate = { retried: { unspent: true } }

const TROUBLE: Readonly<Record<Trouble, string>> = {
  claim: 'no messages could be leased, trying again',
  renew: 'leases could not be renewed, trying again',
  lost: 'a lease was lost while the handler ran; another worker may have the message',
  settle: 'the results of runs could not be written, trying again',
  refused: 'the result of a run was not written; its message is gone or another worker has it',
  late: 'the results of runs were not written in time; the messages are delivered again',
  run: 'a message could not be run; it is delivered again when its lease ends',
}

const idsOf = (held: readonly Held<Leased>[]): readonly string[] => held.map(({ job }) => job.item.id)

const isCode = (error: unknown, code: BartlebyError['code']): boolean =>
  error instanceof BartlebyError && error.code === code
