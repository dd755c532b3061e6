/**
 * Drawers without letters go when nothing is told of them any more: their activity of every hour was forgotten. Signatures stay, and so do
 * places, with all that was ever counted there. The newest drawer stays: SQLite gives its number plus one to the next, and no number is
 * given twice.
 *
 * Whoever counts into a drawer locks it first (`counts.ts`). A drawer that is removed is locked against that, and looked at once more
 * while it is: by then all who were at it have committed, or will find it gone and run again.
 */
import { type Integer, type Statement, sql, type Transaction } from '../db/database.ts'
import { STATUS } from './letter.ts'

/** The next drawers behind $1, but for the newest, by primary key. */
const readPage = sql(
  'drawers.page',
  `SELECT id FROM bartleby.drawers WHERE id > $1 AND id < (SELECT max(id) FROM bartleby.drawers) ORDER BY id LIMIT $2`,
)

/** Nothing is told of the hours of a drawer: one look into the primary key. */
const IS_UNTOLD = 'NOT EXISTS (SELECT 1 FROM bartleby.letter_hours WHERE subject = drawers.id)'

/** Those that are empty by the books, locked; who is at one of them keeps it. A few totals by primary key each. */
const lockEmpty = sql(
  'drawers.lockEmpty',
  `SELECT id FROM bartleby.drawers WHERE id = ANY($1::int[]) AND ${IS_UNTOLD} AND NOT EXISTS (
     SELECT 1 FROM bartleby.letter_totals WHERE drawer = drawers.id AND status <= ${STATUS.Expired} AND letters <> 0)
   ORDER BY id FOR UPDATE SKIP LOCKED`,
)

/** Those that hold no letter, by one step into letters_in_drawer each, and of which every change is folded. */
const stillEmpty = (unfolded: string): string =>
  `SELECT id FROM bartleby.drawers WHERE id = ANY($1::int[]) AND ${IS_UNTOLD} AND (
     SELECT letters.id FROM bartleby.letters WHERE drawer = drawers.id
     ORDER BY drawer, status, last_failure_at, letters.id LIMIT 1) IS NULL ${unfolded}`
const readEmpty = sql('drawers.stillEmpty', {
  postgres: stillEmpty('AND id NOT IN (SELECT drawer FROM bartleby.letter_changes)'),
  sqlite: stillEmpty(''),
})

/** By primary key. */
const removeTotals = sql(
  'drawers.removeTotals',
  'DELETE FROM bartleby.letter_totals WHERE drawer = ANY($1::int[])',
)
const remove = sql('drawers.remove', 'DELETE FROM bartleby.drawers WHERE id = ANY($1::int[])')

async function idsOf(tx: Transaction, statement: Statement, ...values: [number | number[], number?]) {
  const given = values.filter((value) => value !== undefined)
  return (await tx.rows<{ id: Integer }>(statement, ...given)).map(({ id }) => Number(id))
}

/** Removes the empty ones of the next `limit` drawers behind `after`; gives where to go on, null at the end. */
export async function removeEmptyDrawers(
  tx: Transaction,
  after: number,
  limit: number,
): Promise<number | null> {
  const page = await idsOf(tx, readPage, after, limit)
  const locked = page.length === 0 ? [] : await idsOf(tx, lockEmpty, page)
  const empty = locked.length === 0 ? [] : await idsOf(tx, readEmpty, locked)
  if (empty.length > 0) {
    await tx.run(removeTotals, empty)
    await tx.run(remove, empty)
  }
  return page.length < limit ? null : (page.at(-1) ?? null)
}
