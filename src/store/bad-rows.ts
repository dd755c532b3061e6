/** One bad row must not stop the others: rows that fail together are tried alone. An outage of the store ends it. */
import { StoreUnavailable } from './database.ts'

type OnBad<Row> = (row: Row, error: unknown) => unknown

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
