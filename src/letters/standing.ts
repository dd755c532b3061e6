/**
 * Where the office stands, in five numbers: letters of each status, all that were ever captured, and those that were
 * sent back and whose outcome is not known yet.
 */
import { type Integer, type Session, sql } from '../db/database.ts'
import type { StatusCounts } from './books.ts'
import { STATUS } from './letter.ts'

export interface Standing extends StatusCounts {
  /** All that were ever captured. */
  readonly captured: number
  /** Resolved by a retry, and neither confirmed nor back yet. */
  readonly unconfirmed: number
}

/** Sums per status in one snapshot. Cost: a row per drawer and status, and the unfolded tail; five rows come back. */
const readSums = sql('letterCounts.standing', {
  postgres: `SELECT status, sum(letters)::text AS letters FROM (
               SELECT status, letters FROM bartleby.letter_totals
               UNION ALL
               SELECT status, letters FROM bartleby.letter_deltas
             ) AS counted GROUP BY status`,
  sqlite: 'SELECT status, sum(letters) AS letters FROM letter_totals GROUP BY status',
})

/** Where the office stands. */
export async function readStanding(session: Session): Promise<Standing> {
  const rows = await session.rows<{ status: Integer; letters: Integer }>(readSums)
  const sums = new Map(rows.map((row) => [Number(row.status), Number(row.letters)]))
  const sum = (status: number): number => sums.get(status) ?? 0
  return {
    Pending: sum(STATUS.Pending),
    Resolved: sum(STATUS.Resolved),
    Expired: sum(STATUS.Expired),
    captured: sum(STATUS.captured),
    unconfirmed: sum(STATUS.unconfirmed),
  }
}
