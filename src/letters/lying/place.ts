/** How a letter that lies in a dead queue is found: by part, serials and shelf, on letters_lying. */

/** Parameters: part, serials, shelf. */
export const OURS = 'part = $1 AND shelf = $3 AND serial = ANY($2::bigint[])'

/** The same on several shelves. */
const AT = (plus: string) =>
  `${plus}part = $1 AND ${plus}shelf = ANY($3::int[]) AND ${plus}serial = ANY($2::bigint[])`

/**
 * Letters at their places, locked until the transaction ends in the order of their numbers: that of everybody who locks letters. Behind
 * the lock they are looked at again, by primary key, which the plus insists on.
 */
export const lockingAt = (columns: string, condition: string): { postgres: string; sqlite: string } => ({
  postgres: `SELECT ${columns} FROM bartleby.letters
    WHERE id = ANY(ARRAY(SELECT id FROM bartleby.letters WHERE ${AT('')})) AND ${AT('+')} AND ${condition} ORDER BY id FOR UPDATE`,
  sqlite: `SELECT ${columns} FROM letters INDEXED BY letters_lying WHERE ${AT('')} AND ${condition}`,
})

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
