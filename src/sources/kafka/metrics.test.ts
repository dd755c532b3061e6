import { describe, expect, it } from 'vitest'
import { instant } from '../../core/clock.ts'
import type { IntakeStatus } from './intake/intake-status.ts'
import { KafkaCounters, metricsText } from './metrics.ts'

const WELL: IntakeStatus = {
  state: 'reading',
  troubles: [],
  missingTopics: [],
  partitions: [],
  since: instant(0n),
}

function metricsOf(standing: IntakeStatus = WELL) {
  const counters = new KafkaCounters()
  return { counters, lines: () => metricsText(counters, standing).trimEnd().split('\n') }
}

describe('metrics of Kafka', () => {
  it('are there before anything has happened', () => {
    const lines = metricsOf().lines()
    for (const name of ['records_received', 'published', 'discarded', 'uncertain', 'gaps'])
      expect(lines).toContain(`# TYPE bartleby_kafka_${name}_total counter`)
    expect(lines.filter((line) => !line.startsWith('#'))).toEqual([
      'bartleby_kafka_intake_state{state="starting"} 0',
      'bartleby_kafka_intake_state{state="reading"} 1',
      'bartleby_kafka_intake_state{state="degraded"} 0',
      'bartleby_kafka_intake_state{state="stopped"} 0',
      'bartleby_kafka_degraded 0',
      'bartleby_kafka_missing_topics 0',
    ])
  })

  it('count what intake made of records', () => {
    const { counters, lines } = metricsOf()
    counters.stored('wps_dlq', { received: 10, duplicates: 3, created: 5, reopened: 2 })
    counters.stored('wps_dlq', { received: 1, duplicates: 0, created: 1, reopened: 0 })
    counters.quarantined('wps', ['key_null', 'value_null'])
    counters.quarantined('wps', ['key_null'])
    counters.gap({ topic: 'wps_dlq', partition: 2, expected: 5n, found: 9n })
    const told = lines()
    for (const line of [
      'records_received_total{topic="wps_dlq"} 11',
      'records_duplicate_total{topic="wps_dlq"} 3',
      'letters_created_total{topic="wps_dlq"} 6',
      'letters_reopened_total{topic="wps_dlq"} 2',
      'letters_quarantined_total{service="wps",reason="key_null"} 2',
      'letters_quarantined_total{service="wps",reason="value_null"} 1',
      'gaps_total{topic="wps_dlq",partition="2"} 1',
    ])
      expect(told).toContain(`bartleby_kafka_${line}`)
  })

  it('count what became of events', () => {
    const { counters, lines } = metricsOf()
    for (const what of ['published', 'discarded_operator', 'discarded_processor', 'published'] as const)
      counters.resolved('wps', 'orders', what)
    for (const what of ['publish_failed', 'uncertain', 'refused', 'processor_failed'] as const)
      counters.trouble('wps', what)
    const told = lines()
    for (const line of [
      'published_total{service="wps",topic="orders"} 2',
      'discarded_total{service="wps",topic="orders",by="operator"} 1',
      'discarded_total{service="wps",topic="orders",by="processor"} 1',
      'publish_failures_total{service="wps"} 1',
      'uncertain_total{service="wps"} 1',
      'refused_total{service="wps"} 1',
      'processor_failures_total{service="wps"} 1',
    ])
      expect(told).toContain(`bartleby_kafka_${line}`)
  })

  it('have a bounded number of series, whatever names records have', () => {
    const { counters, lines } = metricsOf()
    for (let i = 0; i < 1_500; i++) {
      counters.resolved(`s${i}`, 't"\n', i % 2 === 0 ? 'discarded_operator' : 'discarded_processor')
      counters.trouble(`s${i}`, 'refused')
    }
    counters.trouble('s0', 'refused')
    const told = lines()
    const of = (name: string) => told.filter((line) => line.startsWith(`bartleby_kafka_${name}_total{`))
    expect(of('refused')).toHaveLength(1_001)
    expect(of('discarded')).toHaveLength(1_002)
    expect(told).toContain('bartleby_kafka_refused_total{service="~others"} 500')
    expect(told).toContain('bartleby_kafka_refused_total{service="s0"} 2')
    expect(told).toContain(
      'bartleby_kafka_discarded_total{service="~others",topic="~others",by="operator"} 250',
    )
    expect(told).toContain('bartleby_kafka_discarded_total{service="s0",topic="t\\"\\n",by="operator"} 1')
  })

  it('tell how far behind intake is, and what is wrong with it', () => {
    const partition = { topic: 'dlq', partition: 0, committed: 5n, end: 12n, trouble: null }
    const { lines } = metricsOf({
      ...WELL,
      state: 'degraded',
      missingTopics: ['gone'],
      partitions: [
        partition,
        { ...partition, partition: 1, committed: null },
        { ...partition, partition: 2, committed: 20n, trouble: 'it cannot be decoded' },
      ],
    })
    const told = lines()
    expect(told).toContain('bartleby_kafka_intake_state{state="degraded"} 1')
    expect(told).toContain('bartleby_kafka_degraded 1')
    expect(told).toContain('bartleby_kafka_missing_topics 1')
    expect(told.filter((line) => line.startsWith('bartleby_kafka_lag{'))).toEqual([
      'bartleby_kafka_lag{topic="dlq",partition="0"} 7',
      'bartleby_kafka_lag{topic="dlq",partition="2"} 0',
    ])
    expect(told).toContain('bartleby_kafka_partition_trouble{topic="dlq",partition="0"} 0')
    expect(told).toContain('bartleby_kafka_partition_trouble{topic="dlq",partition="2"} 1')
    expect(told.join('\n')).not.toContain('decoded')
  })
})
