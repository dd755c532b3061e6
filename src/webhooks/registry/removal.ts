/**
 * The end of a consumer: only while it has no job, and with everything that is kept for it. Its letters stay, as those of
 * everything that once was.
 */
import { sql, type Transaction } from '../../db/database.ts'
import { holdChannel } from '../channel-lock.ts'
import { Refused } from '../refusal.ts'
import type { Consumer } from '../webhook.ts'
import { checkCondition } from './conditional.ts'

/** Whether there is any job of a consumer, whatever its state: the first entry of its range of the index. No locks. */
const findJob = sql('webhooks.findJobOf', {
  postgres: 'SELECT 1 AS found FROM bartleby.webhook_jobs WHERE consumer = $1 LIMIT 1',
  sqlite: 'SELECT 1 AS found FROM webhook_jobs INDEXED BY webhook_jobs_by_state WHERE consumer = $1 LIMIT 1',
})

/** One row by its number, if it is still the one that was read. */
const remove = sql(
  'webhooks.deleteConsumer',
  'DELETE FROM bartleby.webhook_consumers WHERE number = $1 AND updated_at = $2',
)

/**
 * The changes of a consumer that are not folded yet. They have no index: the tail is short, because it is folded every second.
 * Waits for a fold that has taken some of them.
 */
const removeDeltas = sql('webhooks.deleteDeltasOf', {
  postgres: 'DELETE FROM bartleby.webhook_deltas WHERE subject = $1',
  sqlite: '',
})

/** A handful of rows by primary key. */
const removeTotals = sql('webhooks.deleteTotalsOf', 'DELETE FROM bartleby.webhook_totals WHERE subject = $1')

/** Deletes the consumer that `read` gives. */
export async function removeConsumer(
  tx: Transaction,
  channel: number,
  read: () => Promise<Consumer | null>,
  ifUnmodifiedSince: string | null,
): Promise<void> {
  // From here on nobody makes jobs of this channel.
  await holdChannel(tx, channel)
  const consumer = await read()
  if (consumer === null) throw new Refused('resource_unknown')
  checkCondition(consumer, ifUnmodifiedSince)
  const { number, updatedAt } = consumer
  const [jobs, removed] = await Promise.all([tx.rows(findJob, number), tx.run(remove, number, updatedAt)])
  if (jobs.length > 0) throw new Refused('consumer_has_jobs')
  if (removed === 0) throw new Refused('condition_failed')
  // Changes before totals: a fold that is under way moves them from the one to the other.
  if (tx.dialect === 'postgres') await tx.run(removeDeltas, number)
  await tx.run(removeTotals, number)
}
