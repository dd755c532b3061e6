/**
 * The pace of a run. A redrive keeps its rate per destination: letters become due one by one, and what is late is made up for, up to a
 * second. So batches keep the average, and a server that stood still floods nobody.
 */
import { type Clock, type Instant, instant, later } from '../core/clock.ts'

const MOST_LATE_US = 1_000_000n
/** Sends of one rate are so far apart, so that a high rate does not cost a transaction per letter. */
const TICK_US = 50_000n
/** Speed is measured over the last seconds; a shorter time says nothing. */
const WINDOW_US = 5_000_000n
const SHORTEST_US = 200_000n

interface Allowance {
  /** Start of the allowance, with `sent` letters gone. */
  since: Instant
  sent: number
}

export class Pace {
  readonly #clock: Clock
  readonly #allowances = new Map<string, Allowance>()
  readonly #since: Instant
  #steps: { readonly at: Instant; readonly letters: number }[] = []
  #rate: number | null

  constructor(clock: Clock, rate: number | null) {
    this.#clock = clock
    this.#rate = rate
    this.#since = clock.now()
  }

  change(rate: number | null): void {
    if (rate === this.#rate) return
    this.#rate = rate
    this.#allowances.clear()
  }

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

  sent(destination: string, letters: number): void {
    const now = this.#clock.now()
    this.#steps.push({ at: now, letters })
    if (this.#rate !== null) this.#allowanceOf(destination, now).sent += letters
  }

  /** All destinations, over the last seconds; null: too early to say. */
  get perSecond(): number | null {
    const now = this.#clock.now()
    const from = now - WINDOW_US
    this.#steps = this.#steps.filter(({ at }) => at >= from)
    const spanUs = now - (this.#since > from ? this.#since : from)
    if (spanUs < SHORTEST_US) return null
    const letters = this.#steps.reduce((sum, step) => sum + step.letters, 0)
    return (letters * 1e6) / Number(spanUs)
  }

  /** In the past when one may be sent now. */
  nextAt(destination: string): Instant {
    const now = this.#clock.now()
    return this.#rate === null ? now : dueAt(this.#allowanceOf(destination, now), this.#rate)
  }

  /** The next letter to any of these, at least a tick from now, or the next look at the store. */
  wakeAt(destinations: readonly string[], lookAt: Instant): Instant {
    const tick = later(this.#clock.now(), TICK_US)
    let sendAt: Instant | null = null
    for (const destination of destinations) {
      const next = this.nextAt(destination)
      if (sendAt === null || next < sendAt) sendAt = next
    }
    if (sendAt === null || lookAt < tick) return lookAt
    if (sendAt < tick) return tick
    return sendAt < lookAt ? sendAt : lookAt
  }

  #allowanceOf(destination: string, now: Instant): Allowance {
    const known = this.#allowances.get(destination)
    if (known !== undefined) return known
    const allowance = { since: now, sent: 0 }
    this.#allowances.set(destination, allowance)
    return allowance
  }
}

/** Forgets whole minutes: over days the numbers would lose digits. */
function forget(allowance: Allowance, rate: number): void {
  const seconds = Math.floor(allowance.sent / rate)
  if (seconds < 60) return
  allowance.since = later(allowance.since, BigInt(seconds) * 1_000_000n)
  allowance.sent -= seconds * rate
}

const dueAt = ({ since, sent }: Allowance, rate: number): Instant =>
  instant(since + BigInt(Math.ceil(((sent + 1) * 1e6) / rate)))
