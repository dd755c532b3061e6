/**
 * The history row of work that takes many transactions. The first of them adds it and each of the others brings it up
 * to date, so that at every moment it says what is durable, and one run stays one row. It is the only row that is
 * ever written to again, and only while its run lasts.
 */
import type { Instant } from '../core/clock.ts'
import { sql, type Transaction } from '../db/database.ts'
import { type HistoryEntry, type HistoryRow, recordHistory } from './record.ts'

const AT_KEY = '(created_at, id) >= ($1, $2) AND (created_at, id) <= ($1, $2)'

/** One row by primary key. On PostgreSQL in the order of that key, because other indexes end with the same columns. */
const updateRow = sql('history.updateRun', {
  postgres: `UPDATE bartleby.history SET duration_ms = $3, output = $4 WHERE ctid =
               (SELECT ctid FROM bartleby.history WHERE ${AT_KEY} ORDER BY created_at, id LIMIT 1 FOR UPDATE)`,
  sqlite: 'UPDATE history SET duration_ms = $3, output = $4 WHERE id = $2 AND created_at = $1',
})

/** Adds the row of a run (`known` is null) or brings it up to date; gives its key. */
export async function keepRunRow(
  tx: Transaction,
  known: HistoryRow | null,
  entry: HistoryEntry & { readonly output: Uint8Array },
): Promise<HistoryRow> {
  if (known === null) {
    const [row] = await recordHistory(tx, [entry])
    if (row === undefined) throw new Error('the row of a run was not added')
    return row
  }
  await tx.run(updateRow, known.createdAt, known.id, Math.round(entry.durationMs), entry.output)
  return known
}

/** How long a run has taken, in milliseconds. */
export const elapsedMs = (since: Instant, now: Instant): number => Number((now - since) / 1000n)
