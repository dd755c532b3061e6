/**
 * The courier: claims the ready jobs of push consumers, as many as have room, delivers each and settles what came of it. It hears
 * of ready jobs from whoever makes them, and looks for them itself every now and then, so that none waits for ever. One that
 * was claimed begins at once; whatever happens to it, it is settled, handed back, or its claim lapses and recovery has it.
 */

import { addressRanges } from '../../../core/address-ranges.ts'
import { backoffDelayMs } from '../../../core/backoff.ts'
import { type Alarm, later, microseconds } from '../../../core/clock.ts'
import { Rounds } from '../../../core/rounds.ts'
import { Signal } from '../../../core/signal.ts'
import { Xids } from '../../../core/xid.ts'
import { Origins } from '../../../outgoing/connections.ts'
import { type Announcer, WEBHOOK_JOBS } from '../../../store/announcer.ts'
import { type CourierParts, claimUs } from '../settings.ts'
import { Allowances } from './allowances.ts'
import { type Attempted, Attempts } from './attempts.ts'
import { Breaker } from './breaker.ts'
import { claimJobs, consumersWithReady } from './claim.ts'
import { Contents } from './contents.ts'
import { Recovery } from './recovery.ts'
import { Settling } from './settling.ts'

/** Consumers of one claim. */
const MOST_ASKED = 200
/** While many attempts run, those that end within this time are replaced together. */
const GATHER_MS = 5
const FEW_RUNNING = 8
const SPARE_CONNECTIONS = 16
/** The shortest time between two notifications to other servers: while this one is full, there is always something to say. */
const ANNOUNCE_MS = 50
/** The whole server has ten seconds, and some of them pass after this on a busy machine. */
const STOP_MS = 6_000
const LAST_WRITES_MS = 1_000
const OUTAGE = { baseMs: 100, factor: 2, maxMs: 2_000, jitter: 0.3 }

export interface CourierOptions extends CourierParts {
  readonly announcer: Pick<Announcer, 'announce' | 'onWord'>
}

