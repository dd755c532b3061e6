import { describe, expect, it } from 'vitest'
import { recordOf, VECTORS } from '../../../../test/kafka/vectors.ts'
import type { ServiceDraft } from '../../../../test/world/kafka/settings.ts'
import { kafkaSettingsFor } from '../../../../test/world/kafka/settings.ts'
import type { OutgoingRecord } from '../../../outgoing/kafka/record.ts'
import type { Reason } from '../event.ts'
import type { KafkaSettings } from '../settings/settings.ts'
import { recordSize } from '../wire/bytes.ts'
import { guard } from './guard.ts'

const ID = '0b0f7a52-6a3e-4f0c-9d0e-2f1f7a1c5b11'

interface Draft {
  readonly topic?: string
  readonly key?: Uint8Array | null
  readonly value?: string | Uint8Array | null
  readonly headers?: Readonly<Record<string, string | Uint8Array | null>>
}

function outgoing({
  topic = 'retry-svc',
  key = Buffer.from('k1'),
  value = '{"a": 1}',
  headers,
}: Draft): OutgoingRecord {
  const all = { original_topic: 'orders', type: 'created', event_id: ID, correlation_id: ID, ...headers }
  return {
    topic,
    key,
    value: typeof value === 'string' ? Buffer.from(value) : value,
    headers: Object.entries(all).map(([name, bytes]) => ({
      name: Buffer.from(name),
      value: typeof bytes === 'string' ? Buffer.from(bytes) : bytes,
    })),
  }
}

function reasonsOf(
  draft: Draft,
  service: ServiceDraft = {},
  rest: Partial<KafkaSettings> = {},
): readonly Reason[] {
  const { services: _, ...given } = rest
  const settings = kafkaSettingsFor({
    ...given,
    services: { svc: { dlqTopic: 'dlq', ...service }, other: { retryTopic: 'other-retry' } },
  })
  const svc = settings.services.get('svc')
  if (svc === undefined) throw new Error('the service is listed')
  return guard(outgoing(draft), svc, settings)
}

