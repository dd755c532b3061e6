/**
 * Serial numbers of items: one ascending sequence per store, so that ids of a partition ascend across servers
 * for calls that do not overlap, whatever their clocks say.
 */
import { type Integer, sql, type Transaction } from '../../db/database.ts'

const takeSerials = sql('serials.take', {
  postgres: `SELECT nextval('bartleby.serials') AS serial FROM generate_series(1, $1)`,
  sqlite: `UPDATE serials SET last = last + $1 WHERE name = 'items' RETURNING last AS serial`,
})

/** Takes `count` fresh serials, ascending. */
export async function allocateSerials(tx: Transaction, count: number): Promise<number[]> {
  if (count === 0) return []
  const rows = await tx.rows<{ serial: Integer }>(takeSerials, count)
  if (tx.dialect === 'postgres') return rows.map((row) => Number(row.serial))
  const last = Number(rows[0]?.serial)
  return Array.from({ length: count }, (_, i) => last - count + 1 + i)
}
