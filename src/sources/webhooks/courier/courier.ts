/**
 * The courier: a worker whose table is the ready jobs of push consumers. It hears of ready jobs from whoever makes them, and looks for them
 * now and then. A claimed job begins at once and is settled, handed back, or left to recovery: claims are never renewed.
 */
import { addressRanges } from '../../../core/address-ranges.ts'
import { type Instant, later, microseconds } from '../../../core/clock.ts'
import { Rounds } from '../../../core/rounds.ts'
import { Signal } from '../../../core/signal.ts'
import { systemClock } from '../../../core/system-clock.ts'
import { atMost, holding } from '../../../core/waiting.ts'
import type { Held } from '../../../core/work/held.ts'
import type { Blame, Claimed, Settlement, Trouble, WorkTable } from '../../../core/work/work-table.ts'
import { Worker } from '../../../core/work/worker.ts'
import { Xids } from '../../../core/xid.ts'
import { inOffice } from '../../../letters/work.ts'
import { Origins } from '../../../outgoing/connections.ts'
import { type Announcer, WEBHOOK_JOBS } from '../../../store/announcer.ts'
import { StoreUnavailable } from '../../../store/database.ts'
import { settleAlone } from '../jobs/settle-jobs.ts'
import { type CourierParts, claimUs } from '../settings.ts'
import { JOB } from '../webhook.ts'
import { Allowances } from './allowances.ts'
import { type AttemptResult, AttemptTimedOut, attempt } from './attempt.ts'
import { Breaker } from './breaker.ts'
import { type ClaimedJob, claimJobs, consumersWithReady } from './claim.ts'
import { type Content, Contents, type Loaded } from './contents.ts'
import { settlementOf } from './outcome.ts'
import { Recovery } from './recovery.ts'

/** Of one claim. */
const MOST_ASKED = 200
/** While many attempts run, those that end within this time are replaced together. */
const GATHER_MS = 5
const FEW_RUNNING = 8
const SPARE_CONNECTIONS = 16
/** Between two notifications to other servers: a full one has always something to say. */
const ANNOUNCE_MS = 50
/** The whole server has ten seconds, some of which pass after this on a busy machine. */
const STOP_MS = 6_000
const LAST_WRITES_MS = 1_000
/** About as long: a store that is back by then gets the last results. */
const LAST_TRIES = 12
const OUTAGE = { baseMs: 50, factor: 2, maxMs: 1_000, jitter: 0.3 }
/** In one transaction. */
const MOST_SETTLED = 500

export interface CourierOptions extends CourierParts {
  readonly announcer: Pick<Announcer, 'announce' | 'onWord'>
}

interface Assignment {
  readonly claimed: ClaimedJob
  readonly content: Loaded
}

export interface Attempted {
  readonly channelId: string
  readonly consumerId: string
  readonly outcome: Exclude<AttemptResult['outcome'], 'cut'>
  readonly seconds: number
}

const CUT: AttemptResult = { outcome: 'cut' }
const MESSAGE_GONE: AttemptResult = {
  outcome: 'network',
  errorClass: 'MessageGone',
  errorMessage: 'the message of the job does not exist any more',
}

export class Courier implements WorkTable<Assignment, AttemptResult> {
  readonly #options: CourierOptions
  readonly #xids: Xids
  readonly #allowances: Allowances
  readonly #contents: Contents
  readonly #origins: Origins
  readonly #breaker: Breaker
  readonly #recovery: Recovery
  readonly #listeners: ((attempt: Attempted) => void)[] = []
  readonly #discovery: Rounds
  readonly #worker: Worker<Assignment, AttemptResult>
  readonly #attemptEnds = new Signal()
  /** May have ready jobs; those asked last stand last. */
  readonly #wanted = new Set<number>()
  /** Got jobs since the last claim began. */
  readonly #woken = new Set<number>()
  /** Claimed jobs whose messages are being read. */
  #reading = 0
  #isStarted = false

