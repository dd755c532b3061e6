/**
 * Activity as series of numbers: what happened in each of a row of equal times. Reads the rows of one subject, or of a few of them,
 * and on PostgreSQL what is not folded yet; never letters, and never history.
 */

import { type Instant, instant } from '../core/clock.ts'
import { type Integer, type Session, sql } from '../db/database.ts'
import {
  ACTIVITY,
  ACTIVITY_NAMES,
  type ActivityName,
  DAY_US,
  GRAIN,
  HOUR_US,
  MINUTE_US,
  WHOLE_OFFICE,
} from './activity.ts'
import type { AccountFilter } from './books.ts'
import { startOf } from './counts.ts'
import { findDrawers } from './drawers.ts'

/** How far back activity is told, and in which steps. */
export const RANGES = {
  '1h': { lengthUs: HOUR_US, bucketUs: MINUTE_US },
  '24h': { lengthUs: DAY_US, bucketUs: 15n * MINUTE_US },
  '7d': { lengthUs: 7n * DAY_US, bucketUs: HOUR_US },
  '30d': { lengthUs: 30n * DAY_US, bucketUs: 6n * HOUR_US },
} as const
export type ActivityRange = keyof typeof RANGES

/** Numbers of each activity, one for every bucket, the oldest first. */
export type ActivitySeries = Readonly<Record<ActivityName, readonly number[]>>

export interface Activity {
  readonly range: ActivityRange
  readonly bucketSeconds: number
  /** The start of the first bucket and the end of the last, which lasts still. */
  readonly from: Instant
  readonly to: Instant
  readonly series: ActivitySeries
}

/** What happened to the letters that match, up to now. Of some of them it is told by the hour at least. */
export async function readActivity(
  session: Session,
  range: ActivityRange,
  filter: AccountFilter,
  now: Instant,
): Promise<Activity> {
  const { lengthUs, bucketUs: finest } = RANGES[range]
  const isFiltered = Object.values(filter).some((value) => value != null)
  const bucketUs = isFiltered && finest < HOUR_US ? HOUR_US : finest
  // One bucket would tell of nothing but the last minutes: the one before it is told too.
  const buckets = Math.max(2, Number(lengthUs / bucketUs))
  const to = startOf(now, bucketUs) + bucketUs
  const from = to - BigInt(buckets) * bucketUs
  const of = isFiltered ? await chosen(session, filter) : EVERYTHING
  const grain = bucketUs < HOUR_US ? GRAIN.minute : GRAIN.hour
  const span = { from: instant(from), bucketUs, buckets }
  const series =
    of === null
      ? emptySeries(buckets)
      : await readSeries(session, { ...of, ...span, grain, activities: ACTIVITY_NAMES })
  return { range, bucketSeconds: Number(bucketUs / 1_000_000n), from: span.from, to: instant(to), series }
}

/** Whose activity it is: the subjects of its rows, and the drawers of what is not folded; null: all of them. */
interface Chosen {
  readonly subjects: readonly number[]
  readonly drawers: readonly number[] | null
}

const EVERYTHING: Chosen = { subjects: [WHOLE_OFFICE], drawers: null }

async function chosen(session: Session, filter: AccountFilter): Promise<Chosen | null> {
  const found = await findDrawers(session, filter)
  if (found.length === 0) return null
  const drawers = found.map(({ number }) => number)
  if (filter.signature != null) return { subjects: drawers, drawers }
  // Where all signatures count, the rows of origins have them added up already.
  return { subjects: [...new Set(found.map(({ origin }) => -origin))], drawers }
}

/** Rows of a time, added up by its buckets. */
export interface SeriesRequest extends Chosen {
  readonly grain: number
  readonly activities: readonly ActivityName[]
  /** The start of a bucket of this length. */
  readonly from: Instant
  readonly bucketUs: bigint
  readonly buckets: number
}

// The grain is a parameter everywhere: see the indexes of the table.
const OURS = 'grain = $1 AND subject = ANY($2::int[]) AND act = ANY($3::int[]) AND at >= $4'
/** What is not folded yet; `$6` is NULL where every drawer counts. */
const UNFOLDED = `act = ANY($3::int[]) AND at >= $4 AND ($6::int[] IS NULL OR drawer = ANY($6))`

const BUCKET = '(at - $4) / $5 AS bucket'

/** By primary key: the rows of the time, of each subject and activity. */
const readRows = sql('letterActivity.series', {
  postgres: `SELECT act, bucket, sum(letters) AS letters FROM (
               SELECT act, ${BUCKET}, letters FROM bartleby.letter_activity WHERE ${OURS}
               UNION ALL
               SELECT act, ${BUCKET}, letters FROM bartleby.letter_activity_deltas WHERE ${UNFOLDED}
             ) AS counted GROUP BY act, bucket`,
  sqlite: `SELECT act, ${BUCKET}, sum(letters) AS letters FROM letter_activity WHERE ${OURS} GROUP BY act, bucket`,
})

