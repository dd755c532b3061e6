/**
 * Pauses as they stand in the store, for all servers: since when and until when a consumer gets nothing, how long the pause
 * is, and why. When it is over, one job at a time shows whether the consumer works again. When a consumer was changed last is
 * none of their business: these columns are not its settings.
 */
import { type Instant, later, microseconds } from '../../../core/clock.ts'
import { type Database, sql, type Transaction } from '../../../store/database.ts'

/** Begins a pause, unless there is one. One row by its number. */
const begin = sql(
  'webhooks.pause',
  `UPDATE bartleby.webhook_consumers SET paused_since = $2, paused_until = $3, pause_seconds = $4, pause_reason = $5
   WHERE number = $1 AND paused_until IS NULL`,
)

const LONGER = 'CASE WHEN pause_seconds * 2 < $3::int THEN pause_seconds * 2 ELSE $3::int END'

/** Makes a pause twice as long, up to a limit, from now on. One row by its number. */
const prolong = sql(
  'webhooks.prolongPause',
  `UPDATE bartleby.webhook_consumers SET pause_seconds = ${LONGER}, pause_reason = $4,
     paused_until = $2::bigint + CAST(${LONGER} AS bigint) * 1000000
   WHERE number = $1 AND paused_until IS NOT NULL RETURNING paused_until`,
  { bigints: true },
)

/** Ends a pause. One row by its number. */
const end = sql(
  'webhooks.endPause',
  `UPDATE bartleby.webhook_consumers SET paused_since = NULL, paused_until = NULL, pause_seconds = NULL, pause_reason = NULL
   WHERE number = $1 AND paused_until IS NOT NULL`,
)

/** The pause is over: whoever moves its end has the only probe. One row by its number, locked until the transaction ends. */
const holdEnd = sql(
  'webhooks.holdProbe',
  `UPDATE bartleby.webhook_consumers SET paused_until = $3 WHERE number = $1 AND paused_until <= $2 AND pulls = 0`,
)

/** Lets others have the probe, if it is still the one that was taken until $3. One row by its number. */
const releaseEnd = sql(
  'webhooks.releaseProbe',
  'UPDATE bartleby.webhook_consumers SET paused_until = $2 WHERE number = $1 AND paused_until = $3',
)

export interface Pause {
  readonly now: Instant
  readonly seconds: number
  readonly reason: string
}

/** Begins a pause; false when the consumer is paused already, or gone. */
export async function pauseConsumer(db: Database, consumer: number, pause: Pause): Promise<boolean> {
  const { now, seconds, reason } = pause
  const until = later(now, microseconds(seconds))
  const changed = await db.statement('webhooks.pause', (tx) =>
    // Whole seconds are kept, of which the next pause has twice as many.
    tx.run(begin, consumer, now, until, Math.ceil(seconds), reason),
  )
  return changed > 0
}

/** The consumer failed once more: gives until when it is paused now; null when it is not. */
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

/** Ends the pause of a consumer, whose jobs are delivered again from now on; false when it was not paused. */
export async function resumeConsumer(db: Database, consumer: number): Promise<boolean> {
  return (await db.statement('webhooks.endPause', (tx) => tx.run(end, consumer))) > 0
}

/** Takes the one job that is tried after a pause; until it is settled nobody else tries one. False when somebody else has it. */
export const holdProbe = async (tx: Transaction, consumer: number, now: Instant, until: Instant) =>
  (await tx.run(holdEnd, consumer, now, until)) > 0

/** No job was tried: somebody else may. */
export async function releaseProbe(
  tx: Transaction,
  consumer: number,
  now: Instant,
  heldUntil: Instant,
): Promise<void> {
  await tx.run(releaseEnd, consumer, now, heldUntil)
}
