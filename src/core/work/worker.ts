/**
 * The one worker: claims jobs of a table, does them, and writes down what came of each. Engines, consumers, outboxes and
 * webhooks are tables and runs of their own; claiming, holding, renewing, settling, outages and stopping are here.
 *
 *            room, and woken or due              a place                    run ends
 *   [table] ──────── claim ────────► (waiting) ────────────► (running) ──────────────► (over) ── settle ──► gone
 *      ▲                                 │ stop                  │ lost, late, stopped: its signal aborts     │
 *      └───────── given back ◄───────────┴───────────────────────┴─────────── store away: kept, tried later ◄─┘
 *
 * A job is held from its claim until its result is written. What is held is renewed when a third of its claim has passed,
 * so that two renewals may fail before one is lost. Results are written many at a time while others go on; none is
 * forgotten while the store is away. A worker that is stopped claims no more, gives back what it had not begun, waits for
 * what runs, cuts it short at its deadline, and leaves what cannot be written to claims that lapse.
 *
 * It knows no store: the client, which runs in browsers and stands on core alone, is a worker too. Hence core/work and not
 * work/. All time is the clock's.
 */
import { type BackoffPolicy, backoffDelayMs } from '../backoff.ts'
import { type Alarm, after, type Clock, type Instant, later } from '../clock.ts'
import { Signal } from '../signal.ts'
import { holdProcess, pause } from '../waiting.ts'
import { Held } from './held.ts'
import { Renewals } from './renewals.ts'
import { Settler } from './settler.ts'

/** What a claim gave. */
export interface Claimed<Job> {
  readonly jobs: readonly Job[]
  /** The claims end then, unless they are renewed. */
  readonly until: Instant
  /** When to look again if nobody wakes the worker: at once, then, or never. */
  readonly again: 'now' | Instant | null
  /** The jobs are ours, but nothing can be done with them: the next claim waits as after a failure. */
  readonly trouble?: unknown
}

/** Whether an error is the fault of one job, of some job, or of none: then nothing is decided, and it is tried again. */
export type Blame<Job> = 'away' | 'refused' | Held<Job>

export interface Settlement<Job, Result> {
  readonly held: Held<Job>
  readonly result: Result
}

/** Where work lies: a queue, somebody's outbox table, jobs. Each source keeps its own tables and SQL. */
export interface WorkTable<Job, Result> {
  /** Claims at most so many. May wait for some until the signal aborts. */
  claim(ask: { readonly most: number; readonly signal: AbortSignal }): Promise<Claimed<Job>>
  /** Gives new ends: the same end of what could not be renewed now, none of what is lost. Left out: claims cannot be renewed. */
  renew?(held: readonly Held<Job>[]): Promise<ReadonlyMap<Held<Job>, Instant>>
  /** Writes down results of one group, in one transaction; rejects when it wrote none of them. */
  settle(results: readonly Settlement<Job, Result>[]): Promise<void>
  /** Whom an error of `renew` or `settle` meets. One of a renewal that blames nobody leaves all as they are: work is not cut short for what may pass. */
  blame(error: unknown, held: readonly Held<Job>[], during: 'renew' | 'settle'): Blame<Job>
  /** What can be renewed, or settled by one call, is of one group. Default: everything. */
  groupOf?(job: Job, result?: Result): string | number
  /** What a job is known by, where one may be claimed again while it is held. */
  idOf?(job: Job): string
}

/** In which order jobs are begun. Default: as they were claimed. */
export interface WorkOrder<Job, Result> {
  add(held: Held<Job>): void
  /** The next that can be begun now. */
  next(): Held<Job> | undefined
  /** A job is over: gives the results of others that are not begun because of it. */
  ended?(held: Held<Job>, result: Result | null): readonly Settlement<Job, Result>[]
  /** Gives up everything that is not begun. */
  takeAll(): readonly Held<Job>[]
}

