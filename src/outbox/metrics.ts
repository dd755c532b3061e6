/**
 * What Prometheus is told about outboxes, as text. Totals and durations are those of the meters: they are shown, not kept a
 * second time. Of an outbox that cannot be read only these are told; a gauge that is missing says more than an old one.
 */
import type { Backlog } from './look.ts'
import type { MeterSnapshot } from './meter.ts'
import type { OutboxReading } from './readings.ts'

const GAUGES: readonly (readonly [string, string, (backlog: Backlog) => number])[] = [
  ['backlog', 'Messages that are still to be delivered.', ({ backlog }) => backlog],
  [
    'failed_pending',
    'Messages still to be delivered that have failed before.',
    ({ failedPending }) => failedPending,
  ],
  [
    'oldest_age_seconds',
    'Age of the oldest message that is still to be delivered; 0 when there is none.',
    ({ oldestAgeSeconds }) => oldestAgeSeconds,
  ],
  ['dead', 'Messages that nobody tries to deliver any more.', ({ dead }) => dead],
]

const RATES: readonly (readonly [string, string, (meter: MeterSnapshot) => number])[] = [
  [
    'throughput_per_second',
    'Messages that this server delivered per second, over the latest window.',
    ({ throughputPerSecond }) => throughputPerSecond,
  ],
  [
    'failure_ratio',
    'Share of the deliveries of this server that failed, over the latest window.',
    ({ failureRatio }) => failureRatio,
  ],
]

const TOTALS: readonly (readonly [string, string, (meter: MeterSnapshot) => number])[] = [
  [
    'dispatched_total',
    'Messages that this server delivered, since it started.',
    ({ dispatched }) => dispatched,
  ],
  ['failures_total', 'Deliveries of this server that failed, since it started.', ({ failures }) => failures],
  [
    'duplicates_total',
    'Messages added with a key that was there already, since this server started.',
    ({ duplicates }) => duplicates,
  ],
  [
    'conflicts_total',
    'Duplicates with another payload than the message that stands, since this server started.',
    ({ conflicts }) => conflicts,
  ],
]

/** The metrics of all outboxes in Prometheus' text format; nothing when there is no outbox. */
export function outboxMetrics(readings: readonly OutboxReading[]): string {
  if (readings.length === 0) return ''
  const lines = [
    ...GAUGES.flatMap(([name, help, value]) =>
      family(name, 'gauge', help, readings, ({ looked }) => (looked.ok ? value(looked.backlog) : null)),
    ),
    ...RATES.flatMap(([name, help, value]) =>
      family(name, 'gauge', help, readings, ({ meter }) => value(meter)),
    ),
    ...TOTALS.flatMap(([name, help, value]) =>
      family(name, 'counter', help, readings, ({ meter }) => value(meter)),
    ),
    ...heading('dispatch_seconds', 'histogram', 'Seconds that a delivery took, whatever came of it.'),
    ...readings.flatMap(histogram),
  ]
  return `${lines.join('\n')}\n`
}

const full = (name: string): string => `bartleby_outbox_${name}`

const heading = (name: string, type: string, help: string): string[] => [
  `# HELP ${full(name)} ${help}`,
  `# TYPE ${full(name)} ${type}`,
]

function family(
  name: string,
  type: 'gauge' | 'counter',
  help: string,
  readings: readonly OutboxReading[],
  valueIn: (reading: OutboxReading) => number | null,
): string[] {
  const samples = readings.flatMap((reading) => {
    const value = valueIn(reading)
    return value === null ? [] : [`${full(name)}{outbox="${escaped(reading.outbox)}"} ${value}`]
  })
  return [...heading(name, type, help), ...samples]
}

function histogram({ outbox, meter: { durations } }: OutboxReading): string[] {
  const name = full('dispatch_seconds')
  const of = `outbox="${escaped(outbox)}"`
  const bounds = [...durations.bounds, '+Inf']
  return [
    ...bounds.map((bound, index) => `${name}_bucket{${of},le="${bound}"} ${durations.counts[index] ?? 0}`),
    `${name}_sum{${of}} ${durations.sum}`,
    `${name}_count{${of}} ${durations.counts.at(-1) ?? 0}`,
  ]
}

/** The value of a label. */
const escaped = (text: string): string =>
  text.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')
