/**
 * Conditions on rows that are found by their ids. In plain words they would be those of a partial index, and databases take
 * to such an index while it is small: they would walk all of it for a few ids, and go on doing so when it has grown.
 */
import type { Dialect } from '../../db/database.ts'
import type { Layout } from '../layout.ts'

/** Whether a column is null, in words that no index has. */
export const isNull = (dialect: Dialect, column: string): string =>
  dialect === 'postgres' ? `num_nulls(${column}) = 1` : `+${column} IS NULL`

/** Whether a column has a value, in words that no index has. */
export const hasValue = (dialect: Dialect, column: string): string =>
  dialect === 'postgres' ? `num_nulls(${column}) = 0` : `+${column} IS NOT NULL`

/** A list of row ids as a parameter. SQLite compares by type: whole numbers are numbers there. */
export function idList({ dialect, types }: Layout, ids: readonly string[]): string {
  if (dialect === 'postgres') return `{${ids.map((id) => JSON.stringify(id)).join(',')}}`
  return /int/.test(types.id) ? `[${ids.join(',')}]` : JSON.stringify(ids)
}