/** `claim`, `renew`, `settle`: it is tried again. `lost`: its run is ended. `refused`, `late`: the result is left. `run`: it threw. */
export type Trouble = 'claim' | 'renew' | 'settle' | 'lost' | 'refused' | 'late' | 'run'

export interface WorkerOptions<Job, Result> {
  readonly clock: Clock
  readonly table: WorkTable<Job, Result>
  /** How many more may be claimed now. */
  readonly room: (worker: Worker<Job, Result>) => number
  /** Does a job, and ends soon after its signal aborts. null: nothing is to be written, the claim lapses or is lost. */
  readonly run: (held: Held<Job>) => Promise<Result | null>
  /** The result of a job that need not be done. */
  readonly known?: (job: Job) => Result | undefined
  /** What is written for a job that was not begun. null: nothing. 'run': it is begun all the same. */
  readonly unbegun: (held: Held<Job>, why: 'lost' | 'stopped') => Result | null | 'run'
  /** Why a run is ended: its claim is lost, it took too long, or the worker stops. */
  readonly reasonOf: (why: 'lost' | 'late' | 'stopped', job: Job) => Error
  readonly onTrouble: (during: Trouble, error: unknown, held: readonly Held<Job>[]) => void
  /** False: claiming ends with this error. Default: it is tried again. */
  readonly claimsAgain?: (error: unknown) => boolean
  readonly order?: WorkOrder<Job, Result>
  /** The process lives as long as the worker does: whatever else waits here waits on timers that do not hold it. */
  readonly holdsProcess?: boolean
  /** Runs at the same time; however many there are unless given. */
  readonly concurrency?: number
  /** How long a run may take; for ever unless given. */
  readonly timeoutUs?: bigint
  /** Jobs whose claims could not be renewed are dropped so long before they end; unless given, when the table says that they are lost. */
  readonly dropUs?: bigint
  /** Results of claims that are over are not written: the table would not notice that somebody else has the job. */
  readonly settlesInTime?: boolean
  readonly outage: BackoffPolicy
  /** Results of one call, in a group that begins with this one. */
  readonly mostSettled: (first: Result) => number
  /** How often a result may be refused before it is left. */
  readonly mostRefusals: number
  /** How often a result is tried once everything that ran has ended; 4 times unless given. */
  readonly lastTries?: number
  /** How long a stop waits for runs that were cut short and for last results. */
  readonly lastWritesMs: number
}

export class Worker<Job, Result> {
  readonly #options: WorkerOptions<Job, Result>
  readonly #order: WorkOrder<Job, Result>
  readonly #concurrency: number
  readonly #renewals: Renewals<Job, Result>
  readonly #settler: Settler<Job, Result>
  readonly #changes = new Signal()
  /** By id, or by the job itself. */
  readonly #held = new Map<unknown, Held<Job>>()
  /** In the order in which they were begun, so that the first is the first to be late. */
  readonly #running = new Set<Held<Job>>()
  #lateAlarm: Alarm | undefined
  #lookAlarm: Alarm | undefined
  #isWoken = true
  /** Set while claiming waits for room, or for something to claim. */
  #resume: (() => void) | undefined
  #claiming: Promise<void> | undefined
  /** Under way. */
  #claims = 0
  readonly #stopping = new AbortController()
  #stopped: Promise<void> | undefined
  #letProcessGo: (() => void) | undefined
  /** A stop has waited long enough: what runs is cut short. */
  #isCut = false
  /** Nothing more is done: whatever ends from now on is left. */
  #isOver = false

  constructor(options: WorkerOptions<Job, Result>) {
    this.#options = options
    this.#order = options.order ?? new AsClaimed()
    this.#concurrency = options.concurrency ?? Number.POSITIVE_INFINITY
    this.#renewals = new Renewals(options, () => this.#held.values())
    this.#settler = new Settler(options, (settled) => this.#drop(settled))
  }

  /** Jobs that were claimed and are not settled. */
  get held(): number {
    return this.#held.size
  }

  get running(): number {
    return this.#running.size
  }

