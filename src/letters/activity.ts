/**
 * Activity: how many letters arrived, were sent back, confirmed, given up, in every minute and hour. It is written in the
 * transaction of the act, as counts are: SQLite adds to its rows, PostgreSQL appends a change and a folder adds it to all
 * rows that it belongs to. A transaction pays for each act on each drawer, whatever the number of letters.
 *
 * A letter arrives when it is captured, however long ago it failed.
 */
import type { Instant } from '../core/clock.ts'
import { type Database, integerList, type Statement, sql, type Transaction } from '../db/database.ts'
import { countFold } from '../db/fold.ts'
import type { Act } from './letter.ts'

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

/**
 * What an act on one letter is told as; nothing for what ends a letter in other ways or takes an end back. Captures, reopenings and
 * confirmations are told where they are made.
 */
export const activityOf = (act: Act): ActivityName | null => {
  switch (act) {
    case 'retry':
      return 'retried'
    case 'discard':
      return 'discarded'
    case 'expire':
      return 'expired'
    default:
      return null
  }
}

/** The start of the minute, hour or whatever `length` is, that `at` lies in. */
export const startOf = (at: bigint, length: bigint): bigint => at - (((at % length) + length) % length)

/** The rows that something at the minute `at` belongs to, as a list of values; `hour` is that of the minute. */
const rowsOf = (at: string, hour: string, drawer: string): readonly (readonly string[])[] => [
  [String(GRAIN.minute), String(WHOLE_OFFICE), at],
  [String(GRAIN.hour), String(WHOLE_OFFICE), hour],
  [
    String(GRAIN.hour),
    `-coalesce((SELECT origin FROM bartleby.drawers WHERE drawers.id = ${drawer}), ${drawer})`,
    hour,
  ],
  [String(GRAIN.hour), drawer, hour],
  [String(GRAIN.ever), drawer, '0'],
]

/** Adds to the five rows of one act on one drawer: minute $1, hour $2, drawer $3, act $4, letters $5. By primary key. */
const addRows = sql('letterActivity.add', {
  postgres: '',
  sqlite: `INSERT INTO letter_activity (grain, subject, at, act, letters)
           VALUES ${rowsOf('$1', '$2', '$3')
             .map((row) => `(${row.join(', ')}, $4, $5)`)
             .join(', ')}
           ON CONFLICT (grain, subject, act, at) DO UPDATE SET letters = letters + excluded.letters`,
})

/** Appends the changes of a transaction. */
const addDeltas = sql('letterActivity.append', {
  postgres: `INSERT INTO bartleby.letter_activity_deltas (at, drawer, act, letters)
             SELECT $1, drawer, act, letters FROM unnest($2::int[], $3::int[], $4::bigint[]) AS acted (drawer, act, letters)`,
  sqlite: '',
})

/** What one transaction did to the letters of a drawer. */
export interface Acted {
  readonly drawer: number
  readonly activity: ActivityName
  readonly letters: number
}

/** Makes the activity part of the transaction, at the instant of its acts. */
export function writeActivity(tx: Transaction, now: Instant, acted: readonly Acted[]): void {
  if (acted.length === 0) return
  const minute = startOf(now, MINUTE_US)
  if (tx.dialect === 'sqlite') {
    const hour = startOf(now, HOUR_US)
    for (const { drawer, activity, letters } of acted)
      tx.atCommit(addRows, minute, hour, drawer, ACTIVITY[activity], letters)
    return
  }
  const list = (numberOf: (each: Acted) => number) => integerList(tx.dialect, acted.map(numberOf))
  tx.atCommit(
    addDeltas,
    minute,
    list(({ drawer }) => drawer),
    list(({ activity }) => ACTIVITY[activity]),
    list(({ letters }) => letters),
  )
}

/** How changes of activity are folded: each belongs to five rows. */
export const activityFold = countFold({
  name: 'letterActivity.fold',
  lock: 'letters.activityFold',
  deltas: 'bartleby.letter_activity_deltas',
  totals: 'bartleby.letter_activity',
  keys: ['grain', 'subject', 'act', 'at'],
  sums: ['letters'],
  spread: `SELECT each.grain, each.subject, taken.act, each.at, taken.letters FROM taken CROSS JOIN LATERAL (VALUES ${rowsOf(
    'taken.at',
    `taken.at - mod(taken.at, ${HOUR_US})`,
    'taken.drawer',
  )
    .map((row) => `(${row.join(', ')})`)
    .join(', ')}) AS each (grain, subject, at)`,
})

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
export function forgetActivity(
  db: Database,
  now: Instant,
  retentionDays: number,
  limit: number,
): Promise<boolean> {
  const hoursBefore = now - BigInt(Math.max(FEWEST_DAYS, retentionDays)) * DAY_US
  return db.transaction('letterActivity.remove', async (tx) => {
    const minutes = await tx.run(removeMinutes, now - KEEP_MINUTES_US, limit)
    const hours = await tx.run(removeHours, hoursBefore, limit)
    return minutes === limit || hours === limit
  })
}
