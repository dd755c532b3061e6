/** Messages as the API shows them, dispatched and scheduled. Lists never read payloads. */
import type { Instant } from '../../../core/clock.ts'
import { type Xid, xid, xidAfter } from '../../../core/xid.ts'
import { type Database, type Session, sql } from '../../../store/database.ts'
import { at, integer, orNull, type RowOf, rowShape, text } from '../../../store/row.ts'
import {
  EMPTY_PAGE,
  PAGE_SIZE,
  type Page,
  type PageRequest,
  type PageRow,
  pageOf,
  pageStatements,
  readSpan,
  type Span,
  spanOf,
} from '../registry/pages.ts'
import { isStorable } from '../registry/texts.ts'
import { type Channel, headerList, type JobStatus, MESSAGE_STATUS_CODE, statusOf } from '../webhook.ts'

export interface ListedMessage {
  readonly id: Xid
  readonly messageId: string
}

export interface JobSummary {
  readonly listenerEndpoint: string
  readonly listenerName: string
  readonly status: JobStatus
  readonly statusChangedAt: Instant
}

const ROW = rowShape({
  id: xid,
  payload: (value: Uint8Array) => value,
  contentType: text,
  headers: headerList,
  priority: integer,
  receivedAt: orNull(at),
  scheduledFor: orNull(at),
  firstJob: orNull(xid),
  jobs: integer,
  producerId: (value: string | null) => value ?? '',
  producerName: (value: string | null) => value ?? '',
})
type Row = RowOf<typeof ROW>

/** By the unique index on channel and public id, with its producer. No locks. */
const read = sql(
  'webhooks.readMessage',
  `SELECT message.id, payload, content_type, headers, priority, received_at, scheduled_for, first_job, jobs, who.producer_id,
     who.name AS producer_name
   FROM bartleby.webhook_messages AS message LEFT JOIN bartleby.webhook_producers AS who ON who.id = message.producer
   WHERE message.channel = $1 AND message_id = $2`,
  { bigints: true },
)

const JOB_ROW = rowShape({ state: integer, changedAt: at, name: text, callbackUrl: text })

const ofConsumer = (column: string): string =>
  `(SELECT ${column} FROM bartleby.webhook_consumers AS target WHERE target.number = job.consumer) AS ${column}`

/** A range of the primary key, backwards; consumers by number. No locks. */
const readJobs = sql(
  'webhooks.readJobsOfMessage',
  `SELECT state, changed_at, ${ofConsumer('name')}, ${ofConsumer('callback_url')}
   FROM bartleby.webhook_jobs AS job WHERE id BETWEEN $1 AND $2 ORDER BY id DESC`,
  { bigints: true },
)

/** Along `webhook_messages_<index>`. */
const listed = (name: string, index: string, at: string, where: string) =>
  pageStatements(`webhooks.${name}`, {
    ...{ table: 'webhook_messages', columns: 'message_id', at, of: 'channel', where },
    index: `webhook_messages_${index}`,
  })

const dispatched = listed('listMessages', 'newest', 'received_at', 'received_at IS NOT NULL')

/** Two indexes, for those that wait and the others: a few of one kind are found among many of the other. */
const waiting = listed('listWaiting', 'waiting_newest', 'created_at', 'next_try_at IS NOT NULL')
const IS_SENT = 'scheduled_for IS NOT NULL AND received_at IS NOT NULL'
const scheduledAndSent = listed('listScheduledAndSent', 'sent_newest', 'created_at', IS_SENT)

interface ListRow extends PageRow {
  readonly message_id: string
}

export class Messages {
  readonly #db: Database

  constructor(db: Database) {
    this.#db = db
  }