  /** Jobs whose results are being written. */
  get settling(): number {
    return this.#settler.unwritten
  }

  get isStopping(): boolean {
    return this.#stopping.signal.aborted
  }

  /** Begins to work. Resolves when claiming has ended; rejects with the error that ended it. */
  start(): Promise<void> {
    if (this.#options.holdsProcess === true && !this.isStopping) this.#holdProcess()
    this.#claiming ??= this.#claimAll()
    return this.#claiming
  }

  /** There may be something to claim, or room for it. */
  wake(): void {
    this.#isWoken = true
    this.#look()
  }

  /** Claims once, room or not. False when nothing was there. */
  async claimOnce(most: number): Promise<boolean> {
    const { clock, table } = this.#options
    this.#claims += 1
    try {
      const claimed = await table.claim({ most, signal: this.#stopping.signal })
      const { jobs, again, trouble } = claimed
      this.#accept(claimed)
      if (trouble !== undefined) throw trouble
      this.#lookAlarm?.cancel()
      this.#lookAlarm = undefined
      if (again === 'now') this.#isWoken = true
      else if (again !== null && !this.isStopping) this.#lookAlarm = clock.alarm(again, () => this.wake())
      return jobs.length > 0
    } finally {
      this.#claims -= 1
      if (this.isStopping) this.#changes.notify()
    }
  }

  /** Resolves when nothing is held, or the worker stops. */
  idle(): Promise<void> {
    return this.#changes.until(() => this.isStopping || this.#held.size === 0)
  }

  /** Renews one claim now; rejects when it is lost or the table cannot say. */
  renew(held: Held<Job>): Promise<void> {
    return this.#renewals.renewNow(held)
  }

  /** Claims no more and gives back what was not begun. What runs is cut short after `withinMs`. */
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
    // A store that does not answer must not hold up the end.
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
    const alarm = after(this.#options.clock, BigInt(Math.round(ms * 1_000)), () => {
      deadline.isOver = true
      this.#changes.notify()
    })
    const deadline = { isOver: false, cancel: () => alarm.cancel() }
    return deadline
  }

  async #claimAll(): Promise<void> {
    const { clock, room, outage, onTrouble, claimsAgain } = this.#options
    const { signal } = this.#stopping
    for (let failures = 0; !signal.aborted; ) {
      await this.#untilDue()
      if (signal.aborted) return
      this.#isWoken = false
      try {
        await this.claimOnce(room(this))
        failures = 0
      } catch (error) {
        if (signal.aborted) return
        if (claimsAgain?.(error) === false) throw error
        failures += 1
        this.#isWoken = true
        onTrouble('claim', error, [])
        await pause(clock, BigInt(backoffDelayMs(failures, outage) * 1_000), signal)
      }
    }
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

  /** Something has changed that claiming may wait for. */
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
        // Its claim had lapsed while the store was away, and is ours again; or its result was written, and that is not known yet.
        ours.claimed(now, until)
        ours.isClaimedAgain = ours.isOver
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

  /** What came of a job, and of those that are not begun because of it. */
  #finish(held: Held<Job>, result: Result | null): void {
    for (const behind of this.#order.ended?.(held, result) ?? []) this.#settler.settle(behind)
    if (result === null) this.#drop([held])
    else this.#settler.settle({ held, result })
  }

  #drop(settled: readonly Held<Job>[]): void {
    const { clock } = this.#options
    for (const held of settled) {
      this.#held.delete(held.id)
      // Claimed again while its result was being written, perhaps after it: nobody else would do it.
      if (held.isClaimedAgain) this.#giveBack([this.#hold(held.id, held.job, clock.now(), held.until)])
    }
    this.#look()
    this.#changes.notify()
  }

  /** Ends the run when it has taken too long: one alarm for all, because all may take as long. */
  #limit(held: Held<Job>): void {
    const { clock, timeoutUs } = this.#options
    if (timeoutUs === undefined) return
    held.runBy = later(clock.now(), timeoutUs)
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
