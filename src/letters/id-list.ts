/** A list of letter ids as a parameter: an array literal on PostgreSQL, JSON for `json_each` on SQLite; in order. */
import type { Dialect, Integer } from '../db/database.ts'

export function idList(dialect: Dialect, rows: readonly { readonly id: Integer }[]): string {
  const ids = rows.map(({ id }) => BigInt(id)).sort((a, b) => (a < b ? -1 : a > b ? 1 : 0))
  return dialect === 'postgres' ? `{${ids.join(',')}}` : `[${ids.join(',')}]`
}
