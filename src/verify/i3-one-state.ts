/**
 * I3: a letter has one legal status, which all that it says of its end fits, lies in a dead queue only while it is pending, and each of its transitions has
 * exactly one history row: their versions count up without a gap to the letter's own. Rows that retention removed may
 * be missing from the beginning. The captures of plain queues, which no index finds by their letter, are looked through
 * by themselves: each is that of a letter, and the only one. That none is missing is for I2 to tell.
 */
import { instant } from '../core/clock.ts'
import { formatMicros } from '../core/timestamp.ts'
import { type Integer, sql } from '../db/database.ts'
import { STATUS, STATUSES } from '../letters/letter.ts'
import type { Audit, Finding, Invariant } from './invariant.ts'
import { oddStates } from './state-columns.ts'
import { letterRanges, plainCaptureRanges } from './walk.ts'

/** The first transition that is looked for by the letter: not the capture of a plain queue's. */
const FIRST = 'CASE WHEN letter.correlation_id IS NULL THEN 2 ELSE 1 END'

/**
 * Letters of a range whose status or history is not the plain one: all versions from the first on, each once. Reads the
 * history of the range beside it.
 */
const readOdd = sql(
  'verify.oddLetters',
  `SELECT letter.id, letter.engine, letter.source_id, letter.status, letter.version, letter.part, letter.captured_at,
     letter.resolved_at, letter.confirmed_at, letter.correlation_id, count(record.letter_version) AS recorded,
     count(DISTINCT record.letter_version) AS versions, min(record.letter_version) AS first, max(record.letter_version) AS last
   FROM bartleby.letters AS letter
   LEFT JOIN bartleby.history AS record
     ON record.letter_id = letter.id AND record.letter_id > $1 AND record.letter_id <= $2
       AND record.correlation_id IS NOT NULL
   WHERE letter.id > $1 AND letter.id <= $2
   GROUP BY letter.id
   HAVING letter.status NOT IN (${STATUS.Pending}, ${STATUS.Resolved}, ${STATUS.Expired})
     OR (letter.status <> ${STATUS.Pending} AND letter.part IS NOT NULL)
     OR count(record.letter_version) <> letter.version + 1 - ${FIRST}
     OR count(DISTINCT record.letter_version) <> letter.version + 1 - ${FIRST}
     OR min(record.letter_version) <> ${FIRST} OR max(record.letter_version) <> letter.version`,
  { bigints: true },
)

/** Captures of the series `$1` within a time that are not where their letter was captured, or not the first of it. */
const readMisplaced = sql(
  'verify.misplacedCaptures',
  `SELECT letter_id, created_at FROM bartleby.history AS record
   WHERE series = $1 AND created_at > $2 AND created_at <= $3 AND correlation_id IS NULL AND NOT (
     SELECT letter.captured_at = record.created_at AND letter.correlation_id IS NULL AND record.letter_version = 1
     FROM bartleby.letters AS letter WHERE letter.id = record.letter_id)`,
  { bigints: true },
)

/** Captures of the same that are there more than once. */
const readRepeated = sql(
  'verify.repeatedCaptures',
  `SELECT letter_id, created_at FROM bartleby.history
   WHERE series = $1 AND created_at > $2 AND created_at <= $3 AND correlation_id IS NULL
   GROUP BY created_at, letter_id HAVING count(*) > 1`,
  { bigints: true },
)

/** The captures of one letter of a plain queue. */
const countCaptures = sql(
  'verify.countCaptures',
  `SELECT count(*) AS found FROM bartleby.history
   WHERE series = $1 AND created_at = $2 AND letter_id = $3 AND correlation_id IS NULL`,
)

interface OddLetter {
  readonly id: Integer
  readonly engine: string
  readonly source_id: string
  readonly status: Integer
  readonly version: Integer
  readonly part: Integer | null
  readonly captured_at: Integer
  readonly resolved_at: Integer | null
  readonly confirmed_at: Integer | null
  readonly correlation_id: string | null
  readonly recorded: Integer
  readonly versions: Integer
  readonly first: Integer | null
  readonly last: Integer | null
}

