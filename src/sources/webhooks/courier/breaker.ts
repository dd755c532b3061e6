/**
 * The circuit breaker: a consumer whose every delivery fails for a while is paused, so that its jobs keep their attempts. After the pause
 * one job shows whether it works again. Each server counts its own attempts; the pause is in the store, for all.
 */
import { type Instant, later, microseconds } from '../../../core/clock.ts'
import { formatTimestamp } from '../../../core/timestamp.ts'
import type { CourierParts } from '../settings.ts'
import type { AttemptFailure } from './attempt.ts'
import type { ClaimedJob, Receiver } from './claim.ts'
import { pauseConsumer, prolongPause, releaseProbe, resumeConsumer } from './pauses.ts'

/** Failures without a success between them. */
interface Streak {
  failures: number
  readonly since: Instant
  /** It began a pause. */
  isPaused: boolean
}

const MOST_REASON_CHARACTERS = 300
/** Deleted or idle consumers end no streak. */
const MOST_STREAKS = 10_000

export class Breaker {
  readonly #parts: CourierParts
  readonly #streaks = new Map<number, Streak>()
  readonly #writes = new Set<Promise<void>>()

  constructor(parts: CourierParts) {
    this.#parts = parts
  }

  /** Somebody ended the pause, if it is not paused any more. */
  saw({ number, pausedUntil }: Receiver): void {
    if (pausedUntil === null && this.#streaks.get(number)?.isPaused === true) this.#streaks.delete(number)
  }

  succeeded({ receiver, isProbe }: ClaimedJob): void {
    const wasPaused = isProbe || this.#streaks.get(receiver.number)?.isPaused === true
    this.#streaks.delete(receiver.number)
    if (wasPaused) void this.#write(receiver, () => this.#resume(receiver))
  }

  failed({ receiver, isProbe }: ClaimedJob, failure: AttemptFailure): void {
    const { clock, settings } = this.#parts
    const { failures, forSeconds } = settings.delivery.breaker
    if (isProbe) {
      void this.#write(receiver, () => this.#prolong(receiver, failure))
      return
    }
    if (failures === 0) return
    const now = clock.now()
    const streak = this.#streaks.get(receiver.number) ?? this.#begun(receiver, now)
    streak.failures += 1
    const isOver = streak.failures >= failures && later(streak.since, microseconds(forSeconds)) <= now
    if (!isOver || streak.isPaused) return
    streak.isPaused = true
    void this.#write(receiver, () => this.#pause(receiver, streak, failure))
  }

  /** A probe that was handed back makes room for another at once. */
  async handedBack({ receiver, isProbe, claimedUntil }: ClaimedJob): Promise<void> {
    const { db, clock } = this.#parts
    if (!isProbe) return
    await this.#write(receiver, () =>
      db.statement('webhooks.releaseProbe', (tx) =>
        releaseProbe(tx, receiver.number, clock.now(), claimedUntil),
      ),
    )
  }

  /** Replaces the oldest when there are too many. */
  #begun({ number }: Receiver, now: Instant): Streak {
    const [oldest] = this.#streaks.keys()
    if (oldest !== undefined && this.#streaks.size >= MOST_STREAKS) this.#streaks.delete(oldest)
    const streak = { failures: 0, since: now, isPaused: false }
    this.#streaks.set(number, streak)
    return streak
  }

  async idle(): Promise<void> {
    await Promise.all(this.#writes)
  }

  async #pause(receiver: Receiver, { failures, since }: Streak, failure: AttemptFailure): Promise<void> {
    const { db, clock, log, settings } = this.#parts
    const { pauseSeconds: seconds } = settings.delivery.breaker
    const now = clock.now()
    const reason = reasonOf(`${failures} deliveries in a row failed since ${formatTimestamp(since)}`, failure)
    if (!(await pauseConsumer(db, receiver.number, { now, seconds, reason }))) return
    const until = later(now, microseconds(seconds))
    log.warn(
      {
        ...idsOf(receiver),
        failingSince: formatTimestamp(since),
        triedAgainAt: formatTimestamp(until),
        reason,
      },
      'deliveries to a consumer are paused, because all of them fail; its jobs wait and keep their attempts',
    )
  }

  async #prolong(receiver: Receiver, failure: AttemptFailure): Promise<void> {
    const { db, clock, log, settings } = this.#parts
    const { longestPauseSeconds: longestSeconds } = settings.delivery.breaker
    const reason = reasonOf('the delivery that was tried after a pause failed too', failure)
    const until = await prolongPause(db, receiver.number, { now: clock.now(), longestSeconds, reason })
    if (until === null) return
    log.warn(
      { ...idsOf(receiver), triedAgainAt: formatTimestamp(until), reason },
      'deliveries to a consumer stay paused: the one that was tried failed',
    )
  }

  async #resume(receiver: Receiver): Promise<void> {
    const { db, log } = this.#parts
    if (await resumeConsumer(db, receiver.number))
      log.info(idsOf(receiver), 'a consumer is delivered to again: its pause is over')
  }

  /** A lost write is decided anew by the next attempt; meanwhile the pause stands, and has an end. */
  #write(receiver: Receiver, act: () => Promise<void>): Promise<void> {
    const write = act()
      .catch((error: unknown) => {
        const streak = this.#streaks.get(receiver.number)
        if (streak !== undefined) streak.isPaused = false
        this.#parts.log.warn(
          { ...idsOf(receiver), err: error },
          'the pause of a consumer could not be written',
        )
      })
      .finally(() => this.#writes.delete(write))
    this.#writes.add(write)
    return write
  }
}

const idsOf = ({ channelId, consumerId }: Receiver) => ({ channelId, consumerId })

const reasonOf = (what: string, { errorMessage }: AttemptFailure): string =>
  `${what}; the last one: ${errorMessage}`.slice(0, MOST_REASON_CHARACTERS).toWellFormed()
