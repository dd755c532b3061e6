/**
 * Keeps a consumer from being deleted between the moment a message's jobs are planned for it and the moment they are there.
 * Whoever makes jobs shares the lock of the channel; whoever deletes a consumer has it alone, and looks for jobs only then.
 *
 * PostgreSQL only: on SQLite there is one writer, and its transactions follow each other. The lock ends with the transaction.
 */
import { sql, type Transaction } from '../db/database.ts'

/** Takes the channel's lock together with others. Waits only while a consumer of the channel is being deleted. */
const share = sql('webhooks.shareChannel', {
  postgres: 'SELECT pg_advisory_xact_lock_shared(1853, $1)',
  sqlite: '',
})

/** Takes the channel's lock alone. Waits for the transactions that are making jobs of the channel at the moment. */
const hold = sql('webhooks.holdChannel', {
  postgres: 'SELECT pg_advisory_xact_lock(1853, $1)',
  sqlite: '',
})

/**
 * Call it before the consumers of the channel are read. It may travel with that read: statements of a transaction run in their
 * order, and each sees what was committed when it began.
 */
export async function shareChannel(tx: Transaction, channel: number): Promise<void> {
  if (tx.dialect === 'postgres') await tx.rows(share, channel)
}

/** Call it before jobs of a consumer are looked for, to delete it. */
export async function holdChannel(tx: Transaction, channel: number): Promise<void> {
  if (tx.dialect === 'postgres') await tx.rows(hold, channel)
}
