/**
 * The circuit breaker: a consumer whose every delivery fails for a while is paused, so that its jobs keep their attempts. After the pause
 * one job shows whether it works again. Each server counts its own attempts; the pause is in the store, for all.
 */
import { type Instant, later, microseconds } from '../../../core/clock.ts'
import { formatTimestamp } from '../../../core/timestamp.ts'
import { type Database, sql, type Transaction } from '../../../store/database.ts'
import { at, rowShape } from '../../../store/row.ts'
import type { CourierParts } from '../settings.ts'
import type { AttemptFailure } from './attempt.ts'
import type { ClaimedJob, Receiver } from './claim.ts'

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
  readonly #writes = new Set<Promise<unknown>>()

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
  #write(receiver: Receiver, act: () => Promise<unknown>): Promise<unknown> {
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

// Pauses in the store. Their columns are not the settings of a consumer: `updated_at` stays. Each statement changes one row by its number.

const begin = sql(
  'webhooks.pause',
  `UPDATE bartleby.webhook_consumers SET paused_since = $2, paused_until = $3, pause_seconds = $4, pause_reason = $5
   WHERE number = $1 AND paused_until IS NULL`,
)

const LONGER = 'CASE WHEN pause_seconds * 2 < $3::int THEN pause_seconds * 2 ELSE $3::int END'

/** Twice as long, up to a limit, from now on. */
const prolong = sql(
  'webhooks.prolongPause',
  `UPDATE bartleby.webhook_consumers SET pause_seconds = ${LONGER}, pause_reason = $4,
     paused_until = $2::bigint + CAST(${LONGER} AS bigint) * 1000000
   WHERE number = $1 AND paused_until IS NOT NULL RETURNING paused_until`,
  { bigints: true },
)

const end = sql(
  'webhooks.endPause',
  `UPDATE bartleby.webhook_consumers SET paused_since = NULL, paused_until = NULL, pause_seconds = NULL, pause_reason = NULL
   WHERE number = $1 AND paused_until IS NOT NULL`,
)

/** Whoever moves the end of an elapsed pause has the only probe. Locked until the transaction ends. */
const holdEnd = sql(
  'webhooks.holdProbe',
  `UPDATE bartleby.webhook_consumers SET paused_until = $3 WHERE number = $1 AND paused_until <= $2 AND pulls = 0`,
)

/** Only if it is still the probe taken until $3. */
const releaseEnd = sql(
  'webhooks.releaseProbe',
  'UPDATE bartleby.webhook_consumers SET paused_until = $2 WHERE number = $1 AND paused_until = $3',
)

/** False when it is paused already, or gone. */
export async function pauseConsumer(
  db: Database,
  consumer: number,
  { now, seconds, reason }: { readonly now: Instant; readonly seconds: number; readonly reason: string },
): Promise<boolean> {
  const until = later(now, microseconds(seconds))
  const changed = await db.statement('webhooks.pause', (tx) =>
    // Whole seconds: the next pause has twice as many.
    tx.run(begin, consumer, now, until, Math.ceil(seconds), reason),
  )
  return changed > 0
}

const PROLONGED = rowShape({ pausedUntil: at })

/** Null when it is not paused. */
export async function prolongPause(
  db: Database,
  consumer: number,
  pause: { readonly now: Instant; readonly longestSeconds: number; readonly reason: string },
): Promise<Instant | null> {
  const { now, longestSeconds, reason } = pause
  const prolonged = await db.statement('webhooks.prolongPause', (tx) =>
    PROLONGED.one(tx, prolong, consumer, now, Math.ceil(longestSeconds), reason),
  )
  return prolonged?.pausedUntil ?? null
}

/** False when it was not paused. */
export async function resumeConsumer(db: Database, consumer: number): Promise<boolean> {
  return (await db.statement('webhooks.endPause', (tx) => tx.run(end, consumer))) > 0
}

/** False when somebody else has it. */
export const holdProbe = async (tx: Transaction, consumer: number, now: Instant, until: Instant) =>
  (await tx.run(holdEnd, consumer, now, until)) > 0

export const releaseProbe = (tx: Transaction, consumer: number, now: Instant, heldUntil: Instant) =>
  tx.run(releaseEnd, consumer, now, heldUntil)
