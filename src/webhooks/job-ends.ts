/** Since when jobs are in their states: the oldest and the newest change of each state of a consumer's jobs. */
import { type Instant, instant } from '../core/clock.ts'
import { type Integer, type Session, sql } from '../db/database.ts'
import type { JobState } from './webhook.ts'

export interface JobEnds {
  readonly oldestAt: Instant
  readonly newestAt: Instant
}

/**
 * Two looks into webhook_jobs_by_state for each pair of a consumer and a state, whatever the number of jobs. No locks.
 */
const readEnds = sql(
  'webhooks.jobEnds',
  {
    postgres: `
      SELECT asked.consumer, asked.state, oldest.changed_at AS oldest_at, newest.changed_at AS newest_at
      FROM (SELECT (value ->> 0)::int AS consumer, (value ->> 1)::int AS state FROM json_array_elements($1::json)) AS asked
      CROSS JOIN LATERAL (SELECT changed_at FROM bartleby.webhook_jobs
        WHERE consumer = asked.consumer AND state = asked.state ORDER BY changed_at LIMIT 1) AS oldest
      CROSS JOIN LATERAL (SELECT changed_at FROM bartleby.webhook_jobs
        WHERE consumer = asked.consumer AND state = asked.state ORDER BY changed_at DESC LIMIT 1) AS newest`,
    sqlite: `
      SELECT * FROM (
        SELECT value ->> 0 AS consumer, value ->> 1 AS state,
          (SELECT min(changed_at) FROM webhook_jobs INDEXED BY webhook_jobs_by_state
             WHERE consumer = value ->> 0 AND state = value ->> 1) AS oldest_at,
          (SELECT max(changed_at) FROM webhook_jobs INDEXED BY webhook_jobs_by_state
             WHERE consumer = value ->> 0 AND state = value ->> 1) AS newest_at
        FROM json_each($1)
      ) WHERE oldest_at IS NOT NULL`,
  },
  { bigints: true },
)

interface Row {
  readonly consumer: Integer
  readonly state: Integer
  readonly oldest_at: Integer
  readonly newest_at: Integer
}

/** The ends of these, by `<consumer> <state>`; nothing where there is no job. */
export async function readJobEnds(
  session: Session,
  asked: readonly { readonly consumer: number; readonly state: JobState }[],
): Promise<ReadonlyMap<string, JobEnds>> {
  if (asked.length === 0) return new Map()
  const pairs = JSON.stringify(asked.map(({ consumer, state }) => [consumer, state]))
  const rows = await session.rows<Row>(readEnds, pairs)
  return new Map(
    rows.map((row) => [
      `${row.consumer} ${row.state}`,
      { oldestAt: instant(BigInt(row.oldest_at)), newestAt: instant(BigInt(row.newest_at)) },
    ]),
  )
}
