/**
 * Activity: how many letters arrived, were sent back, confirmed, given up, in every minute and hour: its words, and how long it is
 * kept. `counts.ts` writes it in the transaction of the act.
 *
 * A letter arrives when it is captured, however long ago it failed.
 */
import type { Instant } from '../../core/clock.ts'
import { type Statement, sql, type Transaction } from '../../store/database.ts'
import { STATUS } from '../letter.ts'
import { ACTIVITY_NAMES, type ActivityName } from './shapes.ts'

export { ACTIVITY_NAMES, type ActivityName }

/** How what is told about letters over time is stored. */
export const ACTIVITY: Readonly<Record<ActivityName, number>> = {
  arrived: 0,
  retried: 1,
  confirmed: 2,
  returned: 3,
  discarded: 4,
  expired: 5,
}

/** Something for each activity. */
export const ofEachActivity = <Of>(of: (name: ActivityName) => Of): Record<ActivityName, Of> =>
  // All of them have one.
  Object.fromEntries(ACTIVITY_NAMES.map((name) => [name, of(name)])) as Record<ActivityName, Of>

/** What was ever done is counted beside the statuses: letters that arrived are those that were captured. */
export const EVER: Readonly<Record<ActivityName, number>> = {
  arrived: STATUS.captured,
  retried: 6,
  confirmed: 7,
  returned: 8,
  discarded: 9,
  expired: 10,
}

export const MINUTE_US = 60_000_000n
export const HOUR_US = 60n * MINUTE_US
export const DAY_US = 24n * HOUR_US

/** The subject of what happened in the whole office. */
export const WHOLE_OFFICE = 0

/** Minutes are told for a day, and a little is left for who asks about the day before now. */
const KEEP_MINUTES_US = 26n * HOUR_US
/** The longest time that is told by the hour is 30 days. */
const FEWEST_DAYS = 31

/** The oldest rows, by the index of their age. */
const removeOldest = (table: string, keys: string): Statement =>
  sql(
    `letterActivity.remove.${table}`,
    `DELETE FROM bartleby.${table} WHERE (${keys}) IN (
       SELECT ${keys} FROM bartleby.${table} INDEXED BY ${table}_oldest WHERE at < $1 ORDER BY at LIMIT $2)`,
  )

const removeMinutes = removeOldest('letter_minutes', 'act, at')
const removeHours = removeOldest('letter_hours', 'subject, act, at')

/** Removes activity that nobody asks for any more, at most `limit` minutes and as many hours; gives whether there may be more. */
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
