/**
 * Prometheus metrics: requests by path, queues by depth, letters by place, redrives, sources, the store by verb, the process. Labels come
 * from bounded sets; clients' words never become labels unbounded.
 */
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import { family, type Sample } from '../api/exposition.ts'
import type { ServedSource } from '../api/source-http.ts'
import type { Clock, Instant } from '../core/clock.ts'
import type { RoundState } from '../core/rounds.ts'
import { STATUSES } from '../letters/letter.ts'
import { type LetterGauge, type OfficeGauges, OUTCOMES } from '../letters/numbers/gauges.ts'
import type { Removed } from '../letters/retention/retention.ts'
import type { QueueDepth } from '../queues/queue.ts'
import { RedriveMetrics } from '../redrive/metrics.ts'
import type { RedriveStanding } from '../redrive/redrive.ts'
import type { StoreCall } from '../store/database.ts'

const REQUEST_BUCKETS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60]
const STORE_BUCKETS = [0.0001, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5]

const ORIGIN = ['source', 'engine', 'queue'] as const

const UNSERVED = 'unserved'

interface MetricsOptions {
  readonly depths: () => Promise<readonly QueueDepth[]>
  /** Bounded; the same on every server of a store. */
  readonly letters?: () => Promise<readonly LetterGauge[]>
  /** The same on every server of a store. */
  readonly officeGauges?: () => Promise<OfficeGauges>
  /** Under way or paused; the same on every server of a store. */
  readonly redrives?: () => Promise<readonly RedriveStanding[]>
  readonly rounds?: () => readonly RoundState[]
  /** Text, each line ended; also while the store fails. */
  readonly sources?: readonly Pick<ServedSource, 'metrics'>[]
  readonly clock: Clock
}

/** Shared by all servers of the process; its observers cannot be removed. */
let processRegistry: Registry | undefined

function processMetrics(): Registry {
  if (processRegistry === undefined) {
    processRegistry = new Registry()
    collectDefaultMetrics({ register: processRegistry })
  }
  return processRegistry
}

function remembered<Words extends string[], Found>(
  find: (...words: Words) => Found,
): (...words: Words) => Found {
  const known = new Map<string, Found>()
  return (...words) => {
    const key = words.join(' ')
    const found = known.get(key) ?? find(...words)
    known.set(key, found)
    return found
  }
}

export class Metrics {
  static readonly contentType = Registry.PROMETHEUS_CONTENT_TYPE

