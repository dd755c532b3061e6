/**
 * Drawers without letters go when nothing is told of them any more: their activity of every hour was forgotten. Signatures stay, and so do
 * places, with all that was ever counted there. The newest drawer stays: SQLite gives its number plus one to the next, and no number is
 * given twice.
 *
 * Whoever counts into a drawer locks it first (`counts.ts`). A drawer that is removed is locked against that, and looked at once more
 * while it is: by then all who were at it have committed, or will find it gone and run again.
 */
import type { Instant } from '../../core/clock.ts'
import { type Integer, type Statement, sql, type Transaction, type Value } from '../../store/database.ts'
import { STATUS } from '../letter.ts'
import { HOUR_US } from './counts.ts'

const readNewest = sql('drawers.newest', 'SELECT max(id) AS id FROM bartleby.drawers')

/** The next drawers behind $1, by primary key. */
const readPage = sql(
  'drawers.page',
  'SELECT id FROM bartleby.drawers WHERE id > $1 AND id < $2 ORDER BY id LIMIT $3',
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

async function idsOf(tx: Transaction, statement: Statement, ...values: readonly Value[]): Promise<number[]> {
  return (await tx.rows<{ id: Integer }>(statement, ...values)).map(({ id }) => Number(id))
}

/** Drawers behind a number, up to another one that is not among them. */
export interface Stretch {
  readonly after: number
  readonly before: number
}

/** Numbers that a round looks at. */
export const MOST_NUMBERS = 20_000

/** The golden ratio: steps of it, however many at a time, meet all parts of a circle about equally often. */
const GOLDEN = 0.618_033_988_75

/** The drawers that a round looks at: all of some; of many a stretch, every hour another one, also where not every hour has a round. */
export async function stretchOf(tx: Transaction, now: Instant): Promise<Stretch> {
  const [newest = 0] = await idsOf(tx, readNewest)
  const stretches = Math.ceil(newest / MOST_NUMBERS)
  const turn = (Number(now / HOUR_US) * GOLDEN) % 1
  const after = Math.floor(turn * stretches) * MOST_NUMBERS
  return { after, before: Math.min(newest, after + MOST_NUMBERS + 1) }
}

/** Removes the empty ones of the next `limit` drawers of a stretch; gives what is left of it, null at its end. */
export async function removeEmptyDrawers(
  tx: Transaction,
  { after, before }: Stretch,
  limit: number,
): Promise<Stretch | null> {
  const page = await idsOf(tx, readPage, after, before, limit)
  const locked = page.length === 0 ? [] : await idsOf(tx, lockEmpty, page)
  const empty = locked.length === 0 ? [] : await idsOf(tx, readEmpty, locked)
  if (empty.length > 0) {
    await tx.run(removeTotals, empty)
    await tx.run(remove, empty)
  }
  const last = page.at(-1)
  return last === undefined || page.length < limit ? null : { after: last, before }
}