  constructor(options: CourierOptions) {
    const { db, clock, log, settings } = options
    const { delivery } = settings
    const ranges = addressRanges(delivery.refusedAddresses)
    if ('problem' in ranges) throw new TypeError(`webhooks.delivery.refusedAddresses: ${ranges.problem}`)
    this.#options = options
    this.#xids = new Xids(clock)
    this.#allowances = new Allowances(clock, delivery)
    this.#contents = new Contents(db)
    this.#origins = new Origins(clock, {
      // A delivery is over before the body of its answer is: the next must not wait for that.
      most: delivery.workers + Math.max(delivery.workers, SPARE_CONNECTIONS),
      // The attempt's own limit is shorter.
      connectMs: delivery.timeoutSeconds * 1_000 + 1_000,
      refuses: ranges.refuses,
    })
    this.#breaker = new Breaker(options)
    this.#recovery = new Recovery({ ...options, onReady: (all) => this.wake(all) })
    this.#discovery = new Rounds({
      ...{ name: 'webhooks.discovery', clock, log, everyUs: microseconds(delivery.rationalDelaySeconds) },
      act: () => this.#discover(),
      trouble: 'ready webhook jobs could not be looked for; the next round tries again',
    })
    this.#worker = new Worker<Assignment, AttemptResult>({
      clock,
      table: this,
      room: () => this.#room,
      run: (held) => this.#run(held),
      unbegun: ({ job }) => this.#handBack(job),
      reasonOf: (why) => (why === 'late' ? new AttemptTimedOut() : new Error('the server stops')),
      onTrouble: (during, error, held) => this.#logTrouble(during, error, held),
      timeoutUs: microseconds(delivery.timeoutSeconds),
      outage: OUTAGE,
      // Real time, in a process that lives on: a result that is not written is a delivery made again.
      waitsBy: holding(systemClock()),
      mostSettled: () => MOST_SETTLED,
      mostRefusals: Number.POSITIVE_INFINITY,
      lastTries: LAST_TRIES,
      lastWritesMs: LAST_WRITES_MS,
    })
  }

  get rounds(): readonly Rounds[] {
    return [this.#discovery, ...this.#recovery.rounds]
  }

  /** Claimed and not settled. */
  get held(): number {
    return this.#reading + this.#worker.held
  }

  onAttempt(listener: (attempt: Attempted) => void): void {
    this.#listeners.push(listener)
  }

  start(): void {
    this.#isStarted = true
    this.#options.announcer.onWord(({ about, number }) => {
      if (about === WEBHOOK_JOBS) this.#hear([number])
    })
    this.#discovery.start()
    this.#recovery.start()
    void this.#worker.start()
  }

  /** Consumers that may have ready jobs. Other servers hear of those that get nothing here. */
  wake(consumers: Iterable<number>): void {
    const all = [...consumers]
    const isAway = !this.#isStarted || this.#worker.isStopping || this.#room <= 0
    const hasRoom = (consumer: number) => this.#allowances.mayHaveRoom(consumer, this.#othersWait)
    this.#announce(isAway ? all : all.filter((consumer) => !hasRoom(consumer)))
    this.#hear(all)
  }

  #announce(consumers: readonly number[]): void {
    for (const number of consumers)
      this.#options.announcer.announce({ about: WEBHOOK_JOBS, number, from: 0 }, ANNOUNCE_MS)
  }

  #hear(consumers: Iterable<number>): void {
    for (const consumer of consumers) {
      this.#wanted.add(consumer)
      this.#woken.add(consumer)
    }
    this.#worker.wake()
  }

  /** Attempts that still run after `withinMs` are cut short and handed back. */
  async stop(withinMs = STOP_MS): Promise<void> {
    const rounds = Promise.all([this.#discovery.stop(), this.#recovery.stop()])
    // A store that does not answer must not hold up the end.
    await Promise.all([this.#worker.stop(withinMs), atMost(withinMs, rounds)])
    await this.#breaker.idle()
    await this.#origins.close()
  }

  get #room(): number {
    const { workers, maxQueue } = this.#options.settings.delivery
    return Math.min(workers - this.#allowances.running, maxQueue - this.held, this.#contents.room)
  }

  get #othersWait(): boolean {
    return this.#wanted.size > 1
  }

  async #discover(): Promise<void> {
    const { db, clock } = this.#options
    try {
      const found = await db.session('webhooks.discover', (session) =>
        consumersWithReady(session, clock.now()),
      )
      if (found.length > 0) this.wake(found)
    } finally {
      this.#allowances.sweep()
      await this.#origins.sweep()
    }
  }

  /** Takes more than asked when attempts have ended meanwhile. */
  async claim({ signal }: { readonly signal: AbortSignal }): Promise<Claimed<Assignment>> {
    const { db, clock, settings } = this.#options
    await this.#gather()
    const othersWait = this.#othersWait
    const consumers = this.#askable(othersWait)
    const most = this.#room
    const now = clock.now()
    if (signal.aborted || consumers.length === 0 || most <= 0)
      return { jobs: [], until: now, again: this.#nextAt() }
    this.#woken.clear()
    const until = later(now, claimUs(settings.delivery))
    const { jobs, receivers, finished } = await claimJobs(db, {
      consumers,
      most,
      roomOf: (receiver) => this.#allowances.roomOf(receiver, othersWait),
      claim: this.#xids.next(),
      now,
      claimedUntil: until,
    })
    for (const receiver of receivers) this.#breaker.saw(receiver)
    for (const consumer of consumers) {
      this.#wanted.delete(consumer)
      if (!finished.has(consumer) || this.#woken.has(consumer)) this.#wanted.add(consumer)
    }
    // More than this server has room for.
    this.#announce(consumers.filter((consumer) => !finished.has(consumer)))
    // More may stand behind them, and behind those that were asked in vain.
    const othersStand = consumers.length === MOST_ASKED && finished.size > 0
    const again = jobs.length > 0 || othersStand ? 'now' : this.#nextAt()
    return { ...(await this.#withContents(jobs)), until, again }
  }

  /** Waits a moment for more attempts to end: a transaction for each would cost more than the attempts. */
  async #gather(): Promise<void> {
    const { running } = this.#allowances
    if (running < FEW_RUNNING || this.#wanted.size === 0) return
    await this.#attemptEnds.within(GATHER_MS, () => this.#allowances.running <= running / 2)
  }

  #askable(othersWait: boolean): readonly number[] {
    const askable: number[] = []
    for (const consumer of this.#wanted) {
      if (this.#allowances.mayHaveRoom(consumer, othersWait)) askable.push(consumer)
      if (askable.length === MOST_ASKED) break
    }
    return askable
  }

  /** For consumers that wait for nothing but their rate. */
  #nextAt(): Instant | null {
    let first: Instant | null = null
    for (const consumer of this.#wanted) {
      const at = this.#allowances.nextAt(consumer, this.#othersWait)
      if (at !== null && (first === null || at < first)) first = at
    }
    return first
  }

  async #withContents(jobs: readonly ClaimedJob[]): Promise<Pick<Claimed<Assignment>, 'jobs' | 'trouble'>> {
    this.#reading = jobs.length
    try {
      const loaded = await this.#contents.load(jobs.map(({ message }) => message))
      return { jobs: jobs.map((claimed, i) => ({ claimed, content: loaded[i] ?? 'gone' })) }
    } catch (trouble) {
      return { jobs: jobs.map((claimed) => ({ claimed, content: 'no room' })), trouble }
    } finally {
      this.#reading = 0
    }
  }

  async #run({ job, signal }: Held<Assignment>): Promise<AttemptResult> {
    const { claimed, content } = job
    if (content === 'gone') return MESSAGE_GONE
    if (content === 'no room' || this.#isTooLate(claimed)) return this.#handBack(job)
    return this.#attempt(claimed, content, signal)
  }

  /** Never rejects. */
  async #attempt(job: ClaimedJob, content: Content, signal: AbortSignal): Promise<AttemptResult> {
    const { clock, settings } = this.#options
    const { receiver } = job
    const requestId = this.#xids.next()
    const startedMs = performance.now()
    this.#allowances.began(receiver)
    const terms = { clock, delivery: settings.delivery, origins: this.#origins, requestId, signal }
    const result = await attempt(job, content, terms)
    const seconds = (performance.now() - startedMs) / 1_000
    this.#contents.release(job.message)
    const { outcome } = result
    const isKnown = outcome === 'success' || outcome === 'timeout'
    this.#allowances.ended(receiver.number, isKnown ? outcome : 'other')
    this.#attemptEnds.notify()
    this.#worker.wake()
    this.#report(job, requestId, result, seconds)
    return result
  }

  #report(job: ClaimedJob, requestId: string, result: AttemptResult, seconds: number): void {
    const { log } = this.#options
    const { channelId, consumerId } = job.receiver
    if (result.outcome === 'cut') return
    const { outcome } = result
    const details = { requestId, jobId: job.id, channelId, consumerId, seconds }
    if (outcome === 'success') {
      this.#breaker.succeeded(job)
      log.debug(details, 'a webhook was delivered')
    } else {
      this.#breaker.failed(job, result)
      const error = { attempt: job.attempts + 1, error: result.errorMessage }
      log.info({ ...details, ...error }, 'a webhook was not delivered')
    }
    for (const listener of this.#listeners) {
      try {
        listener({ channelId, consumerId, outcome, seconds })
      } catch (error) {
        log.error({ err: error }, 'a listener to deliveries failed')
      }
    }
  }

  /** The attempt would be cut short, or be made twice once another server has the job. */
  #isTooLate({ claimedUntil }: ClaimedJob): boolean {
    const { clock, settings } = this.#options
    return later(clock.now(), microseconds(settings.delivery.timeoutSeconds / 2)) >= claimedUntil
  }

  #handBack({ claimed, content }: Assignment): AttemptResult {
    if (typeof content === 'object') this.#contents.release(claimed.message)
    return CUT
  }

  async settle(results: readonly Settlement<Assignment, AttemptResult>[]): Promise<void> {
    const { db, clock, log, registers, settings } = this.#options
    const settled = await inOffice(db, clock, 'webhooks.settle', async (work) => {
      const settlements = results.map(({ held, result }) => {
        const { claimed, content } = held.job
        const correlationId = typeof content === 'object' ? content.messageId : claimed.message
        return settlementOf(claimed, correlationId, result, settings.delivery, work.now)
      })
      const written = await settleAlone(work, registers, settlements)
      return settlements.map((job) => ({ job, isWritten: written.has(job.id) }))
    })
    for (const { job, isWritten } of settled) {
      if (!isWritten) log.debug({ jobId: job.id }, 'a late result of a delivery was ignored')
      else if (job.to === JOB.later && job.dueAt !== null) this.#recovery.expect(job.dueAt)
    }
    for (const { held, result } of results) if (result.outcome === 'cut') void this.#offer(held.job.claimed)
  }

  async #offer(job: ClaimedJob): Promise<void> {
    await this.#breaker.handedBack(job)
    this.wake([job.receiver.number])
  }

  blame(error: unknown): Blame<Assignment> {
    return error instanceof StoreUnavailable ? 'away' : 'refused'
  }

  #logTrouble(during: Trouble, error: unknown, held: readonly Held<Assignment>[]): void {
    const { log } = this.#options
    if (during === 'claim') log.error({ err: error }, 'webhook jobs could not be claimed')
    if (during === 'settle' && error instanceof StoreUnavailable)
      log.warn({ err: error, jobs: held.length }, 'results of deliveries wait for the store')
    // Once for each job: it is tried several times a second.
    for (const { refusals, job } of held)
      if (refusals === 1)
        log.error({ err: error, jobId: job.claimed.id }, 'the result of a delivery could not be written')
  }
}
