import { create, fromBinary, fromJson, type JsonValue, toBinary, toJsonString } from '@bufbuild/protobuf'
import { timestampFromMs } from '@bufbuild/protobuf/wkt'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { NewItem, ProduceRequest } from '../queue.ts'
import { instantFromWire } from './codec.ts'
import { type QueueProduceWithIdsRequest, QueueProduceWithIdsRequestSchema } from './queues_pb.ts'
import { producePlainBinary, producePlainJson, produceRequest } from './requests.ts'

const text = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 40 }),
  fc.constant(''),
  fc.string({ maxLength: 300 }),
)

const messages = fc
  .record({
    queueName: text,
    requestTimeout: text,
    items: fc.array(
      fc.record(
        {
          encoding: text,
          kind: text,
          reference: text,
          utf8: text,
          dedupeKey: text,
          bytes: fc.uint8Array({ maxLength: 200 }),
          enqueueAt: fc.integer({ min: 0, max: 4e12 }).map(timestampFromMs),
        },
        { requiredKeys: [] },
      ),
      { maxLength: 5 },
    ),
  })
  .map((fields) => create(QueueProduceWithIdsRequestSchema, fields))

/** What the library's reading of a message means, told apart from the code under test. */
const meaning = ({ queueName, requestTimeout, items }: QueueProduceWithIdsRequest) => ({
  queueName,
  requestTimeout,
  items: items.map((item) => ({
    encoding: item.encoding,
    kind: item.kind,
    reference: item.reference,
    payload: Buffer.from(item.bytes.length > 0 ? item.bytes : item.utf8).toString('hex'),
    enqueueAt: item.enqueueAt === undefined ? null : instantFromWire(item.enqueueAt, 'enqueue_at'),
    dedupeKey: item.dedupeKey,
  })),
})

const comparable = (request: ProduceRequest) => ({
  ...request,
  items: request.items.map(({ payload, enqueueAt, dedupeKey, ...item }: NewItem) => ({
    ...item,
    payload: Buffer.from(payload ?? '').toString('hex'),
    enqueueAt: enqueueAt ?? null,
    dedupeKey: dedupeKey ?? '',
  })),
})

/** What either reader says, errors being one and the same. */
const verdict = <T>(read: () => T): T | 'refused' => {
  try {
    return read()
  } catch {
    return 'refused'
  }
}

describe('a produce request', () => {
  it('in binary means what the library reads, and is read without it', () => {
    fc.assert(
      fc.property(messages, (message) => {
        const body = Buffer.from(toBinary(QueueProduceWithIdsRequestSchema, message))
        const plain = producePlainBinary(body, true)
        expect(plain && comparable(plain)).toEqual(meaning(message))
      }),
    )
  })

  it('in JSON means what the library reads, and is read without it', () => {
    fc.assert(
      fc.property(messages, (message) => {
        const json: unknown = JSON.parse(toJsonString(QueueProduceWithIdsRequestSchema, message))
        const plain = producePlainJson(json, true)
        expect(plain && comparable(plain)).toEqual(meaning(message))
      }),
    )
  })

  it('with any byte changed is read or refused as the library does', () => {
    const change = fc.record({ at: fc.nat(), to: fc.integer({ min: 0, max: 255 }) })
    fc.assert(
      fc.property(messages, fc.array(change, { maxLength: 3 }), fc.nat(), (message, changes, cut) => {
        const whole = Buffer.from(toBinary(QueueProduceWithIdsRequestSchema, message))
        for (const { at, to } of changes) if (whole.length > 0) whole[at % whole.length] = to
        const body = cut % 3 === 0 ? whole.subarray(0, cut % (whole.length + 1)) : whole
        const expected = verdict(() => meaning(fromBinary(QueueProduceWithIdsRequestSchema, body)))
        expect(verdict(() => comparable(produceRequest(body, 'protobuf', true)))).toEqual(expected)
      }),
      { numRuns: 2_000 },
    )
  })

  it('with odd JSON values is read or refused as the library does', () => {
    const names = [
      'kind',
      'bytes',
      'utf8',
      'enqueue_at',
      'enqueueAt',
      'dedupe_key',
      'queue_name',
      'items',
      'other',
    ]
    const values = fc.oneof(
      fc.jsonValue({ maxDepth: 1 }),
      fc.constantFrom(
        'aGk',
        'aGk=',
        'a-_=',
        'a b=',
        '====',
        '\ud800',
        null,
        '2027-01-01T00:00:00+01:00',
        '2027',
      ),
    )
    const object = fc.dictionary(fc.constantFrom(...names), values)
    const bodies = fc.oneof(
      object,
      fc.record({ queue_name: values, items: fc.array(object, { maxLength: 3 }) }, { requiredKeys: [] }),
      fc.record({ queueName: fc.string(), queue_name: fc.string() }),
    )
    fc.assert(
      fc.property(bodies, (json) => {
        const body = Buffer.from(JSON.stringify(json))
        const parsed: JsonValue = JSON.parse(body.toString())
        const expected = verdict(() => meaning(fromJson(QueueProduceWithIdsRequestSchema, parsed)))
        expect(verdict(() => comparable(produceRequest(body, 'json', true)))).toEqual(expected)
      }),
      { numRuns: 2_000 },
    )
  })

  it('keeps U+0000 and a leading byte order mark', () => {
    const body = '{"queue_name":"q","items":[{"kind":"a\\u0000b","reference":"\\ufeffr"}]}'
    expect(produceRequest(Buffer.from(body), 'json', false).items[0]).toMatchObject({
      kind: 'a\u0000b',
      reference: '\ufeffr',
    })
    const message = create(QueueProduceWithIdsRequestSchema, {
      items: [{ kind: 'a\u0000b', reference: '\ufeffr' }],
    })
    const binary = Buffer.from(toBinary(QueueProduceWithIdsRequestSchema, message))
    expect(produceRequest(binary, 'protobuf', false).items[0]).toMatchObject({
      kind: 'a\u0000b',
      reference: '\ufeffr',
    })
  })

  it('refuses bad UTF-8 in a binary text', () => {
    const body = Buffer.from([10, 2, 0xc3, 0x28])
    expect(() => produceRequest(body, 'protobuf', false)).toThrow(
      expect.objectContaining({ code: 'body_undecodable' }),
    )
  })

  it('knows the dedupe key only where ids are asked for', () => {
    const body = Buffer.from('{"items":[{"dedupe_key":"k"}]}')
    expect(produceRequest(body, 'json', true).items[0]).toMatchObject({ dedupeKey: 'k' })
    expect(() => produceRequest(body, 'json', false)).toThrow(
      expect.objectContaining({ code: 'body_undecodable' }),
    )
  })

  it('refuses a time that no calendar has', () => {
    const message = create(QueueProduceWithIdsRequestSchema, {
      items: [{ enqueueAt: { seconds: 1n << 60n, nanos: 0 } }],
    })
    const body = Buffer.from(toBinary(QueueProduceWithIdsRequestSchema, message))
    expect(() => produceRequest(body, 'protobuf', false)).toThrow(
      'enqueue_at is not a timestamp between the years 0001 and 9999',
    )
  })
})
