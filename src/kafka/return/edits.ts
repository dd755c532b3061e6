/** What operators make of values, kept beside the letter's own: it is what goes out until the event dies again. */
import { sql, type Transaction } from '../../db/database.ts'
import type { LetterId } from '../../letters/letter.ts'

/** One row by primary key. */
const writeEdit = sql(
  'kafka.keepEdit',
  'UPDATE bartleby.letters SET edited = $2, edited_payload = $3 WHERE id = $1',
)

/** Keeps an edit, or none, of a locked letter. */
export async function keepEdit(tx: Transaction, id: LetterId, edited: Uint8Array | null): Promise<void> {
  await tx.run(writeEdit, id, edited === null ? 0 : 1, edited)
}
