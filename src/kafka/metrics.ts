/**
 * What Prometheus is told about Kafka. Counters are those of this server since it started; how intake stands is what this server
 * reads now: of the partitions of a group each server has its share.
 */
import { family, type Sample } from '../observe/exposition.ts'
import type { KafkaCounters } from './counters.ts'
import type { IntakeStanding } from './ports.ts'
import { lagOf, publicTroubles } from './standing.ts'

export interface KafkaMetricsOptions {
  readonly counters: KafkaCounters
  readonly standing: () => IntakeStanding
}

const STATES: readonly IntakeStanding['state'][] = ['starting', 'reading', 'degraded', 'stopped']

export class KafkaMetrics {
  readonly #options: KafkaMetricsOptions

  constructor(options: KafkaMetricsOptions) {
    this.#options = options
  }

  text(): string {
    const { counters, standing } = this.#options
    return `${[...counters.lines(), ...standingLines(standing())].join('\n')}\n`
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
