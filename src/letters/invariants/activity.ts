/**
 * Activity, held against itself: what was told of an hour is the same for the office, for all places, for all drawers and for all
 * minutes. Only hours that retention never reaches are compared, of which no drawer was removed, and only what is folded: a change is
 * folded into all of its rows at once.
 */
import { instant } from '../../core/clock.ts'
import { formatTimestamp } from '../../core/timestamp.ts'
import type { Integer } from '../../store/database.ts'
import type { Audit, Finding } from '../audit/invariant.ts'
import { batchesOf, read } from '../audit/walk.ts'
import { ACTIVITY_NAMES, DAY_US, HOUR_US, WHOLE_OFFICE } from '../numbers/activity.ts'
import { startOf } from '../numbers/counts.ts'

/** Hours from `$1` on: some thousand sums. */
const readHours = read(
  'activityOfHours',
  `SELECT act, at,
     sum(CASE WHEN subject = ${WHOLE_OFFICE} THEN letters ELSE 0 END) AS office,
     sum(CASE WHEN subject < ${WHOLE_OFFICE} THEN letters ELSE 0 END) AS places,
     sum(CASE WHEN subject > ${WHOLE_OFFICE} THEN letters ELSE 0 END) AS drawers
   FROM bartleby.letter_hours WHERE at >= $1 GROUP BY act, at ORDER BY at, act`,
)

/** A day of minutes at most. */
const readMinutes = read(
  'activityOfMinutes',
  `SELECT act, at - at % ${HOUR_US} AS hour, sum(letters) AS letters FROM bartleby.letter_minutes
   GROUP BY act, at - at % ${HOUR_US}`,
)

/** Retention keeps a month of hours, and a little more. */
const DAYS = 30n
const NO_END = 2n ** 62n

interface HourRow {
  readonly act: Integer
  readonly at: Integer
  readonly office: Integer
  readonly places: Integer
  readonly drawers: Integer
}

export async function* letterActivity(audit: Audit): AsyncGenerator<Finding> {
  const minutes = await readMinutesByHour(audit)
  const from = startOf(audit.now, DAY_US) - (DAYS - 1n) * DAY_US
  for await (const rows of batchesOf<HourRow>(audit, readHours, from))
    for (const row of rows) yield* mismatches(row, minutes)
}

interface Minutes {
  /** Of the first hour that has any, retention may have taken some; it goes from the oldest on. */
  readonly wholeAfter: bigint
  /** By act and hour. */
  readonly letters: ReadonlyMap<string, number>
}

async function readMinutesByHour(audit: Audit): Promise<Minutes> {
  let wholeAfter = NO_END
  const letters = new Map<string, number>()
  for await (const rows of batchesOf(audit, readMinutes)) {
    for (const { act, hour, letters: told } of rows) {
      letters.set(`${act} ${hour}`, Number(told))
      if (BigInt(hour ?? 0) < wholeAfter) wholeAfter = BigInt(hour ?? 0)
    }
  }
  return { wholeAfter, letters }
}

function* mismatches(row: HourRow, { wholeAfter, letters }: Minutes): Iterable<Finding> {
  const office = Number(row.office)
  const told = {
    places: Number(row.places),
    drawers: Number(row.drawers),
    ...(BigInt(row.at) > wholeAfter ? { minutes: letters.get(`${row.act} ${row.at}`) ?? 0 } : {}),
  }
  if (Object.values(told).every((letters) => letters === office)) return
  const [act, hour] = [
    ACTIVITY_NAMES[Number(row.act)] ?? String(row.act),
    formatTimestamp(instant(BigInt(row.at))),
  ]
  yield {
    what: `activity tells of ${office} letters that were ${act} in the hour from ${hour}, and of another number by its parts`,
    row: { act, hour, office, ...told },
  }
}
