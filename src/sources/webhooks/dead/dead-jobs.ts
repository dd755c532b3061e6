/** The dead jobs of a consumer, newest first, with their errors. */
import { xid } from '../../../core/xid.ts'
import type { Session } from '../../../store/database.ts'
import { at, flag, integer, rowShape } from '../../../store/row.ts'
import type { JobView } from '../jobs/jobs.ts'
import { type Page, type PageRow, pageOf, pageStatements, readSpan, type Span } from '../registry/pages.ts'
import { type Consumer, JOB } from '../webhook.ts'

export interface DeadJob extends Omit<JobView, 'producerId'> {
  /** The beginning of its error. */
  readonly lastError: string
}

const SHOWN_CHARACTERS = 200

/** One page of webhook_jobs_dead; message and letter of each by primary key. */
const pages = pageStatements('webhooks.deadJobs', {
  table: 'webhook_jobs',
  columns: `changed_at, attempts, exhausted,
    (SELECT message_id FROM bartleby.webhook_messages AS known WHERE known.id = webhook_jobs.message) AS message_id,
    (SELECT substr(error_message, 1, ${SHOWN_CHARACTERS}) FROM bartleby.letters AS known WHERE known.id = webhook_jobs.letter) AS last_error`,
  index: 'webhook_jobs_dead',
  at: 'created_at',
  where: `consumer = $4 AND state = ${JOB.dead}`,
})

const orEmpty = (value: string | null): string => value ?? ''
const ROW = rowShape({
  id: xid,
  changedAt: at,
  attempts: integer,
  exhausted: flag,
  messageId: orEmpty,
  lastError: orEmpty,
})

export async function readDeadJobs(
  session: Session,
  { number, callbackUrl, name }: Consumer,
  span: Span,
): Promise<Page<DeadJob>> {
  return pageOf(await readSpan<PageRow>(session, pages, span, number), (row) => {
    const { changedAt: statusChangedAt, ...job } = ROW.read(row)
    return { ...job, status: 'DEAD', statusChangedAt, listenerEndpoint: callbackUrl, listenerName: name }
  })
}
