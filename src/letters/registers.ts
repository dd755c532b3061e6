/** What a server remembers for captures: the numbers that every one looks up, and the times that were given. */
import { type Instant, later } from '../core/clock.ts'
import { SeriesNumbers } from '../history/record.ts'
import { Drawers } from './numbers/drawers.ts'

export interface Registers {
  readonly drawers: Drawers
  readonly series: SeriesNumbers
  readonly times: CaptureTimes
}

export const newRegisters = (): Registers => ({
  drawers: new Drawers(),
  series: new SeriesNumbers(),
  times: new CaptureTimes(),
})

/** A clock that is so far behind was set back. */
const SET_BACK_US = 1_000_000n

/**
 * When letters were captured, which is the order of those of one instance. Their numbers do not tell it: who failed before has had a
 * number since then. So of each instance a server gives one microsecond after the other, also to those that die in one transaction or
 * while the clock stands still. Nothing is looked up: what the clock has passed is forgotten.
 */
export class CaptureTimes {
  /** The next of each instance. */
  readonly #next = new Map<string, Instant>()
  /** The last that was given. */
  #last: Instant | null = null

  /** `now`, or the microsecond behind the letter of this instance that was captured before. */
  take(engine: string, instanceId: string, now: Instant): Instant {
    if (this.#last === null || now > this.#last || now < this.#last - SET_BACK_US) {
      this.#next.clear()
      this.#last = now
    }
    // No engine has a space in its name.
    const key = `${engine} ${instanceId}`
    const next = this.#next.get(key) ?? now
    const at = next > now ? next : now
    this.#next.set(key, later(at, 1n))
    if (at > this.#last) this.#last = at
    return at
  }
}
