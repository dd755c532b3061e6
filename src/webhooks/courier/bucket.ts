/** A rate of so many in a second, spread evenly: only what belongs to a tenth of a second may come at once. */
import { type Instant, later, microseconds } from '../../core/clock.ts'

const BURSTS_PER_SECOND = 10
/** Far less than anybody can wait for, and more than fractions of numbers lose. */
const TINY = 1e-6
/** The smallest rates are looked at again after so long: what they give is beyond what a time can be. */
const LONGEST_WAIT_SECONDS = 86_400

export class Bucket {
  readonly perSecond: number
  readonly #most: number
  #tokens: number
  #filledAt: Instant

  constructor(perSecond: number, now: Instant) {
    this.perSecond = perSecond
    this.#most = Math.max(1, perSecond / BURSTS_PER_SECOND)
    this.#tokens = this.#most
    this.#filledAt = now
  }

  /** How many may begin now. */
  available(now: Instant): number {
    return Math.max(0, Math.floor(this.#level(now) + TINY))
  }

  /** One begins. */
  take(now: Instant): void {
    this.#tokens = this.#level(now) - 1
    this.#filledAt = now
  }

  /** When the next one may begin. */
  nextAt(now: Instant): Instant {
    const seconds = Math.max(0, 1 - this.#level(now)) / this.perSecond
    return later(now, microseconds(Math.min(seconds, LONGEST_WAIT_SECONDS)))
  }

  /** Whether it is as if nothing had ever begun. */
  isFull(now: Instant): boolean {
    return this.#level(now) >= this.#most
  }

  #level(now: Instant): number {
    // The clock was set back: it goes on from there, and does not wait until it is as late again.
    if (now < this.#filledAt) this.#filledAt = now
    const seconds = Number(now - this.#filledAt) / 1e6
    return Math.min(this.#most, this.#tokens + seconds * this.perSecond)
  }
}
