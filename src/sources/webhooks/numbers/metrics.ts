/**
 * What Prometheus is told about webhooks. Gauges are what the store says at the scrape, so that every server says the same and a
 * new one is right at once; while the store cannot be read they have no samples, because none says more than an old one.
 * Attempts are those of this server since it started.
 */

import { family, histogramSamples, type Labels, type Sample } from '../../../api/exposition.ts'
import type { Clock } from '../../../core/clock.ts'
import type { Attempted } from '../courier/attempts.ts'
import type { DeadCount } from './dead-counts.ts'
import type { OpenRun, WebhookGauges } from './gauges.ts'

const BOUNDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60]

/** Consumers with a series of their own. */
const MOST_CONSUMERS = 1_000
const MOST_DEAD = 10_000
/** The labels of all consumers beyond that. */
const OTHERS = { channel: '~others', consumer: '~others' }

export interface WebhookMetricsOptions {
  readonly clock: Clock
  readonly gauges: () => Promise<WebhookGauges>
  /** Push jobs that this server has claimed and not settled. */
  readonly held: () => number
}

/** What one consumer's attempts came to. */
interface Counted {
  readonly labels: Labels
  readonly outcomes: Map<Attempted['outcome'], number>
}

export class WebhookMetrics {
  readonly #options: WebhookMetricsOptions
  readonly #attempts = new Map<string, Counted>()
  /** Attempts up to each bound, and all of them. */
  readonly #buckets = [...BOUNDS, Number.POSITIVE_INFINITY].map((bound) => ({ bound, count: 0 }))
  #seconds = 0

  constructor(options: WebhookMetricsOptions) {
    this.#options = options
  }

  /** An attempt is over. */
  observe({ channelId, consumerId, outcome, seconds }: Attempted): void {
    const { outcomes } = this.#countedOf(channelId, consumerId)
    outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1)
    for (const bucket of this.#buckets) if (seconds <= bucket.bound) bucket.count += 1
    this.#seconds += seconds
  }

  /** Everything as text. */
  async text(): Promise<string> {
    const gauges = await this.#options.gauges().catch(() => null)
    const lines = [
      ...this.#gauges(gauges),
      ...family(
        'queued_job_count',
        'gauge',
        'The current number of jobs in the queue',
        // Of this server's memory, and so known in any case.
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
