/** Jobs as they are read: one by id, and the first that wait for a consumer. */
import { type Xid, xid } from '../../../core/xid.ts'
import { letterId } from '../../../letters/letter.ts'
import { type Integer, type Session, sql } from '../../../store/database.ts'
import { at, flag, integer, orNull, type RowOf, rowShape, text } from '../../../store/row.ts'
import { headerList, JOB, type JobState, type MessageContent, queueOfConsumer } from '../webhook.ts'

const RECORD = rowShape({
  id: xid,
  consumer: integer,
  // The store keeps nothing else.
  state: (value: Integer) => Number(value) as JobState,
  attempts: integer,
  exhausted: flag,
  claim: orNull(text),
  letter: orNull(letterId),
  changedAt: at,
})

export type JobRecord = RowOf<typeof RECORD>

/** By primary key. */
const readOne = sql('webhooks.readJob', `SELECT ${RECORD.columns} FROM bartleby.webhook_jobs WHERE id = $1`, {
  bigints: true,
})

export async function readJob(session: Session, id: Xid): Promise<JobRecord | null> {
  const [row] = await session.rows<object>(readOne, id)
  return row === undefined ? null : RECORD.read(row)
}

/** With message and producer, each by primary key. */
const readDetail = sql(
  'webhooks.readJobDetail',
  `SELECT ${RECORD.columns.replaceAll(/\w+/g, 'job.$&')}, message.message_id, who.producer_id FROM bartleby.webhook_jobs AS job
   LEFT JOIN bartleby.webhook_messages AS message ON message.id = job.message
   LEFT JOIN bartleby.webhook_producers AS who ON who.id = message.producer
   WHERE job.id = $1`,
  { bigints: true },
)

/** With the public ids around it. */
export interface JobDetail extends JobRecord {
  readonly messageId: string
  readonly producerId: string
}

export async function readJobDetail(session: Session, id: Xid): Promise<JobDetail | null> {
  const [row] = await session.rows<{ message_id: string | null; producer_id: string | null }>(readDetail, id)
  if (row === undefined) return null
  return { ...RECORD.read(row), messageId: row.message_id ?? '', producerId: row.producer_id ?? '' }
}

/** With what it delivers. */
export interface QueuedJob {
  readonly id: Xid
  readonly priority: number
  readonly incrementalTimeout: number
  readonly message: Omit<MessageContent, 'priority'> & { readonly messageId: string }
}

const WAITING = 'id, priority, created_at, extra_seconds, message'
const IN_TURN = 'ORDER BY priority DESC, created_at, id'

/** On SQLite the planner may prefer another index. */
const firstOf = (state: JobState, index: string) =>
  `SELECT * FROM (SELECT ${WAITING} FROM bartleby.webhook_jobs INDEXED BY ${index}
     WHERE consumer = $1 AND state = ${state} ${IN_TURN} LIMIT (SELECT $2::int)) AS first`
const EITHER = `${firstOf(JOB.ready, 'webhook_jobs_ready')} UNION ALL ${firstOf(JOB.later, 'webhook_jobs_later_of')}`

const QUEUED = 'id, priority, created_at, extra_seconds, message_id, content_type, headers'
const BEFORE = `sum(size) OVER (${IN_TURN} ROWS UNBOUNDED PRECEDING) - size AS before`

/** Payloads of one list; a hundred of the largest would be more than memory has. */
const MOST_BYTES = 8_000_000

/**
 * At most $2 of each index, of these the first $2; messages by primary key. Ends early where payloads are large, behind one job at least;
 * the rest is not read: for the sum SQLite would keep all payloads. No locks.
 */
const readQueued = sql(
  'webhooks.queuedJobs',
  `SELECT ${QUEUED}, (SELECT payload FROM bartleby.webhook_messages AS whole WHERE whole.id = sized.message) AS payload FROM (
     SELECT *, ${BEFORE} FROM (
       SELECT waiting.id, waiting.priority, waiting.created_at, extra_seconds, message, message_id, content_type, headers,
         octet_length(payload) AS size
       FROM (SELECT * FROM (${EITHER}) AS either ${IN_TURN} LIMIT $2) AS waiting
       JOIN bartleby.webhook_messages AS content ON content.id = waiting.message) AS waiting
   ) AS sized WHERE before < ${MOST_BYTES} ${IN_TURN}`,
  { bigints: true },
)

const QUEUED_ROW = rowShape({
  id: xid,
  priority: integer,
  extraSeconds: integer,
  messageId: text,
  contentType: text,
  headers: headerList,
  payload: (value: Uint8Array) => value,
})

/** Due or not: the highest priority first, then the oldest. Fewer, where they are large. */
export async function readQueuedJobs(
  session: Session,
  consumer: number,
  limit: number,
): Promise<readonly QueuedJob[]> {
  const rows = await session.rows<object>(readQueued, consumer, limit)
  return rows.map((row) => {
    const { id, priority, extraSeconds, ...message } = QUEUED_ROW.read(row)
    return { id, priority, incrementalTimeout: extraSeconds, message }
  })
}

/** Each by the unique index of its number. */
const readNames = sql(
  'webhooks.namesOfConsumer',
  `SELECT consumer_id, pulls,
     (SELECT channel_id FROM bartleby.webhook_channels AS channel WHERE channel.number = consumer.channel) AS channel_id
   FROM bartleby.webhook_consumers AS consumer WHERE consumer.number = $1`,
)

export async function readConsumerNames(
  session: Session,
  consumer: number,
): Promise<{ readonly channelId: string; readonly consumerId: string; readonly pulls: boolean } | null> {
  const [row] = await session.rows<{ consumer_id: string; pulls: Integer; channel_id: string | null }>(
    readNames,
    consumer,
  )
  if (row === undefined) return null
  return { channelId: row.channel_id ?? '', consumerId: row.consumer_id, pulls: Number(row.pulls) === 1 }
}

export async function queueOf(session: Session, consumer: number): Promise<string> {
  const names = await readConsumerNames(session, consumer)
  return queueOfConsumer(names?.channelId ?? '', names?.consumerId ?? '')
}
