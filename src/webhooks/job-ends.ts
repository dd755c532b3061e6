/** Since when jobs are in their states: the oldest and the newest change of each state of a consumer's jobs. */
import { type Instant, instant } from '../core/clock.ts'
import { type Integer, type Session, sql } from '../db/database.ts'
import type { JobState } from './webhook.ts'

export interface JobEnds {
  readonly oldestAt: Instant
  readonly newestAt: Instant
}

/** An end of the changes of a state, on webhook_jobs_by_state. */
const endOf = (which: 'min' | 'max'): string =>
  `(SELECT ${which}(changed_at) FROM bartleby.webhook_jobs AS job INDEXED BY webhook_jobs_by_state
    WHERE job.consumer = pair.consumer AND job.state = pair.state)`

/** Two looks for each pair of a consumer and a state, whatever the number of jobs. No locks. */
const readEnds = sql(
  'webhooks.jobEnds',
  `SELECT consumer, state, ${endOf('min')} AS oldest_at, ${endOf('max')} AS newest_at
   FROM (SELECT CAST(value ->> 0 AS int) AS consumer, CAST(value ->> 1 AS int) AS state
     FROM json_array_elements($1::json) AS asked (value)) AS pair`,
  { bigints: true },
)

interface Row {
  readonly consumer: Integer
  readonly state: Integer
  readonly oldest_at: Integer | null
  readonly newest_at: Integer | null
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
    rows.flatMap(({ consumer, state, oldest_at, newest_at }) => {
      if (oldest_at === null || newest_at === null) return []
      const ends = { oldestAt: instant(BigInt(oldest_at)), newestAt: instant(BigInt(newest_at)) }
      return [[`${consumer} ${state}`, ends] as const]
    }),
  )
}
