/**
 * Removal of drawers without letters, once their hourly activity is forgotten. Signatures and places stay. The newest drawer stays too:
 * SQLite gives its number plus one to the next, and no number is given twice.
 *
 * Counting into a drawer locks it (`counts.ts`). Removal locks it against that and checks again: by then everybody who used it has
 * committed, or will find it gone and run again.
 */
import type { Instant } from '../../core/clock.ts'
import { type Integer, type Statement, sql, type Transaction, type Value } from '../../store/database.ts'
import { STATUS } from '../letter.ts'
import { HOUR_US } from './counts.ts'

const readNewest = sql('drawers.newest', 'SELECT max(id) AS id FROM bartleby.drawers')

/** By primary key. */
const readPage = sql(
  'drawers.page',
  'SELECT id FROM bartleby.drawers WHERE id > $1 AND id < $2 ORDER BY id LIMIT $3',
)

/** No hours: one look into the primary key. */
const IS_UNTOLD = 'NOT EXISTS (SELECT 1 FROM bartleby.letter_hours WHERE subject = drawers.id)'

/** Empty by their counts, locked; drawers in use are skipped. A few totals by primary key each. */
const lockEmpty = sql(
  'drawers.lockEmpty',
  `SELECT id FROM bartleby.drawers WHERE id = ANY($1::int[]) AND ${IS_UNTOLD} AND NOT EXISTS (
     SELECT 1 FROM bartleby.letter_totals WHERE drawer = drawers.id AND status <= ${STATUS.Expired} AND letters <> 0)
   ORDER BY id FOR UPDATE SKIP LOCKED`,
)

/** Without letters, by one step into letters_in_drawer each, and with every change folded. */
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

/** A range of drawers, both ends excluded. */
export interface Stretch {
  readonly after: number
  readonly before: number
}

export const MOST_NUMBERS = 20_000

/** Steps of the golden ratio meet all parts of a circle about equally often. */
const GOLDEN = 0.618_033_988_75

/** All drawers of a round if they are few, else a range that changes every hour, also when rounds are missed. */
export async function stretchOf(tx: Transaction, now: Instant): Promise<Stretch> {
  const [newest = 0] = await idsOf(tx, readNewest)
  const stretches = Math.ceil(newest / MOST_NUMBERS)
  const turn = (Number(now / HOUR_US) * GOLDEN) % 1
  const after = Math.floor(turn * stretches) * MOST_NUMBERS
  return { after, before: Math.min(newest, after + MOST_NUMBERS + 1) }
}

/** Removes empty ones of the next `limit` drawers; returns what is left of the range. */
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
