/** One run under way on this server: its waits, retries and end. All that must survive is in the store. */
import { type Clock, type Instant, later } from '../core/clock.ts'
import type { Log } from '../core/log.ts'
import { StoreUnavailable } from '../store/database.ts'
import type { Course, Next } from './run.ts'
import type { Run } from './run-rows.ts'

/** Retries of passing trouble, and their distance. */
const MOST_TRIES = 30
const TRY_AGAIN_US = 1_000_000n

/** `signal` ends the walk after the current round. */
interface WalkParts {
  readonly clock: Clock
  readonly log: Log
  readonly signal: AbortSignal
}

export class RunWalk {
  readonly #parts: WalkParts
  readonly #run: Pick<Run, 'id' | 'kind'>
  readonly #course: Course
  readonly #onQuiet = new Set<() => void>()
  #tries = 0
  #isWoken = false
  #endWait: (() => void) | null = null

  constructor(parts: WalkParts, run: Pick<Run, 'id' | 'kind'>, course: Course) {
    this.#parts = parts
    this.#run = run
    this.#course = course
  }

  /** Until the run is over, paused, another server's, or this one stops; true: it is left to others. */
  async go(): Promise<boolean> {
    const { signal } = this.#parts
    try {
      while (!signal.aborted) {
        const next = await this.#round()
        if (next === 'over' || next === 'left') return next === 'left'
        if (next !== 'more') await this.#wait(next)
      }
      return true
    } finally {
      this.#tellQuiet()
    }
  }

  wake(): void {
    this.#isWoken = true
    this.#endWait?.()
  }

  /** Resolves when nothing is left to do before the clock moves. */
  quiet(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#onQuiet.add(resolve)
    this.wake()
    return promise
  }

  async #round(): Promise<Next> {
    const isWoken = this.#isWoken
    this.#isWoken = false
    try {
      const next = await this.#course.round(isWoken)
      this.#tries = 0
      return next
    } catch (error) {
      return this.#onTrouble(error)
    }
  }

  /** Retries what may pass; other trouble pauses the run. */
  async #onTrouble(error: unknown): Promise<Next> {
    const { log, clock } = this.#parts
    const { id, kind } = this.#run
    const { pause, obstacle, isPassing } = this.#course
    if (pause === undefined) throw error
    const note = obstacle?.(error) ?? null
    if (note !== null) return pause(note)
    log.warn({ err: error, run: id, kind }, 'run was held up; it tries again')
    this.#tries++
    if (this.#tries >= MOST_TRIES && !(error instanceof StoreUnavailable || isPassing?.(error) === true)) {
      const words = error instanceof Error ? error.message : String(error)
      return pause(`it failed ${MOST_TRIES} times on this server: ${words}`)
    }
    await this.#wait(later(clock.now(), TRY_AGAIN_US))
    // Its knowledge may be stale.
    this.#isWoken = true
    return 'more'
  }

  async #wait(until: Instant): Promise<void> {
    const { clock, signal } = this.#parts
    if (this.#isWoken || signal.aborted || until <= clock.now()) return
    const { promise, resolve } = Promise.withResolvers<void>()
    const alarm = clock.alarm(until, resolve)
    this.#endWait = resolve
    this.#tellQuiet()
    await promise
    alarm.cancel()
    this.#endWait = null
  }

  #tellQuiet(): void {
    for (const quiet of this.#onQuiet) quiet()
    this.#onQuiet.clear()
  }
}
