/**
 * Activity: letters that arrived, were sent back, confirmed, given up, per equal time span. `counts.ts` writes it with each act. Reads
 * the rows of a few subjects and the unfolded tail, never letters or history. A letter arrives when captured, whenever it failed.
 */

import type { Within } from '../../api/shapes.ts'
import { type Instant, instant } from '../../core/clock.ts'
import type { Integer, Session } from '../../store/database.ts'
import { type Statement, sql, type Transaction } from '../../store/database.ts'
import {
  ACTIVITY,
  DAY_US,
  HOUR_US,
  letterCounter,
  MINUTE_US,
  ofEachActivity,
  startOf,
  WHOLE_OFFICE,
} from './counts.ts'
import { findDrawers } from './find-drawers.ts'
import type { ActivityRange, LetterActivity } from './shapes.ts'
import { ACTIVITY_NAMES, type ActivityName } from './shapes.ts'
import { type CountFilter, readPlaceCounts } from './summary.ts'

export const RANGES: Readonly<
  Record<ActivityRange, { readonly lengthUs: bigint; readonly bucketUs: bigint }>
> = {
  '1h': { lengthUs: HOUR_US, bucketUs: MINUTE_US },
  '24h': { lengthUs: DAY_US, bucketUs: 15n * MINUTE_US },
  '7d': { lengthUs: 7n * DAY_US, bucketUs: HOUR_US },
  '30d': { lengthUs: 30n * DAY_US, bucketUs: 6n * HOUR_US },
}

export type Activity = Within<LetterActivity>

/** Activity of matching letters up to now; hourly at the finest when filtered. */
export async function readActivity(
  session: Session,
  range: ActivityRange,
  filter: CountFilter,
  now: Instant,
): Promise<Activity> {
  const { lengthUs, bucketUs: finest } = RANGES[range]
  const isFiltered = Object.values(filter).some((value) => value != null)
  const bucketUs = isFiltered && finest < HOUR_US ? HOUR_US : finest
  // A single bucket would cover only the last minutes.
  const buckets = Math.max(2, Number(lengthUs / bucketUs))
  const to = startOf(now, bucketUs) + bucketUs
  const from = to - BigInt(buckets) * bucketUs
  const subjects = isFiltered ? await subjectsOf(session, filter) : [WHOLE_OFFICE]
  const span = { from: instant(from), bucketUs, buckets }
  const series = await readSeries(session, { subjects, ...span, activities: ACTIVITY_NAMES })
  return { range, bucketSeconds: Number(bucketUs / 1_000_000n), from: span.from, to: instant(to), series }
}

/** Places have all signatures added up already. */
async function subjectsOf(session: Session, filter: CountFilter): Promise<readonly number[]> {
  if (filter.signature == null)
    return (await readPlaceCounts(session, filter)).map(({ place }) => -place.number)
  return findDrawers(session, filter)
}

interface SeriesRequest {
  /** The whole office, places (below zero) or drawers; only the office has spans other than whole hours. */
  readonly subjects: readonly number[]
  readonly activities: readonly ActivityName[]
  readonly from: Instant
  readonly bucketUs: bigint
  readonly buckets: number
}

const byBucket = (counted: string): string =>
  `SELECT act, (at - $2) / $3 AS bucket, sum(letters) AS letters FROM ${counted} GROUP BY act, bucket`

/** By primary key: minutes of the office, hours of subjects. */
const readMinutes = letterCounter.read('letterActivity.minutes', 'minutes', byBucket, {
  where: 'act = ANY($1::int[]) AND at >= $2',
})
const readHours = letterCounter.read('letterActivity.hours', 'hours', byBucket, {
  where: 'subject = ANY($4::int[]) AND act = ANY($1::int[]) AND at >= $2',
})

/** One number per bucket of each activity; zeros for activities not asked for. */
export async function readSeries(session: Session, request: SeriesRequest): Promise<Activity['series']> {
  const { subjects, activities, from, bucketUs, buckets } = request
  if (subjects.length === 0) return emptySeries(buckets)
  const acts = activities.map((name) => ACTIVITY[name])
  type Row = { act: Integer; bucket: Integer; letters: Integer }
  const isOfHours = from % HOUR_US === 0n && bucketUs % HOUR_US === 0n
  const rows = isOfHours
    ? await session.rows<Row>(readHours, acts, from, bucketUs, subjects)
    : await session.rows<Row>(readMinutes, acts, from, bucketUs)
  const series = emptySeries(buckets)
  for (const { act, bucket, letters } of rows) {
    const name = ACTIVITY_NAMES[Number(act)]
    // Another server's clock may be ahead of the last bucket.
    if (name !== undefined) add(series[name], Math.min(Number(bucket), buckets - 1), Number(letters))
  }
  return series
}

function add(numbers: number[], place: number, letters: number): void {
  numbers[place] = (numbers[place] ?? 0) + letters
}

/** One step into the primary key, and the unfolded tail. */
const readFirst = letterCounter.read(
  'letterActivity.first',
  'hours',
  (counted) => `SELECT min(at) AS at FROM ${counted}`,
  {
    where: `subject = ${WHOLE_OFFICE} AND act = ${ACTIVITY.arrived}`,
    first: 'ORDER BY subject, act, at LIMIT 1',
    bigints: true,
  },
)

export async function readFirstHour(session: Session): Promise<Instant | null> {
  const [row] = await session.rows<{ at: Integer | null }>(readFirst)
  return row?.at == null ? null : instant(startOf(BigInt(row.at), HOUR_US))
}

/** Arrivals by drawer and hour, by primary key. */
const readArrivals = letterCounter.read(
  'letterActivity.ofDrawers',
  'hours',
  (counted) =>
    `SELECT subject AS drawer, (at - $1) / ${HOUR_US} AS bucket, sum(letters) AS letters FROM ${counted} GROUP BY subject, bucket`,
  { where: `subject = ANY($2::int[]) AND act = ${ACTIVITY.arrived} AND at >= $1` },
)

/** Arrivals of the last `hours` hours, oldest first, for drawers that had any. */
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
  )
  const trends = new Map<number, number[]>()
  for (const row of rows) {
    const trend = trends.get(Number(row.drawer)) ?? Array.from({ length: hours }, () => 0)
    add(trend, Math.min(Number(row.bucket), hours - 1), Number(row.letters))
    trends.set(Number(row.drawer), trend)
  }
  return trends
}

const emptySeries = (buckets: number) => ofEachActivity(() => Array.from({ length: buckets }, () => 0))

/** A day, and a little for questions about the day before now. */
const KEEP_MINUTES_US = 26n * HOUR_US
/** The longest range by the hour is 30 days. */
const FEWEST_DAYS = 31

/** By the index of their age. */
const removeOldest = (table: string, keys: string): Statement =>
  sql(
    `letterActivity.remove.${table}`,
    `DELETE FROM bartleby.${table} WHERE (${keys}) IN (
       SELECT ${keys} FROM bartleby.${table} INDEXED BY ${table}_oldest WHERE at < $1 ORDER BY at LIMIT $2)`,
  )

const removeMinutes = removeOldest('letter_minutes', 'act, at')
const removeHours = removeOldest('letter_hours', 'subject, act, at')

/** Removes at most `limit` minutes and as many hours; returns whether there may be more. */
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
