/** The office at a glance, from one moment of the store: a row per place, a week of hours, and one step into an index for the oldest letter. */

import type { Within } from '../../api/shapes.ts'
import { type Instant, instant } from '../../core/clock.ts'
import type { Session } from '../../store/database.ts'
import { type SourceName, sourceNames } from '../kinds.ts'
import { readUnlabelled } from '../lists/detail.ts'
import { readFirstHour, readSeries } from './activity.ts'
import { DAY_US, HOUR_US, MINUTE_US, startOf, WHOLE_OFFICE } from './counts.ts'
import { readOldestPending } from './gauges.ts'
import type { ActivityName, OfficeOverview } from './shapes.ts'
import { readPlaceCounts, summaryOf } from './summary.ts'

export interface Overview extends Within<Omit<OfficeOverview, 'oldestPending' | 'sources'>> {
  readonly oldestPending: Within<NonNullable<OfficeOverview['oldestPending']>> | null
  readonly sources: readonly { readonly source: SourceName; readonly pending: number }[]
}

export async function readOverview(session: Session, now: Instant): Promise<Overview> {
  // Sent together, without waiting for answers in between.
  const [accounts, oldest, lastHour, usual, returnedLastDay] = await Promise.all([
    readPlaceCounts(session),
    oldestPending(session),
    happened(session, 'arrived', now, HOUR_US),
    usualPerHour(session, now),
    happened(session, 'returned', now, DAY_US),
  ])
  const { Pending, Resolved, Expired, unconfirmed } = summaryOf(accounts)
  const pending = new Map<SourceName, number>(sourceNames().map((source) => [source, 0]))
  for (const { place, letters } of accounts)
    pending.set(place.source, (pending.get(place.source) ?? 0) + letters.Pending)
  return {
    asOf: now,
    letters: { Pending, Resolved, Expired },
    oldestPending: oldest,
    arrivals: { lastHour, usualPerHour: usual },
    returnedLastDay,
    unconfirmed,
    sources: [...pending].map(([source, pending]) => ({ source, pending })),
  }
}

async function oldestPending(session: Session): Promise<Overview['oldestPending']> {
  const oldest = await readOldestPending(session)
  if (oldest === null) return null
  const [letter] = await readUnlabelled(session, [oldest.id])
  if (letter === undefined) return null
  return { engine: letter.engine, rowKey: letter.rowKey, lastFailureAt: letter.lastFailureAt }
}

async function happened(
  session: Session,
  name: ActivityName,
  now: Instant,
  withinUs: bigint,
): Promise<number> {
  const from = instant(startOf(now, MINUTE_US) + MINUTE_US - withinUs)
  const series = await readSeries(session, {
    ...{ subjects: [WHOLE_OFFICE], activities: [name] },
    ...{ from, bucketUs: withinUs, buckets: 1 },
  })
  return series[name][0] ?? 0
}

/** A week has nights and Sundays; the median ignores last Tuesday's storm. */
const USUAL_HOURS = 7 * 24
const FEWEST_HOURS = 24

async function usualPerHour(session: Session, now: Instant): Promise<number | null> {
  const first = await readFirstHour(session)
  const thisHour = startOf(now, HOUR_US)
  if (first === null) return null
  // The current hour is incomplete.
  const known = Math.min(USUAL_HOURS, Number((thisHour - first) / HOUR_US))
  if (known < FEWEST_HOURS) return null
  const from = instant(thisHour - BigInt(known) * HOUR_US)
  const { arrived } = await readSeries(session, {
    ...{ subjects: [WHOLE_OFFICE], activities: ['arrived'] },
    ...{ from, bucketUs: HOUR_US, buckets: known + 1 },
  })
  return median(arrived.slice(0, known))
}

function median(numbers: readonly number[]): number {
  const sorted = numbers.toSorted((a, b) => a - b)
  const middle = sorted.length / 2
  const [low = 0, high = 0] = [sorted[Math.ceil(middle) - 1], sorted[Math.floor(middle)]]
  return (low + high) / 2
}
