/**
 * The one worker: claims jobs of a table, runs them and writes their results. Engines, consumers, outboxes and webhooks bring tables and
 * runs; claiming, holding, renewing, settling, outages and stopping are here.
 *
 *            room, and woken or due              a place                    run ends
 *   [table] ──────── claim ────────► (waiting) ────────────► (running) ──────────────► (over) ── settle ──► gone
 *      ▲                                 │ stop                  │ lost, late, stopped: its signal aborts     │
 *      └───────── given back ◄───────────┴───────────────────────┴─────────── store away: kept, tried later ◄─┘
 *
 * A job is held from its claim until its result is written, and renewed after a third of its claim: two renewals may fail before one is
 * lost. A stopped worker claims no more, gives back what it had not begun, waits for runs, cuts them short at its deadline, and leaves
 * unwritten results to claims that lapse. It knows no store, because the client, which runs in browsers, is a worker too.
 */
import { backoffDelayMs } from '../backoff.ts'
import { type Alarm, after, type Clock, type Instant, later } from '../clock.ts'
import { Signal } from '../signal.ts'
import { holdProcess, pause } from '../waiting.ts'
import { Held } from './held.ts'
import { Renewals } from './renewals.ts'
import { Settler } from './settler.ts'
import type { Claimed, WorkerOptions, WorkOrder } from './work-table.ts'

export class Worker<Job, Result> {
  readonly #options: WorkerOptions<Job, Result>
  readonly #order: WorkOrder<Job, Result>
  readonly #concurrency: number
  readonly #waitsBy: Clock
  readonly #renewals: Renewals<Job, Result>
  readonly #settler: Settler<Job, Result>
  readonly #changes = new Signal()
  /** By id, or by the job itself. */
  readonly #held = new Map<unknown, Held<Job>>()
  /** In the order of their beginning: the first is the first to be late. */
  readonly #running = new Set<Held<Job>>()
  #lateAlarm: Alarm | undefined
  #lookAlarm: Alarm | undefined
  #isWoken = true
  /** Jobs go back that are due at once, and nothing else tells of them. */
  #looksOnceWritten = false
  /** Set while claiming waits for room or jobs. */
  #resume: (() => void) | undefined
  #claiming: Promise<void> | undefined
  #claims = 0
  readonly #stopping = new AbortController()
  #stopped: Promise<void> | undefined
  #letProcessGo: (() => void) | undefined
  #isCut = false
  /** Whatever ends from now on is left. */
  #isOver = false

  constructor(options: WorkerOptions<Job, Result>) {
    this.#options = options
    this.#order = options.order ?? new AsClaimed()
    this.#concurrency = options.concurrency ?? Number.POSITIVE_INFINITY
    this.#waitsBy = options.waitsBy ?? options.clock
    this.#renewals = new Renewals(options, () => this.#held.values())
    this.#settler = new Settler(options, (settled) => this.#drop(settled))
  }

  /** Claimed and not settled. */
  get held(): number {
    return this.#held.size
  }

  get running(): number {
    return this.#running.size
  }

  get settling(): number {
    return this.#settler.unwritten
  }

  get isStopping(): boolean {
    return this.#stopping.signal.aborted
  }

