/**
 * Pauses in the store, for all servers. These columns are not the consumer's settings: `updated_at` stays. Each statement changes one row
 * by its number.
 */
import { type Instant, later, microseconds } from '../../../core/clock.ts'
import { type Database, sql, type Transaction } from '../../../store/database.ts'

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

export interface Pause {
  readonly now: Instant
  readonly seconds: number
  readonly reason: string
}

/** False when it is paused already, or gone. */
export async function pauseConsumer(db: Database, consumer: number, pause: Pause): Promise<boolean> {
  const { now, seconds, reason } = pause
  const until = later(now, microseconds(seconds))
  const changed = await db.statement('webhooks.pause', (tx) =>
    // Whole seconds: the next pause has twice as many.
    tx.run(begin, consumer, now, until, Math.ceil(seconds), reason),
  )
  return changed > 0
}

/** Null when it is not paused. */
export async function prolongPause(
  db: Database,
  consumer: number,
  pause: { readonly now: Instant; readonly longestSeconds: number; readonly reason: string },
): Promise<Instant | null> {
  const { now, longestSeconds, reason } = pause
  const [row] = await db.statement('webhooks.prolongPause', (tx) =>
    tx.rows<{ paused_until: bigint | string }>(prolong, consumer, now, Math.ceil(longestSeconds), reason),
  )
  // An instant that the store kept.
  return row === undefined ? null : (BigInt(row.paused_until) as Instant)
}

/** False when it was not paused. */
export async function resumeConsumer(db: Database, consumer: number): Promise<boolean> {
  return (await db.statement('webhooks.endPause', (tx) => tx.run(end, consumer))) > 0
}

/** False when somebody else has it. */
export const holdProbe = async (tx: Transaction, consumer: number, now: Instant, until: Instant) =>
  (await tx.run(holdEnd, consumer, now, until)) > 0

export async function releaseProbe(
  tx: Transaction,
  consumer: number,
  now: Instant,
  heldUntil: Instant,
): Promise<void> {
  await tx.run(releaseEnd, consumer, now, heldUntil)
}
