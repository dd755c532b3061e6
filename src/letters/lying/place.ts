/** How a letter that lies in a dead queue is found: by part, serials and shelf, on letters_lying. */
import { type Instant, instant } from '../../core/clock.ts'
import type { Integer } from '../../db/database.ts'

/** Parameters: part, serials, shelf. */
export const ours = {
  postgres: 'part = $1 AND shelf = $3 AND serial = ANY($2::bigint[])',
  sqlite: 'part = $1 AND shelf = $3 AND serial IN (SELECT value FROM json_each($2))',
}

/** The columns of a letter's place in a dead queue, and what they are where it lies in none. */
export const PLACE_COLUMNS = {
  part: 'NULL',
  shelf: 'NULL',
  serial: 'NULL',
  laid_at: 'NULL',
  leased: '0',
  lease_deadline: 'NULL',
  leased_by: 'NULL',
  enqueue_at: 'NULL',
  attempts: '0',
} as const

/** An instant of the store; NULL is none. */
export const optionalInstant = (value: Integer | null): Instant | null =>
  value === null ? null : instant(BigInt(value))
