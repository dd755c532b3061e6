/**
 * A clock that begins in the past, is moved towards the present, and runs with the system's from then on: what the
 * demo files about yesterday was filed yesterday.
 */
import { type Clock, type Instant, later } from '../core/clock.ts'
import { SystemClock } from '../core/system-clock.ts'
import { TestClock } from '../core/test-clock.ts'

export class CatchUpClock extends TestClock {
  readonly #system: Clock
  #isBehind = true

  /** Stands still, `behindUs` before the present. */
  constructor(behindUs: bigint, system: Clock = new SystemClock()) {
    super(system)
    this.#system = system
    this.freeze(later(system.now(), -behindUs))
  }

  /** The present that it catches up with. */
  get present(): Instant {
    return this.#system.now()
  }

  /** Moves it forward, at most to the present, and rings what it passed in the order of deadlines. */
  moveTo(at: Instant): void {
    const { present } = this
    if (this.#isBehind && at > this.now()) this.freeze(at < present ? at : present)
  }

  /** Runs with the system's time from now on. */
  release(): void {
    this.moveTo(this.present)
    this.#isBehind = false
    this.thaw()
  }
}
