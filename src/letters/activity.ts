/**
 * Activity: how many letters arrived, were sent back, confirmed, given up, in every minute and hour: its words, and how long it is
 * kept. `counts.ts` writes it in the transaction of the act.
 *
 * A letter arrives when it is captured, however long ago it failed.
 */
import type { Instant } from '../core/clock.ts'
import { type Statement, sql, type Transaction } from '../db/database.ts'

/** What is told about letters over time, and how it is stored. */
export const ACTIVITY = {
  arrived: 0,
  retried: 1,
  confirmed: 2,
  returned: 3,
  discarded: 4,
  expired: 5,
} as const
export type ActivityName = keyof typeof ACTIVITY

export const ACTIVITY_NAMES: readonly ActivityName[] = [
  'arrived',
  'retried',
  'confirmed',
  'returned',
  'discarded',
  'expired',
]

/** How long a row counts; those for ever are of drawers only, and those of minutes of the whole office. */
export const GRAIN = { minute: 0, hour: 1, ever: 2 } as const

export const MINUTE_US = 60_000_000n
export const HOUR_US = 60n * MINUTE_US
export const DAY_US = 24n * HOUR_US

/** The subject of what happened in the whole office. */
export const WHOLE_OFFICE = 0

/** Minutes are told for a day, and a little is left for who asks about the day before now. */
const KEEP_MINUTES_US = 26n * HOUR_US
/** The longest time that is told by the hour is 30 days. */
const FEWEST_DAYS = 31

/** The oldest rows of a grain, on its own index. */
const removeOldest = (grain: number, index: string): Statement =>
  sql(`letterActivity.remove.${index}`, {
    postgres: `DELETE FROM bartleby.letter_activity WHERE ctid = ANY(ARRAY(
                 SELECT ctid FROM bartleby.letter_activity WHERE grain = ${grain} AND at < $1 ORDER BY at LIMIT $2))`,
    sqlite: `DELETE FROM letter_activity WHERE (grain, subject, act, at) IN (
               SELECT grain, subject, act, at FROM letter_activity INDEXED BY ${index}
               WHERE grain = ${grain} AND at < $1 ORDER BY at LIMIT $2)`,
  })

const removeMinutes = removeOldest(GRAIN.minute, 'letter_minutes_oldest')
const removeHours = removeOldest(GRAIN.hour, 'letter_hours_oldest')

/** Removes activity that nobody asks for any more, at most `limit` rows of each grain; gives whether there may be more. */
export async function forgetActivity(
  tx: Transaction,
  now: Instant,
  retentionDays: number,
  limit: number,
): Promise<boolean> {
  const hoursBefore = now - BigInt(Math.max(FEWEST_DAYS, retentionDays)) * DAY_US
  const minutes = await tx.run(removeMinutes, now - KEEP_MINUTES_US, limit)
  const hours = await tx.run(removeHours, hoursBefore, limit)
  return minutes === limit || hours === limit
}
