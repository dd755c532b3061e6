/** The letters of redrives: the frozen set in lane order, and those not sent. */
import { storable } from '../../core/content.ts'
import { type LetterId, letterId } from '../../letters/letter.ts'
import { type Integer, type Session, sql, type Transaction } from '../../store/database.ts'
import { rowsGiven, runGiven } from '../../store/idioms.ts'
import { at, integer, type RowOf, rowShape } from '../../store/row.ts'
import type { Exception, ExceptionReason, RedriveNumber } from '../redrive.ts'
import { isAhead, type Lane, type LanePlace, readLanes } from './lanes.ts'

const LETTER = rowShape({ capturedAt: at, letter: letterId, version: integer })

/** A letter of a lane, in its planned version. */
export type LaneLetter = RowOf<typeof LETTER>

export interface DealtLetter extends LaneLetter {
  readonly lane: number
}

const insertMany = sql(
  'redriveLetters.insert',
  `INSERT INTO bartleby.redrive_letters (redrive, lane, captured_at, letter, version)
   SELECT $5, given.lane, given.captured_at, given.letter, given.version
   FROM unnest($1::int[], $2::bigint[], $3::bigint[], $4::int[]) AS given (lane, captured_at, letter, version)`,
)

export const insertLetters = (
  tx: Transaction,
  redrive: RedriveNumber,
  letters: readonly DealtLetter[],
): Promise<unknown> =>
  runGiven(
    tx,
    insertMany,
    letters.map(({ lane, capturedAt, letter, version }) => ({
      ...{ lane, captured_at: capturedAt, letter, version },
    })),
    redrive,
  )

/** Along the primary key, from a position on. */
const readNext = sql(
  'redriveLetters.next',
  `SELECT ${LETTER.columns} FROM bartleby.redrive_letters
   WHERE (redrive, lane, captured_at, letter) > ($1, $2, $3, $4) AND (redrive, lane) <= ($1, $2)
   ORDER BY redrive, lane, captured_at, letter LIMIT $5`,
  { bigints: true },
)

/** Letters per look: asked for more of a small table, PostgreSQL fetches and sorts all that is left. */
const LOOK = 250

export async function nextLetters(
  session: Session,
  { redrive, lane }: Pick<Lane, 'redrive' | 'lane'>,
  behind: LanePlace,
  limit: number,
): Promise<LaneLetter[]> {
  const letters: LaneLetter[] = []
  for (let isMore = true; isMore && letters.length < limit; ) {
    const { capturedAt, letter } = letters.at(-1) ?? behind
    const most = Math.min(LOOK, limit - letters.length)
    const rows = await session.rows<object>(readNext, redrive, lane, capturedAt, letter, most)
    letters.push(...rows.map(LETTER.read))
    isMore = rows.length === most
  }
  return letters
}

/** Along the primary key, within the span looked at. */
const removeMany = sql(
  'redriveLetters.takeOut',
  `DELETE FROM bartleby.redrive_letters WHERE redrive = $1 AND lane = $2 AND (captured_at, letter) >= ($3, $4)
     AND (captured_at, letter) <= ($5, $6) AND letter = ANY($7::bigint[])`,
)

/** Takes letters, which are in lane order, out of a lane. */
export async function removeLetters(
  tx: Transaction,
  { redrive, lane }: Lane,
  letters: readonly LanePlace[],
): Promise<void> {
  const [first, last] = [letters[0], letters.at(-1)]
  if (first === undefined || last === undefined) return
  const span = [first.capturedAt, first.letter, last.capturedAt, last.letter] as const
  const ids = letters.map(({ letter }) => letter)
  await tx.run(removeMany, redrive, lane, ...span, ids)
}

/** On redrive_letters_of. */
const findMember = sql(
  'redriveLetters.member',
  `SELECT found.* FROM unnest($1::bigint[], $2::int[]) AS given (letter, redrive) CROSS JOIN LATERAL (
     SELECT letter, redrive, lane, captured_at FROM bartleby.redrive_letters INDEXED BY redrive_letters_of
     WHERE letter = given.letter AND redrive = given.redrive LIMIT 1) AS found`,
  { bigints: true },
)

/** Letters that one of these redrives has still to send. */
export async function lettersAhead(
  session: Session,
  letters: readonly LetterId[],
  redrives: readonly RedriveNumber[],
): Promise<ReadonlySet<LetterId>> {
  if (letters.length === 0 || redrives.length === 0) return new Set()
  const nameOf = ({ redrive, lane }: { readonly redrive: Integer; readonly lane: Integer }) =>
    `${redrive} ${lane}`
  const lanes = new Map((await readLanes(session, redrives)).map((lane) => [nameOf(lane), lane]))
  const asked = letters.flatMap((letter) => redrives.map((redrive) => ({ letter, redrive })))
  type Row = { letter: Integer; redrive: Integer; lane: Integer; captured_at: Integer }
  const members = await rowsGiven<Row>(session, findMember, asked)
  return new Set(
    members.flatMap((member) => {
      const letter = letterId(member.letter)
      const lane = lanes.get(nameOf(member))
      const place = { capturedAt: at(member.captured_at), letter }
      return lane !== undefined && isAhead(lane, place) ? letter : []
    }),
  )
}

const OUTCOMES = { skipped: 0, failed: 1 } as const
const MAX_DETAIL_BYTES = 1_000

const insertExceptions = sql(
  'redriveExceptions.insert',
  `INSERT INTO bartleby.redrive_exceptions (redrive, letter, outcome, reason, detail)
   SELECT $5, given.letter, given.outcome, given.reason, given.detail
   FROM unnest($1::bigint[], $2::int[], $3::text[], $4::text[]) AS given (letter, outcome, reason, detail)`,
)

export const noteExceptions = (
  tx: Transaction,
  redrive: RedriveNumber,
  exceptions: readonly Exception[],
): Promise<unknown> =>
  runGiven(
    tx,
    insertExceptions,
    exceptions.map(({ letter, outcome, reason, detail }) => ({
      ...{ letter, outcome: OUTCOMES[outcome], reason },
      detail: detail === null ? null : storable(detail, MAX_DETAIL_BYTES),
    })),
    redrive,
  )

/** Along the primary key: as many rows as letters were not sent. */
const countByReason = sql(
  'redriveExceptions.count',
  `SELECT outcome, reason, count(*) AS letters FROM bartleby.redrive_exceptions WHERE redrive = $1
   GROUP BY outcome, reason ORDER BY outcome, reason`,
)

/** Letters not sent, by reason. */
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
