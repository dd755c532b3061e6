/** Jobs whose time has come: retries that are due, and claims that are over. */
import { type Instant, instant } from '../../core/clock.ts'
import { type Xid, xid } from '../../core/xid.ts'
import { type Database, type Integer, type Session, sql } from '../../db/database.ts'
import { type LetterId, letterId } from '../../letters/letter.ts'
import { JOB } from '../webhook.ts'

/**
 * Jobs from the front of webhook_jobs_later become ready; those that another server is moving are passed over. Cost: the
 * jobs that are moved. Both states are QUEUED to the outside: neither counts nor the time of the last change move.
 */
const moveDue = sql('webhooks.makeDueReady', {
  postgres: `
    WITH due AS MATERIALIZED (
      SELECT id FROM bartleby.webhook_jobs WHERE state = ${JOB.later} AND due_at <= $1
      ORDER BY due_at, id LIMIT $2 FOR UPDATE SKIP LOCKED
    )
    UPDATE bartleby.webhook_jobs SET state = ${JOB.ready}, due_at = NULL
    WHERE id = ANY(ARRAY(SELECT id FROM due)) RETURNING consumer`,
  sqlite: `
    UPDATE webhook_jobs SET state = ${JOB.ready}, due_at = NULL
    WHERE id IN (SELECT id FROM webhook_jobs INDEXED BY webhook_jobs_later WHERE state = ${JOB.later} AND due_at <= $1
                 ORDER BY due_at, id LIMIT $2)
    RETURNING consumer`,
})

/** Makes retries ready that are due; gives how many, and whose. */
export async function makeDueReady(
  db: Database,
  now: Instant,
  limit: number,
): Promise<{ readonly jobs: number; readonly consumers: ReadonlySet<number> }> {
  const rows = await db.statement('webhooks.makeDueReady', (tx) =>
    tx.rows<{ consumer: Integer }>(moveDue, now, limit),
  )
  return { jobs: rows.length, consumers: new Set(rows.map(({ consumer }) => Number(consumer))) }
}

/** The first entry of webhook_jobs_later behind a moment. */
const readNextDue = sql(
  'webhooks.nextDue',
  ({ indexedBy }) => `SELECT due_at FROM bartleby.webhook_jobs ${indexedBy('webhook_jobs_later')}
    WHERE state = ${JOB.later} AND due_at > $1 ORDER BY due_at, id LIMIT 1`,
  { bigints: true },
)

/** When the next retry after `now` is due; null when none waits. */
export async function nextDueAt(db: Database, now: Instant): Promise<Instant | null> {
  const [row] = await db.session('webhooks.nextDue', (session) =>
    session.rows<{ due_at: Integer }>(readNextDue, now),
  )
  return row === undefined ? null : instant(BigInt(row.due_at))
}

/**
 * Jobs in flight from the front of webhook_jobs_in_flight, each with one look for its consumer and its message. No locks:
 * whoever ends their claims finds out whether they still hold. Cost: the jobs that are given.
 */
const findLapsed = sql(
  'webhooks.lapsed',
  ({ indexedBy }) => `
    SELECT id, claim, attempts, letter,
      (SELECT pulls FROM bartleby.webhook_consumers AS consumer WHERE consumer.number = job.consumer) AS pulls,
      (SELECT message_id FROM bartleby.webhook_messages AS message WHERE message.id = job.message) AS message_id
    FROM bartleby.webhook_jobs AS job ${indexedBy('webhook_jobs_in_flight')}
    WHERE state = ${JOB.inFlight} AND due_at <= $1 ORDER BY due_at, id LIMIT $2`,
  { bigints: true },
)

/** A job in flight whose claim is over. */
export interface LapsedJob {
  readonly id: Xid
  readonly claim: string
  readonly attempts: number
  readonly letter: LetterId | null
  /** Whether its consumer is a pull consumer now. */
  readonly pulls: boolean
  /** The public id of its message. */
  readonly messageId: string
}

/** Jobs whose claims are over, the longest first. */
export async function readLapsed(
  session: Session,
  now: Instant,
  limit: number,
): Promise<readonly LapsedJob[]> {
  const rows = await session.rows<{
    id: string
    claim: string | null
    attempts: Integer
    letter: Integer | null
    pulls: Integer | null
    message_id: string | null
  }>(findLapsed, now, limit)
  return rows.map((row) => ({
    id: xid(row.id),
    claim: row.claim ?? '',
    attempts: Number(row.attempts),
    letter: row.letter === null ? null : letterId(row.letter),
    pulls: Number(row.pulls ?? 0) === 1,
    messageId: row.message_id ?? '',
  }))
}
