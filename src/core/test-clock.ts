/**
 * A clock that tests move. It passes the system's time through until it is frozen; from then on it stands
 * still and only `advance` (or another `freeze`) moves it, ringing the alarms it passes, until it is thawed.
 */
import { type Alarm, type Clock, type Instant, later } from './clock.ts'
import { formatGoDuration } from './duration.ts'
import { failure } from './errors.ts'
import { SystemClock } from './system-clock.ts'

interface PendingAlarm {
  readonly deadline: Instant
  readonly wake: () => void
  /** Stops what would ring it on its own: the system's alarm, or the immediate of a deadline already past. */
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

  /** Never rings within this call, also when the deadline is already past. */
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

  /** Stands still at `at`, which may lie before the present; rings what lies before it. */
  freeze(at: Instant): void {
    if (this.#frozenAt === null) {
      for (const pending of this.#pending) pending.disarm()
    }
    this.#frozenAt = at
    this.#ringDue(at)
  }

  /** Passes the system's time through again. */
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

  /** Moves the frozen clock forward and rings what it passed, in the order of deadlines, before returning. */
  advance(us: bigint): void {
    if (this.#frozenAt === null) throw failure('clock_not_frozen')
    if (us < 0n) throw failure('clock_backwards', { given: formatGoDuration(us * 1_000n) })
    this.#frozenAt = later(this.#frozenAt, us)
    this.#ringDue(this.#frozenAt)
  }

  /** Alarms set while these ring wait for the next move or turn, so that a bad one cannot loop here for ever. */
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
