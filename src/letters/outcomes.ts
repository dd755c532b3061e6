/**
 * What became of letters that a redrive sent back: exact counts for each redrive. `counts.ts` writes them in the transaction of the
 * outcome; a folder adds up the changes, and a read adds what is not folded yet.
 */
import { type Integer, type Session, sql } from '../db/database.ts'
import { countFold } from '../db/fold.ts'

/** How many letters of a redrive came to each end. */
export interface Outcomes {
  readonly confirmed: number
  readonly returned: number
}

/** Rows by primary key, and what is not folded yet, which is little. */
const readOutcomes = sql('redriveOutcomes.read', {
  postgres: `SELECT redrive, sum(confirmed) AS confirmed, sum(returned) AS returned FROM (
               SELECT redrive, confirmed, returned FROM bartleby.redrive_outcomes WHERE redrive = ANY($1::int[])
               UNION ALL
               SELECT redrive, confirmed, returned FROM bartleby.redrive_outcome_deltas WHERE redrive = ANY($1::int[])
             ) AS counted GROUP BY redrive`,
  sqlite: `SELECT redrive, confirmed, returned FROM redrive_outcomes WHERE redrive IN (SELECT value FROM json_each($1))`,
})

/** What became of the letters of these redrives; those without a word yet are left out. */
export async function outcomesOf(
  session: Session,
  redrives: readonly number[],
): Promise<ReadonlyMap<number, Outcomes>> {
  if (redrives.length === 0) return new Map()
  const rows = await session.rows<{ redrive: Integer; confirmed: Integer; returned: Integer }>(
    readOutcomes,
    redrives,
  )
  return new Map(
    rows.map((row) => [
      Number(row.redrive),
      { confirmed: Number(row.confirmed), returned: Number(row.returned) },
    ]),
  )
}

/** How changes of outcomes are folded. */
export const outcomeFold = countFold({
  name: 'redriveOutcomes.fold',
  lock: 'redrives.outcomeFold',
  deltas: 'bartleby.redrive_outcome_deltas',
  totals: 'bartleby.redrive_outcomes',
  keys: ['redrive'],
  sums: ['confirmed', 'returned'],
})