  /** A scheduled one is none before it is dispatched. */
  get(channel: Channel, messageId: string) {
    return this.#db.session('webhooks.readMessage', async (session) => {
      const row = await readRow(session, channel, messageId)
      if (row === null || row.receivedAt === null) return null
      const { producerName, receivedAt } = row
      return {
        ...contentOf(row, messageId),
        producerName,
        receivedAt,
        dispatchedAt: receivedAt,
        status: 'DISPATCHED' as const,
        /** Newest first. */
        jobs: await jobsOf(session, row),
      }
    })
  }

  /** No statuses: all. */
  async list(channel: Channel, statuses: readonly number[], page: PageRequest): Promise<Page<ListedMessage>> {
    const span = spanOf(page)
    // Accepting a message dispatches it: there is no other status.
    if (statuses.length > 0 && !statuses.includes(MESSAGE_STATUS_CODE.DISPATCHED)) return EMPTY_PAGE
    const rows = await this.#db.session('webhooks.listMessages', (session) =>
      readSpan<ListRow>(session, dispatched, span, channel.number),
    )
    return pageOf(rows, toListed)
  }

  /** Dispatched by now or not. */
  async scheduled(channel: Channel, messageId: string) {
    const row = await this.#db.session('webhooks.readScheduled', (session) =>
      readRow(session, channel, messageId),
    )
    if (row === null || row.scheduledFor === null) return null
    return {
      ...contentOf(row, messageId),
      priority: row.priority,
      /** The public id. */
      producedBy: row.producerId,
      dispatchSchedule: row.scheduledFor,
      dispatchedAt: row.receivedAt,
      status: row.receivedAt === null ? ('SCHEDULED' as const) : ('DISPATCHED' as const),
    }
  }

  async listScheduled(
    channel: Channel,
    status: number | null,
    page: PageRequest,
  ): Promise<Page<ListedMessage>> {
    const span = spanOf(page)
    const rows = await this.#db.session('webhooks.listScheduled', (session) =>
      readScheduled(session, channel.number, status, span),
    )
    return pageOf(rows, toListed)
  }
}

export type MessageView = NonNullable<Awaited<ReturnType<Messages['get']>>>
export type ScheduledView = NonNullable<Awaited<ReturnType<Messages['scheduled']>>>

async function readScheduled(
  session: Session,
  channel: number,
  status: number | null,
  span: Span,
): Promise<readonly ListRow[]> {
  const { SCHEDULED, DISPATCHED } = MESSAGE_STATUS_CODE
  if (status === SCHEDULED) return readSpan<ListRow>(session, waiting, span, channel)
  if (status === DISPATCHED) return readSpan<ListRow>(session, scheduledAndSent, span, channel)
  if (status !== null) return []
  // In this order: what is dispatched between the two is seen twice, and not missed.
  const [open, sent] = await Promise.all([
    readSpan<ListRow>(session, waiting, span, channel),
    readSpan<ListRow>(session, scheduledAndSent, span, channel),
  ])
  const rows = [...new Map([...open, ...sent].map((row) => [row.id, row])).values()].sort(newestFirst)
  return span.side === 'older' ? rows.slice(0, PAGE_SIZE) : rows.slice(-PAGE_SIZE)
}

function newestFirst(a: ListRow, b: ListRow): number {
  const [x, y] = [BigInt(a.page_at), BigInt(b.page_at)]
  if (x !== y) return x > y ? -1 : 1
  return a.id > b.id ? -1 : 1
}

async function readRow(session: Session, channel: Channel, messageId: string): Promise<Row | null> {
  return isStorable(messageId) ? ROW.one(session, read, channel.number, messageId) : null
}

async function jobsOf(session: Session, { firstJob, jobs }: Row): Promise<JobSummary[]> {
  if (firstJob === null || jobs === 0) return []
  const rows = await JOB_ROW.all(session, readJobs, firstJob, xidAfter(firstJob, jobs - 1))
  return rows.map(({ state, changedAt, name, callbackUrl }) => ({
    listenerEndpoint: callbackUrl,
    listenerName: name,
    status: statusOf(state),
    statusChangedAt: changedAt,
  }))
}

const contentOf = ({ id, payload, contentType, headers }: Row, messageId: string) => ({
  ...{ id, messageId, payload, contentType, headers },
})

const toListed = ({ id, message_id }: ListRow): ListedMessage => ({ id: xid(id), messageId: message_id })
