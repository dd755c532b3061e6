/**
 * I3: a letter has one legal status, lies in a dead queue only while it is pending, and each of its transitions has
 * exactly one history row: their versions count up without a gap to the letter's own. Rows that retention removed may
 * be missing from the beginning.
 */
import { type Integer, sql } from '../db/database.ts'
import { STATUS, STATUSES } from '../letters/letter.ts'
import type { Finding, Invariant } from './invariant.ts'
import { letterRanges } from './walk.ts'

/**
 * Letters of a range whose status or history is not the plain one: all versions from 1 on, each once. Reads the
 * history of the range beside it.
 */
const readOdd = sql(
  'verify.oddLetters',
  `SELECT letter.id, letter.engine, letter.source_id, letter.status, letter.version, letter.part, letter.captured_at,
     letter.resolved_at, letter.confirmed_at, count(record.letter_version) AS recorded,
     count(DISTINCT record.letter_version) AS versions, min(record.letter_version) AS first, max(record.letter_version) AS last
   FROM bartleby.letters AS letter
   LEFT JOIN bartleby.history AS record
     ON record.letter_id = letter.id AND record.letter_id > $1 AND record.letter_id <= $2
   WHERE letter.id > $1 AND letter.id <= $2
   GROUP BY letter.id
   HAVING letter.status NOT IN (${STATUS.Pending}, ${STATUS.Resolved}, ${STATUS.Expired})
     OR (letter.status <> ${STATUS.Pending} AND letter.part IS NOT NULL)
     OR count(record.letter_version) <> letter.version
     OR count(DISTINCT record.letter_version) <> letter.version
     OR min(record.letter_version) <> 1 OR max(record.letter_version) <> letter.version`,
  { bigints: true },
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
  readonly recorded: Integer
  readonly versions: Integer
  readonly first: Integer | null
  readonly last: Integer | null
}

export const oneState: Invariant = {
  id: 'I3',
  promise: 'a letter is in one state, and each of its transitions has one history row',
  rows: ({ letters }) => letters,
  async *check(audit) {
    for await (const { after, through } of letterRanges(audit)) {
      for (const letter of await audit.session.rows<OddLetter>(readOdd, after, through)) {
        for (const what of faultsOf(letter, audit.historySince)) yield findingOf(letter, what)
      }
    }
  },
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
