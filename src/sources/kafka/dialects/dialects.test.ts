import { describe, expect, it } from 'vitest'
import { recordOf, VECTORS } from '../../../../test/kafka/vectors.ts'
import { header, record } from '../../../../test/world/kafka/records.ts'
import type { RawRecord } from '../event.ts'
import { FAMILIES, isStrippedHeader, UBER } from './families.ts'
import { factsInHeaders, factsInKey, familyOf, type HeaderFacts } from './header-facts.ts'
import { NamedHeaders } from './named-headers.ts'

type Pairs = readonly (readonly [name: string, value: string | Uint8Array | null])[]

interface Recognised extends HeaderFacts {
  readonly family: string
}

function recognise({ key, headers }: RawRecord, keyFormat: 'plain' | 'uber'): Recognised | null {
  const byKey = keyFormat === 'uber' ? factsInKey(key) : null
  if (byKey !== null) return { family: UBER, ...byKey }
  const named = new NamedHeaders(headers)
  const family = familyOf(named)
  return family === null ? null : { family: family.name, ...factsInHeaders(family, named) }
}

const told = (pairs: Pairs): Recognised | null =>
  recognise(record({ headers: pairs.map(([name, value]) => header(name, value)) }), 'plain')

describe('the headers of other tools', () => {
  it.each(VECTORS.foreign_headers)('are understood: $id', ({ expect: expected, ...vector }) => {
    const keyFormat = expected.requires === 'key_format: uber' ? 'uber' : 'plain'
    const found = recognise(recordOf(vector), keyFormat)
    const facts: Readonly<Record<string, unknown>> = {
      family: found?.family ?? null,
      requires: expected.requires,
      original_topic: found?.origin.topic ?? null,
      original_partition: found?.origin.partition ?? null,
      original_offset: numberOrNull(found?.origin.offset),
      original_timestamp_ms: numberOrNull(found?.origin.timestampMs),
      original_destination: found?.origin.destination ?? null,
      failed_at_ms: numberOrNull(found?.origin.failedAtMs),
      consumer_group: found?.origin.consumerGroup ?? null,
      exc_class: found?.exception.class ?? null,
      exc_msg: found?.exception.message ?? null,
      stack: found?.exception.stack ?? null,
      cause_class: found?.exception.causeClass ?? null,
      cause_msg: found?.exception.causeMessage ?? null,
      attempts_reported: found?.attempts ?? null,
      original_key: found?.originalKey ?? null,
    }
    for (const [name, value] of Object.entries(expected))
      expect({ [name]: facts[name] }).toEqual({ [name]: value })
  })

  it('belong to the family with the most names; the table decides between equals', () => {
    const hexkit: Pairs = [
      ['exc_class', 'E'],
      ['original_topic', 'orders'],
    ]
    const connect: Pairs = [
      ['__connect.errors.topic', 'orders'],
      ['__connect.errors.stage', 'KEY_CONVERTER'],
    ]
    expect(told([...connect, ...hexkit])?.family).toBe('hexkit')
    expect(told([...connect, ...hexkit, ['__connect.errors.task.id', '0']])?.family).toBe('connect')
    // Other names of hexkit prove nothing: many write a type and a correlation id.
    expect(told([...connect, ['type', 'x'], ['correlation_id', 'y'], ['event_id', 'z']])?.family).toBe(
      'connect',
    )
    // A name that comes twice is one name.
    expect(told([...connect, ...connect, ['x-original-topic', 'a'], ['x-exception-fqcn', 'b']])?.family).toBe(
      'connect',
    )
  })

  it('are nobody’s when only one name fits', () => {
    expect(told([])).toBeNull()
    expect(told([['__connect.errors.topic', 'orders']])).toBeNull()
    expect(
      told([
        ['__Connect.errors.topic', 'orders'],
        ['__connect.errors.Stage', 'x'],
      ]),
    ).toBeNull()
    const generic: Pairs = [
      ['original-partition', '1'],
      ['original-offset', '2'],
      ['exception-type', 'E'],
      ['exception-stack', 's'],
    ]
    expect(told(generic)).toBeNull()
    expect(told([...generic, ['original-destination', 'kafka://topic/orders']])?.family).toBe('wolverine')
  })

  it('leave empty what cannot be read', () => {
    expect(
      told([
        ['kafka_dlt-original-topic', 'orders'],
        ['kafka_dlt-original-partition', Buffer.from('3')],
        ['kafka_dlt-original-offset', null],
        ['kafka_dlt-original-timestamp', Buffer.alloc(8, 0xff)],
        ['kafka_dlt-exception-message', ''],
      ]),
    ).toEqual({
      family: 'spring-dlt',
      origin: { topic: 'orders' },
      exception: { message: '' },
      attempts: null,
    })
    expect(
      told([
        ['__dlq.errors.topic', ''],
        ['__dlq.errors.partition', '2147483648'],
        ['__dlq.errors.offset', '9223372036854775808'],
        ['__dlq.errors.delivery.count', '-1'],
        ['__dlq.errors.group', 'Gr\u00f6\u00dfe'],
      ]),
    ).toMatchObject({ origin: { consumerGroup: 'Größe' }, attempts: null })
    expect(
      told([
        ['retry_topic-attempts', Buffer.from([0])],
        ['kafka_original-topic', 'a'],
      ])?.attempts,
    ).toBeNull()
  })

  it('are taken from the newest hop, with the first one beside it', () => {
    const twice = (newer: Pairs, older: Pairs, order: 'first' | 'last'): Recognised | null =>
      told(order === 'last' ? [...older, ...newer] : [...newer, ...older])
    expect(
      twice(
        [
          ['__connect.errors.topic', 'orders-dlq'],
          ['__connect.errors.offset', '7'],
          ['__connect.errors.exception.message', null],
        ],
        [
          ['__connect.errors.topic', 'orders'],
          ['__connect.errors.offset', '1'],
          ['__connect.errors.exception.message', 'older'],
        ],
        'last',
      ),
    ).toMatchObject({
      origin: { topic: 'orders-dlq', offset: '7' },
      firstOrigin: { topic: 'orders', offset: '1' },
      exception: {},
    })
    expect(
      twice(
        [
          ['dead-letter-topic', 'orders-2'],
          ['dead-letter-reason', 'newer'],
        ],
        [
          ['dead-letter-topic', 'orders'],
          ['dead-letter-reason', 'older'],
        ],
        'first',
      ),
    ).toMatchObject({
      origin: { topic: 'orders-2' },
      firstOrigin: { topic: 'orders' },
      exception: { message: 'newer' },
    })
    const again: Pairs = [
      ['exc_class', 'A'],
      ['original_topic', 'a'],
    ]
    const hexkit = told([...again, ['exc_class', 'B'], ['original_topic', 'b']])
    expect(hexkit).toEqual({
      family: 'hexkit',
      origin: { topic: 'b' },
      exception: { class: 'B' },
      attempts: null,
    })
  })

  it('tell the same in other words', () => {
    expect(
      told([
        ['ce_knativeerrorcode', '500'],
        ['ce_knativeerrordata', Buffer.from('Größe').toString('base64')],
      ])?.exception,
    ).toEqual({ class: '500', message: 'Größe' })
    expect(
      told([
        ['knativeerrordest', 'http://x'],
        ['knativeerrordata', 'not base64!'],
      ])?.exception,
    ).toEqual({ message: 'not base64!' })
    const long = Buffer.alloc(12_000_000, 'x').toString('base64')
    for (const data of [long, `${long}!`]) {
      const { message = '' } =
        told([
          ['knativeerrorcode', '500'],
          ['knativeerrordata', data],
        ])?.exception ?? {}
      expect(message.length).toBeLessThan(33_000)
    }
    expect(
      told([
        ['__streams.errors.exception', 'java.lang.Error: a: b'],
        ['__streams.errors.topic', 'orders'],
      ])?.exception,
    ).toEqual({ class: 'java.lang.Error', message: 'a: b' })
    expect(
      told([
        ['MT-Fault-InputAddress', 'loopback://localhost/orders'],
        ['MT-Fault-ExceptionType', 'E'],
        ['MT-Fault-RetryCount', '3'],
      ]),
    ).toMatchObject({ origin: { destination: 'loopback://localhost/orders' }, attempts: 3 })
    expect(
      told([
        ['kafka_dlt-original-topic', 'orders'],
        ['kafka_dlt-key-exception-fqcn', 'KeyError'],
      ])?.exception,
    ).toEqual({ class: 'KeyError' })
  })

  it('are copied up to a length', () => {
    const found = told([
      ['kafka_dlt-original-topic', 'orders'],
      ['kafka_dlt-exception-message', 'm'.repeat(40_000)],
      ['kafka_dlt-exception-stacktrace', 's'.repeat(80_000)],
      ['kafka_dlt-exception-fqcn', 'c'.repeat(5_000)],
    ])
    expect(found?.exception).toEqual({
      message: `${'m'.repeat(32_768)}… [cut]`,
      stack: `${'s'.repeat(65_536)}… [cut]`,
      class: `${'c'.repeat(4_096)}… [cut]`,
    })
  })

  it('have names that belong to one entry of a family only', () => {
    for (const { headers } of FAMILIES)
      expect(new Set(headers.map(({ name }) => name)).size).toBe(headers.length)
  })
})

