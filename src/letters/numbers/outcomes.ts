/**
 * What became of letters that a redrive sent back: exact counts for each redrive. `counts.ts` writes them in the transaction of the
 * outcome.
 */
import { counter } from '../../store/counter.ts'
import type { Integer, Session } from '../../store/database.ts'

/** How many letters of a redrive came to each end. */
export interface Outcomes {
  readonly confirmed: number
  readonly returned: number
}

export const outcomeCounter = counter({
  name: 'redriveOutcomes',
  lock: 'redrives.outcomeFold',
  deltas: 'redrive_outcome_deltas',
  given: { redrive: 'int', confirmed: 'bigint', returned: 'bigint' },
  totals: {
    redrives: { table: 'redrive_outcomes', keys: ['redrive'], sums: ['confirmed', 'returned'] },
  },
})

/** Rows by primary key, and what is not folded yet, which is little. */
const readOutcomes = outcomeCounter.read(
  'redriveOutcomes.read',
  'redrives',
  (counted) =>
    `SELECT redrive, sum(confirmed) AS confirmed, sum(returned) AS returned FROM ${counted} GROUP BY redrive`,
  { where: 'redrive = ANY($1::int[])' },
)

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
