/** What metrics tell of all letters together: since when the oldest is pending, and what was ever done to letters. */
import { type Instant, instant } from '../core/clock.ts'
import { type Integer, type Session, sql } from '../db/database.ts'
import { ACTIVITY, type ActivityName, GRAIN } from './activity.ts'
import { STATUS } from './letter.ts'

/** Arrivals are counted by where they come from, with the gauges. */
export const OUTCOMES = [
  'retried',
  'confirmed',
  'returned',
  'discarded',
  'expired',
] as const satisfies ActivityName[]
export type Outcome = (typeof OUTCOMES)[number]

export interface Pulse {
  /** When the pending letter failed last whose last failure is the longest ago; null when none is pending. */
  readonly oldestPendingAt: Instant | null
  /** How often each was ever done. */
  readonly outcomes: Readonly<Record<Outcome, number>>
}

/** One step into letters_newest. */
const readOldest = sql(
  'letters.oldestPendingAt',
  `SELECT last_failure_at FROM bartleby.letters INDEXED BY letters_newest WHERE status = ${STATUS.Pending} ORDER BY status, last_failure_at, id LIMIT 1`,
  { bigints: true },
)

const SUMS = OUTCOMES.map(
  (name) => `coalesce(sum(CASE act WHEN ${ACTIVITY[name]} THEN letters END), 0) AS ${name}`,
).join(', ')

/** A range of the primary key with a row for each drawer and activity; on PostgreSQL also what is not folded yet. */
const readSums = sql('letterActivity.sums', {
  postgres: `SELECT ${SUMS} FROM (
               SELECT act, letters FROM bartleby.letter_activity WHERE grain = ${GRAIN.ever}
               UNION ALL
               SELECT act, letters FROM bartleby.letter_activity_deltas
             ) AS counted`,
  sqlite: `SELECT ${SUMS} FROM letter_activity WHERE grain = ${GRAIN.ever}`,
})

/** Reads both. */
export async function readPulse(session: Session): Promise<Pulse> {
  const [oldest] = await session.rows<{ last_failure_at: Integer }>(readOldest)
  const [sums] = await session.rows<Record<Outcome, Integer>>(readSums)
  const ever = (name: Outcome): number => Number(sums?.[name] ?? 0)
  return {
    oldestPendingAt: oldest === undefined ? null : instant(BigInt(oldest.last_failure_at)),
    outcomes: {
      retried: ever('retried'),
      confirmed: ever('confirmed'),
      returned: ever('returned'),
      discarded: ever('discarded'),
      expired: ever('expired'),
    },
  }
}
