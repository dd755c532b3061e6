/**
 * Counts what a dispatcher and its writers have done: totals, latest throughput and failure ratio, durations. Counting
 * a message takes nanoseconds and no memory: the clock is read once a second, and the arrays never grow.
 */
import { type Clock, instant } from '../../../core/clock.ts'
import { checkNumber, whole } from '../refusal.ts'

/** Upper bounds of duration buckets, in seconds; the last bucket has none. */
export const DURATION_BOUNDS: readonly number[] = [
  0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60,
]

const DEFAULT_WINDOW_SECONDS = 60
const LONGEST_WINDOW_SECONDS = 3_600
const SECOND_US = 1_000_000n

export interface MeterSnapshot {
  /** Since the meter was made. */
  readonly dispatched: number
  readonly failures: number
  readonly duplicates: number
  readonly conflicts: number
  /** Over the window. */
  readonly windowSeconds: number
  readonly throughputPerSecond: number
  /** Share of failed deliveries; 0 when there was none. */
  readonly failureRatio: number
  /** Deliveries in the window, failed or not. */
  readonly attempts: number
  /** Of all deliveries since the meter was made. */
  readonly durations: {
    readonly bounds: readonly number[]
    /** Cumulative: for each bound how many took at most so long, then all. */
    readonly counts: readonly number[]
    readonly sum: number
  }
}

export class OutboxMeter {
  readonly #clock: Clock
  readonly #windowSeconds: number
  readonly #startedAtUs: bigint
  /** Since the meter was made. */
  readonly #totals = { dispatched: 0, failures: 0, duplicates: 0, conflicts: 0 }
  /** One place per second of the window: which second since 1970 it holds, and what happened in it. */
  readonly #secondIn: Float64Array
  readonly #dispatchedIn: Float64Array
  readonly #failuresIn: Float64Array
  /** The present second; -1 once it is over, until something happens again. */
  #place = -1
  readonly #durations = new Float64Array(DURATION_BOUNDS.length + 1)
  #durationSum = 0

  constructor(clock: Clock, options: { readonly windowSeconds?: number } = {}) {
    const { windowSeconds = DEFAULT_WINDOW_SECONDS } = options
    checkNumber('windowSeconds', windowSeconds, whole(1, LONGEST_WINDOW_SECONDS))
    this.#clock = clock
    this.#windowSeconds = windowSeconds
    this.#startedAtUs = clock.now()
    this.#secondIn = new Float64Array(windowSeconds).fill(Number.NEGATIVE_INFINITY)
    this.#dispatchedIn = new Float64Array(windowSeconds)
    this.#failuresIn = new Float64Array(windowSeconds)
  }

  dispatched(seconds: number): void {
    this.#totals.dispatched += 1
    count(this.#dispatchedIn, this.#presentPlace())
    this.#took(seconds)
  }

  failed(seconds: number): void {
    this.#totals.failures += 1
    count(this.#failuresIn, this.#presentPlace())
    this.#took(seconds)
  }

  /** A message was added whose key was known. */
  duplicate(): void {
    this.#totals.duplicates += 1
  }

  /** The same, with another payload. */
  conflict(): void {
    this.#totals.conflicts += 1
  }

  snapshot(): MeterSnapshot {
    const nowUs = this.#clock.now()
    const present = secondOf(nowUs)
    let dispatched = 0
    let failures = 0
    for (const [place, second] of this.#secondIn.entries()) {
      if (second > present || second <= present - this.#windowSeconds) continue
      dispatched += this.#dispatchedIn[place] ?? 0
      failures += this.#failuresIn[place] ?? 0
    }
    const attempts = dispatched + failures
    return {
      ...this.#totals,
      windowSeconds: this.#windowSeconds,
      throughputPerSecond: dispatched / this.#spanSeconds(nowUs),
      failureRatio: attempts === 0 ? 0 : failures / attempts,
      attempts,
      durations: {
        bounds: DURATION_BOUNDS,
        counts: runningTotals(this.#durations),
        sum: this.#durationSum,
      },
    }
  }

  /**
   * Whole seconds and the elapsed part of the present one, not from before the meter began. At least one: a fraction of
   * a second proves no rate.
   */
  #spanSeconds(nowUs: bigint): number {
    const ofPresent = Number(nowUs % SECOND_US) / 1e6
    const sinceStart = Number(nowUs - this.#startedAtUs) / 1e6
    return Math.max(1, Math.min(this.#windowSeconds - 1 + ofPresent, sinceStart))
  }

  #presentPlace(): number {
    return this.#place < 0 ? this.#beginSecond() : this.#place
  }

  /** Reuses the place of a second outside the window, until an alarm ends this one. */
  #beginSecond(): number {
    const second = secondOf(this.#clock.now())
    const place = ((second % this.#windowSeconds) + this.#windowSeconds) % this.#windowSeconds
    if (this.#secondIn[place] !== second) {
      this.#secondIn[place] = second
      this.#dispatchedIn[place] = 0
      this.#failuresIn[place] = 0
    }
    this.#place = place
    // Rings within a second: nobody has to cancel it.
    this.#clock.alarm(instant(BigInt(second + 1) * SECOND_US - 1n), () => {
      this.#place = -1
    })
    return place
  }

  #took(seconds: number): void {
    let bucket = 0
    while (bucket < DURATION_BOUNDS.length && seconds > (DURATION_BOUNDS[bucket] ?? 0)) bucket += 1
    count(this.#durations, bucket)
    this.#durationSum += seconds
  }
}

/** Seconds since 1970. */
const secondOf = (us: bigint): number => Math.floor(Number(us) / 1e6)

function count(counts: Float64Array, place: number): void {
  counts[place] = (counts[place] ?? 0) + 1
}

function runningTotals(counts: Float64Array): readonly number[] {
  let total = 0
  return Array.from(counts, (each) => {
    total += each
    return total
  })
}
