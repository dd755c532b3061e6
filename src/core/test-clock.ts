/** A clock that tests move: it follows the system until frozen, then only `freeze`, `advance` and `thaw` move it, ringing the alarms passed. */
import { type Alarm, type Clock, type Instant, later } from './clock.ts'
import { formatGoDuration } from './duration.ts'
import { failure } from './errors.ts'
import { SystemClock } from './system-clock.ts'

interface PendingAlarm {
  readonly deadline: Instant
  readonly wake: () => void
  /** Cancels the system's alarm, or the immediate of a past deadline. */
  disarm: () => void
}

export class TestClock implements Clock {
  readonly #system: Clock
  #frozenAt: Instant | null = null
  /** In order of registration, which decides between equal deadlines. */
  readonly #pending = new Set<PendingAlarm>()

  constructor(system: Clock = new SystemClock()) {
    this.#system = system
  }

  now(): Instant {
    return this.#frozenAt ?? this.#system.now()
  }

  /** Never rings within this call, even for a past deadline. */
  alarm(deadline: Instant, wake: () => void): Alarm {
    const pending: PendingAlarm = { deadline, wake, disarm: () => {} }
    this.#pending.add(pending)
    if (this.#frozenAt === null) this.#arm(pending)
    else if (this.#frozenAt > deadline) {
      const immediate = setImmediate(() => this.#ring(pending))
      pending.disarm = () => clearImmediate(immediate)
    }
    return {
      cancel: () => {
        pending.disarm()
        this.#pending.delete(pending)
      },
    }
  }

  /** `at` may lie in the past; rings what lies before it. */
  freeze(at: Instant): void {
    if (this.#frozenAt === null) {
      for (const pending of this.#pending) pending.disarm()
    }
    this.#frozenAt = at
    this.#ringDue(at)
  }

  thaw(): void {
    if (this.#frozenAt === null) return
    this.#frozenAt = null
    for (const pending of this.#pending) this.#arm(pending)
  }

  #arm(pending: PendingAlarm): void {
    pending.disarm()
    const alarm = this.#system.alarm(pending.deadline, () => this.#ring(pending))
    pending.disarm = () => alarm.cancel()
  }

  /** Rings passed alarms in the order of deadlines, before returning. */
  advance(us: bigint): void {
    if (this.#frozenAt === null) throw failure('clock_not_frozen')
    if (us < 0n) throw failure('clock_backwards', { given: formatGoDuration(us * 1_000n) })
    this.#frozenAt = later(this.#frozenAt, us)
    this.#ringDue(this.#frozenAt)
  }

  /** Alarms set meanwhile wait for the next move, so that none can loop here. */
  #ringDue(at: Instant): void {
    const due = [...this.#pending].filter((pending) => at > pending.deadline)
    due.sort((a, b) => (a.deadline < b.deadline ? -1 : a.deadline > b.deadline ? 1 : 0))
    for (const pending of due) this.#ring(pending)
  }

  #ring(pending: PendingAlarm): void {
    if (!this.#pending.delete(pending)) return
    pending.disarm()
    pending.wake()
  }
}
