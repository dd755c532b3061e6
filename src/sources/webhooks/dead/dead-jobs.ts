/** The dead jobs of a consumer, newest first, with what each failed with. */
import { instant } from '../../../core/clock.ts'
import { xid } from '../../../core/xid.ts'
import { type Database, type Integer, type Session, sql } from '../../../store/database.ts'
import type { JobView } from '../jobs/jobs.ts'
import {
  type Page,
  type PageRequest,
  type PageRow,
  pageOf,
  pageStatements,
  readSpan,
  spanOf,
} from '../registry/pages.ts'
import { type Consumer, JOB } from '../webhook.ts'

export interface DeadJob extends Omit<JobView, 'producerId'> {
  /** The beginning of what it failed with. */
  readonly lastError: string
}

const SHOWN_CHARACTERS = 200

/** One page of webhook_jobs_dead. */
const pages = pageStatements('webhooks.deadJobs', {
  table: 'webhook_jobs',
  columns: 'changed_at, attempts, exhausted, message, letter',
  index: 'webhook_jobs_dead',
  at: 'created_at',
  where: `consumer = $4 AND state = ${JOB.dead}`,
})

interface Row extends PageRow {
  readonly changed_at: Integer
  readonly attempts: Integer
  readonly exhausted: Integer
  readonly message: string
  readonly letter: Integer | null
}

/** The messages and the letters of a page, by primary key. */
const readMessages = sql(
  'webhooks.messagesOfPage',
  `SELECT id, message_id FROM bartleby.webhook_messages WHERE id = ANY($1::text[])`,
)
const readErrors = sql(
  'webhooks.errorsOfPage',
  `SELECT id, substr(error_message, 1, ${SHOWN_CHARACTERS}) AS error FROM bartleby.letters
     WHERE id = ANY($1::bigint[])`,
  { bigints: true },
)

export class DeadJobs {
  readonly #db: Database

  constructor(db: Database) {
    this.#db = db
  }

  /** A page of a consumer's dead jobs. */
  list(consumer: Consumer, page: PageRequest): Promise<Page<DeadJob>> {
    const span = spanOf(page)
    return this.#db.session('webhooks.deadJobs', async (session) => {
      const rows = await readSpan<Row>(session, pages, span, consumer.number)
      const [messages, errors] = await Promise.all([messagesOf(session, rows), errorsOf(session, rows)])
      return pageOf(rows, (row) => ({
        id: xid(row.id),
        status: 'DEAD',
        statusChangedAt: instant(BigInt(row.changed_at)),
        listenerEndpoint: consumer.callbackUrl,
        listenerName: consumer.name,
        messageId: messages.get(row.message) ?? '',
        attempts: Number(row.attempts),
        exhausted: Number(row.exhausted) === 1,
        lastError: errors.get(String(row.letter)) ?? '',
      }))
    })
  }
}

async function messagesOf(session: Session, jobs: readonly Row[]): Promise<ReadonlyMap<string, string>> {
  const ids = jobs.map(({ message }) => message)
  const rows = await session.rows<{ id: string; message_id: string }>(readMessages, ids)
  return new Map(rows.map(({ id, message_id }) => [id, message_id]))
}

async function errorsOf(session: Session, jobs: readonly Row[]): Promise<ReadonlyMap<string, string>> {
  const ids = jobs.flatMap(({ letter }) => (letter === null ? [] : Number(letter)))
  const rows = await session.rows<{ id: Integer; error: string }>(readErrors, ids)
  return new Map(rows.map(({ id, error }) => [String(id), error]))
}
