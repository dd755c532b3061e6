/** One run under way on this server: step after step, at its rate, with rests for others. Everything that must survive is in the store. */
import { type Clock, type Instant, later } from '../core/clock.ts'
import type { Log } from '../core/log.ts'
import { StoreUnavailable } from '../db/database.ts'
import { type Courtesy, LONG_TURN_MS } from './courtesy.ts'
import { Pace } from './pace.ts'
import { RecentRate } from './recent-rate.ts'
import type { RunKind, RunWork, Step, Walk } from './run.ts'
import type { Run } from './run-rows.ts'

/** A step that was committed. */
export interface StepTaken {
  readonly next: Step['next']
  /** Rows that were looked at. */
  readonly rows: number
  /** What the run is allowed from now on. */
  readonly rate: number | null
}

export interface RunWalkParts {
  readonly clock: Clock
  readonly log: Log
  readonly courtesy: Courtesy
  /** Ends the walk after the step at hand. */
  readonly signal: AbortSignal
  /** The run as it stands; null when it does not go on here. */
  read(): Promise<Run | null>
  /** null: the run does not go on here. */
  step(most: number, rateNow: number | null): Promise<StepTaken | null>
  pause(note: string): Promise<void>
}

/** Rows of a rate are done this often, so that a high one does not cost a transaction for each of them. */
const TICK_US = 50_000n
/** Changes are told, but that may be lost: a run that waits looks for them too. */
const LOOK_US = 1_000_000n
/** How often what may pass is tried again, and how far apart. */
const MOST_TRIES = 30
const TRY_AGAIN_US = 1_000_000n
/** A rate is kept by one allowance for all. */
const ALL = ''

export class RunWalk implements Walk {
  readonly #parts: RunWalkParts
  readonly #run: Run
  readonly #kind: Pick<RunKind<RunWork>, 'batch' | 'rest'>
  readonly #pace: Pace
  readonly #rate: RecentRate
  readonly #onQuiet = new Set<() => void>()
  #tries = 0
  /** Ends the wait at hand, and says whether somebody woke it. */
  #endWait: ((isWoken: boolean) => void) | null = null

  constructor(parts: RunWalkParts, run: Run, kind: Pick<RunKind<RunWork>, 'batch' | 'rest'>) {
    this.#parts = parts
    this.#run = run
    this.#kind = kind
    this.#pace = new Pace(parts.clock, run.rate)
    this.#rate = new RecentRate(parts.clock)
  }

  async go(): Promise<boolean> {
    const { signal } = this.#parts
    try {
      while (!signal.aborted) if (!(await this.#round())) return false
      return true
    } finally {
      this.#tellQuiet()
    }
  }

  wake(): void {
    this.#endWait?.(true)
  }

  quiet(): Promise<void> {
    if (this.#endWait !== null) return Promise.resolve()
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#onQuiet.add(resolve)
    return promise
  }

  /** One step, or a wait; false when the run does not go on here. */
  async #round(): Promise<boolean> {
    try {
      const { clock, courtesy, signal, read, step } = this.#parts
      const most = Math.min(this.#kind.batch, this.#pace.allowed(ALL))
      if (most < 1) {
        const [due, tick] = [this.#pace.nextAt(ALL), later(clock.now(), TICK_US)]
        const look = later(clock.now(), LOOK_US)
        const isWoken = await this.#wait(due < tick ? tick : due < look ? due : look)
        return (!isWoken && due <= look) || this.#learn(await read())
      }
      const startedMs = performance.now()
      const taken = await step(most, this.#rate.perSecond)
      this.#tries = 0
      if (taken?.next !== 'more') return false
      this.#pace.sent(ALL, taken.rows)
      this.#pace.change(taken.rate)
      this.#rate.add(taken.rows)
      await courtesy.rest(performance.now() - startedMs, signal, this.#kind.rest, LONG_TURN_MS)
      return true
    } catch (error) {
      return this.#onTrouble(error)
    }
  }

  /** Somebody may have changed its rate, or ended it. */
  #learn(run: Run | null): boolean {
    this.#pace.change(run?.rate ?? null)
    return run !== null
  }

  /** What passes is tried again; what does not pauses the run. */
  async #onTrouble(error: unknown): Promise<boolean> {
    const { log, clock, pause } = this.#parts
    const { id, kind } = this.#run
    log.warn({ err: error, run: id, kind }, 'run was held up; it tries again')
    this.#tries++
    if (this.#tries >= MOST_TRIES && !(error instanceof StoreUnavailable)) {
      const words = error instanceof Error ? error.message : String(error)
      await pause(`it failed ${MOST_TRIES} times on this server: ${words}`)
      return false
    }
    await this.#wait(later(clock.now(), TRY_AGAIN_US))
    return true
  }

  /** Until then; true when somebody woke it before. */
  async #wait(until: Instant): Promise<boolean> {
    if (this.#parts.signal.aborted) return true
    const { promise, resolve } = Promise.withResolvers<boolean>()
    const end = (isWoken: boolean) => {
      this.#endWait = null
      resolve(isWoken)
    }
    const alarm = this.#parts.clock.alarm(until, () => end(false))
    this.#endWait = end
    this.#tellQuiet()
    const isWoken = await promise
    alarm.cancel()
    return isWoken
  }

  #tellQuiet(): void {
    for (const quiet of this.#onQuiet) quiet()
    this.#onQuiet.clear()
  }
}
