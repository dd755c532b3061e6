/**
 * What Prometheus is told about Kafka. Counters are those of this server since it started; how intake stands is what this server
 * reads now: of the partitions of a group each server has its share.
 */
import { family, type Sample } from '../observe/exposition.ts'
import type { KafkaCounters, KafkaCounts } from './counters.ts'
import type { IntakeStanding } from './ports.ts'
import { lagOf, publicTroubles } from './standing.ts'

export interface KafkaMetricsOptions {
  readonly counters: KafkaCounters
  readonly standing: () => IntakeStanding
}

/** The counters: their names behind the prefix, and what they count. */
const COUNTERS: readonly (readonly [of: keyof KafkaCounts, name: string, help: string])[] = [
  ['received', 'records_received', 'Records of DLQ topics that this server took in.'],
  ['duplicates', 'records_duplicate', 'Records that had been taken in before.'],
  ['created', 'letters_created', 'Records that became a letter.'],
  ['reopened', 'letters_reopened', 'Records of events that died again: they reopened their letter.'],
  ['quarantined', 'letters_quarantined', 'Records that must not be published as they are, once per reason.'],
  ['published', 'published', 'Events that were sent to their retry topic.'],
  ['discarded', 'discarded', 'Events that were discarded, by an operator or by their processor.'],
  ['publishFailures', 'publish_failures', 'Publishes that failed for certain.'],
  ['uncertain', 'uncertain', 'Publishes of which nobody knows what became of them.'],
  ['refused', 'refused', 'Events that the guard refused to publish.'],
  ['processorFailures', 'processor_failures', 'Events whose processor failed or took too long.'],
  ['gaps', 'gaps', 'Times that offsets of a partition were lost before they were read.'],
]

const STATES: readonly IntakeStanding['state'][] = ['starting', 'reading', 'degraded', 'stopped']

export class KafkaMetrics {
  readonly #options: KafkaMetricsOptions

  constructor(options: KafkaMetricsOptions) {
    this.#options = options
  }

  /** Everything as text. */
  text(): string {
    const counts = this.#options.counters.read()
    const lines = [
      ...COUNTERS.flatMap(([of, name, help]) =>
        family(`bartleby_kafka_${name}_total`, 'counter', help, counts[of]),
      ),
      ...standingLines(this.#options.standing()),
    ]
    return `${lines.join('\n')}\n`
  }
}

function standingLines(standing: IntakeStanding): string[] {
  const { state, partitions, missingTopics } = standing
  const gauge = (name: string, help: string, samples: Iterable<Sample>) =>
    family(`bartleby_kafka_${name}`, 'gauge', help, samples)
  return [
    ...gauge(
      'intake_state',
      '1 for the state in which intake is.',
      STATES.map((name) => ({ labels: { state: name }, value: name === state ? 1 : 0 })),
    ),
    ...gauge('degraded', '1 while something is wrong with intake.', [
      { value: publicTroubles(standing).length > 0 ? 1 : 0 },
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
