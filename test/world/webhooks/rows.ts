/** The rows of webhooks, as tests write and read them. */
import type { Xid } from '../../../src/core/xid.ts'
import { JOB, type JobState } from '../../../src/sources/webhooks/webhook.ts'
import { type Database, type Dialect, type Integer, type Session, sql } from '../../../src/store/database.ts'

export interface MessageRow {
  readonly id: string
  readonly message_id: string
  readonly producer: string
  readonly created_at: Integer
  readonly received_at: Integer | null
  readonly scheduled_for: Integer | null
  readonly next_try_at: Integer | null
  readonly priority: Integer
  readonly first_job: string | null
  readonly jobs: Integer
  readonly tries: Integer
  readonly content_type: string
  readonly headers: string
  readonly payload: Uint8Array
}

export interface JobRow {
  readonly id: Xid
  readonly message: string
  readonly consumer: number
  readonly state: JobState
  readonly attempts: number
  readonly priority: number
  readonly createdAt: bigint
  readonly changedAt: bigint
  readonly dueAt: bigint | null
  readonly claim: string | null
  readonly letter: bigint | null
  readonly exhausted: boolean
  readonly extraSeconds: number
  /** As users name them; empty where they are gone. */
  readonly channelId: string
  readonly consumerId: string
  readonly messageId: string
}

export const insertMessage = sql(
  'test.webhooks.insertMessage',
  `INSERT INTO bartleby.webhook_messages (id, channel, message_id, producer, created_at, received_at, scheduled_for, next_try_at,
     priority, first_job, jobs, content_type, headers, payload)
   VALUES ($1, $2, $3, $1, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)`,
)
export const insertJob = sql(
  'test.webhooks.insertJob',
  `INSERT INTO bartleby.webhook_jobs (created_at, changed_at, priority, consumer, state, id, message, attempts, due_at, claim)
   VALUES ($1, $1, $2, $3, $4, $5, $6, $7, $8, $9)`,
)
export const readMessages = sql(
  'test.webhooks.webhookMessages',
  'SELECT * FROM bartleby.webhook_messages WHERE channel = $1 ORDER BY id',
  { bigints: true },
)
export const removeMessage = sql(
  'test.webhooks.removeMessage',
  'DELETE FROM bartleby.webhook_messages WHERE channel = $1 AND message_id = $2',
)
export const moveJob = sql(
  'test.webhooks.moveJob',
  `UPDATE bartleby.webhook_jobs SET state = $2, changed_at = $3, claim = $4, due_at = $5, attempts = $6 WHERE id = $1`,
)
export const settleJobs = sql(
  'test.webhooks.settleJobs',
  'UPDATE bartleby.webhook_jobs SET state = $2 WHERE consumer = $1 AND state <> $2',
)
export const consumersOf = sql(
  'test.webhooks.consumersOf',
  'SELECT number FROM bartleby.webhook_consumers WHERE channel = $1',
)
export const removeJob = sql('test.webhooks.removeJob', 'DELETE FROM bartleby.webhook_jobs WHERE id = $1')
export const countDead = sql(
  'test.webhooks.countDead',
  `SELECT count(*) AS found FROM bartleby.webhook_jobs WHERE consumer = $1 AND state = ${JOB.dead}`,
)
export const setLimits = sql(
  'test.webhooks.limitsOfConsumer',
  `UPDATE bartleby.webhook_consumers SET secret = $2, previous_secret = $3, most_at_once = $4, most_per_second = $5
   WHERE number = $1`,
)
export const changeConsumer = sql(
  'test.webhooks.changeConsumer',
  'UPDATE bartleby.webhook_consumers SET pulls = $2, callback_url = $3 WHERE number = $1',
)
export const readPause = sql(
  'test.webhooks.pauseOfConsumer',
  `SELECT paused_since, paused_until, pause_seconds, pause_reason, updated_at FROM bartleby.webhook_consumers WHERE number = $1`,
  { bigints: true },
)
export const readAttempts = sql(
  'test.webhooks.attemptsOfLetters',
  'SELECT letter_id, error_class, error_message FROM bartleby.letter_attempts ORDER BY letter_id, number',
)
export const readLetters = sql(
  'test.webhooks.lettersOfJobs',
  'SELECT source_id, status, reason, error_class, error_message, dequeue_count, confirmed_at FROM bartleby.letters ORDER BY id',
)
export const readRemovals = sql(
  'test.webhooks.removals',
  `SELECT output FROM bartleby.history JOIN bartleby.history_series ON history_series.id = series
   WHERE correlation_id = $1 AND operation = 'remove' AND engine = 'webhooks' ORDER BY created_at, history.id`,
)

