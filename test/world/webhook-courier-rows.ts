/** For tests only: the rows of couriers' stores, as tests write and read them. */
import type { Xid } from '../../src/core/xid.ts'
import type { JobState } from '../../src/sources/webhooks/webhook.ts'
import { type Integer, type Session, sql } from '../../src/store/database.ts'

export const CHANNEL = 1

export const insertChannel = sql(
  'test.courier.channel',
  `INSERT INTO bartleby.webhook_channels (id, number, channel_id, name, token, created_at, updated_at)
   VALUES ('channel', ${CHANNEL}, 'orders', 'Orders', 'ctok', 0, 0)`,
)
export const insertConsumer = sql(
  'test.courier.consumer',
  `INSERT INTO bartleby.webhook_consumers (id, number, channel, consumer_id, name, token, callback_url, pulls, created_at, updated_at,
     secret, previous_secret, most_at_once, most_per_second)
   VALUES ($1, $2, ${CHANNEL}, $3, $3, $4, $5, $6, 0, 7, $7, $8, $9, $10)`,
)
export const changeConsumer = sql(
  'test.courier.change',
  'UPDATE bartleby.webhook_consumers SET pulls = $2, callback_url = $3 WHERE number = $1',
)
export const readConsumer = sql(
  'test.courier.readConsumer',
  `SELECT paused_since, paused_until, pause_seconds, pause_reason, updated_at FROM bartleby.webhook_consumers WHERE number = $1`,
  { bigints: true },
)
export const insertMessage = sql(
  'test.courier.message',
  `INSERT INTO bartleby.webhook_messages (id, channel, message_id, producer, created_at, received_at, priority, first_job, jobs, content_type, headers, payload)
   VALUES ($1, ${CHANNEL}, $2, 'producer', $3, $3, $4, $5, $6, $7, $8, $9)`,
)
export const insertJob = sql(
  'test.courier.job',
  `INSERT INTO bartleby.webhook_jobs (created_at, changed_at, priority, consumer, state, id, message, attempts, due_at, claim)
   VALUES ($1, $1, $2, $3, $4, $5, $6, $7, $8, $9)`,
)
export const readJobs = sql(
  'test.courier.jobs',
  'SELECT id, consumer, state, attempts, due_at, claim, letter, exhausted FROM bartleby.webhook_jobs ORDER BY id',
  { bigints: true },
)
export const readAttempts = sql(
  'test.courier.attempts',
  'SELECT letter_id, error_class, error_message FROM bartleby.letter_attempts ORDER BY letter_id, number',
)
export const readLetters = sql(
  'test.courier.letters',
  'SELECT source_id, status, reason, error_class, error_message, dequeue_count, confirmed_at FROM bartleby.letters ORDER BY id',
)

export const ERASE = [
  'webhook_jobs',
  'webhook_messages',
  'webhook_consumers',
  'webhook_totals',
  'letters',
  'letter_attempts',
].map((table) => sql(`test.courier.erase.${table}`, `DELETE FROM bartleby.${table}`))

export interface JobRow {
  readonly id: Xid
  readonly consumer: number
  readonly state: JobState
  readonly attempts: number
  readonly dueAt: bigint | null
  readonly claim: string | null
  readonly letter: bigint | null
  readonly exhausted: boolean
}

/** All jobs in the order of their ids. */
export async function jobRows(session: Session): Promise<readonly JobRow[]> {
  const rows = await session.rows<{
    id: Xid
    consumer: Integer
    state: Integer
    attempts: Integer
    due_at: Integer | null
    claim: string | null
    letter: Integer | null
    exhausted: Integer
  }>(readJobs)
  return rows.map((row) => ({
    id: row.id,
    consumer: Number(row.consumer),
    // The store keeps nothing else.
    state: Number(row.state) as JobState,
    attempts: Number(row.attempts),
    dueAt: row.due_at === null ? null : BigInt(row.due_at),
    claim: row.claim,
    letter: row.letter === null ? null : BigInt(row.letter),
    exhausted: Number(row.exhausted) === 1,
  }))
}
