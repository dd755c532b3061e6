/** Jobs as they are read: one by id, the first that wait for a consumer, and a page of its dead ones. */
import { type Xid, xid } from '../../../core/xid.ts'
import { letterId } from '../../../letters/letter.ts'
import { type Integer, type Session, sql } from '../../../store/database.ts'
import { at, flag, integer, orNull, type RowOf, rowShape, text } from '../../../store/row.ts'
import { type PageRow, pageOf, pageStatements, readSpan, type Span } from '../registry/pages.ts'
import { type Consumer, headerList, JOB, type JobState, queueOfConsumer } from '../webhook.ts'

const OF_JOB = {
  id: xid,
  consumer: integer,
  // The store keeps nothing else.
  state: (value: Integer) => Number(value) as JobState,
  attempts: integer,
  exhausted: flag,
  claim: orNull(text),
  letter: orNull(letterId),
  changedAt: at,
}
const RECORD = rowShape(OF_JOB)
export type JobRecord = RowOf<typeof RECORD>

/** By primary key. */
const readOne = sql('webhooks.readJob', `SELECT ${RECORD.columns} FROM bartleby.webhook_jobs WHERE id = $1`, {
  bigints: true,
})

export const readJob = (session: Session, id: Xid) => RECORD.one(session, readOne, id)

/** With message and producer, each by primary key. */
const readDetail = sql(
  'webhooks.readJobDetail',
  `SELECT ${RECORD.columns.replaceAll(/\w+/g, 'job.$&')}, message.message_id, who.producer_id FROM bartleby.webhook_jobs AS job
   LEFT JOIN bartleby.webhook_messages AS message ON message.id = job.message
   LEFT JOIN bartleby.webhook_producers AS who ON who.id = message.producer
   WHERE job.id = $1`,
  { bigints: true },
)

const orEmpty = (value: string | null): string => value ?? ''

/** With the public ids around it. */
const DETAIL = rowShape({ ...OF_JOB, messageId: orEmpty, producerId: orEmpty })

export const readJobDetail = (session: Session, id: Xid) => DETAIL.one(session, readDetail, id)

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

/** With what it delivers. */
const QUEUED_ROW = rowShape({
  id: xid,
  priority: integer,
  extraSeconds: integer,
  messageId: text,
  contentType: text,
  headers: headerList,
  payload: (value: Uint8Array) => value,
})
export type QueuedJob = RowOf<typeof QUEUED_ROW>

/** Due or not: the highest priority first, then the oldest. Fewer, where they are large. */
export const readQueuedJobs = (session: Session, consumer: number, limit: number) =>
  QUEUED_ROW.all(session, readQueued, consumer, limit)

/** Each by the unique index of its number. */
const readNames = sql(
  'webhooks.namesOfConsumer',
  `SELECT consumer_id,
     (SELECT channel_id FROM bartleby.webhook_channels AS channel WHERE channel.number = consumer.channel) AS channel_id
   FROM bartleby.webhook_consumers AS consumer WHERE consumer.number = $1`,
)

const NAMES = rowShape({ channelId: orEmpty, consumerId: text })
const NO_NAMES: RowOf<typeof NAMES> = { channelId: '', consumerId: '' }

export const readConsumerNames = async (session: Session, consumer: number) =>
  (await NAMES.one(session, readNames, consumer)) ?? NO_NAMES

export async function queueOf(session: Session, consumer: number): Promise<string> {
  const { channelId, consumerId } = await readConsumerNames(session, consumer)
  return queueOfConsumer(channelId, consumerId)
}

/** Of its error. */
const SHOWN_CHARACTERS = 200

/** One page of webhook_jobs_dead; message and letter of each by primary key. */
const deadPages = pageStatements('webhooks.deadJobs', {
  table: 'webhook_jobs',
  columns: `changed_at, attempts, exhausted,
    (SELECT message_id FROM bartleby.webhook_messages AS known WHERE known.id = webhook_jobs.message) AS message_id,
    (SELECT substr(error_message, 1, ${SHOWN_CHARACTERS}) FROM bartleby.letters AS known WHERE known.id = webhook_jobs.letter) AS last_error`,
  index: 'webhook_jobs_dead',
  at: 'created_at',
  where: `consumer = $4 AND state = ${JOB.dead}`,
})

const DEAD_ROW = rowShape({
  id: xid,
  changedAt: at,
  attempts: integer,
  exhausted: flag,
  messageId: orEmpty,
  lastError: orEmpty,
})

export async function readDeadJobs(
  session: Session,
  { number, callbackUrl: listenerEndpoint, name: listenerName }: Consumer,
  span: Span,
) {
  return pageOf(await readSpan<PageRow>(session, deadPages, span, number), (row) => {
    const { changedAt: statusChangedAt, ...job } = DEAD_ROW.read(row)
    return { ...job, status: 'DEAD' as const, statusChangedAt, listenerEndpoint, listenerName }
  })
}
export type DeadJob = Awaited<ReturnType<typeof readDeadJobs>>['items'][number]
