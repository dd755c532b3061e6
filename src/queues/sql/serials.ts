/**
 * Serial numbers of items: one ascending sequence per store, so that ids of a partition ascend across servers
 * for calls that do not overlap, whatever their clocks say.
 */
import { type Integer, sql, type Transaction } from '../../db/database.ts'

/** The first of them, and the whole list only when another server took some in between. */
const takeSerials = sql('serials.take', {
  postgres: `
    SELECT min(serial) AS first, CASE WHEN max(serial) - min(serial) + 1 <> $1 THEN array_agg(serial)::text END AS serials
    FROM (SELECT nextval('bartleby.serials') AS serial FROM generate_series(1, $1::int)) AS taken`,
  sqlite: `UPDATE serials SET last = last + $1 WHERE name = 'items' RETURNING last - $1 + 1 AS first, NULL AS serials`,
})

/** Takes `count` fresh serials, ascending. */
export async function allocateSerials(tx: Transaction, count: number): Promise<number[]> {
  if (count === 0) return []
  const [row] = await tx.rows<TakenSerials>(takeSerials, count)
  return serialsTaken(row, count)
}

/** How statements that take serials report them: see `takeSerials`. */
export interface TakenSerials {
  readonly first: Integer
  readonly serials: string | null
}

/** The serials that such a row stands for. */
export function serialsTaken(row: TakenSerials | undefined, count: number): number[] {
  if (row?.serials != null) return row.serials.slice(1, -1).split(',').map(Number)
  const first = Number(row?.first)
  return Array.from({ length: count }, (_, i) => first + i)
}
