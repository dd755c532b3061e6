/** A job that was claimed and whose result is not written yet. */
import { type Instant, instant, later } from '../clock.ts'

export class Held<Job> {
  readonly id: unknown
  readonly job: Job
  /** The claim ends then, unless it is renewed. */
  until: Instant
  /** A third of the claim has passed. */
  renewAt: Instant
  /** The run has taken too long. */
  runBy: Instant = instant(0n)
  /** It is being renewed, or that failed. */
  isInDoubt = false
  /** Somebody else may have the job. */
  isLost = false
  /** Its result is being written: whoever now finds the claim gone finds what was written. */
  isOver = false
  /** It was claimed once more since then. */
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

  /** Aborts when the run has to end; its reason says why. Made when it is asked for: most jobs need none. */
  get signal(): AbortSignal {
    if (this.#ends === undefined) {
      this.#ends = new AbortController()
      if (this.#reason !== undefined) this.#ends.abort(this.#reason)
    }
    return this.#ends.signal
  }

  /** It was claimed or renewed by a call that was made then. */
  claimed(now: Instant, until: Instant): void {
    this.isInDoubt = false
    this.until = until
    this.renewAt = later(now, (until - now) / 3n)
  }

  /** Ends the run. */
  end(reason: Error): void {
    if (this.#reason !== undefined) return
    this.#reason = reason
    // First, so that work which throws because of the signal comes too late.
    this.#cut?.(reason)
    this.#ends?.abort(reason)
  }

  /** Whether this is the reason for which the run was ended. */
  isEndedBy(error: unknown): boolean {
    return error !== undefined && error === this.#reason
  }

  /** What the work gives, or throws the reason for which the run is ended; what comes later is ignored. */
  unlessEnded<T>(work: () => T | Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#cut = reject
      if (this.#reason !== undefined) reject(this.#reason)
      // Functions of applications may give something else than a promise.
      else Promise.resolve(work()).then(resolve, reject)
    })
  }
}