describe('the guard before a hexkit service', () => {
  const settings = kafkaSettingsFor({ services: { svc: { dlqTopic: 'dlq' } } })
  const svc = settings.services.get('svc')

  it.each(VECTORS.publish_guard)('decides as the vector says: $id', (vector) => {
    if (svc === undefined) throw new Error('the service is listed')
    expect(guard(recordOf(vector), svc, settings)).toEqual(vector.guard === 'allow' ? [] : [vector.reason])
  })

  it('lets the retry record of the vectors pass', () => {
    const vector = VECTORS.hexkit_records.find(({ topic }) => topic === 'retry-svc')
    if (svc === undefined || vector === undefined) throw new Error('both are there')
    expect(guard(recordOf(vector), svc, settings)).toEqual([])
  })

  it('keeps to the lists of the service', () => {
    const lists = { types: ['created', 'up*'], originalTopics: ['orders', 'eu.*'] }
    expect(reasonsOf({}, lists)).toEqual([])
    expect(reasonsOf({ headers: { type: 'upserted', original_topic: 'eu.orders' } }, lists)).toEqual([])
    expect(reasonsOf({ headers: { type: 'other', original_topic: 'unknown' } }, lists)).toEqual([
      'type_not_allowed',
      'original_topic_not_allowed',
    ])
  })

  it('lets nothing out that a consumer cannot read', () => {
    expect(reasonsOf({ value: '['.repeat(501) + ']'.repeat(501) })).toEqual(['value_unreadable_for_consumer'])
    expect(reasonsOf({ value: '1'.repeat(4_301) })).toEqual(['value_unreadable_for_consumer'])
    expect(reasonsOf({ value: '[NaN, -Infinity]' })).toEqual([])
    expect(reasonsOf({ value: '\ufeff{}' })).toEqual(['value_not_ascii', 'value_not_json'])
    expect(reasonsOf({ value: Buffer.from('ff', 'hex') })).toEqual(['value_not_ascii'])
    expect(reasonsOf({ value: `{"${'ü'.repeat(9)}` })).toEqual(['value_not_ascii', 'value_not_json'])
  })

  it('wants every header to be what it is for', () => {
    expect(reasonsOf({ headers: { type: '' } })).toEqual(['type_missing'])
    expect(reasonsOf({ headers: { type: null } })).toEqual(['type_missing'])
    expect(reasonsOf({ headers: { type: 'größer' } })).toEqual(['type_not_ascii'])
    expect(reasonsOf({ headers: { correlation_id: '' } })).toEqual(['correlation_id_missing'])
    expect(reasonsOf({ headers: { correlation_id: `${ID} ` } })).toEqual(['correlation_id_invalid'])
    expect(reasonsOf({ headers: { event_id: null } })).toEqual(['event_id_invalid'])
    expect(reasonsOf({ headers: { original_topic: '' } })).toEqual(['original_topic_missing'])
    for (const topic of ['dlq', 'other-retry', 'other_dlq', 'retry-x', 'a b', '..', '~unknown', 'ü']) {
      expect(reasonsOf({ headers: { original_topic: topic } })).toEqual(['original_topic_invalid'])
    }
    expect(reasonsOf({ headers: { traceparent: 'x', ü: 'y' } })).toEqual(['header_not_allowed'])
  })

  it('sends to the retry topic of the service and nowhere else', () => {
    expect(reasonsOf({ topic: 'orders' })).toEqual(['target_invalid'])
    expect(reasonsOf({ topic: 'svc-retry' }, { retryTopic: 'svc-retry' })).toEqual([])
    expect(reasonsOf({ topic: 'retry-svc' }, { retryTopic: 'svc-retry' })).toEqual(['target_invalid'])
    expect(reasonsOf({ topic: 'a b' }, { retryTopic: 'a b' })).toEqual(['target_invalid'])
  })

  it('knows what is too large, unless it will be compressed', () => {
    const size = recordSize(outgoing({}))
    expect(reasonsOf({}, {}, { maxMessageBytes: size })).toEqual([])
    expect(reasonsOf({}, {}, { maxMessageBytes: size - 1 })).toEqual(['too_large'])
    expect(reasonsOf({}, {}, { maxMessageBytes: size - 1, compression: 'gzip' })).toEqual([])
  })

  it('gives all reasons that there are', () => {
    expect(reasonsOf({ topic: 'x', key: null, value: null, headers: { type: null, more: null } })).toEqual([
      'value_null',
      'key_null',
      'type_missing',
      'header_not_allowed',
      'target_invalid',
    ])
  })
})

describe('the guard before any other service', () => {
  const generic: ServiceDraft = { profile: 'generic' }
  const toOriginal: ServiceDraft = { ...generic, retryTopic: '$original', originalTopics: ['orders', 'eu.*'] }

  it('lets any key, value and headers pass', () => {
    expect(reasonsOf({ key: null, value: null, headers: { type: null, more: 'ü' } }, generic)).toEqual([])
    expect(reasonsOf({ value: Buffer.from('00ff', 'hex') }, generic)).toEqual([])
  })

  it('sends to the retry topic, or to original topics that are listed', () => {
    expect(reasonsOf({ topic: 'orders' }, generic)).toEqual(['target_invalid'])
    expect(reasonsOf({ topic: 'orders' }, toOriginal)).toEqual([])
    expect(reasonsOf({ topic: 'eu.orders' }, toOriginal)).toEqual([])
    expect(reasonsOf({ topic: 'bills' }, toOriginal)).toEqual(['original_topic_not_allowed'])
    expect(reasonsOf({ topic: 'orders' }, { ...toOriginal, originalTopics: [] })).toEqual([
      'original_topic_not_allowed',
    ])
  })

  it('never sends to a topic that dead events go through', () => {
    for (const topic of ['dlq', 'other-retry', 'retry-svc', '~unknown', '', '$original']) {
      expect(reasonsOf({ topic }, { ...toOriginal, originalTopics: ['*'] })).toEqual(['target_invalid'])
    }
  })

  it('knows what is too large', () => {
    expect(reasonsOf({}, generic, { maxMessageBytes: 100 })).toEqual(['too_large'])
  })
})
