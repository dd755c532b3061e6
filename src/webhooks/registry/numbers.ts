/**
 * The numbers of channels and consumers, by which messages, jobs and counts know them. They come from one sequence and are
 * never given twice. PostgreSQL has it as the default of the columns; SQLite counts in a table of one row.
 */
import { sql, type Transaction } from '../../db/database.ts'

const take = sql('webhooks.takeNumber', {
  postgres: '',
  sqlite: 'UPDATE webhook_numbers SET last = last + 1 WHERE rowid = 1',
})

/** What an insert on SQLite writes as the number, after `takeNumber` in the same transaction. */
export const TAKEN_NUMBER = '(SELECT last FROM webhook_numbers WHERE rowid = 1)'

/** Takes the number for the row that is inserted next. */
export async function takeNumber(tx: Transaction): Promise<void> {
  if (tx.dialect === 'sqlite') await tx.run(take)
}
