/** A claimed job whose result is not written yet. */
import { type Instant, instant, later } from '../clock.ts'

export class Held<Job> {
  readonly id: unknown
  readonly job: Job
  /** End of the claim, unless renewed. */
  until: Instant
  /** After a third of the claim. */
  renewAt: Instant
  runBy: Instant = instant(0n)
  /** Being renewed, or that failed. */
  isInDoubt = false
  isLost = false
  /** Its result is being written: a missing claim means that it was. */
  isOver = false
  /** Claimed once more since then. */
  isClaimedAgain = false
  refusals = 0
  #ends: AbortController | undefined
  #reason: Error | undefined
  #cut: ((reason: Error) => void) | undefined

  constructor(id: unknown, job: Job, now: Instant, until: Instant) {
    this.id = id
    this.job = job
    this.until = until
    this.renewAt = later(now, (until - now) / 3n)
  }

  /** Aborts when the run must end, with the reason. Lazy: most jobs need none. */
  get signal(): AbortSignal {
    if (this.#ends === undefined) {
      this.#ends = new AbortController()
      if (this.#reason !== undefined) this.#ends.abort(this.#reason)
    }
    return this.#ends.signal
  }

  /** Claimed or renewed by a call made at `now`. */
  claimed(now: Instant, until: Instant): void {
    this.isInDoubt = false
    this.until = until
    this.renewAt = later(now, (until - now) / 3n)
  }

  end(reason: Error): void {
    if (this.#reason !== undefined) return
    this.#reason = reason
    // First: work that throws because of the signal comes too late.
    this.#cut?.(reason)
    this.#ends?.abort(reason)
  }

  isEndedBy(error: unknown): boolean {
    return error !== undefined && error === this.#reason
  }

  /** Throws the reason when the run is ended; later results are ignored. */
  unlessEnded<T>(work: () => T | Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#cut = reject
      if (this.#reason !== undefined) reject(this.#reason)
      // Applications' functions may return no promise.
      else Promise.resolve(work()).then(resolve, reject)
    })
  }
}
