import { describe, expect, it } from 'vitest'
import { instant } from '../core/clock.ts'
import type { IntakeStanding } from '../sources/kafka/ports.ts'
import type { OutboxReading } from '../sources/outbox/readings.ts'
import { type HealthWitnesses, sourceHealth } from './health.ts'

const QUIET: HealthWitnesses = {
  outboxes: async () => [],
  pausedConsumers: async () => 0,
  kafka: null,
}

const reading = (outbox: string, status: 'ok' | 'degraded' | 'unhealthy', ...reasons: string[]) => {
  const idle = { failureRatio: 0, attempts: 0 }
  // Only its name and its health are looked at.
  return { outbox, health: { status, reasons }, meter: idle } as unknown as OutboxReading
}

const standing = (changes: Partial<IntakeStanding>): IntakeStanding => ({
  state: 'reading',
  troubles: [],
  missingTopics: [],
  partitions: [],
  since: instant(0n),
  ...changes,
})

const asked = async (witnesses: Partial<HealthWitnesses>) => {
  const healths = await sourceHealth({ ...QUIET, ...witnesses })()
  return Object.fromEntries(healths.map(({ source, health, note }) => [source, [health, note]]))
}

describe('the health of sources', () => {
  it('tells what is well and what is not in use', async () => {
    expect(await asked({})).toEqual({
      queues: ['ok', null],
      engines: ['ok', null],
      outbox: ['off', 'no outbox is configured'],
      webhooks: ['ok', null],
      kafka: ['off', 'Kafka is not enabled'],
      http: ['ok', null],
    })
  })

  it('is that of the worst outbox, and names those that are not well', async () => {
    const outboxes = async () => [
      reading('a', 'ok'),
      reading('b', 'degraded', 'backlog is 12000, above 10000'),
      reading('c', 'unhealthy', 'its database cannot be read: no'),
    ]
    expect((await asked({ outboxes })).outbox).toEqual([
      'fail',
      'b: backlog is 12000, above 10000; c: its database cannot be read: no',
    ])
    expect((await asked({ outboxes: async () => [reading('a', 'ok')] })).outbox).toEqual(['ok', null])
  })

  it('warns of paused consumers', async () => {
    const note = 'deliveries to 2 consumers are paused, because all of them failed'
    expect((await asked({ pausedConsumers: async () => 2 })).webhooks).toEqual(['warn', note])
  })

  it('is told in time when one does not answer or cannot', async () => {
    const unknown = ['warn', 'whether deliveries are paused could not be found out in time']
    expect((await asked({ pausedConsumers: () => new Promise(() => {}) })).webhooks).toEqual(unknown)
    expect((await asked({ pausedConsumers: () => Promise.reject(new Error('no')) })).webhooks).toEqual(
      unknown,
    )
  })

  it('tells what intake of Kafka says of itself', async () => {
    const kafka = async (changes: Partial<IntakeStanding>) =>
      (await asked({ kafka: () => standing(changes) })).kafka
    expect(await kafka({})).toEqual(['ok', null])
    expect(await kafka({ state: 'degraded', troubles: ['no broker answers'] })).toEqual([
      'warn',
      'no broker answers',
    ])
    expect(await kafka({ missingTopics: ['dlq'] })).toEqual(['warn', '1 topic does not exist'])
    expect(await kafka({ state: 'stopped' })).toEqual(['fail', 'intake has stopped'])
  })
})