describe('a key with metadata in it', () => {
  const uber = (hex: string): Recognised | null =>
    recognise(record({ key: Buffer.from(hex, 'hex'), headers: [] }), 'uber')
  const TOPIC = '12066f7264657273'

  it('may leave out what is 0', () => {
    expect(uber(TOPIC)).toEqual({
      family: 'uber',
      origin: { topic: 'orders', partition: 0, offset: '0' },
      exception: {},
      attempts: 0,
      originalKey: '',
    })
  })

  it('may have fields that nobody knows', () => {
    expect(uber(`3801${TOPIC}410000000000000000${'5500000000'}7a0161`)?.family).toBe('uber')
  })

  it('leaves empty what is no place', () => {
    expect(uber(`${TOPIC}18ffffffffffffffffff0120ffffffffffffffffff01`)?.origin).toEqual({ topic: 'orders' })
  })

  it.each([
    ['a plain key', '6b31'],
    ['nothing', ''],
    ['no topic', '1803'],
    ['a topic that cannot be one', '12032e2e2f'],
    ['a length beyond the end', '12ff6f'],
    ['a number without an end', `${TOPIC}18ffffffffffffffffffff01`],
    ['a number that is cut off', `${TOPIC}1880`],
    ['a field of another type', '10061a0161'],
    ['field 0', `${TOPIC}0001`],
    ['a group', `${TOPIC}7b7c`],
    ['a fixed number that is cut off', `${TOPIC}41000000`],
  ])('is not that: %s', (_, hex) => {
    expect(uber(hex)).toBeNull()
  })

  it('is nothing without a key, or where keys are plain', () => {
    expect(recognise(record({ key: null, headers: [] }), 'uber')).toBeNull()
    expect(recognise(record({ key: Buffer.from(TOPIC, 'hex'), headers: [] }), 'plain')).toBeNull()
  })

  it('gives way to headers when it is not that', () => {
    expect(recognise(record({ key: 'k1' }), 'uber')?.family).toBe('hexkit')
  })
})

