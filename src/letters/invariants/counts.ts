/**
 * I6: every count of letters, by drawer and by place, is what counting gives.
 *
 * Activity is compared with itself: hours of the office, of places, of drawers, and of minutes agree. Only folded hours within
 * retention are compared; a change is folded into all of its rows at once.
 */

import { instant } from '../../core/clock.ts'
import { formatTimestamp } from '../../core/timestamp.ts'
import type { Integer } from '../../store/database.ts'
import type { Audit, Finding, FoundRow, Invariant } from '../audit/invariant.ts'
import { batchesOf, type Difference, differences, read, Sums } from '../audit/walk.ts'
import { STATUS, STATUSES } from '../letter.ts'
import {
  DAY_US,
  type DrawerCount,
  EVER,
  HOUR_US,
  readLetterCounts,
  startOf,
  WHOLE_OFFICE,
} from '../numbers/counts.ts'
import { OUTCOMES } from '../numbers/gauges.ts'
import { ACTIVITY_NAMES } from '../numbers/shapes.ts'
import { readPlaceCounts } from '../numbers/summary.ts'

export const letterCounts: Invariant = {
  id: 'I6',
  promise: 'every count is what counting gives',
  rows: ({ sizes: { letters } }) => 2 * letters,
  async *check(audit) {
    yield* miscounts(audit)
    yield* letterActivity(audit)
  },
}

const readPlaces = read(
  'letterPlaces',
  `SELECT id, drawer, status, engine, CASE WHEN resolution = 'retry' AND confirmed_at IS NULL THEN 1 ELSE 0 END AS unconfirmed
   FROM bartleby.letters`,
)

/** Recounts letters per drawer, place and status; each must be in a drawer of its engine. */
async function* miscounts(audit: Audit): AsyncGenerator<Finding> {
  const found = new Sums<string>()
  const misfiled = new Map<string, { first: FoundRow; letters: number }>()
  for await (const letters of batchesOf(audit, readPlaces)) {
    for (const letter of letters) {
      const { drawer, status, engine, unconfirmed } = letter
      found.add(`${drawer} ${status}`, 1)
      if (Number(unconfirmed) === 1) found.add(`${drawer} ${STATUS.unconfirmed}`, 1)
      if (audit.drawers.get(Number(drawer))?.engine === engine) continue
      const { first = letter, letters = 0 } = misfiled.get(`${drawer} ${engine}`) ?? {}
      misfiled.set(`${drawer} ${engine}`, { first, letters: letters + 1 })
    }
  }
  for (const { first, letters } of misfiled.values()) yield misfiledIn(audit, first, letters)
  const counts = await readLetterCounts(audit.session)
  const books = new Map(
    counts
      .filter(({ status }) => status <= STATUS.unconfirmed)
      .map(({ drawer, status, letters }) => [`${drawer} ${status}`, letters]),
  )
  for (const difference of differences(found, books)) yield miscounted(audit, difference)
  yield* placeCounts(audit, found)
  yield* actsOfDrawers(audit, counts)
}

/** Counts of drawers add up to those of their places. */
async function* placeCounts(audit: Audit, found: ReadonlyMap<string, number>): AsyncGenerator<Finding> {
  const there = new Sums<string>()
  for (const [key, letters] of found) {
    const [drawer, status] = key.split(' ')
    there.add(`${audit.drawers.get(Number(drawer))?.place} ${status}`, letters)
  }
  const accounts = await readPlaceCounts(audit.session)
  const books = new Map(
    accounts.flatMap(({ place, letters, unconfirmed }) => [
      ...STATUSES.map((name) => [`${place.number} ${STATUS[name]}`, letters[name]] as const),
      [`${place.number} ${STATUS.unconfirmed}`, unconfirmed] as const,
    ]),
  )
  for (const { key, found, counted } of differences(there, books)) {
    const [number, status = ''] = key.split(' ')
    const label = accounts.find(({ place }) => place.number === Number(number))?.place
    const name = nameOf(status)
    yield {
      what: `place ${number} has ${found} ${name} letters, and the books say ${counted}`,
      row: { place: number, status: name, books: counted, found, ...label },
    }
  }
}

/** Activity of drawers goes with them and stays with their places, so places never have less. */
async function* actsOfDrawers(audit: Audit, counts: readonly DrawerCount[]): AsyncGenerator<Finding> {
  const told = new Sums<string>()
  for (const { drawer, status, letters } of counts)
    if (status > STATUS.unconfirmed) told.add(`${audit.drawers.get(drawer)?.place} ${status}`, letters)
  for (const { place, ever } of await readPlaceCounts(audit.session))
    for (const act of OUTCOMES) {
      const drawers = told.get(`${place.number} ${EVER[act]}`) ?? 0
      if (drawers > ever[act])
        yield {
          what: `${drawers} letters in drawers of place ${place.number} were ${act}, and the place tells of ${ever[act]}`,
          row: { ...place, place: place.number, act, drawers, books: ever[act] },
        }
    }
}

const nameOf = (status: string): string =>
  Number(status) === STATUS.unconfirmed ? 'unconfirmed' : (STATUSES[Number(status)] ?? status)

function misfiledIn({ drawers }: Audit, { id, drawer, engine }: FoundRow, letters: number): Finding {
  const label = drawers.get(Number(drawer))
  const where =
    label === undefined
      ? `drawer ${drawer}, which does not exist`
      : `drawer ${drawer}, which is of engine '${label.engine}'`
  return {
    what: `${letters} letters of engine '${engine}' lie in ${where}`,
    row: { drawer, engine, letters, letter: id },
  }
}

function miscounted({ drawers }: Audit, { key, found, counted }: Difference<string>): Finding {
  const [drawer = '', status = ''] = key.split(' ')
  const name = nameOf(status)
  const label = drawers.get(Number(drawer))
  return {
    what: `drawer ${drawer} has ${found} ${name} letters, and the books say ${counted}`,
    row: {
      ...{ drawer, status: name, books: counted, found },
      ...{ source: label?.source, engine: label?.engine, queue: label?.queue },
      signature: label?.fingerprint,
    },
  }
}

/** Hours from `$1` on: some thousand sums. */
const readHours = read(
  'activityOfHours',
  `SELECT act, at,
     sum(CASE WHEN subject = ${WHOLE_OFFICE} THEN letters ELSE 0 END) AS office,
     sum(CASE WHEN subject < ${WHOLE_OFFICE} THEN letters ELSE 0 END) AS places,
     sum(CASE WHEN subject > ${WHOLE_OFFICE} THEN letters ELSE 0 END) AS drawers
   FROM bartleby.letter_hours WHERE at >= $1 GROUP BY act, at ORDER BY at, act`,
)

/** At most a day of minutes. */
const readMinutes = read(
  'activityOfMinutes',
  `SELECT act, at - at % ${HOUR_US} AS hour, sum(letters) AS letters FROM bartleby.letter_minutes
   GROUP BY act, at - at % ${HOUR_US}`,
)

/** Retention keeps hours for a little more than this. */
const DAYS = 30n
const NO_END = 2n ** 62n

type HourRow = Readonly<Record<'act' | 'at' | 'office' | 'places' | 'drawers', Integer>>

async function* letterActivity(audit: Audit): AsyncGenerator<Finding> {
  const minutes = await readMinutesByHour(audit)
  const from = startOf(audit.now, DAY_US) - (DAYS - 1n) * DAY_US
  for await (const rows of batchesOf<HourRow>(audit, readHours, from))
    for (const row of rows) yield* mismatches(row, minutes)
}

interface Minutes {
  /** Retention may have removed part of the first hour; it starts with the oldest. */
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
