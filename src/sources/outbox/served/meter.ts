/**
 * What a dispatcher and its writers have done since they started: totals, the latest throughput and failure ratio, and how
 * long deliveries took. It is told about every message, so counting one takes nanoseconds and no memory: the clock is read
 * once for each second in which something happens, and everything is counted in arrays that never grow.
 */
import { type Clock, instant } from '../../../core/clock.ts'
import { checkNumber, whole } from '../refusal.ts'

/** Upper bounds of the durations that are told apart, in seconds; what took longer than the last has a bucket of its own. */
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
  /** Deliveries that failed, as a share of all; 0 when there was none. */
  readonly failureRatio: number
  /** Deliveries in the window, whatever came of them. */
  readonly attempts: number
  /** Of all deliveries since the meter was made, whatever came of them. */
  readonly durations: {
    readonly bounds: readonly number[]
    /** For each bound how many took at most so long, and at last all of them. */
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
  /** One place for each second of the window: which second since 1970 it holds, and what happened in it. */
  readonly #secondIn: Float64Array
  readonly #dispatchedIn: Float64Array
  readonly #failuresIn: Float64Array
  /** The place of the present second; -1 once that second is over, until something happens again. */
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

  /** A message was delivered; that took so many seconds. */
  dispatched(seconds: number): void {
    this.#totals.dispatched += 1
    count(this.#dispatchedIn, this.#presentPlace())
    this.#took(seconds)
  }

  /** A delivery failed, after so many seconds. */
  failed(seconds: number): void {
    this.#totals.failures += 1
    count(this.#failuresIn, this.#presentPlace())
    this.#took(seconds)
  }

  /** A message was added whose key was there already. */
  duplicate(): void {
    this.#totals.duplicates += 1
  }

  /** A message was added whose key was there already, with another payload. */
  conflict(): void {
    this.#totals.conflicts += 1
  }

  /** The numbers at this moment. Looking changes nothing. */
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
   * The time that the window covers: whole seconds and the part of the present one that is over. It cannot begin before
   * the meter did, and a fraction of a second at the start proves no rate.
   */
  #spanSeconds(nowUs: bigint): number {
    const ofPresent = Number(nowUs % SECOND_US) / 1e6
    const sinceStart = Number(nowUs - this.#startedAtUs) / 1e6
    return Math.max(1, Math.min(this.#windowSeconds - 1 + ofPresent, sinceStart))
  }

  #presentPlace(): number {
    return this.#place < 0 ? this.#beginSecond() : this.#place
  }

  /** Takes the place of a second that has left the window, and keeps it until an alarm ends the second. */
  #beginSecond(): number {
    const second = secondOf(this.#clock.now())
    const place = ((second % this.#windowSeconds) + this.#windowSeconds) % this.#windowSeconds
    if (this.#secondIn[place] !== second) {
      this.#secondIn[place] = second
      this.#dispatchedIn[place] = 0
      this.#failuresIn[place] = 0
    }
    this.#place = place
    // It rings once the deadline is past, within a second: nobody has to cancel it.
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

/** Seconds since 1970, cut down. */
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
