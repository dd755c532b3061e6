/**
 * I3: a letter has one legal status, which all that it says of its end fits, lies in a dead queue only while it is pending, and each of its transitions has
 * exactly one history row: their versions count up without a gap to the letter's own. Rows that retention removed may
 * be missing from the beginning. The captures of plain queues, which no index finds by their letter, are looked through
 * by themselves: each is that of a letter, and the only one. That none is missing is for I2 to tell.
 */
import { instant } from '../core/clock.ts'
import { formatMicros } from '../core/timestamp.ts'
import { STATUS, STATUSES } from '../letters/letter.ts'
import type { FoundRow, Invariant } from './invariant.ts'
import { oddStates } from './state-columns.ts'
import { fault, faultsAlong, LETTERS, PLAIN_CAPTURES } from './walk.ts'

/** The first transition that is looked for by the letter: not the capture of a plain queue's. */
const FIRST = 'CASE WHEN letter.correlation_id IS NULL THEN 2 ELSE 1 END'

/**
 * Letters of a range whose status or history is not the plain one: all versions from the first on, each once. Reads the
 * history of the range beside it; of odd letters of plain queues, whose captures are the series `$3`, these too.
 */
const oddLetters = fault(
  'oddLetters',
  `SELECT odd.*, CASE WHEN correlation_id IS NULL THEN (SELECT count(*) FROM bartleby.history AS capture
       WHERE capture.series = $3 AND capture.created_at = odd.captured_at AND capture.letter_id = odd.id
         AND capture.correlation_id IS NULL) ELSE 0 END AS captures
   FROM (
     SELECT letter.id, letter.engine, letter.source_id, letter.status, letter.version, letter.part, letter.captured_at,
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
       OR min(record.letter_version) <> ${FIRST} OR max(record.letter_version) <> letter.version) AS odd`,
  (letter, { historySince }) => {
    const whole = withCapture(letter)
    const { id, engine, source_id: sourceId, status, version, recorded, first, last } = whole
    const row = {
      ...{ letter: id, engine, sourceId, status: STATUSES[Number(status)] ?? status, version, recorded },
      ...(first === null ? {} : { from: first, to: last }),
    }
    return [...faultsOf(whole, historySince)].map((what) => ({ what, row }))
  },
  ({ plainSeries }) => [plainSeries],
)

/** Captures of the series `$3` within a time that are there more than once. */
const repeated = fault(
  'repeatedCaptures',
  `SELECT letter_id, created_at FROM bartleby.history
   WHERE series = $3 AND created_at > $1 AND created_at <= $2 AND correlation_id IS NULL
   GROUP BY created_at, letter_id HAVING count(*) > 1`,
  (row) => strayCapture(row, 'is in history twice'),
)

/** Captures of the same that are not where their letter was captured, or not the first of it. */
const misplaced = fault(
  'misplacedCaptures',
  `SELECT letter_id, created_at FROM bartleby.history AS record
   WHERE series = $3 AND created_at > $1 AND created_at <= $2 AND correlation_id IS NULL AND NOT (
     SELECT letter.captured_at = record.created_at AND letter.correlation_id IS NULL AND record.letter_version = 1
     FROM bartleby.letters AS letter WHERE letter.id = record.letter_id)`,
  (row) => strayCapture(row, 'is in history at another time than its own'),
)

const strayCapture = ({ letter_id, created_at }: FoundRow, what: string) => ({
  what: `the capture of letter ${letter_id} ${what}`,
  row: { letter: letter_id, recordedAt: formatMicros(instant(BigInt(created_at ?? 0))) },
})

export const oneState: Invariant = {
  id: 'I3',
  promise: 'a letter is in one state, and each of its transitions has one history row',
  rows: ({ letters }) => 2 * letters,
  async *check(audit) {
    yield* faultsAlong(audit, LETTERS, [oddLetters, oddStates])
    yield* faultsAlong(audit, PLAIN_CAPTURES, [repeated, misplaced], audit.plainSeries ?? 0)
  },
}

/** The letter of a plain queue with its capture among what history has of it. */
function withCapture(letter: FoundRow): FoundRow {
  const captures = Number(letter.captures)
  if (captures === 0) return letter
  const recorded = Number(letter.recorded) + captures
  return { ...letter, recorded, versions: Number(letter.versions) + 1, first: 1, last: letter.last ?? 1 }
}

function* faultsOf(letter: FoundRow, historySince: bigint): Iterable<string> {
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
  if (first > 2 && Number(letter.captured_at) >= historySince)
    yield `the transitions of letter ${id} before the ${first}th are not in history`
}

/** Whether the latest transition must be in history: a newer one than the first row left, or known to be recent. */
function isRecent(letter: FoundRow, historySince: bigint): boolean {
  // The very first is the capture.
  if (Number(letter.version) === 1) return false
  if (Number(letter.versions) > 0) return true
  const latest = [letter.captured_at, letter.resolved_at, letter.confirmed_at]
  return latest.some((at) => at !== null && Number(at) >= historySince)
}
