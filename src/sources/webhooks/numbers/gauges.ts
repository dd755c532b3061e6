/** What metrics and health tell about webhooks beside counters: read from the store when somebody asks, and kept nowhere. */
import type { Clock, Instant } from '../../../core/clock.ts'
import { letterCounter } from '../../../letters/numbers/counts.ts'
import { type Database, type Integer, type Session, sql } from '../../../store/database.ts'
import { readLastFoldAt } from '../../../store/fold.ts'
import { at, type RowOf, rowShape, text } from '../../../store/row.ts'
import { openRuns } from '../../../work/run-rows.ts'
import { type BulkRun, bulkRunsOf } from '../dead/bulk-runs.ts'
import { type DeadCount, readDeadCounts } from './dead-counts.ts'

const PAUSED = rowShape({ channelId: text, consumerId: text, pausedSince: at })

/** A consumer that gets nothing for a while. */
type PausedConsumer = RowOf<typeof PAUSED>

/** A requeue or purge of all dead jobs that is under way. */
export type OpenRun = Pick<BulkRun, 'kind' | 'channelId' | 'consumerId' | 'expected' | 'done'>

export interface WebhookGauges {
  readonly dead: readonly DeadCount[]
  /** Changes of letter counts that are not folded yet. */
  readonly unfolded: number
  /** null: never. */
  readonly lastFoldAt: Instant | null
  readonly paused: readonly PausedConsumer[]
  readonly runs: readonly OpenRun[]
}

/** More of a kind than anybody looks at one by one. */
const MOST = 1_000

/** On webhook_consumers_paused, which has no others; the channel of each by the unique index of its number. */
const readPaused = sql(
  'webhooks.paused',
  `
    SELECT (SELECT channel_id FROM bartleby.webhook_channels AS home WHERE home.number = consumer.channel) AS channel_id,
      consumer_id, paused_since
    FROM bartleby.webhook_consumers AS consumer INDEXED BY webhook_consumers_paused
    WHERE paused_since IS NOT NULL ORDER BY paused_since LIMIT $1`,
  { bigints: true },
)

/** The unfolded tail, which is short because it is folded every second. SQLite has none. */
const countUnfolded = sql('webhooks.unfolded', {
  postgres: 'SELECT count(*) AS found FROM bartleby.letter_changes',
  sqlite: 'SELECT 0 AS found',
})

/** The consumers that are paused now, those first that have been for the longest time. */
export async function readPausedConsumers(session: Session): Promise<readonly PausedConsumer[]> {
  return (await session.rows<object>(readPaused, MOST)).map(PAUSED.read)
}

/** Everything, as it is at one moment. */
export function readWebhookGauges(db: Database, clock: Clock): Promise<WebhookGauges> {
  return db.snapshot('webhooks.gauges', async (session) => {
    const [dead, paused, runs, unfolded, lastFoldAt] = await Promise.all([
      readDeadCounts(session, { ends: true }),
      readPausedConsumers(session),
      openRuns(session),
      session.rows<{ found: Integer }>(countUnfolded),
      readLastFoldAt(session, letterCounter, clock.now()),
    ])
    return { dead, paused, runs: bulkRunsOf(runs), unfolded: Number(unfolded[0]?.found ?? 0), lastFoldAt }
  })
}
