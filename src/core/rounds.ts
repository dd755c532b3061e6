/**
 * A named loop on a clock, one round at a time, until it is stopped. A failing round is logged once per outage and tried again with the
 * next; the last run and error can be read. In core, not work/, because the store has rounds too.
 */
import { type Alarm, after, type Clock, type Instant, microseconds } from './clock.ts'
import type { Log } from './log.ts'
import { describeError, type ErrorDescription } from './thrown.ts'
import { holdProcess } from './waiting.ts'

/** Started and stopped once each. */
export interface Service {
  readonly name: string
  /** Left out: nothing runs by itself. */
  start?(): void | Promise<void>
  stop(): Promise<void>
  readonly rounds?: readonly Rounds[]
}

export interface RoundsOptions {
  /** Unique in an office; metrics and health show it. */
  readonly name: string
  readonly clock: Clock
  readonly log: Log
  /** From the end of a round to the next. A function gets the failures in a row; null: none before `now`. */
  readonly everyUs: bigint | ((failures: number) => bigint | null)
  /** For retries; default `clock`. A store comes back in real time, even if the clock stands still. */
  readonly outageClock?: Clock
  /** `signal` aborts when the round must end. It may call `now` itself. */
  readonly act: (signal: AbortSignal) => unknown
  /** Logged when rounds begin to fail, or fail for another reason. */
  readonly trouble: string
  readonly about?: object
  /** Default: a warning. */
  readonly level?: 'debug' | 'warn' | 'error'
  /** The first round is one interval after the start. */
  readonly isFirstLater?: boolean
  /** Keeps the process alive until stopped. */
  readonly holdsProcess?: boolean
}

export interface RoundState {
  readonly name: string
  readonly lastRunAt: Instant | null
  readonly lastTookMs: number | null
  readonly failures: number
  readonly isFailing: boolean
  readonly lastError: ErrorDescription | null
}

export class Rounds implements Service {
  readonly name: string
  readonly #options: RoundsOptions
  readonly #stopped = new AbortController()
  #isStarted = false
  #letProcessGo: (() => void) | undefined
  #alarm: Alarm | undefined
  #expected: { readonly at: Instant; readonly alarm: Alarm } | undefined
  #acting: Promise<void> | undefined
  #again: PromiseWithResolvers<void> | undefined
  #failuresInRow = 0
  #state: RoundState

  constructor(options: RoundsOptions) {
    this.#options = options
    this.name = options.name
    this.#state = {
      ...{ name: this.name, lastRunAt: null, lastTookMs: null },
      ...{ failures: 0, isFailing: false, lastError: null },
    }
  }

  get rounds(): readonly Rounds[] {
    return [this]
  }

  start(): void {
    if (this.#isStarted || this.#stopped.signal.aborted) return
    this.#isStarted = true
    if (this.#options.holdsProcess === true) this.#letProcessGo = holdProcess()
    if (this.#options.isFirstLater === true) this.#arm()
    else void this.now()
  }

  /** Resolves after the current round; no other begins. */
  async stop(): Promise<void> {
    this.#stopped.abort()
    this.#alarm?.cancel()
    this.#expected?.alarm.cancel()
    this.#letProcessGo?.()
    await this.#acting
  }

  /** A round at once, or one more after the current one. Resolves at its end, also after a failure. */
  now(): Promise<void> {
    if (this.#stopped.signal.aborted) return this.#acting ?? Promise.resolve()
    if (this.#acting === undefined) return this.#begin()
    this.#again ??= Promise.withResolvers<void>()
    return this.#again.promise
  }

  /** A round once `at` has passed, if none comes before. */
  expect(at: Instant): void {
    if (this.#stopped.signal.aborted || (this.#expected !== undefined && this.#expected.at <= at)) return
    this.#expected?.alarm.cancel()
    const alarm = this.#options.clock.alarm(at, () => {
      this.#expected = undefined
      void this.now()
    })
    this.#expected = { at, alarm }
  }

  state(): RoundState {
    return this.#state
  }

  #begin(): Promise<void> {
    this.#alarm?.cancel()
    const { clock } = this.#options
    const startedAt = clock.now()
    const startedMs = performance.now()
    const { promise, resolve } = Promise.withResolvers<void>()
    // Before the act, which may ask for another round.
    this.#acting = promise
    void this.#round().then(() => {
      this.#acting = undefined
      resolve()
      const again = this.#again
      this.#again = undefined
      // A clock moved during the round has come closer to the next.
      const movedUs = clock.now() - startedAt - microseconds((performance.now() - startedMs) / 1_000)
      if (again === undefined) this.#arm(movedUs > 0n ? movedUs : 0n)
      else if (this.#stopped.signal.aborted) again.resolve()
      else void this.#begin().then(again.resolve)
    })
    return promise
  }

  /** `sinceUs` of the interval have passed. */
  #arm(sinceUs = 0n): void {
    if (!this.#isStarted || this.#stopped.signal.aborted) return
    const { clock, outageClock = clock, everyUs } = this.#options
    const us = typeof everyUs === 'bigint' ? everyUs : everyUs(this.#failuresInRow)
    const by = this.#failuresInRow > 0 ? outageClock : clock
    if (us !== null) this.#alarm = after(by, us - sinceUs, () => void this.now())
  }

  async #round(): Promise<void> {
    const { act, clock } = this.#options
    const startedMs = performance.now()
    let failed: { readonly error: unknown } | null = null
    try {
      await act(this.#stopped.signal)
    } catch (error) {
      failed = { error }
    }
    const ended = { lastRunAt: clock.now(), lastTookMs: performance.now() - startedMs }
    if (failed === null) {
      this.#failuresInRow = 0
      this.#state = { ...this.#state, ...ended, isFailing: false }
    } else this.#failed(failed.error, ended)
  }

  #failed(error: unknown, ended: Pick<RoundState, 'lastRunAt' | 'lastTookMs'>): void {
    const { log, level = 'warn', about, trouble } = this.#options
    const before = this.#state
    const lastError = describeError(error)
    this.#failuresInRow += 1
    this.#state = { ...before, ...ended, failures: before.failures + 1, isFailing: true, lastError }
    if (before.isFailing && before.lastError?.errorMessage === lastError.errorMessage) return
    log[level]({ err: error, ...about }, trouble)
  }
}
