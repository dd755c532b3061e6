/** What a server remembers for captures: numbers that each one looks up, and times already given. */
import { type Instant, later } from '../core/clock.ts'
import { OperationKindNumbers } from '../history/record.ts'
import { Drawers } from './numbers/drawers.ts'

export interface Registers {
  readonly drawers: Drawers
  readonly operationKinds: OperationKindNumbers
  readonly times: CaptureTimes
}

export const newRegisters = (): Registers => ({
  drawers: new Drawers(),
  operationKinds: new OperationKindNumbers(),
  times: new CaptureTimes(),
})

/** A clock that far behind was set back. */
const SET_BACK_US = 1_000_000n

/**
 * Capture times, which order the letters of an instance. Numbers cannot: an item that failed before already had one. Each instance
 * gets successive microseconds, also within one transaction or while the clock stands still. Nothing is read; passed times are
 * forgotten.
 */
export class CaptureTimes {
  /** By engine and instance. */
  readonly #next = new Map<string, Instant>()
  #last: Instant | null = null

  /** `now`, or the microsecond after the previous letter of this instance. */
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
