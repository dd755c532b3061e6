/**
 * What became of letters that a redrive sent back: exact counts for each redrive, written in the transaction of the outcome as
 * letter counts are. SQLite adds to its row, PostgreSQL appends a change that a folder adds up, and a read adds what is not folded yet.
 */
import { type Integer, integerList, type Session, sql, type Transaction } from '../db/database.ts'
import { countFold } from '../db/fold.ts'

/** How many letters of a redrive came to each end. */
export interface Outcomes {
  readonly confirmed: number
  readonly returned: number
}

/** Appends a change (PostgreSQL) or adds to the row of the redrive (SQLite). One row either way. */
const addOutcomes = sql('redriveOutcomes.add', {
  postgres: `INSERT INTO bartleby.redrive_outcome_deltas (redrive, confirmed, returned) VALUES ($1, $2, $3)`,
  sqlite: `INSERT INTO redrive_outcomes (redrive, confirmed, returned) VALUES ($1, $2, $3)
           ON CONFLICT (redrive) DO UPDATE SET confirmed = confirmed + excluded.confirmed, returned = returned + excluded.returned`,
})

/** The outcomes of one transaction, by redrive. */
export class OutcomeChanges {
  readonly #changes = new Map<number, { confirmed: number; returned: number }>()

  /** A letter was confirmed, or died again; nothing is told of letters that no redrive sent. */
  add(redrive: Integer | null, outcome: keyof Outcomes, letters: number): void {
    if (redrive === null) return
    const number = Number(redrive)
    const change = this.#changes.get(number) ?? { confirmed: 0, returned: 0 }
    change[outcome] += letters
    this.#changes.set(number, change)
  }

  /** Makes the changes part of the transaction. */
  write(tx: Transaction): void {
    for (const [redrive, { confirmed, returned }] of [...this.#changes].sort(([a], [b]) => a - b))
      tx.atCommit(addOutcomes, redrive, confirmed, returned)
  }
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
    integerList(session.dialect, redrives),
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