  readonly #options: MetricsOptions
  readonly #registry = new Registry()
  readonly redrives = new RedriveMetrics(this.#registry)
  readonly #handlers = new SlidingSummary(
    'http_handler_duration',
    'Seconds from the arrival of a request to the end of its answer, over the latest 1024 per path.',
  )
  readonly #requests = this.#histogram(
    'bartleby_http_request_seconds',
    'Seconds from the arrival of a request to the end of its answer.',
    REQUEST_BUCKETS,
    ['path', 'code'],
  )
  readonly #storeCalls = this.#histogram(
    'bartleby_store_seconds',
    'Seconds that a call of the store took.',
    STORE_BUCKETS,
    ['verb'],
  )
  /** Remembered: the library looks labels up by a text that it builds for every observation. */
  readonly #requestsOf = remembered((path: string, code: string) => this.#requests.labels(path, code))
  readonly #storeCallsOf = remembered((verb: string) => this.#storeCalls.labels(verb))
  readonly #storeFailures = this.#counter(
    'bartleby_store_failures_total',
    'Calls of the store that failed.',
    ['verb'],
  )
  readonly #depths: readonly (readonly [Gauge<'queue'>, (depth: QueueDepth) => number])[] = [
    [this.#depth('ready', 'Items that can be leased now.'), ({ ready }) => ready],
    [this.#depth('leased', 'Items that are leased now.'), ({ leased }) => leased],
    [this.#depth('scheduled', 'Items that wait for their time.'), ({ scheduled }) => scheduled],
    [this.#depth('held', 'Items that wait for a dead queue that does not exist.'), ({ held }) => held],
    [this.#depth('dead', 'Dead letters that lie in this queue.'), ({ dead }) => dead],
    [
      this.#depth('oldest_age_seconds', 'Age of the item at the head of the queue; 0 when empty.'),
      ({ oldestAt }) => this.#secondsSince(oldestAt),
    ],
  ]
  readonly #letters = this.#gauge(
    'bartleby_letters',
    'Letters on file, by where they come from and by status.',
    [...ORIGIN, 'status'],
  )
  readonly #lettersCaptured = this.#counter(
    'bartleby_letters_captured_total',
    'Letters that were ever captured.',
    ORIGIN,
  )
  readonly #lettersRemoved = this.#counter(
    'bartleby_letters_removed_total',
    'Letters that were removed when their time was over.',
    ORIGIN,
  )
  readonly #lettersUnconfirmed = this.#gauge(
    'bartleby_letters_unconfirmed',
    'Letters that were sent back and of which nothing was heard yet; they are among the resolved ones.',
    ORIGIN,
  )
  readonly #oldestPending = this.#gauge(
    'bartleby_letters_oldest_pending_age_seconds',
    'Seconds since the last failure of the pending letter that waits for the longest time; 0 when there is none.',
  )
  readonly #outcomes = this.#counter(
    'bartleby_letters_outcomes_total',
    'Letters that were ever sent back, confirmed, back again, discarded or expired; one letter may count several times.',
    ['outcome'],
  )
  readonly #lastRounds = this.#gauge(
    'bartleby_round_last_run_timestamp_seconds',
    'When this server last did what it does every so often, in seconds since 1970.',
    ['round'],
  )
  readonly #failedRounds = this.#counter(
    'bartleby_round_failures_total',
    'Rounds of this server that failed, since it started.',
    ['round'],
  )
  readonly #retentionLetters = this.#counter(
    'bartleby_retention_removed_letters_total',
    'Letters that retention removed on this server, since it started.',
  )
  readonly #retentionHistory = this.#counter(
    'bartleby_retention_removed_history_total',
    'History rows that retention removed on this server, since it started.',
  )

  constructor(options: MetricsOptions) {
    this.#options = options
  }

  #gauge<Label extends string = never>(name: string, help: string, labelNames: readonly Label[] = []) {
    return new Gauge({ name, help, labelNames, registers: [this.#registry] })
  }

  #depth(name: string, help: string) {
    return this.#gauge(`bartleby_queue_${name}`, help, ['queue'])
  }

  #counter<Label extends string = never>(name: string, help: string, labelNames: readonly Label[] = []) {
    return new Counter({ name, help, labelNames, registers: [this.#registry] })
  }

  #histogram<Label extends string>(
    name: string,
    help: string,
    buckets: number[],
    labelNames: readonly Label[],
  ) {
    return new Histogram({ name, help, labelNames, buckets, registers: [this.#registry] })
  }

  /** 0 for null, and for the future of another server's clock. */
  #secondsSince(at: Instant | null): number {
    return at === null ? 0 : Math.max(0, Number(this.#options.clock.now() - at) / 1e6)
  }

  /** `path`: the route, if any served it. */
  observeRequest(path: string | undefined, code: number, seconds: number): void {
    if (path !== undefined) this.#handlers.observe(path, seconds)
    this.#requestsOf(path ?? UNSERVED, String(code)).observe(seconds)
  }

  observeStoreCall({ verb, seconds, ok }: StoreCall): void {
    this.#storeCallsOf(verb).observe(seconds)
    if (!ok) this.#storeFailures.labels(verb).inc()
  }

  observeRemoved({ letters, history }: Removed): void {
    this.#retentionLetters.inc(letters)
    this.#retentionHistory.inc(history)
  }

  /** While the store fails, depths, letters and redrives are missing. */
  async text(): Promise<string> {
    const [depths, letters, officeGauges, redrives, ofSources] = await Promise.all([
      this.#options.depths().catch(() => []),
      this.#options.letters?.().catch(() => []),
      this.#options.officeGauges?.().catch(() => null),
      this.#options.redrives?.().catch(() => null),
      Promise.all(this.#options.sources?.map((source) => source.metrics?.().catch(() => '')) ?? []),
    ])
    for (const [gauge, value] of this.#depths) {
      gauge.reset()
      for (const depth of depths) gauge.labels(depth.queueName).set(value(depth))
    }
    this.#showLetters(letters ?? [])
    this.#showOffice(officeGauges ?? null)
    this.redrives.show(redrives ?? null)
    this.#showRounds(this.#options.rounds?.() ?? [])
    const [own, ofProcess] = await Promise.all([this.#registry.metrics(), processMetrics().metrics()])
    return `${this.#handlers.text()}\n${own}\n${ofSources.join('')}${ofProcess}`
  }

  /** Totals of the store, so they survive restarts. */
  #showLetters(sets: readonly LetterGauge[]): void {
    for (const metric of [
      this.#letters,
      this.#lettersCaptured,
      this.#lettersRemoved,
      this.#lettersUnconfirmed,
    ])
      metric.reset()
    for (const { source, engine, queue, letters, captured, removed, unconfirmed } of sets) {
      const labels = { source, engine, queue }
      for (const status of STATUSES) this.#letters.set({ ...labels, status }, letters[status])
      this.#lettersCaptured.inc(labels, captured)
      this.#lettersRemoved.inc(labels, removed)
      this.#lettersUnconfirmed.set(labels, unconfirmed)
    }
  }

  #showRounds(rounds: readonly RoundState[]): void {
    this.#lastRounds.reset()
    this.#failedRounds.reset()
    for (const { name: round, lastRunAt, failures } of rounds) {
      if (lastRunAt !== null) this.#lastRounds.set({ round }, Number(lastRunAt) / 1e6)
      this.#failedRounds.inc({ round }, failures)
    }
  }

  /** A missing number says more than an old one. */
  #showOffice(gauges: OfficeGauges | null): void {
    this.#outcomes.reset()
    this.#oldestPending.remove()
    if (gauges === null) return
    this.#oldestPending.set(this.#secondsSince(gauges.oldestPendingAt))
    for (const outcome of OUTCOMES) this.#outcomes.inc({ outcome }, gauges.outcomes[outcome])
  }
}

const WINDOW = 1_024
const QUANTILES = [0.5, 0.99]

/**
 * Quantiles over the latest observations, per path. prom-client's summary keeps a digest tree per time bucket, which costs microseconds per
 * request; a ring is cheap to fill and sorted only when read.
 */
export class SlidingSummary {
  readonly #name: string
  readonly #help: string
  readonly #series = new Map<string, { readonly ring: Float64Array; count: number; sum: number }>()

  constructor(name: string, help: string) {
    this.#name = name
    this.#help = help
  }

  /** `path` must come from a fixed set. */
  observe(path: string, value: number): void {
    const series = this.#series.get(path) ?? { ring: new Float64Array(WINDOW), count: 0, sum: 0 }
    this.#series.set(path, series)
    series.ring[series.count % WINDOW] = value
    series.count += 1
    series.sum += value
  }

  text(): string {
    return `${family(this.#name, 'summary', this.#help, this.#samples()).join('\n')}\n`
  }

  *#samples(): Iterable<Sample> {
    for (const [path, { ring, count, sum }] of this.#series) {
      const sorted = ring.slice(0, Math.min(count, WINDOW)).sort()
      for (const quantile of QUANTILES) {
        const value = sorted[Math.ceil(quantile * sorted.length) - 1] ?? 0
        yield { labels: { path, quantile: String(quantile) }, value }
      }
      yield { suffix: '_sum', labels: { path }, value: sum }
      yield { suffix: '_count', labels: { path }, value: count }
    }
  }
}
