/**
 * The history row of work that takes many transactions. The first of them adds it and each of the others brings it up
 * to date, so that at every moment it says what is durable, and one run stays one row. It is the only row that is
 * ever written to again, and only while its run lasts.
 */
import type { Instant } from '../core/clock.ts'
import { sql, type Transaction } from '../db/database.ts'
import { type HistoryEntry, type HistoryRow, recordHistory } from './record.ts'

/** One row by primary key. */
const updateRow = sql(
  'history.updateRun',
  'UPDATE bartleby.history SET duration_ms = $4, output = $5 WHERE series = $1 AND created_at = $2 AND id = $3',
)

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
  const { series, createdAt, id } = known
  await tx.run(updateRow, series, createdAt, id, Math.round(entry.durationMs), entry.output)
  return known
}

/** How long a run has taken, in milliseconds. */
export const elapsedMs = (since: Instant, now: Instant): number => Number((now - since) / 1000n)
