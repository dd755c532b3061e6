/**
 * The rate of a redrive, for each destination by itself: letters become due one after the other, and what was not sent when it was
 * due is made up for, up to a second of it. So the rate is kept on average although letters leave in batches, and a server that
 * stood still for long does not flood anybody afterwards.
 */
import { type Clock, type Instant, instant, later } from '../core/clock.ts'

/** What is made up for at most. */
const MOST_LATE_US = 1_000_000n

interface Allowance {
  /** Since when letters of this rate are due, `sent` of them gone. */
  since: Instant
  sent: number
}

export class Pace {
  readonly #clock: Clock
  readonly #allowances = new Map<string, Allowance>()
  #rate: number | null

  constructor(clock: Clock, rate: number | null) {
    this.#clock = clock
    this.#rate = rate
  }

  /** Another rate from now on. */
  change(rate: number | null): void {
    if (rate === this.#rate) return
    this.#rate = rate
    this.#allowances.clear()
  }

  /** How many letters may be sent to a destination now. */
  allowed(destination: string): number {
    const rate = this.#rate
    if (rate === null) return Number.POSITIVE_INFINITY
    const now = this.#clock.now()
    const allowance = this.#allowanceOf(destination, now)
    const lateUs = now - dueAt(allowance, rate)
    if (lateUs > MOST_LATE_US) allowance.since = later(allowance.since, lateUs - MOST_LATE_US)
    forget(allowance, rate)
    return Math.max(0, Math.floor((Number(now - allowance.since) * rate) / 1e6 + 1e-6) - allowance.sent)
  }

  /** So many were sent to it. */
  sent(destination: string, letters: number): void {
    if (this.#rate === null) return
    this.#allowanceOf(destination, this.#clock.now()).sent += letters
  }

  /** When the next letter may be sent to it; now, or before, when one may. */
  nextAt(destination: string): Instant {
    const now = this.#clock.now()
    return this.#rate === null ? now : dueAt(this.#allowanceOf(destination, now), this.#rate)
  }

  #allowanceOf(destination: string, now: Instant): Allowance {
    const known = this.#allowances.get(destination)
    if (known !== undefined) return known
    const allowance = { since: now, sent: 0 }
    this.#allowances.set(destination, allowance)
    return allowance
  }
}

/** What lies more than a minute back does not count any more: over days the numbers would lose digits. */
function forget(allowance: Allowance, rate: number): void {
  const seconds = Math.floor(allowance.sent / rate)
  if (seconds < 60) return
  allowance.since = later(allowance.since, BigInt(seconds) * 1_000_000n)
  allowance.sent -= seconds * rate
}

/** When the letter behind those that were sent is due. */
const dueAt = ({ since, sent }: Allowance, rate: number): Instant =>
  instant(since + BigInt(Math.ceil(((sent + 1) * 1e6) / rate)))
