/**
 * Kafka's metrics, of this server: counters since it started, and the partitions that it reads now. Services and topics come from records,
 * which anybody may write: a limited number have counts of their own, the others share one.
 */
import { family, type Labels, type Sample } from '../../api/exposition.ts'
import { INTAKE_STATES, type IntakeStatus, lagOf, publicTroubles } from './intake/intake-status.ts'
import type { Gap, Stored } from './intake/partition-counts.ts'

/** Label sets with counts of their own. */
const MOST_SETS = 1_000
const OTHERS = '~others'

/** Name behind the prefix, help, and the labels that records choose. */
const COUNTERS = {
  received: ['records_received', 'Records of DLQ topics that this server took in.'],
  duplicates: ['records_duplicate', 'Records that had been taken in before.'],
  created: ['letters_created', 'Records that became a letter.'],
  reopened: ['letters_reopened', 'Records of events that died again: they reopened their letter.'],
  quarantined: [
    'letters_quarantined',
    'Records that must not be published as they are, once per reason.',
    'service',
  ],
  published: ['published', 'Events that were sent to their retry topic.', 'service', 'topic'],
  discarded: [
    'discarded',
    'Events that were discarded, by an operator or by their processor.',
    'service',
    'topic',
  ],
  publish_failed: ['publish_failures', 'Publishes that failed for certain.', 'service'],
  uncertain: ['uncertain', 'Publishes of which nobody knows what became of them.', 'service'],
  refused: ['refused', 'Events that the guard refused to publish.', 'service'],
  processor_failed: ['processor_failures', 'Events whose processor failed or took too long.', 'service'],
  gaps: ['gaps', 'Times that offsets of a partition were lost before they were read.'],
} as const satisfies Record<string, readonly [name: string, help: string, ...shared: string[]]>
type Counter = keyof typeof COUNTERS
type Count = { readonly labels: Labels; value: number }

export class KafkaCounters {
  readonly #counts = new Map<Counter, Map<string, Count>>()

  stored(topic: string, { received, duplicates, created, reopened }: Stored): void {
    this.#add('received', { topic }, received)
    this.#add('duplicates', { topic }, duplicates)
    this.#add('created', { topic }, created)
    this.#add('reopened', { topic }, reopened)
  }

  quarantined(service: string, reasons: readonly string[]): void {
    for (const reason of reasons) this.#add('quarantined', { service, reason })
  }

  resolved(
    service: string,
    topic: string,
    what: 'published' | 'discarded_operator' | 'discarded_processor',
  ): void {
    if (what === 'published') this.#add('published', { service, topic })
    else this.#add('discarded', { service, topic, by: what.slice('discarded_'.length) })
  }

  trouble(service: string, what: 'publish_failed' | 'uncertain' | 'refused' | 'processor_failed'): void {
    this.#add(what, { service })
  }

  gap({ topic, partition }: Gap): void {
    this.#add('gaps', { topic, partition: String(partition) })
  }

  lines(): string[] {
    return Object.entries(COUNTERS).flatMap(([counter, [name, help]]) => {
      // The keys of the table.
      const samples = this.#counts.get(counter as Counter)?.values() ?? []
      return family(`bartleby_kafka_${name}_total`, 'counter', help, samples)
    })
  }

  #add(counter: Counter, labels: Labels, amount = 1): void {
    const counts = this.#counts.get(counter) ?? new Map<string, Count>()
    this.#counts.set(counter, counts)
    const isKnown = counts.has(keyOf(labels)) || counts.size < MOST_SETS
    const [, , ...shared] = COUNTERS[counter]
    const others = Object.fromEntries(shared.map((name) => [name, OTHERS]))
    const counted = isKnown ? labels : { ...labels, ...others }
    const count = counts.get(keyOf(counted)) ?? { labels: counted, value: 0 }
    count.value += amount
    counts.set(keyOf(counted), count)
  }
}

const keyOf = (labels: Labels): string => JSON.stringify(Object.values(labels))

export type KafkaListener = Partial<
  Pick<KafkaCounters, 'stored' | 'quarantined' | 'resolved' | 'trouble' | 'gap'>
>

export const metricsText = (counters: KafkaCounters, status: IntakeStatus): string =>
  `${[...counters.lines(), ...statusLines(status)].join('\n')}\n`

function statusLines(status: IntakeStatus): string[] {
  const { state, partitions, missingTopics } = status
  const gauge = (name: string, help: string, samples: Iterable<Sample>) =>
    family(`bartleby_kafka_${name}`, 'gauge', help, samples)
  return [
    ...gauge(
      'intake_state',
      '1 for the state in which intake is.',
      INTAKE_STATES.map((name) => ({ labels: { state: name }, value: name === state ? 1 : 0 })),
    ),
    ...gauge('degraded', '1 while something is wrong with intake.', [
      { value: publicTroubles(status).length > 0 ? 1 : 0 },
    ]),
    ...gauge('missing_topics', 'DLQ topics of the configuration that the brokers do not have.', [
      { value: missingTopics.length },
    ]),
    ...gauge(
      'lag',
      'Offsets of a partition that are not taken in yet, of the partitions that this server reads.',
      partitions.flatMap((partition) => {
        const lag = lagOf(partition)
        return lag === null ? [] : { labels: labelsOf(partition), value: Number(lag) }
      }),
    ),
    ...gauge(
      'partition_trouble',
      '1 while a partition is not read as it should be.',
      partitions.map((partition) => ({
        labels: labelsOf(partition),
        value: partition.trouble === null ? 0 : 1,
      })),
    ),
  ]
}

const labelsOf = ({ topic, partition }: { readonly topic: string; readonly partition: number }) => ({
  topic,
  partition: String(partition),
})