/** Everything but the channels. */
export const ERASE = [
  'webhook_jobs',
  'webhook_messages',
  'webhook_consumers',
  'webhook_totals',
  'letters',
  'letter_attempts',
].map((table) => sql(`test.erase.${table}`, `DELETE FROM bartleby.${table}`))

/** Inserting a job of this message fails from then on, and of no other. */
export const refusal = (message: string): Readonly<Record<Dialect, string>> => ({
  postgres: `
    CREATE FUNCTION refuse_job() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'poison'; END $$;
    CREATE TRIGGER refuse_job BEFORE INSERT ON bartleby.webhook_jobs FOR EACH ROW WHEN (NEW.message = '${message}')
      EXECUTE FUNCTION refuse_job()`,
  sqlite: `CREATE TRIGGER refuse_job BEFORE INSERT ON webhook_jobs WHEN NEW.message = '${message}'
           BEGIN SELECT RAISE(ABORT, 'poison'); END`,
})
export const ACCEPTANCE: Readonly<Record<Dialect, string>> = {
  postgres: 'DROP FUNCTION refuse_job() CASCADE',
  sqlite: 'DROP TRIGGER refuse_job',
}

const JOBS = `SELECT job.*, channel_id, consumer_id, message_id FROM bartleby.webhook_jobs AS job
  LEFT JOIN bartleby.webhook_consumers AS consumer ON consumer.number = job.consumer
  LEFT JOIN bartleby.webhook_channels AS channel ON channel.number = consumer.channel
  LEFT JOIN bartleby.webhook_messages AS message ON message.id = job.message`
const readJobs = sql('test.webhooks.jobs', `${JOBS} ORDER BY job.id`, { bigints: true })
const readJobsOf = sql('test.webhooks.jobsOf', `${JOBS} WHERE job.consumer = $1 ORDER BY job.id`, {
  bigints: true,
})
const readJob = sql('test.webhooks.job', `${JOBS} WHERE job.id = $1`, { bigints: true })

/** Jobs in the order of their ids: all, those of a consumer, or one. */
export async function jobRows(
  session: Session,
  of: { readonly consumer?: number; readonly id?: string } = {},
): Promise<readonly JobRow[]> {
  const rows = await (of.id !== undefined
    ? session.rows<StoredJob>(readJob, of.id)
    : of.consumer !== undefined
      ? session.rows<StoredJob>(readJobsOf, of.consumer)
      : session.rows<StoredJob>(readJobs))
  return rows.map((row) => ({
    id: row.id,
    message: row.message,
    consumer: Number(row.consumer),
    // The store keeps nothing else.
    state: Number(row.state) as JobState,
    attempts: Number(row.attempts),
    priority: Number(row.priority),
    createdAt: BigInt(row.created_at),
    changedAt: BigInt(row.changed_at),
    dueAt: row.due_at === null ? null : BigInt(row.due_at),
    claim: row.claim,
    letter: row.letter === null ? null : BigInt(row.letter),
    exhausted: Number(row.exhausted) === 1,
    extraSeconds: Number(row.extra_seconds),
    channelId: row.channel_id ?? '',
    consumerId: row.consumer_id ?? '',
    messageId: row.message_id ?? '',
  }))
}

type StoredJob = { readonly id: Xid; readonly message: string } & {
  readonly [Column in 'claim' | 'channel_id' | 'consumer_id' | 'message_id']: string | null
} & {
  readonly [Column in
    | 'consumer'
    | 'state'
    | 'attempts'
    | 'priority'
    | 'created_at'
    | 'changed_at'
    | 'exhausted'
    | 'extra_seconds']: Integer
} & { readonly [Column in 'due_at' | 'letter']: Integer | null }

/** All jobs of a store, read through a connection of whoever asks. */
export const jobsIn = (db: Database): Promise<readonly JobRow[]> => db.session('test', jobRows)
