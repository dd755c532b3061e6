/** The letters of redrives: the frozen set in the order of its lanes, and those of it that were not sent. */
import { instant } from '../core/clock.ts'
import { storable } from '../core/content.ts'
import {
  type Integer,
  type Session,
  type Statement,
  sql,
  type Transaction,
  type Value,
} from '../db/database.ts'
import { type LetterId, letterId } from '../letters/letter.ts'
import type { Lane, LanePlace } from './lanes.ts'
import type { Exception, ExceptionReason, RedriveNumber } from './redrive.ts'

/** A letter of a lane, in the version in which it was planned. */
export interface LaneLetter extends LanePlace {
  readonly version: number
}

/** A letter with the lane that it was dealt to. */
export interface DealtLetter extends LaneLetter {
  readonly lane: number
}

const insertMany = sql('redriveLetters.insert', {
  postgres: `INSERT INTO bartleby.redrive_letters (redrive, lane, captured_at, letter, version)
             SELECT $1, dealt.* FROM unnest($2::int[], $3::bigint[], $4::bigint[], $5::int[]) AS dealt`,
  sqlite:
    'INSERT INTO redrive_letters (redrive, lane, captured_at, letter, version) VALUES ($1, $2, $3, $4, $5)',
})

/** Runs a statement for many rows: SQLite for each of them, PostgreSQL once, with a list for every column. */
async function runMany(
  tx: Transaction,
  statement: Statement,
  first: readonly Value[],
  rows: readonly (readonly (number | bigint | string | null)[])[],
): Promise<void> {
  const [some] = rows
  if (some === undefined) return
  if (tx.dialect === 'sqlite')
    return tx.runEach(
      statement,
      rows.map((row) => [...first, ...row]),
    )
  const texts = (at: number) => rows.map((row) => row[at]?.toString() ?? null)
  await tx.run(statement, ...first, ...some.map((_, at) => texts(at)))
}

/** Adds letters to the set of a redrive. */
export const insertLetters = (
  tx: Transaction,
  redrive: RedriveNumber,
  letters: readonly DealtLetter[],
): Promise<void> =>
  runMany(
    tx,
    insertMany,
    [redrive],
    letters.map(({ lane, capturedAt, letter, version }) => [lane, capturedAt, letter, version]),
  )

/** Along the primary key, from a place on. */
const readNext = sql(
  'redriveLetters.next',
  `SELECT captured_at, letter, version FROM bartleby.redrive_letters
   WHERE (redrive, lane, captured_at, letter) > ($1, $2, $3, $4) AND (redrive, lane) <= ($1, $2)
   ORDER BY redrive, lane, captured_at, letter LIMIT $5`,
  { bigints: true },
)

/** The next letters of a lane, behind `behind`. */
export async function nextLetters(
  session: Session,
  { redrive, lane }: Pick<Lane, 'redrive' | 'lane'>,
  behind: LanePlace,
  limit: number,
): Promise<LaneLetter[]> {
  const rows = await session.rows<{ captured_at: Integer; letter: Integer; version: Integer }>(
    readNext,
    redrive,
    lane,
    behind.capturedAt,
    behind.letter,
    limit,
  )
  return rows.map((row) => ({
    capturedAt: instant(BigInt(row.captured_at)),
    letter: letterId(row.letter),
    version: Number(row.version),
  }))
}

/** Letters of a lane, by primary key. */
const removeMany = sql('redriveLetters.takeOut', {
  postgres: `DELETE FROM bartleby.redrive_letters WHERE ctid = ANY(ARRAY(
               SELECT found.place FROM unnest($3::bigint[], $4::bigint[]) AS given (captured_at, letter) CROSS JOIN LATERAL (
                 SELECT ctid AS place FROM bartleby.redrive_letters AS member
                 WHERE member.redrive = $1 AND member.lane = $2 AND member.captured_at = given.captured_at
                   AND member.letter = given.letter LIMIT 1) AS found))`,
  sqlite: 'DELETE FROM redrive_letters WHERE redrive = $1 AND lane = $2 AND captured_at = $3 AND letter = $4',
})

