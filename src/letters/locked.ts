/** Locked letters. `bury.ts` has the order of locks. */
import { sql, type Transaction } from '../store/database.ts'
import { at, integer, oneOf, orNull, type RowOf, rowShape, text } from '../store/row.ts'
import { type Act, type LetterId, letterId, STATUS } from './letter.ts'

/** By primary key, in the order of their numbers. */
const lockCases = sql(
  'letters.lockCases',
  'SELECT id FROM bartleby.letters WHERE id = ANY($1::bigint[]) ORDER BY id FOR UPDATE',
)

const FIELDS = {
  id: letterId,
  drawer: integer,
  /** As stored. */
  status: integer,
  resolvedAt: orNull(at),
  resolution: orNull(oneOf<Act>()),
  confirmedAt: orNull(at),
  redrive: orNull(integer),
  engine: text,
  deadQueue: orNull(text),
  /** Made by its latest retry. */
  sentAs: orNull(text),
} as const
const CASE = rowShape({ ...FIELDS, source: text, queue: text })
export type CaseRow = RowOf<typeof CASE>

/** A statement of its own, as in `lockLetter`. */
const readCases = sql(
  'letters.readCases',
  `SELECT ${rowShape(FIELDS).columns},
     (SELECT source FROM bartleby.drawers WHERE drawers.id = drawer) AS source,
     (SELECT queue FROM bartleby.drawers WHERE drawers.id = drawer) AS queue
   FROM bartleby.letters WHERE id = ANY($1::bigint[]) ORDER BY id`,
  { bigints: true },
)

export const sentBack = (letter: CaseRow): CaseRow => ({
  ...letter,
  status: STATUS.Resolved,
  resolution: 'retry',
  confirmedAt: null,
})

export const reopenedIn = (letter: CaseRow, drawer: number): CaseRow => ({
  ...letter,
  drawer,
  status: STATUS.Pending,
  resolution: null,
  confirmedAt: null,
})

export async function lockLetters(tx: Transaction, ids: readonly LetterId[]): Promise<void> {
  // SQLite has one writer.
  if (ids.length > 0 && tx.dialect === 'postgres') {
    await tx.rows(lockCases, ids)
  }
}

/** Locks and reads existing letters of these cases. */
export async function lockLettersOf(
  tx: Transaction,
  caseIds: readonly LetterId[],
): Promise<Map<LetterId, CaseRow>> {
  if (caseIds.length === 0) return new Map()
  const [, letters] = await Promise.all([lockLetters(tx, caseIds), CASE.all(tx, readCases, caseIds)])
  return new Map(letters.map((letter) => [letter.id, letter]))
}
