/**
 * Metrics and health of outboxes. Counting a backlog costs what it holds, so numbers are reused for twenty times as
 * long as they took: counting takes at most a twentieth of one connection, and a small backlog is always current.
 */
import { family, histogramSamples, type Sample } from '../../../api/exposition.ts'
import type { ServedSource, SourceHealth } from '../../../api/source-http.ts'
import type { Clock } from '../../../core/clock.ts'
import { untilAborted } from '../../../core/waiting.ts'
import { snakeCase } from '../table/table-names.ts'
import {
  type Backlog,
  type HealthStatus,
  healthOf,
  type Looked,
  lookAt,
  type OutboxHealth,
  worstOf,
} from './health.ts'
import type { MeterSnapshot } from './meter.ts'
import type { OutboxHandle, OutboxHandles } from './outbox-handle.ts'

export interface OutboxReading {
  readonly outbox: string
  readonly looked: Looked
  readonly meter: MeterSnapshot
  readonly health: OutboxHealth
}

/** Numbers are reused so many times as long as they took, and at most so long. */
const REUSE_FACTOR = 20
const LONGEST_REUSE_MS = 10_000
/** Older numbers that may stand in for late ones. */
const LATEST_AGE_MS = 60_000
const PATIENCE_MS = 10_000

interface Look {
  readonly answer: Promise<Looked>
  /** Infinite until answered: all who ask meanwhile share it. */
  reusedUntilMs: number
}

interface Answer {
  readonly looked: Looked
  readonly atMs: number
}

export class OutboxReadings {
  readonly handles: OutboxHandles
  readonly #clock: Clock
  readonly #steadyMs: () => number
  readonly #looks = new WeakMap<OutboxHandle, Look>()
  readonly #latest = new WeakMap<OutboxHandle, Answer>()

  constructor(
    handles: OutboxHandles,
    clock: Clock,
    /** Replaced in tests. */
    steadyMs: () => number = () => performance.now(),
  ) {
    this.handles = handles
    this.#clock = clock
    this.#steadyMs = steadyMs
  }

  /** Answers after `patienceMs` at the latest. */
  read({ patienceMs = PATIENCE_MS } = {}): Promise<readonly OutboxReading[]> {
    return Promise.all(this.handles().map((handle) => this.#readOne(handle, patienceMs)))
  }

  async #readOne(handle: OutboxHandle, patienceMs: number): Promise<OutboxReading> {
    const late = AbortSignal.timeout(patienceMs)
    const looked = await untilAborted(this.#look(handle), late).catch(() => this.#late(handle, patienceMs))
    return { outbox: handle.name, looked, meter: handle.meter.snapshot(), health: healthOf(handle, looked) }
  }

  #look(handle: OutboxHandle): Promise<Looked> {
    const known = this.#looks.get(handle)
    const startedMs = this.#steadyMs()
    if (known !== undefined && startedMs < known.reusedUntilMs) return known.answer
    const answer = lookAt(handle, this.#clock.now()).then((looked) => {
      const atMs = this.#steadyMs()
      look.reusedUntilMs = atMs + Math.min(LONGEST_REUSE_MS, REUSE_FACTOR * (atMs - startedMs))
      this.#latest.set(handle, { looked, atMs })
      return looked
    })
    const look: Look = { answer, reusedUntilMs: Number.POSITIVE_INFINITY }
    this.#looks.set(handle, look)
    return answer
  }

  #late(handle: OutboxHandle, patienceMs: number): Looked {
    const latest = this.#latest.get(handle)
    if (latest !== undefined && this.#steadyMs() - latest.atMs < LATEST_AGE_MS) return latest.looked
    const detail = `no answer within ${patienceMs} ms`
    return { ok: false, trouble: { what: 'its database is slow to answer', detail } }
  }
}