interface StrayRow {
  readonly letter_id: Integer
  readonly created_at: Integer
}

export const oneState: Invariant = {
  id: 'I3',
  promise: 'a letter is in one state, and each of its transitions has one history row',
  rows: ({ letters }) => 2 * letters,
  async *check(audit) {
    for await (const { after, through } of letterRanges(audit)) {
      for (const letter of await audit.session.rows<OddLetter>(readOdd, after, through)) {
        const whole = letter.correlation_id === null ? await withCapture(audit, letter) : letter
        for (const what of faultsOf(whole, audit.historySince)) yield findingOf(whole, what)
      }
      yield* await oddStates(audit.session, after, through)
    }
    yield* strayCaptures(audit)
  },
}

/** The letter of a plain queue with its capture among what history has of it. */
async function withCapture({ session, plainSeries }: Audit, letter: OddLetter): Promise<OddLetter> {
  const { captured_at, id, recorded, versions, last } = letter
  const [row] = await session.rows<{ found: Integer }>(countCaptures, plainSeries, captured_at, id)
  const found = Number(row?.found ?? 0)
  if (found === 0) return letter
  return {
    ...letter,
    recorded: Number(recorded) + found,
    versions: Number(versions) + 1,
    first: 1,
    last: last ?? 1,
  }
}

async function* strayCaptures(audit: Audit): AsyncGenerator<Finding> {
  for await (const { after, through } of plainCaptureRanges(audit)) {
    const range = [audit.plainSeries, after, through] as const
    const found = [
      { what: 'is in history twice', rows: await audit.session.rows<StrayRow>(readRepeated, ...range) },
      {
        what: 'is in history at another time than its own',
        rows: await audit.session.rows<StrayRow>(readMisplaced, ...range),
      },
    ]
    for (const { what, rows } of found) {
      for (const { letter_id, created_at } of rows) {
        yield {
          what: `the capture of letter ${letter_id} ${what}`,
          row: { letter: String(letter_id), recordedAt: formatMicros(instant(BigInt(created_at))) },
        }
      }
    }
  }
}

function* faultsOf(letter: OddLetter, historySince: bigint): Iterable<string> {
  const { id } = letter
  const status = STATUSES[Number(letter.status)]
  if (status === undefined) yield `letter ${id} has status ${letter.status}, which does not exist`
  else if (status !== 'Pending' && letter.part !== null)
    yield `letter ${id} is ${status} and still lies in a dead queue`

  const version = Number(letter.version)
  const first = Number(letter.first ?? 0)
  const last = Number(letter.last ?? 0)
  const versions = Number(letter.versions)
  if (Number(letter.recorded) > versions) yield `a transition of letter ${id} is in history twice`
  if (versions > 0 && last > version)
    yield `history has transition ${last} of letter ${id}, which is only at ${version}`
  else if (last < version && isRecent(letter, historySince))
    yield `transition ${version} of letter ${id} is not in history`
  if (versions > 0 && versions < last - first + 1)
    yield `history of letter ${id} has a gap between its transitions ${first} and ${last}`
  // Without the first alone it is the capture that is missing, which another check reports.
  if (first > 2 && BigInt(letter.captured_at) >= historySince)
    yield `the transitions of letter ${id} before the ${first}th are not in history`
}

/** Whether the latest transition must be in history: a newer one than the first row left, or known to be recent. */
function isRecent(letter: OddLetter, historySince: bigint): boolean {
  // The very first is the capture.
  if (Number(letter.version) === 1) return false
  if (Number(letter.versions) > 0) return true
  const latest = [letter.captured_at, letter.resolved_at, letter.confirmed_at]
  return latest.some((at) => at !== null && BigInt(at) >= historySince)
}

const findingOf = (letter: OddLetter, what: string): Finding => ({
  what,
  row: {
    letter: String(letter.id),
    engine: letter.engine,
    sourceId: letter.source_id,
    status: STATUSES[Number(letter.status)] ?? String(letter.status),
    version: String(letter.version),
    recorded: String(letter.recorded),
    ...(letter.first === null ? {} : { from: String(letter.first), to: String(letter.last) }),
  },
})
