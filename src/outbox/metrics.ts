/**
 * What Prometheus is told about outboxes, as text. Totals and durations are those of the meters: they are shown, not kept a
 * second time. Of an outbox that cannot be read only these are told; a gauge that is missing says more than an old one.
 */
import { family, type Sample } from '../observe/exposition.ts'
import type { Backlog } from './look.ts'
import type { MeterSnapshot } from './meter.ts'
import type { OutboxReading } from './readings.ts'

/** Families with one number for each outbox: what they are called, where the number stands, and what it is. */
const GAUGES = {
  backlog: ['backlog', 'Messages that are still to be delivered.'],
  failed_pending: ['failedPending', 'Messages still to be delivered that have failed before.'],
  oldest_age_seconds: [
    'oldestAgeSeconds',
    'Age of the oldest message that is still to be delivered; 0 when there is none.',
  ],
  dead: ['dead', 'Messages that nobody tries to deliver any more.'],
  throughput_per_second: [
    'throughputPerSecond',
    'Messages that this server delivered per second, over the latest window.',
  ],
  failure_ratio: [
    'failureRatio',
    'Share of the deliveries of this server that failed, over the latest window.',
  ],
} as const satisfies Families

const TOTALS = {
  dispatched_total: ['dispatched', 'Messages that this server delivered, since it started.'],
  failures_total: ['failures', 'Deliveries of this server that failed, since it started.'],
  duplicates_total: [
    'duplicates',
    'Messages added with a key that was there already, since this server started.',
  ],
  conflicts_total: [
    'conflicts',
    'Duplicates with another payload than the message that stands, since this server started.',
  ],
} as const satisfies Families

type Families = Readonly<
  Record<string, readonly [number: Exclude<keyof Backlog | keyof MeterSnapshot, 'durations'>, help: string]>
>

/** The metrics of all outboxes in Prometheus' text format; nothing when there is no outbox. */
export function outboxMetrics(readings: readonly OutboxReading[]): string {
  if (readings.length === 0) return ''
  const lines = [
    ...familiesOf(GAUGES, 'gauge', readings),
    ...familiesOf(TOTALS, 'counter', readings),
    ...family(
      'bartleby_outbox_dispatch_seconds',
      'histogram',
      'Seconds that a delivery took, whatever came of it.',
      readings.flatMap(histogram),
    ),
  ]
  return `${lines.join('\n')}\n`
}

const familiesOf = (families: Families, type: 'gauge' | 'counter', readings: readonly OutboxReading[]) =>
  Object.entries(families).flatMap(([name, [number, help]]) => {
    const samples = readings.flatMap(({ outbox, looked, meter }): Sample[] => {
      const numbers: Partial<Backlog> & MeterSnapshot = { ...meter, ...(looked.ok ? looked.backlog : {}) }
      const value = numbers[number]
      return value === undefined ? [] : [{ labels: { outbox }, value }]
    })
    return family(`bartleby_outbox_${name}`, type, help, samples)
  })

function histogram({ outbox, meter: { durations } }: OutboxReading): Sample[] {
  const bounds = [...durations.bounds, '+Inf']
  return [
    ...bounds.map((bound, index) => ({
      suffix: '_bucket',
      labels: { outbox, le: String(bound) },
      value: durations.counts[index] ?? 0,
    })),
    { suffix: '_sum', labels: { outbox }, value: durations.sum },
    { suffix: '_count', labels: { outbox }, value: durations.counts.at(-1) ?? 0 },
  ]
}
