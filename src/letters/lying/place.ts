/** How a letter that lies in a dead queue is found: by part, serials and shelf, on letters_lying. */

/** Parameters: part, serials, shelf. */
export const OURS = 'part = $1 AND shelf = $3 AND serial = ANY($2::bigint[])'

/**
 * Letters at their places, on several shelves, locked until the transaction ends in the order of their numbers: that of everybody who
 * locks letters. Sorts those of one call.
 */
export const lockingAt = (columns: string, condition: string): string =>
  `SELECT ${columns} FROM bartleby.letters INDEXED BY letters_lying
   WHERE part = $1 AND shelf = ANY($3::int[]) AND serial = ANY($2::bigint[]) AND ${condition} ORDER BY id FOR UPDATE`

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