  /** Resolves when claiming has ended; rejects with the error that ended it. */
  start(): Promise<void> {
    if (this.#options.holdsProcess === true && !this.isStopping) this.#holdProcess()
    this.#claiming ??= this.#claimAll()
    return this.#claiming
  }

  /** There may be jobs, or room for them. */
  wake(): void {
    this.#isWoken = true
    this.#look()
  }

  /** Claims once, room or not, beside what `start` claims. */
  async claimOnce(claim: (signal: AbortSignal) => Promise<Claimed<Job>>): Promise<Claimed<Job>> {
    this.#claims += 1
    try {
      const claimed = await claim(this.#stopping.signal)
      this.#accept(claimed)
      if (claimed.trouble !== undefined) throw claimed.trouble
      return claimed
    } finally {
      this.#claims -= 1
      if (this.isStopping) this.#changes.notify()
    }
  }

  /** Resolves when nothing is held, or the worker stops. */
  idle(): Promise<void> {
    return this.#changes.until(() => this.isStopping || this.#held.size === 0)
  }

  /** Rejects when the claim is lost or the table cannot say. */
  renew(held: Held<Job>): Promise<void> {
    return this.#renewals.renewNow(held)
  }

  /** Gives back what was not begun; cuts runs short after `withinMs`. */
  stop(withinMs: number): Promise<void> {
    this.#stopped ??= this.#stop(withinMs)
    return this.#stopped
  }

  async #stop(withinMs: number): Promise<void> {
    const { reasonOf, lastWritesMs } = this.#options
    this.#holdProcess()
    this.#stopping.abort()
    this.#lookAlarm?.cancel()
    this.#resume?.()
    this.#giveBack(this.#order.takeAll())
    this.#beginMore()
    this.#changes.notify()
    const isQuiet = () => this.#claims === 0 && this.#running.size === 0
    const isDone = () => isQuiet() && this.#settler.unwritten === 0
    // A silent store must not hold up the end.
    const deadline = this.#deadline(withinMs)
    await this.#changes.until(() => deadline.isOver || isQuiet())
    this.#settler.hurry()
    await this.#changes.until(() => deadline.isOver || isDone())
    deadline.cancel()
    this.#isCut = true
    for (const held of this.#running) held.end(reasonOf('stopped', held.job))
    const last = this.#deadline(lastWritesMs)
    await this.#changes.until(() => last.isOver || isDone())
    last.cancel()
    this.#isOver = true
    this.#settler.stop()
    this.#renewals.stop()
    this.#lateAlarm?.cancel()
    this.#letProcessGo?.()
  }

  #holdProcess(): void {
    this.#letProcessGo ??= holdProcess()
  }

  #deadline(ms: number): { readonly isOver: boolean; cancel(): void } {
    if (ms <= 0 || ms === Number.POSITIVE_INFINITY) return { isOver: ms <= 0, cancel: () => {} }
    const alarm = after(this.#waitsBy, BigInt(Math.round(ms * 1_000)), () => {
      deadline.isOver = true
      this.#changes.notify()
    })
    const deadline = { isOver: false, cancel: () => alarm.cancel() }
    return deadline
  }

  async #claimAll(): Promise<void> {
    const { table, room, outage, onTrouble, claimsAgain } = this.#options
    const { signal } = this.#stopping
    for (let failures = 0; !signal.aborted; ) {
      await this.#untilDue()
      if (signal.aborted) return
      this.#isWoken = false
      try {
        const { again } = await this.claimOnce((signal) => table.claim({ most: room(this), signal }))
        this.#lookAgain(again)
        failures = 0
      } catch (error) {
        if (signal.aborted) return
        if (claimsAgain?.(error) === false) throw error
        failures += 1
        this.#isWoken = true
        onTrouble('claim', error, [])
        await pause(this.#waitsBy, BigInt(backoffDelayMs(failures, outage) * 1_000), signal)
      }
    }
  }

  #lookAgain(again: Claimed<Job>['again']): void {
    this.#lookAlarm?.cancel()
    if (again === 'now') this.#isWoken = true
    else if (again !== null && !this.isStopping)
      this.#lookAlarm = this.#options.clock.alarm(again, () => this.wake())
  }

  #mayClaim(): boolean {
    return this.isStopping || (this.#isWoken && this.#options.room(this) > 0)
  }

  async #untilDue(): Promise<void> {
    if (this.#mayClaim()) return
    await new Promise<void>((resolve) => {
      this.#resume = resolve
    })
    this.#resume = undefined
  }

  /** Something changed that claiming may wait for. */
  #look(): void {
    if (this.#resume !== undefined && this.#mayClaim()) this.#resume()
  }

  #accept({ jobs, until }: Claimed<Job>): void {
    const { clock, table, known } = this.#options
    if (jobs.length === 0) return
    const now = clock.now()
    for (const job of jobs) {
      const id = table.idOf?.(job) ?? job
      const ours = this.#held.get(id)
      if (ours !== undefined) {
        // Its claim lapsed while the store was away and is ours again, or its result was written unnoticed.
        ours.claimed(now, until)
        ours.isClaimedAgain = ours.isOver
        if (ours.isOver) this.#order.claimedAgain?.(ours)
        continue
      }
      const held = this.#hold(id, job, now, until)
      const result = known?.(job)
      if (result === undefined) this.#order.add(held)
      else this.#finish(held, result)
    }
    this.#renewals.watch(later(now, (until - now) / 3n))
    // A claim may cross a stop.
    if (this.isStopping) this.#giveBack(this.#order.takeAll())
    this.#beginMore()
  }

  #hold(id: unknown, job: Job, now: Instant, until: Instant): Held<Job> {
    const held = new Held(id, job, now, until)
    this.#held.set(id, held)
    return held
  }

  #beginMore(): void {
    const { clock, unbegun } = this.#options
    while (this.#running.size < this.#concurrency && !this.#isCut) {
      const held = this.#order.next()
      if (held === undefined) return
      const isOurs = !held.isLost && clock.now() < held.until
      const result = isOurs ? 'run' : unbegun(held, 'lost')
      if (result === 'run') void this.#run(held)
      else this.#finish(held, result)
    }
  }

  #giveBack(waiting: readonly Held<Job>[]): void {
    for (const held of waiting) {
      const result = this.#options.unbegun(held, held.isLost ? 'lost' : 'stopped')
      if (result === 'run') this.#order.add(held)
      else this.#finish(held, result)
    }
  }

  async #run(held: Held<Job>): Promise<void> {
    const { run, onTrouble } = this.#options
    this.#running.add(held)
    this.#limit(held)
    let result: Result | null = null
    try {
      result = await run(held)
    } catch (error) {
      onTrouble('run', error, [held])
    }
    this.#running.delete(held)
    if (this.#isOver) return
    this.#finish(held, result)
    this.#beginMore()
    this.#look()
    if (this.#running.size === 0) this.#changes.notify()
  }

  /** Settles a job, and those that are not begun because of it. */
  #finish(held: Held<Job>, result: Result | null): void {
    for (const behind of this.#order.ended?.(held, result) ?? []) this.#settler.settle(behind)
    if (result === null) this.#drop([held])
    else this.#settler.settle({ held, result })
  }

  #drop(settled: readonly Held<Job>[]): void {
    const { clock } = this.#options
    for (const held of settled) {
      this.#held.delete(held.id)
      if (!held.isClaimedAgain) continue
      // Claimed again while its result was written, perhaps after: nobody else would do it.
      this.#giveBack([this.#hold(held.id, held.job, clock.now(), held.until)])
      this.#looksOnceWritten = true
    }
    if (this.#looksOnceWritten && this.#settler.unwritten === 0) {
      this.#looksOnceWritten = false
      this.#isWoken = true
    }
    this.#look()
    this.#changes.notify()
  }

  /** Ends late runs, and runs whose claim is over and not renewable. One alarm for all, because all may take as long. */
  #limit(held: Held<Job>): void {
    const { clock, table, timeoutUs } = this.#options
    if (timeoutUs === undefined) return
    const limit = later(clock.now(), timeoutUs)
    held.runBy = table.renew === undefined && held.until < limit ? held.until : limit
    if (this.#lateAlarm === undefined) this.#awaitLate(held.runBy)
  }

  #awaitLate(first: Instant): void {
    const { clock, reasonOf } = this.#options
    this.#lateAlarm = clock.alarm(first, () => {
      this.#lateAlarm = undefined
      const now = clock.now()
      for (const held of this.#running) {
        if (held.runBy > now) return this.#awaitLate(held.runBy)
        held.end(reasonOf('late', held.job))
      }
    })
  }
}

class AsClaimed<Job, Result> implements WorkOrder<Job, Result> {
  readonly #waiting: Held<Job>[] = []

  add(held: Held<Job>): void {
    this.#waiting.push(held)
  }

  next(): Held<Job> | undefined {
    return this.#waiting.shift()
  }

  takeAll(): readonly Held<Job>[] {
    return this.#waiting.splice(0)
  }
}