/** Metric families with one number per outbox, and their help. */
const GAUGES = {
  backlog: 'Messages that are still to be delivered.',
  failedPending: 'Messages still to be delivered that have failed before.',
  oldestAgeSeconds: 'Age of the oldest message that is still to be delivered; 0 when there is none.',
  dead: 'Messages that nobody tries to deliver any more.',
  throughputPerSecond: 'Messages that this server delivered per second, over the latest window.',
  failureRatio: 'Share of the deliveries of this server that failed, over the latest window.',
} as const satisfies Families

const TOTALS = {
  dispatched: 'Messages that this server delivered, since it started.',
  failures: 'Deliveries of this server that failed, since it started.',
  duplicates: 'Messages added with a key that was there already, since this server started.',
  conflicts: 'Duplicates with another payload than the message that stands, since this server started.',
} as const satisfies Families

type Families = Readonly<Partial<Record<Exclude<keyof Backlog | keyof MeterSnapshot, 'durations'>, string>>>

/**
 * Metrics in Prometheus' text format; nothing without outboxes. Totals and durations are those of the meters. An outbox
 * that cannot be read has only these: a missing gauge says more than an old one.
 */
export function outboxMetrics(readings: readonly OutboxReading[]): string {
  if (readings.length === 0) return ''
  const lines = [
    ...familiesOf(GAUGES, 'gauge', readings),
    ...familiesOf(TOTALS, 'counter', readings),
    ...family(
      'bartleby_outbox_dispatch_seconds',
      'histogram',
      'Seconds that a delivery took, whatever came of it.',
      readings.flatMap(({ outbox, meter: { durations } }) => [
        ...histogramSamples(durations.bounds, durations.counts, durations.sum, { outbox }),
      ]),
    ),
  ]
  return `${lines.join('\n')}\n`
}

const familiesOf = (families: Families, type: 'gauge' | 'counter', readings: readonly OutboxReading[]) =>
  Object.entries(families).flatMap(([number, help]) => {
    const samples = readings.flatMap(({ outbox, looked, meter }): Sample[] => {
      const numbers: Readonly<Record<string, unknown>> = { ...meter, ...(looked.ok ? looked.backlog : {}) }
      const value = numbers[number]
      return typeof value === 'number' ? [{ labels: { outbox }, value }] : []
    })
    const name = `bartleby_outbox_${snakeCase(number)}${type === 'counter' ? '_total' : ''}`
    return family(name, type, help, samples)
  })

export function servedOutboxes(handles: OutboxHandles, clock: Clock) {
  const readings = new OutboxReadings(handles, clock)
  return {
    http: {
      isPresent: () => readings.handles().length > 0,
      serve: async (server) => {
        const { outboxRoutes } = await import('./routes.ts')
        return { routes: async (app) => void (await app.register(outboxRoutes, { readings, ...server })) }
      },
    },
    metrics: async () => outboxMetrics(await readings.read()),
    health: async (patienceMs) => outboxHealth(await readings.read({ patienceMs })),
  } satisfies ServedSource
}

const STATES = { ok: 'ok', degraded: 'warn', unhealthy: 'fail' } as const satisfies Record<
  HealthStatus,
  string
>

export function outboxHealth(readings: readonly OutboxReading[]): SourceHealth {
  if (readings.length === 0) return { state: 'off', note: 'no outbox is configured' }
  const unwell = readings.filter(({ health }) => health.status !== 'ok')
  const notes = unwell.map(({ outbox, health }) => `${outbox}: ${health.reasons.join(', ')}`)
  return {
    state: STATES[worstOf(readings.map(({ health }) => health.status))],
    note: notes.length === 0 ? null : notes.join('; '),
    checks: Object.fromEntries(readings.map((reading) => [`outbox:${reading.outbox}`, checkOf(reading)])),
  }
}

function checkOf({ looked, health: { status, reasons } }: OutboxReading) {
  if (status === 'ok') return { status: 'pass', output: null } as const
  // Everybody may read this; the database's own words are for those with a token.
  return { status: STATES[status], output: looked.ok ? reasons.join('; ') : looked.trouble.what }
}
