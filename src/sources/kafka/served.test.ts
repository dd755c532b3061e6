import { describe, expect, it } from 'vitest'
import { instant } from '../../core/clock.ts'
import type { IntakeStatus } from './intake/intake-status.ts'
import type { ServedKafka } from './routes/call.ts'
import { kafkaHealth, servedKafka } from './served.ts'

const well: IntakeStatus = {
  state: 'reading',
  troubles: [],
  missingTopics: [],
  partitions: [],
  since: instant(0n),
}
const partition = {
  topic: 'secret_dlq',
  partition: 0,
  committed: 1n,
  end: 1n,
  trouble: 'a batch of secret_dlq',
}
/** Only asked how intake stands. */
const isDegraded = (standing: IntakeStatus) =>
  servedKafka({
    calls: { settings: { tokenHashes: [] } },
    status: () => standing,
  } as unknown as ServedKafka).isDegraded?.()

describe('the health of Kafka', () => {
  it('tells that it is off', () => {
    expect(kafkaHealth(null)).toEqual({ state: 'off', note: 'Kafka is not enabled' })
    expect(servedKafka(null).isDegraded?.()).toBe(false)
  })

  it('has a check for intake, and passes when all is well', () => {
    const checks = { 'kafka:intake': { status: 'pass', output: null } }
    expect(kafkaHealth(well)).toEqual({ state: 'ok', note: null, checks })
    expect(kafkaHealth({ ...well, state: 'starting' })).toEqual({ state: 'ok', note: null, checks })
    expect(isDegraded(well)).toBe(false)
  })

  it.each([
    [{ ...well, state: 'degraded' as const }, 'dead events are not taken in as they should'],
    [{ ...well, troubles: ['broker-1:9092 says no'] }, 'dead events are not taken in as they should'],
    [{ ...well, missingTopics: ['secret_dlq'] }, '1 topic does not exist'],
    [
      { ...well, missingTopics: ['secret_dlq', 'b'], partitions: [partition] },
      '2 topics do not exist; 1 partition has trouble',
    ],
  ])('warns everybody of what is wrong without naming anything: %#', (standing, output) => {
    const { state, checks } = kafkaHealth(standing)
    expect([state, checks]).toEqual(['warn', { 'kafka:intake': { status: 'warn', output } }])
    expect(isDegraded(standing)).toBe(true)
  })

  it('tells those who may see the office what intake says of itself', () => {
    const noted = (changes: Partial<IntakeStatus>) => {
      const { state, note } = kafkaHealth({ ...well, ...changes })
      return [state, note]
    }
    expect(noted({ state: 'degraded', troubles: ['no broker answers'] })).toEqual([
      'warn',
      'no broker answers',
    ])
    expect(noted({ missingTopics: ['dlq'] })).toEqual(['warn', '1 topic does not exist'])
    expect(noted({ state: 'stopped' })).toEqual(['fail', 'intake has stopped'])
  })
})
