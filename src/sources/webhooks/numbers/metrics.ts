/**
 * Metrics of webhooks. Gauges are read from the store at the scrape, so that all servers say the same; while it cannot be read they have no
 * samples. Attempts are those of this server since it started.
 */
import { family, histogramSamples, type Labels, type Sample } from '../../../api/exposition.ts'
import type { Clock, Instant } from '../../../core/clock.ts'
import { letterCounter } from '../../../letters/numbers/counts.ts'
import { type Database, type Integer, type Session, sql } from '../../../store/database.ts'
import { readLastFoldAt } from '../../../store/fold.ts'
import { at, type RowOf, rowShape, text } from '../../../store/row.ts'
import { openRuns } from '../../../work/run-rows.ts'
import type { Attempted } from '../courier/courier.ts'
import { type BulkRun, bulkRunsOf } from '../jobs/bulk-runs.ts'
import { type DeadCount, readDeadCounts } from './dead-counts.ts'

const PAUSED = rowShape({ channelId: text, consumerId: text, pausedSince: at })

type PausedConsumer = RowOf<typeof PAUSED>

type OpenRun = Pick<BulkRun, 'kind' | 'channelId' | 'consumerId' | 'expected' | 'done'>

export interface WebhookGauges {
  readonly dead: readonly DeadCount[]
  readonly unfolded: number
  /** Null: never. */
  readonly lastFoldAt: Instant | null
  readonly paused: readonly PausedConsumer[]
  readonly runs: readonly OpenRun[]
}

/** More of a kind than anybody looks at one by one. */
const MOST = 1_000

/** On webhook_consumers_paused; channels by number. */
const readPaused = sql(
  'webhooks.paused',
  `
    SELECT (SELECT channel_id FROM bartleby.webhook_channels AS home WHERE home.number = consumer.channel) AS channel_id,
      consumer_id, paused_since
    FROM bartleby.webhook_consumers AS consumer INDEXED BY webhook_consumers_paused
    WHERE paused_since IS NOT NULL ORDER BY paused_since LIMIT $1`,
  { bigints: true },
)

/** The tail is short: it is folded every second. SQLite has none. */
const countUnfolded = sql('webhooks.unfolded', {
  postgres: 'SELECT count(*) AS found FROM bartleby.letter_changes',
  sqlite: 'SELECT 0 AS found',
})

/** The longest paused first. */
export const readPausedConsumers = (session: Session) => PAUSED.all(session, readPaused, MOST)

/** At one moment. */
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

const BOUNDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60]

/** With series of their own. */
const MOST_CONSUMERS = 1_000
const MOST_DEAD = 10_000
/** All consumers beyond that. */
const OTHERS = { channel: '~others', consumer: '~others' }

interface WebhookMetricsOptions {
  readonly clock: Clock
  readonly gauges: () => Promise<WebhookGauges>
  readonly held: () => number
}

interface Counted {
  readonly labels: Labels
  readonly outcomes: Map<Attempted['outcome'], number>
}

export class WebhookMetrics {
  readonly #options: WebhookMetricsOptions
  readonly #attempts = new Map<string, Counted>()
  readonly #buckets = [...BOUNDS, Number.POSITIVE_INFINITY].map((bound) => ({ bound, count: 0 }))
  #seconds = 0

  constructor(options: WebhookMetricsOptions) {
    this.#options = options
  }

  observe({ channelId, consumerId, outcome, seconds }: Attempted): void {
    const { outcomes } = this.#countedOf(channelId, consumerId)
    outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1)
    for (const bucket of this.#buckets) if (seconds <= bucket.bound) bucket.count += 1
    this.#seconds += seconds
  }

