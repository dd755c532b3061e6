import { randomUUID } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { header } from '../../../../test/world/kafka/records.ts'
import { kafkaSettingsFor } from '../../../../test/world/kafka/settings.ts'
import { letterId } from '../../../letters/letter.ts'
import type { RawHeader } from '../../../outgoing/kafka/record.ts'
import { dlqId, type EventFacts, eventId, STATE } from '../event.ts'
import type { KafkaService } from '../settings/schema.ts'
import type { StoredEvent } from '../stored-event.ts'
import { shownBytes } from '../wire/bytes.ts'
import { type Rendering, renderRecord } from './render.ts'

const FACTS: EventFacts = {
  service: 'wps',
  originalTopic: 'orders',
  type: 'created',
  correlationId: 'c-1',
  mintedCorrelationId: null,
  originalEventId: null,
  readFrom: null,
  exception: {},
  family: null,
  origin: {},
  attemptsReported: null,
  valueForm: 'json',
  reasons: [],
  warnings: [],
}

const eventOf = (draft: Partial<StoredEvent> & { readonly facts?: EventFacts } = {}): StoredEvent => ({
  letterId: letterId(1n),
  rowKey: 'key',
  state: STATE.pending,
  service: 'wps',
  originalTopic: 'orders',
  order: { orderTs: 0n, topic: 'dlq', partition: 0, offset: 0n, intake: 1n },
  dlqId: dlqId(randomUUID()),
  timestampMs: 0n,
  key: Buffer.from('k1'),
  value: Buffer.from('{"a": 1}'),
  editedValue: null,
  headers: [],
  facts: FACTS,
  attempts: 1,
  eventId: null,
  ...draft,
})

const ID = eventId(randomUUID())
const PLAIN: Rendering = { change: {}, override: null, edited: null, mintCorrelationId: false, eventId: ID }

const settings = kafkaSettingsFor()
function service(name: string, draft: Partial<KafkaService> = {}): KafkaService {
  const found = settings.services.get(name)
  if (found === undefined) throw new Error(`there is no service ${name}`)
  return { ...found, ...draft }
}
const texts = (headers: readonly RawHeader[]) =>
  headers.map(({ name, value }) => [shownBytes(name), shownBytes(value)])

describe('a record for hexkit', () => {
  it('has the four headers in their order, and nothing else of the dead one', () => {
    const event = eventOf({ headers: [header('service', 'wps'), header('traceparent', 't')] })
    expect(texts(renderRecord(event, service('wps'), PLAIN).headers)).toEqual([
      ['original_topic', 'orders'],
      ['type', 'created'],
      ['event_id', ID],
      ['correlation_id', 'c-1'],
    ])
  })

  it('lacks what the event lacks', () => {
    const facts = { ...FACTS, type: '', correlationId: null, mintedCorrelationId: null }
    const event = eventOf({ originalTopic: '~unknown', facts, key: null, value: null })
    expect(renderRecord(event, service('wps'), PLAIN)).toEqual({
      topic: 'wps_retry',
      key: null,
      value: null,
      headers: [header('event_id', ID)],
    })
  })

  it('names the topic that the event names, also when that is not allowed', () => {
    const event = eventOf({ originalTopic: '~unknown', headers: [header('original_topic', 'retry-x')] })
    expect(texts(renderRecord(event, service('wps'), PLAIN).headers)[0]).toEqual([
      'original_topic',
      'retry-x',
    ])
  })

  it('is escaped, unless a processor made the value', () => {
    const value = Buffer.from('"ü"')
    const valueIn = (event: StoredEvent, rendering: Partial<Rendering> = {}) =>
      shownBytes(renderRecord(event, service('wps'), { ...PLAIN, ...rendering }).value)
    expect(valueIn(eventOf({ value }))).toBe('"\\u00fc"')
    expect(valueIn(eventOf(), { edited: value })).toBe('"\\u00fc"')
    const override = { topic: 't', type: 't', key: 'k', value }
    expect(valueIn(eventOf(), { override, edited: Buffer.from('1') })).toBe('"\\u00fc"')
    expect(valueIn(eventOf(), { change: { value } })).toBe('"ü"')
    expect(valueIn(eventOf({ value: Buffer.from([0x22, 0xfc, 0x22]) }))).toBe('base64:Ivwi')
  })
})

describe('a record for others', () => {
  const other = (draft: Partial<KafkaService> = {}) => service('billing', draft)

  it('goes to the topic it came from, as it was, without what tools wrote', () => {
    const headers = [
      header('type', 'a'),
      header('kafka_dlt-exception-fqcn', 'E'),
      header('mm2-offset', '1'),
      header('type', 'b'),
      header('blob', Buffer.from([0xff])),
      header('none', null),
    ]
    const event = eventOf({ headers, value: Buffer.from('"ü"') })
    const record = renderRecord(event, other({ stripHeaders: ['mm2-*'] }), PLAIN)
    expect(record.topic).toBe('orders')
    expect(shownBytes(record.value)).toBe('"ü"')
    expect(texts(record.headers)).toEqual([
      ['type', 'a'],
      ['type', 'b'],
      ['blob', 'base64:/w=='],
      ['none', null],
    ])
  })

  it('has changed values in the headers that it has, and no new ones', () => {
    const event = eventOf({ headers: [header('type', 'a')] })
    const change = { type: 'b', correlationId: 'c-2', topic: 'bills' }
    const record = renderRecord(event, other(), { ...PLAIN, change })
    expect(record.topic).toBe('bills')
    expect(texts(record.headers)).toEqual([['type', 'b']])
  })

  it('goes nowhere when nobody knows where it came from', () => {
    expect(renderRecord(eventOf({ originalTopic: '~unknown' }), other(), PLAIN).topic).toBe('')
  })

  it('has the key that it had before a tool wrapped it', () => {
    const originalKey = Buffer.from('k0').toString('base64')
    const event = eventOf({ facts: { ...FACTS, originalKey } })
    const keyIn = (draft: Partial<KafkaService>) => shownBytes(renderRecord(event, other(draft), PLAIN).key)
    expect(keyIn({ keyFormat: 'uber' })).toBe('k0')
    expect(keyIn({ keyFormat: 'plain' })).toBe('k1')
  })
})