export class Courier {
  readonly #options: CourierOptions
  readonly #changes = new Signal()
  readonly #xids: Xids
  readonly #allowances: Allowances
  readonly #contents: Contents
  readonly #origins: Origins
  readonly #breaker: Breaker
  readonly #settling: Settling
  readonly #recovery: Recovery
  readonly #attempts: Attempts
  readonly #discovery: Rounds
  /** Consumers that may have ready jobs; those that were asked last stand last. */
  readonly #wanted = new Set<number>()
  /** Those of them that got jobs since the last claim began. */
  readonly #woken = new Set<number>()
  /** Something has happened since the last claim began that may make another one possible. */
  #isMoved = false
  #rateAlarm: Alarm | null = null
  #claiming: Promise<void> | null = null
  #stopping = false

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
      // A delivery is over before the body of its answer is: the next one must not wait for that.
      most: delivery.workers + Math.max(delivery.workers, SPARE_CONNECTIONS),
      // The attempt has its own limit of time, which is shorter.
      connectMs: delivery.timeoutSeconds * 1_000 + 1_000,
      refuses: ranges.refuses,
    })
    this.#breaker = new Breaker(options)
    this.#settling = new Settling({ ...options, onLater: (at) => this.#recovery.expect(at) })
    this.#recovery = new Recovery({ ...options, onReady: (all) => this.wake(all) })
    this.#attempts = new Attempts({
      clock,
      log,
      delivery,
      xids: this.#xids,
      origins: this.#origins,
      contents: this.#contents,
      allowances: this.#allowances,
      breaker: this.#breaker,
      settling: this.#settling,
      onFreed: (consumer, mayHaveMore) => (mayHaveMore ? this.wake([consumer]) : this.#moved()),
    })
    this.#discovery = new Rounds({
      ...{ name: 'webhooks.discovery', clock, log, everyUs: microseconds(delivery.rationalDelaySeconds) },
      act: () => this.#discover(),
      trouble: 'ready webhook jobs could not be looked for; the next round tries again',
    })
  }

  /** What is done every so often, for whoever watches over that. */
  get rounds(): readonly Rounds[] {
    return [this.#discovery, ...this.#recovery.rounds]
  }

  /** Jobs that were claimed and are not settled. */
  get held(): number {
    return this.#attempts.held
  }

  /** Calls `listener` after every attempt. */
  onAttempt(listener: (attempt: Attempted) => void): void {
    this.#attempts.onAttempt(listener)
  }

  /** Begins to deliver. */
  start(): void {
    this.#options.announcer.onWord(({ about, number }) => {
      if (about === WEBHOOK_JOBS) this.#hear([number])
    })
    this.#discovery.start()
    this.#recovery.start()
    this.#claiming ??= this.#claimForEver()
  }

  /** These consumers may have jobs that are ready. Those that get nothing here now are told to other servers. */
  wake(consumers: Iterable<number>): void {
    const all = [...consumers]
    const isAway = this.#claiming === null || this.#stopping || this.#free <= 0
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
    this.#moved()
  }

  /** Claims nothing more. What still runs after `withinMs` is cut short and handed back. */
  async stop(withinMs = STOP_MS): Promise<void> {
    this.#stopping = true
    this.#rateAlarm?.cancel()
    let isQuiet = false
    void Promise.all([this.#discovery.stop(), this.#recovery.stop(), this.#claiming]).then(() => {
      isQuiet = true
      this.#changes.notify()
    })
    this.#changes.notify()
    const haveEnded = () => this.#allowances.running === 0
    // A store that does not answer must not hold up the end.
    await this.#changes.within(withinMs, () => isQuiet && haveEnded())
    this.#attempts.cutShort()
    await this.#changes.until(haveEnded)
    await this.#changes.within(LAST_WRITES_MS, () => this.held === 0)
    this.#settling.stop()
    await this.#breaker.idle()
    await this.#origins.close()
  }

  /** Attempts that may begin now. */
  get #free(): number {
    const { workers, maxQueue } = this.#options.settings.delivery
    return Math.min(workers - this.#allowances.running, maxQueue - this.held, this.#contents.room)
  }

  get #othersWait(): boolean {
    return this.#wanted.size > 1
  }

  #moved(): void {
    this.#isMoved = true
    this.#changes.notify()
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

  async #claimForEver(): Promise<void> {
    const { log } = this.#options
    for (let failures = 0; !this.#stopping; ) {
      await this.#changes.until(() => this.#stopping || (this.#isMoved && this.#free > 0))
      if (this.#stopping) return
      try {
        await this.#gather()
        await this.#claim()
        failures = 0
      } catch (error) {
        failures += 1
        this.#isMoved = true
        log.error({ err: error }, 'webhook jobs could not be claimed')
        await this.#changes.within(backoffDelayMs(failures, OUTAGE), () => this.#stopping)
      }
    }
  }

  /** Waits a moment for more attempts to end: a transaction for each of them would cost more than the attempts. */
  async #gather(): Promise<void> {
    const { running } = this.#allowances
    if (running < FEW_RUNNING) return
    await this.#changes.within(GATHER_MS, () => this.#stopping || this.#allowances.running <= running / 2)
  }

  async #claim(): Promise<void> {
    const { db, clock, settings } = this.#options
    this.#isMoved = false
    const othersWait = this.#othersWait
    const consumers = this.#askable(othersWait)
    const most = this.#free
    if (this.#stopping || consumers.length === 0 || most <= 0) return this.#awaitRates()
    this.#woken.clear()
    const now = clock.now()
    const { jobs, receivers, finished } = await claimJobs(db, {
      consumers,
      most,
      roomOf: (receiver) => this.#allowances.roomOf(receiver, othersWait),
      claim: this.#xids.next(),
      now,
      claimedUntil: later(now, claimUs(settings.delivery)),
    })
    for (const receiver of receivers) this.#breaker.saw(receiver)
    for (const consumer of consumers) {
      this.#wanted.delete(consumer)
      if (!finished.has(consumer) || this.#woken.has(consumer)) this.#wanted.add(consumer)
    }
    // More than this server has room for.
    this.#announce(consumers.filter((consumer) => !finished.has(consumer)))
    // There may be more behind them; and behind those that were asked in vain stand others that were not.
    const othersStand = consumers.length === MOST_ASKED && finished.size > 0
    if (jobs.length > 0 || othersStand) this.#isMoved = true
    else this.#awaitRates()
    if (jobs.length > 0) await this.#attempts.begin(jobs, () => this.#stopping)
  }

  #askable(othersWait: boolean): readonly number[] {
    const askable: number[] = []
    for (const consumer of this.#wanted) {
      if (this.#allowances.mayHaveRoom(consumer, othersWait)) askable.push(consumer)
      if (askable.length === MOST_ASKED) break
    }
    return askable
  }

  /** Consumers that wait for nothing but their rate are asked again when it allows. */
  #awaitRates(): void {
    const { clock } = this.#options
    this.#rateAlarm?.cancel()
    this.#rateAlarm = null
    const times = [...this.#wanted].flatMap((consumer) => this.#allowances.nextAt(consumer) ?? [])
    const [first] = times.sort((a, b) => (a < b ? -1 : 1))
    if (first !== undefined && !this.#stopping) this.#rateAlarm = clock.alarm(first, () => this.#moved())
  }
}

export type { Attempted } from './attempts.ts'