  async text(): Promise<string> {
    const gauges = await this.#options.gauges().catch(() => null)
    const lines = [
      ...this.#gauges(gauges),
      ...family(
        'queued_job_count',
        'gauge',
        'The current number of jobs in the queue',
        // Known without the store.
        [{ value: this.#options.held() }],
      ),
      ...family(
        'bartleby_delivery_attempts_total',
        'counter',
        'Attempts of this server to deliver a webhook, since it started.',
        this.#attemptSamples(),
      ),
      ...family(
        'bartleby_delivery_duration_seconds',
        'histogram',
        'Seconds that an attempt to deliver a webhook took, whatever came of it.',
        histogramSamples(
          BOUNDS,
          this.#buckets.map(({ count }) => count),
          this.#seconds,
        ),
      ),
    ]
    return `${lines.join('\n')}\n`
  }

  #countedOf(channelId: string, consumerId: string): Counted {
    const key = `${channelId.length} ${channelId}${consumerId}`
    const known = this.#attempts.get(key)
    if (known !== undefined) return known
    const isMore = this.#attempts.size >= MOST_CONSUMERS
    const counted = isMore ? this.#attempts.get('') : undefined
    if (counted !== undefined) return counted
    const labels = isMore ? OTHERS : { channel: channelId, consumer: consumerId }
    const fresh = { labels, outcomes: new Map() }
    this.#attempts.set(isMore ? '' : key, fresh)
    return fresh
  }

  *#attemptSamples(): Iterable<Sample> {
    for (const { labels, outcomes } of this.#attempts.values())
      for (const [outcome, value] of outcomes) yield { labels: { ...labels, outcome }, value }
  }

  #gauges(gauges: WebhookGauges | null): string[] {
    const gauge = (name: string, help: string, samples: (known: WebhookGauges) => Iterable<Sample>) =>
      family(name, 'gauge', help, gauges === null ? [] : samples(gauges))
    const now = this.#options.clock.now()
    return [
      ...gauge('dead_job_count', 'Number of dead jobs per consumer', ({ dead }) => deadSamples(dead)),
      ...gauge(
        'bartleby_oldest_dead_job_age_seconds',
        'Seconds since the job died that is dead for the longest time.',
        ({ dead }) =>
          dead
            .slice(0, MOST_DEAD)
            .flatMap(({ oldestAt, ...of }) =>
              oldestAt === null
                ? []
                : { labels: labelsOf(of), value: Math.max(0, Number(now - oldestAt) / 1e6) },
            ),
      ),
      ...gauge(
        'bartleby_dlq_unfolded_rows',
        'Changes of letter counts that are not added to the totals yet. They are counted all the same.',
        ({ unfolded }) => [{ value: unfolded }],
      ),
      ...gauge(
        'bartleby_dlq_last_fold_timestamp_seconds',
        'When such changes were added to the totals last, by whichever server.',
        ({ lastFoldAt }) => (lastFoldAt === null ? [] : [{ value: Number(lastFoldAt) / 1e6 }]),
      ),
      ...gauge(
        'bartleby_webhook_consumer_paused',
        '1 while deliveries to a consumer are paused, because all of them failed.',
        ({ paused }) => paused.map((of) => ({ labels: labelsOf(of), value: 1 })),
      ),
      ...gauge(
        'bartleby_webhook_bulk_expected_jobs',
        'Dead jobs that a requeue or purge of all of them, which is under way, began with.',
        ({ runs }) => runSamples(runs, ({ expected }) => expected),
      ),
      ...gauge(
        'bartleby_webhook_bulk_done_jobs',
        'Dead jobs that it has requeued or purged so far.',
        ({ runs }) => runSamples(runs, ({ done }) => done),
      ),
    ]
  }
}

const labelsOf = ({
  channelId: channel,
  consumerId: consumer,
}: Pick<OpenRun, 'channelId' | 'consumerId'>) => ({
  ...{ channel, consumer },
})

function* deadSamples(dead: readonly DeadCount[]): Iterable<Sample> {
  for (const count of dead.slice(0, MOST_DEAD)) yield { labels: labelsOf(count), value: count.deadCount }
  const others = dead.slice(MOST_DEAD)
  if (others.length > 0)
    yield { labels: OTHERS, value: others.reduce((sum, { deadCount }) => sum + deadCount, 0) }
}

/** A consumer may have several runs of a kind at once; a series must not be there twice. */
function runSamples(runs: readonly OpenRun[], amountOf: (run: OpenRun) => number): readonly Sample[] {
  const samples = new Map<string, { labels: Labels; value: number }>()
  for (const run of runs) {
    const labels = { kind: run.kind, ...labelsOf(run) }
    const key = JSON.stringify(Object.values(labels))
    samples.set(key, { labels, value: (samples.get(key)?.value ?? 0) + amountOf(run) })
  }
  return [...samples.values()]
}
