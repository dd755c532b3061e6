/**
 * One bad row must not stop the others: many that cannot be done together are done one after the other. An outage of the store is no
 * fault of theirs, would meet each of them, and ends it.
 */
import { StoreUnavailable } from './database.ts'

/** What is done with a row that fails alone. */
type OnBad<Row> = (row: Row, error: unknown) => unknown

/** Does `rows` in one go, or else alone; gives how many of whatever `act` counts. */
export async function togetherOrAlone<Row>(
  rows: readonly Row[],
  act: (rows: readonly Row[]) => Promise<number>,
  onBad: OnBad<Row>,
  signal: AbortSignal,
): Promise<number> {
  try {
    return await act(rows)
  } catch (error) {
    if (error instanceof StoreUnavailable) throw error
  }
  return eachAlone(rows, (row) => act([row]), onBad, signal)
}

/** Does one row after the other, until `signal` comes. */
export async function eachAlone<Row>(
  rows: readonly Row[],
  act: (row: Row) => Promise<number>,
  onBad: OnBad<Row>,
  signal: AbortSignal,
): Promise<number> {
  let count = 0
  for (const row of rows) {
    if (signal.aborted) break
    try {
      count += await act(row)
    } catch (error) {
      if (error instanceof StoreUnavailable) throw error
      await onBad(row, error)
    }
  }
  return count
}
