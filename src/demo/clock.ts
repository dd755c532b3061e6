/**
 * A clock that begins in the past, is moved towards the present, and runs with the system's from then on: what the
 * demo files about yesterday was filed yesterday.
 */
import { type Alarm, type Clock, type Instant, later } from '../core/clock.ts'
import { SystemClock } from '../core/system-clock.ts'

interface Waiting {
  readonly deadline: Instant
  readonly wake: () => void
  /** Stops what would ring it on its own. */
  disarm: () => void
}

export class CatchUpClock implements Clock {
  readonly #system: Clock
  /** Where it stands; null once it runs with the system's. */
  #standsAt: Instant | null
  /** In the order in which they were set, which decides between equal deadlines. */
  readonly #waiting = new Set<Waiting>()

  /** Stands still, `behindUs` before the present. */
  constructor(behindUs: bigint, system: Clock = new SystemClock()) {
    this.#system = system
    this.#standsAt = later(system.now(), -behindUs)
  }

  /** The present that it catches up with. */
  get present(): Instant {
    return this.#system.now()
  }

  now(): Instant {
    return this.#standsAt ?? this.#system.now()
  }

  /** Never rings within this call, also when the deadline is already past. */
  alarm(deadline: Instant, wake: () => void): Alarm {
    if (this.#standsAt === null) return this.#system.alarm(deadline, wake)
    const waiting: Waiting = { deadline, wake, disarm: () => {} }
    this.#waiting.add(waiting)
    if (this.#standsAt > deadline) {
      const immediate = setImmediate(() => this.#ring(waiting))
      waiting.disarm = () => clearImmediate(immediate)
    }
    return {
      cancel: () => {
        waiting.disarm()
        this.#waiting.delete(waiting)
      },
    }
  }

  /** Moves it forward, at most to the present, and rings what it passed in the order of deadlines. */
  moveTo(at: Instant): void {
    if (this.#standsAt === null || at <= this.#standsAt) return
    const { present } = this
    const reached = at < present ? at : present
    this.#standsAt = reached
    const due = [...this.#waiting].filter(({ deadline }) => reached > deadline)
    due.sort((a, b) => (a.deadline < b.deadline ? -1 : a.deadline > b.deadline ? 1 : 0))
    for (const waiting of due) this.#ring(waiting)
  }

  /** Runs with the system's time from now on. */
  release(): void {
    if (this.#standsAt === null) return
    this.moveTo(this.present)
    this.#standsAt = null
    for (const waiting of this.#waiting) {
      waiting.disarm()
      const alarm = this.#system.alarm(waiting.deadline, () => this.#ring(waiting))
      waiting.disarm = () => alarm.cancel()
    }
  }

  #ring(waiting: Waiting): void {
    if (!this.#waiting.delete(waiting)) return
    waiting.disarm()
    waiting.wake()
  }
}