/** Takes letters out of a lane. */
export const removeLetters = (
  tx: Transaction,
  { redrive, lane }: Lane,
  letters: readonly LanePlace[],
): Promise<void> =>
  runMany(
    tx,
    removeMany,
    [redrive, lane],
    letters.map(({ capturedAt, letter }) => [capturedAt, letter]),
  )

/**
 * By redrive_letters_of, which the plus and the order insist on, each with its lane by primary key. Not EXISTS: PostgreSQL may make a
 * join with all lanes of it, as long as there are few.
 */
const readAhead = sql('redriveLetters.ahead', {
  postgres: `SELECT member.letter FROM unnest($1::bigint[]) AS asked (id) CROSS JOIN LATERAL (
      SELECT redrive, lane, captured_at, letter FROM bartleby.redrive_letters
      WHERE letter >= asked.id AND letter <= asked.id AND +redrive = ANY($2::int[]) ORDER BY letter) AS member
    WHERE (SELECT (member.captured_at, member.letter) > (lane.at_captured, lane.at_letter) FROM bartleby.redrive_lanes AS lane
           WHERE lane.redrive = member.redrive AND lane.lane = member.lane)`,
  sqlite: `SELECT member.letter FROM redrive_letters AS member INDEXED BY redrive_letters_of
    WHERE member.letter IN (SELECT value FROM json_each($1)) AND member.redrive IN (SELECT value FROM json_each($2)) AND EXISTS (
      SELECT 1 FROM redrive_lanes AS lane WHERE lane.redrive = member.redrive AND lane.lane = member.lane
        AND (member.captured_at, member.letter) > (lane.at_captured, lane.at_letter))`,
})

/** Those of the letters that one of these redrives has still to send. */
export async function lettersAhead(
  session: Session,
  letters: readonly LetterId[],
  redrives: readonly RedriveNumber[],
): Promise<ReadonlySet<LetterId>> {
  if (letters.length === 0 || redrives.length === 0) return new Set()
  const rows = await session.rows<{ letter: Integer }>(readAhead, letters, redrives)
  return new Set(rows.map(({ letter }) => letterId(letter)))
}

const OUTCOMES = { skipped: 0, failed: 1 } as const
const MAX_DETAIL_BYTES = 1_000

const insertExceptions = sql('redriveExceptions.insert', {
  postgres: `INSERT INTO bartleby.redrive_exceptions (redrive, letter, outcome, reason, detail)
             SELECT $1, given.* FROM unnest($2::bigint[], $3::int[], $4::text[], $5::text[]) AS given`,
  sqlite:
    'INSERT INTO redrive_exceptions (redrive, letter, outcome, reason, detail) VALUES ($1, $2, $3, $4, $5)',
})

/** Notes why letters were not sent. */
export const noteExceptions = (
  tx: Transaction,
  redrive: RedriveNumber,
  exceptions: readonly Exception[],
): Promise<void> =>
  runMany(
    tx,
    insertExceptions,
    [redrive],
    exceptions.map(({ letter, outcome, reason, detail }) => [
      ...([letter, OUTCOMES[outcome], reason] as const),
      detail === null ? null : storable(detail, MAX_DETAIL_BYTES),
    ]),
  )

/** Along the primary key: as many rows as letters were not sent. */
const countByReason = sql(
  'redriveExceptions.count',
  `SELECT outcome, reason, count(*) AS letters FROM bartleby.redrive_exceptions WHERE redrive = $1
   GROUP BY outcome, reason ORDER BY outcome, reason`,
)

/** Why letters of a redrive were not sent, and how many for each reason. */
export async function exceptionCounts(
  session: Session,
  redrive: RedriveNumber,
): Promise<{ outcome: Exception['outcome']; reason: ExceptionReason; letters: number }[]> {
  const rows = await session.rows<{ outcome: Integer; reason: ExceptionReason; letters: Integer }>(
    countByReason,
    redrive,
  )
  return rows.map(({ outcome, reason, letters }) => ({
    outcome: outcomeOf(outcome),
    reason,
    letters: Number(letters),
  }))
}

export const outcomeOf = (outcome: Integer): Exception['outcome'] =>
  Number(outcome) === OUTCOMES.failed ? 'failed' : 'skipped'