/** A number for every bucket of each activity asked for; zeros for the others. */
export async function readSeries(session: Session, request: SeriesRequest): Promise<ActivitySeries> {
  const { grain, subjects, drawers, activities, from, bucketUs, buckets } = request
  const list = (values: readonly number[]) => values
  const rows = await session.rows<{ act: Integer; bucket: Integer; letters: Integer }>(
    readRows,
    grain,
    list(subjects),
    list(activities.map((name) => ACTIVITY[name])),
    from,
    bucketUs,
    ...(session.dialect === 'postgres' ? [drawers === null ? null : list(drawers)] : []),
  )
  const series = emptySeries(buckets)
  for (const { act, bucket, letters } of rows) {
    const name = ACTIVITY_NAMES[Number(act)]
    // What another server wrote, whose clock is ahead, is of a bucket that has not begun here.
    if (name !== undefined) add(series[name], Math.min(Number(bucket), buckets - 1), Number(letters))
  }
  return series
}

function add(numbers: number[], place: number, letters: number): void {
  numbers[place] = (numbers[place] ?? 0) + letters
}

const FIRST = `SELECT at FROM bartleby.letter_activity WHERE grain = $1 AND subject = ${WHOLE_OFFICE} AND act = ${ACTIVITY.arrived}
  ORDER BY grain, subject, act, at LIMIT 1`

/** One step into the primary key, and what is not folded yet. */
const readFirst = sql(
  'letterActivity.first',
  {
    postgres: `SELECT least((${FIRST}),
        (SELECT min(at) FROM bartleby.letter_activity_deltas WHERE act = ${ACTIVITY.arrived})) AS at`,
    sqlite: FIRST,
  },
  { bigints: true },
)

/** The hour of the first arrival that is still told of; null when there is none. */
export async function readFirstHour(session: Session): Promise<Instant | null> {
  const [row] = await session.rows<{ at: Integer | null }>(readFirst, GRAIN.hour)
  return row?.at == null ? null : instant(startOf(BigInt(row.at), HOUR_US))
}

/** Arrivals by drawer and hour, as above. */
const readArrivals = sql('letterActivity.ofDrawers', {
  postgres: `SELECT drawer, bucket, sum(letters) AS letters FROM (
               SELECT subject AS drawer, (at - $1) / ${HOUR_US} AS bucket, letters FROM bartleby.letter_activity
               WHERE grain = $3 AND subject = ANY($2::int[]) AND act = ${ACTIVITY.arrived} AND at >= $1
               UNION ALL
               SELECT drawer, (at - $1) / ${HOUR_US}, letters FROM bartleby.letter_activity_deltas
               WHERE act = ${ACTIVITY.arrived} AND at >= $1 AND drawer = ANY($2::int[])
             ) AS counted GROUP BY drawer, bucket`,
  sqlite: `SELECT subject AS drawer, (at - $1) / ${HOUR_US} AS bucket, letters FROM letter_activity
           WHERE grain = $3 AND subject = ANY($2) AND act = ${ACTIVITY.arrived} AND at >= $1`,
})

/** Arrivals in each of the last `hours` hours, the oldest first, for each of the drawers that had any. */
export async function readTrends(
  session: Session,
  drawers: readonly number[],
  now: Instant,
  hours: number,
): Promise<ReadonlyMap<number, readonly number[]>> {
  const from = startOf(now, HOUR_US) - BigInt(hours - 1) * HOUR_US
  const rows = await session.rows<{ drawer: Integer; bucket: Integer; letters: Integer }>(
    readArrivals,
    from,
    drawers,
    GRAIN.hour,
  )
  const trends = new Map<number, number[]>()
  for (const row of rows) {
    const trend = trends.get(Number(row.drawer)) ?? Array.from({ length: hours }, () => 0)
    add(trend, Math.min(Number(row.bucket), hours - 1), Number(row.letters))
    trends.set(Number(row.drawer), trend)
  }
  return trends
}

/** All that ever happened, by primary key: one row for each drawer and activity. */
const readEver = sql('letterActivity.ever', {
  postgres: `SELECT act, sum(letters) AS letters FROM (
               SELECT act, letters FROM bartleby.letter_activity
               WHERE grain = ${GRAIN.ever} AND subject = ANY($1::int[]) AND act = ANY($2::int[]) AND at = 0
               UNION ALL
               SELECT act, letters FROM bartleby.letter_activity_deltas WHERE drawer = ANY($1::int[]) AND act = ANY($2::int[])
             ) AS counted GROUP BY act`,
  sqlite: `SELECT act, letters FROM letter_activity
           WHERE grain = ${GRAIN.ever} AND subject = ANY($1) AND act = ANY($2)
             AND at = 0`,
})

/** How many letters of these drawers were ever sent back, and how many of them were confirmed or came back. */
export async function readOutcomes(
  session: Session,
  drawers: readonly number[],
): Promise<Readonly<Record<'retried' | 'confirmed' | 'returned', number>>> {
  const outcomes = { retried: 0, confirmed: 0, returned: 0 }
  const names = ['retried', 'confirmed', 'returned'] as const
  const rows = await session.rows<{ act: Integer; letters: Integer }>(
    readEver,
    drawers,
    names.map((name) => ACTIVITY[name]),
  )
  for (const row of rows) {
    const name = names.find((each) => ACTIVITY[each] === Number(row.act))
    if (name !== undefined) outcomes[name] += Number(row.letters)
  }
  return outcomes
}

function emptySeries(buckets: number): Record<ActivityName, number[]> {
  const zeros = () => Array.from({ length: buckets }, () => 0)
  return {
    arrived: zeros(),
    retried: zeros(),
    confirmed: zeros(),
    returned: zeros(),
    discarded: zeros(),
    expired: zeros(),
  }
}