describe('headers that do not travel on', () => {
  it('are all of the family that was recognised', () => {
    for (const { name: family, headers } of FAMILIES) {
      for (const { name } of headers) expect(isStrippedHeader(family, name, [])).toBe(true)
    }
    expect(isStrippedHeader('wolverine', 'exception-type', [])).toBe(true)
    expect(isStrippedHeader('karafka', 'exception-type', [])).toBe(false)
    expect(isStrippedHeader(null, 'exception-type', [])).toBe(false)
    expect(isStrippedHeader('uber', 'type', [])).toBe(false)
    expect(isStrippedHeader('nobody', 'type', [])).toBe(false)
  })

  it('are whole prefixes of tools', () => {
    expect(isStrippedHeader('connect', '__connect.errors.anything', [])).toBe(true)
    expect(isStrippedHeader('spring-retryable', 'kafka_dlt-original-topic', [])).toBe(true)
    expect(isStrippedHeader(null, 'springDeserializerExceptionValue', [])).toBe(true)
    expect(isStrippedHeader('spring-dlt', 'kafka_offset', [])).toBe(false)
    expect(isStrippedHeader('connect', 'traceparent', [])).toBe(false)
  })

  it('are those of the configuration', () => {
    expect(isStrippedHeader(null, 'mirror-origin', ['mirror-*', 'exact'])).toBe(true)
    expect(isStrippedHeader(null, 'exact', ['mirror-*', 'exact'])).toBe(true)
    expect(isStrippedHeader(null, 'exactly', ['mirror-*', 'exact'])).toBe(false)
  })
})

const numberOrNull = (text: string | undefined): number | null => (text === undefined ? null : Number(text))
