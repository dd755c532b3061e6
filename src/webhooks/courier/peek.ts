/**
 * Looking at ready jobs without taking them: which consumers have any, and which jobs go first when there is not room for all.
 */
import type { Instant } from '../../core/clock.ts'
import { type Integer, type Session, sql } from '../../db/database.ts'
import { rowsGiven } from '../../db/idioms.ts'
import { at, integer, type RowOf, rowShape, text } from '../../db/row.ts'
import { JOB } from '../webhook.ts'

/**
 * The push consumers that have ready jobs and are not paused: one look into webhook_jobs_ready for each consumer that has
 * any, behind the one before, however many jobs each has. A pull consumer costs one look. No locks.
 */
const findConsumers = sql(
  'webhooks.consumersWithReady',
  `WITH RECURSIVE found (consumer) AS (
     SELECT -1
     UNION ALL
     SELECT (SELECT job.consumer FROM bartleby.webhook_jobs AS job INDEXED BY webhook_jobs_ready
             WHERE job.state = ${JOB.ready} AND job.consumer > found.consumer
             ORDER BY job.consumer, job.priority DESC, job.created_at, job.id LIMIT 1)
     FROM found WHERE found.consumer IS NOT NULL
   )
   SELECT consumer FROM found
   WHERE (SELECT known.pulls = 0 AND (known.paused_until IS NULL OR known.paused_until <= $1)
          FROM bartleby.webhook_consumers AS known WHERE known.number = found.consumer)`,
)

/** The numbers of the push consumers that have ready jobs and are not paused. */
export async function consumersWithReady(session: Session, now: Instant): Promise<readonly number[]> {
  const rows = await session.rows<{ consumer: Integer }>(findConsumers, now)
  return rows.map(({ consumer }) => Number(consumer))
}

const READY = rowShape({ consumer: integer, priority: integer, createdAt: at, id: text })

/** The keys of the first ready jobs of each consumer, from webhook_jobs_ready. Cost: the keys that are asked for. No locks. */
const readReady = sql(
  'webhooks.peek',
  `SELECT found.* FROM unnest($1::int[], $2::int[]) AS given (consumer, room) CROSS JOIN LATERAL (
     SELECT ${READY.columns} FROM bartleby.webhook_jobs INDEXED BY webhook_jobs_ready
     WHERE state = ${JOB.ready} AND consumer = given.consumer ORDER BY priority DESC, created_at, id LIMIT given.room) AS found`,
  { bigints: true },
)

/** What decides the order of jobs. */
interface Urgency {
  readonly priority: number
  readonly createdAt: Instant
  readonly id: string
}

/** The highest priority first, then the oldest. */
export function byUrgency(a: Urgency, b: Urgency): number {
  if (a.priority !== b.priority) return b.priority - a.priority
  if (a.createdAt !== b.createdAt) return a.createdAt < b.createdAt ? -1 : 1
  return a.id < b.id ? -1 : 1
}

/** The first ready jobs of these consumers, up to so many of each. */
export async function peekReady(
  session: Session,
  rooms: ReadonlyMap<number, number>,
): Promise<readonly RowOf<typeof READY>[]> {
  const asked = [...rooms].map(([consumer, room]) => ({ consumer, room }))
  return (await rowsGiven<object>(session, readReady, asked)).map(READY.read)
}

/** How many there are of each consumer. */
export function countsOf(jobs: readonly { readonly consumer: Integer }[]): ReadonlyMap<number, number> {
  const counts = new Map<number, number>()
  for (const { consumer } of jobs) counts.set(Number(consumer), (counts.get(Number(consumer)) ?? 0) + 1)
  return counts
}
