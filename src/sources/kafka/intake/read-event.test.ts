import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { recordOf, VECTORS } from '../../../../test/kafka/vectors.ts'
import { header, oldRecord, record } from '../../../../test/world/kafka/records.ts'
import { kafkaSettingsFor, type SettingsDraft } from '../../../../test/world/kafka/settings.ts'
import { FAMILIES } from '../dialects/families.ts'
import { type EventFacts, type RawRecord, REASONS, WARNINGS } from '../event.ts'
import { serviceNamed } from '../settings/settings.ts'
import { shownBytes } from '../wire/bytes.ts'
import { readEvent } from './read-event.ts'
import { ownDlqId } from './store-incoming.ts'

const MINTED = '11111111-1111-4111-8111-111111111111'

const read = (sample: RawRecord, draft: SettingsDraft = {}): EventFacts =>
  readEvent(sample, kafkaSettingsFor(draft), () => MINTED)

/** As the vectors want it: two services that share a topic. */
const SHARED: SettingsDraft = { services: { svc: { dlqTopic: 'dlq' }, other: { dlqTopic: 'dlq' } } }
const GENERIC: SettingsDraft = { services: { billing: { dlqTopic: 'orders-dlt', profile: 'generic' } } }
const TO_ORIGINAL: SettingsDraft = {
  services: {
    billing: {
      dlqTopic: 'orders-dlt',
      profile: 'generic',
      retryTopic: '$original',
      originalTopics: ['orders'],
    },
  },
}

describe('a record of hexkit', () => {
  const draft: SettingsDraft = {
    services: {
      svc: { dlqTopic: 'dlq' },
      svchk52f1b: { dlqTopic: 'dlqhk52f1b' },
      svchk4af34: { dlqTopic: 'dlqhk4af34', retryTopic: 'svchk4af34-retry' },
    },
  }
  const vectors = VECTORS.hexkit_records.filter(({ expect: expected }) => expected !== undefined)

  it.each(vectors)('is understood: $id', ({ expect: expected, ...vector }) => {
    const sample = recordOf(vector)
    const facts = read(sample, draft)
    const { timestamp: _, ...wanted } = expected ?? {}
    const { readFrom } = facts
    const found = {
      service: facts.service,
      original_topic: facts.originalTopic,
      ...(readFrom === null ? {} : { read_from: { ...readFrom, offset: Number(readFrom.offset) } }),
      type: facts.type,
      key: shownBytes(sample.key),
      dlq_id: ownDlqId(sample) ?? 'derived (section 4.2)',
      original_event_id: facts.originalEventId,
      correlation_id: facts.correlationId,
      exc_class: facts.exception.class,
      exc_msg: facts.exception.message,
      retry_topic: serviceNamed(kafkaSettingsFor(draft), facts.service)?.retryTopic,
      reasons: facts.reasons,
      warnings: facts.warnings,
    }
    expect(found).toEqual(wanted)
    expect(facts.family).toBe('hexkit')
  })

  it.each(VECTORS.intake)(
    'has the reasons and warnings of the vector: $id',
    ({ expect: expected, ...vector }) => {
      const facts = read(recordOf(vector), SHARED)
      expect({ reasons: facts.reasons, warnings: facts.warnings }).toEqual({
        reasons: vector.reasons,
        warnings: vector.warnings,
      })
      const { published_value: _, http_payload: __, ...wanted } = expected ?? {}
      const found = {
        original_event_id: facts.originalEventId,
        exc_msg: facts.exception.message,
        type: facts.type,
      }
      expect(found).toMatchObject(wanted)
    },
  )

  it('is understood as a whole', () => {
    const correlationId = randomUUID()
    const originalEventId = randomUUID()
    expect(read(record({ correlationId, originalEventId: originalEventId.toUpperCase() }))).toEqual({
      service: 'wps',
      originalTopic: 'orders',
      type: 'created',
      correlationId,
      mintedCorrelationId: null,
      originalEventId,
      readFrom: null,
      exception: { class: 'ValueError', message: 'boom' },
      family: 'hexkit',
      origin: { topic: 'orders' },
      attemptsReported: null,
      valueForm: 'json',
      reasons: [],
      warnings: [],
    })
  })

  it('of an old generation says where it was read', () => {
    const place = { service: 'wps', topic: 'orders', partition: 1, offset: 12n }
    expect(read(oldRecord(place))).toMatchObject({
      service: 'wps',
      readFrom: { topic: 'orders', partition: 1, offset: '12' },
      origin: { topic: 'orders', partition: 1, offset: '12' },
      originalEventId: null,
      reasons: [],
      warnings: [],
    })
    // After a failed retry that is the retry topic.
    expect(read(oldRecord({ ...place, topic: 'wps_retry' }))).toMatchObject({
      originalTopic: 'orders',
      readFrom: { topic: 'wps_retry', partition: 1, offset: '12' },
      origin: { topic: 'orders' },
    })
  })

  it.each(['wps,a b,0,1', 'wps,a,9999999999,1', 'wps,a,0,9999999999999999999', 'wps,a\u0000,0,1'])(
    'of an old generation may say a place that cannot be: %j',
    (eventId) => {
      expect(read(record({ service: null, eventId }))).toMatchObject({
        service: 'wps',
        readFrom: null,
        warnings: [],
      })
    },
  )

  it.each(['wps,orders,0', ',orders,0,1', 'wps,orders,-1,1', 'wps,orders,0,x', 'wps'])(
    'has an event id that is of no generation: %j',
    (eventId) => {
      expect(read(record({ eventId }))).toMatchObject({ readFrom: null, warnings: ['event_id_invalid'] })
    },
  )

  it('that names an impossible service in its event id is not given to another one', () => {
    expect(read(oldRecord({ service: '../etc', topic: 'orders', partition: 0, offset: 0 }))).toMatchObject({
      service: '~unknown',
      reasons: ['service_unknown'],
    })
  })

  it('without a service goes to the only one of its topic, with a warning', () => {
    expect(read(record({ service: null }))).toMatchObject({ service: 'wps', warnings: ['service_guessed'] })
  })

  it('gets a correlation id once, when it has none or one that nobody can use', () => {
    for (const correlationId of [null, '']) {
      expect(read(record({ correlationId }))).toMatchObject({
        correlationId: null,
        mintedCorrelationId: MINTED,
        reasons: [],
        warnings: ['correlation_id_minted'],
      })
    }
    expect(read(record({ correlationId: 'abc' }))).toMatchObject({
      correlationId: 'abc',
      mintedCorrelationId: MINTED,
      reasons: ['correlation_id_invalid'],
    })
  })

  it.each(['wps_retry', 'ucs_dlq', 'retry-anything', 'a b', '..', '~unknown', 'ü'])(
    'cannot come from the topic %j',
    (originalTopic) => {
      expect(read(record({ originalTopic }))).toMatchObject({
        originalTopic: '~unknown',
        origin: { topic: originalTopic },
        reasons: ['original_topic_invalid'],
      })
    },
  )

  it('has a type that is shown, and never one that looks like ASCII and is not', () => {
    expect(read(record({ type: 'größer' }))).toMatchObject({ type: 'größer', reasons: ['type_not_ascii'] })
    const bytes = record({ type: null, more: [['type', Buffer.from('ff', 'hex')]] })
    expect(read(bytes)).toMatchObject({
      type: '\ufffd',
      reasons: ['type_not_ascii'],
      warnings: ['header_not_utf8'],
    })
    expect(read(record({ type: 't'.repeat(5_000) })).type).toBe(`${'t'.repeat(4_096)}… [cut]`)
  })

  it('is unreadable for its consumer when it is too deep or has endless integers', () => {
    const depth = '['.repeat(501) + ']'.repeat(501)
    expect(read(record({ value: `{"a": ${depth}}` })).reasons).toEqual(['value_unreadable_for_consumer'])
    expect(read(record({ value: `{"a": ${'9'.repeat(4_301)}}` })).reasons).toEqual([
      'value_unreadable_for_consumer',
    ])
  })

  it('tells null from what is not JSON', () => {
    expect(read(record({ value: null })).valueForm).toBe('null')
    expect(read(record({ value: 'null' }))).toMatchObject({
      valueForm: 'json',
      warnings: ['payload_not_object'],
    })
    expect(read(record({ value: '' })).valueForm).toBe('other')
    expect(read(record({ value: Buffer.from('ff', 'hex') })).valueForm).toBe('other')
  })

  it('may have no time, and odd headers', () => {
    expect(read(record({ timestampMs: -1 })).warnings).toEqual(['timestamp_missing'])
    const odd = record({
      more: [
        ['x', null],
        ['y', Buffer.from('ff', 'hex')],
        ['x', 'again'],
      ],
    })
    expect(read(odd).warnings).toEqual(['header_not_utf8', 'header_null', 'header_duplicate'])
    const name = {
      ...record(),
      headers: [...record().headers, { name: Buffer.from('ff', 'hex'), value: null }],
    }
    expect(read(name).warnings).toEqual(['header_not_utf8', 'header_null'])
  })

  it('is too large when what would be published is', () => {
    const limit = { maxMessageBytes: 2_000 }
    expect(read(record({ excMsg: 'm'.repeat(5_000) }), limit).reasons).toEqual([])
    expect(read(record({ value: `"${'v'.repeat(1_500)}"` }), limit).reasons).toEqual([])
    expect(read(record({ value: `"${'v'.repeat(2_000)}"` }), limit).reasons).toEqual(['too_large'])
    expect(read(record({ value: `"${'ü'.repeat(500)}"` }), limit).reasons).toEqual(['too_large'])
    const compressed = read(record({ value: `"${'v'.repeat(2_000)}"` }), { ...limit, compression: 'gzip' })
    expect(compressed).toMatchObject({ reasons: [], warnings: ['payload_not_object', 'too_large'] })
  })

  it('without any header is quarantined where it stands', () => {
    expect(read(record({ headers: [] }))).toMatchObject({
      service: 'wps',
      originalTopic: '~unknown',
      type: '',
      family: null,
      exception: {},
      reasons: ['type_missing', 'original_topic_missing'],
      warnings: ['correlation_id_minted', 'service_guessed'],
    })
  })

  it('takes from other tools only what it leaves empty', () => {
    const connect: RawRecord = record({
      excClass: null,
      more: [
        ['__connect.errors.topic', 'orders'],
        ['__connect.errors.partition', '3'],
        ['__connect.errors.offset', '7'],
        ['__connect.errors.exception.class.name', 'E'],
        ['__connect.errors.exception.message', 'other'],
      ],
    })
    expect(read(connect)).toMatchObject({
      family: 'connect',
      origin: { topic: 'orders', partition: 3, offset: '7' },
      exception: { class: 'E', message: 'boom' },
      reasons: [],
    })
    const elsewhere = record({
      excClass: null,
      more: [
        ['__connect.errors.topic', 'other'],
        ['__connect.errors.partition', '3'],
        ['__connect.errors.stage', 'x'],
      ],
    })
    expect(read(elsewhere).origin).toEqual({ topic: 'orders' })
    const without = record({
      originalTopic: null,
      more: [
        ['x-source-topic', 'orders'],
        ['x-source-offset', '1'],
      ],
    })
    expect(read(without)).toMatchObject({ family: 'silverback', originalTopic: 'orders', reasons: [] })
  })
})

describe('a record of nobody', () => {
  it('is looked at like those of the owners of its topic', () => {
    const avro = { topic: 'dlt', value: Buffer.from('00ff', 'hex'), key: null, headers: [] }
    const one = { dlqTopic: 'dlt', profile: 'generic' as const }
    expect(read(record(avro), { services: { one, two: one } })).toMatchObject({
      service: '~unknown',
      reasons: ['service_unknown'],
      warnings: [],
    })
    expect(read(record(avro), { services: { one, two: { dlqTopic: 'dlt' } } }).reasons).toEqual([
      'value_not_utf8',
      'key_null',
      'type_missing',
      'original_topic_missing',
      'service_unknown',
    ])
  })

  it('belongs to whose group failed on it', () => {
    const sample = record({
      topic: 'dlq',
      headers: [header('__dlq.errors.topic', 'orders'), header('__dlq.errors.group', 'irs-eu')],
    })
    const facts = read(sample)
    expect(facts).toMatchObject({
      service: 'irs',
      originalTopic: 'orders',
      origin: { consumerGroup: 'irs-eu' },
    })
    expect(facts.warnings).toContain('service_guessed')
  })
})

describe('a record that an operator gave to a service', () => {
  const settings = kafkaSettingsFor()
  const given = settings.services.get('ucs')

  it('is that one’s, whatever it says itself', () => {
    if (given === undefined) throw new Error('the service is listed')
    const sample = record({ service: 'nobody', originalTopic: 'a b' })
    const facts = readEvent(sample, settings, () => MINTED, { service: given, originalTopic: 'orders' })
    expect(facts).toMatchObject({ service: 'ucs', originalTopic: 'orders', reasons: [], warnings: [] })
    const topicKept = readEvent(sample, settings, () => MINTED, { service: given, originalTopic: null })
    expect(topicKept).toMatchObject({ service: 'ucs', reasons: ['original_topic_invalid'] })
  })
})

describe('a record of any other tool', () => {
  const spring = (more: readonly (readonly [string, string | Uint8Array | null])[] = []): RawRecord =>
    record({
      topic: 'orders-dlt',
      key: null,
      value: Buffer.from('00ff', 'hex'),
      headers: [
        header('kafka_dlt-original-topic', 'orders'),
        header('kafka_dlt-original-partition', Buffer.from('00000003', 'hex')),
        header('kafka_dlt-original-offset', Buffer.from('ffffffffffffff80', 'hex')),
        header('kafka_dlt-exception-fqcn', 'E'),
        header('kafka_dlt-exception-message', null),
        ...more.map(([name, value]) => header(name, value)),
      ],
    })

  it('may have any value and key, binary headers and no ids', () => {
    expect(read(spring(), GENERIC)).toEqual({
      service: 'billing',
      originalTopic: 'orders',
      type: '',
      correlationId: null,
      mintedCorrelationId: null,
      originalEventId: null,
      readFrom: null,
      exception: { class: 'E' },
      family: 'spring-dlt',
      origin: { topic: 'orders', partition: 3 },
      attemptsReported: null,
      valueForm: 'other',
      reasons: [],
      warnings: ['service_guessed'],
    })
  })

  it('is warned of for headers that no tool explains', () => {
    const sample = spring([
      ['x', Buffer.from('ff', 'hex')],
      ['kafka_dlt-original-topic', 'orders'],
    ])
    expect(read(sample, GENERIC).warnings).toEqual(['header_not_utf8', 'service_guessed'])
  })

  it('keeps the type and the correlation id that it has', () => {
    const sample = spring([
      ['type', 'created'],
      ['correlation_id', 'any'],
      ['original_event_id', 'any'],
    ])
    expect(read(sample, GENERIC)).toMatchObject({
      type: 'created',
      correlationId: 'any',
      originalEventId: null,
      reasons: [],
      warnings: ['service_guessed'],
    })
  })

  it('must come from a topic that is allowed, when it is to go back there', () => {
    const from = (topic: string): RawRecord => spring([['kafka_dlt-original-topic', topic]])
    expect(read(spring(), TO_ORIGINAL).reasons).toEqual([])
    expect(read(from('bills'), TO_ORIGINAL)).toMatchObject({
      originalTopic: 'bills',
      reasons: ['original_topic_not_allowed'],
      firstOrigin: { topic: 'orders', partition: 3 },
    })
    expect(read(from('orders-dlt'), TO_ORIGINAL)).toMatchObject({
      originalTopic: '~unknown',
      reasons: ['original_topic_invalid'],
    })
    expect(read(record({ topic: 'orders-dlt', headers: [] }), TO_ORIGINAL).reasons).toEqual([
      'original_topic_missing',
    ])
  })

  it('may come from the retry topic, when it goes there again', () => {
    const from = (topic: string): RawRecord => spring([['kafka_dlt-original-topic', topic]])
    expect(read(from('retry-billing'), GENERIC)).toMatchObject({
      originalTopic: 'retry-billing',
      reasons: [],
    })
    expect(read(from('a b'), GENERIC)).toMatchObject({ originalTopic: '~unknown', reasons: [] })
  })

  it('is too large without the headers that are left out', () => {
    const limit = { ...GENERIC, maxMessageBytes: 1_000 }
    expect(read(spring([['kafka_dlt-exception-stacktrace', 's'.repeat(2_000)]]), limit).reasons).toEqual([])
    expect(read(spring([['mine', 's'.repeat(2_000)]]), limit).reasons).toEqual(['too_large'])
  })

  it('with its metadata in the key has the key that it had', () => {
    const vector = VECTORS.foreign_headers.find(({ id }) => id === 'uber-key-metadata')
    if (vector === undefined) throw new Error('the vector is there')
    const services = { uber: { dlqTopic: vector.topic, keyFormat: 'uber' as const } }
    const generic = { uber: { ...services.uber, profile: 'generic' as const } }
    expect(read(recordOf(vector), { services: generic })).toMatchObject({
      family: 'uber',
      originalTopic: 'orders',
      originalKey: 'azE=',
      attemptsReported: 2,
      reasons: [],
    })
    // The original key is what goes out, so it is the one that must be readable.
    expect(read(recordOf(vector), { services }).reasons).toEqual(['type_missing'])
  })
})

describe('any bytes', () => {
  const names = FAMILIES.flatMap(({ headers }) => headers.map(({ name }) => Buffer.from(name)))
  const bytes = fc.oneof(
    fc.uint8Array({ maxLength: 40 }),
    fc.string().map((text) => Buffer.from(text)),
  )
  const arbitrary = fc.record({
    topic: fc.constantFrom('dlq', 'wps_dlq', 'orders-dlt', 'other'),
    partition: fc.nat(),
    offset: fc.bigInt({ min: 0n, max: 2n ** 63n - 1n }),
    timestampMs: fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
    key: fc.option(bytes),
    value: fc.option(
      fc.oneof(
        bytes,
        fc.json().map((text) => Buffer.from(text)),
      ),
    ),
    headers: fc.array(
      fc.record({ name: fc.oneof(bytes, fc.constantFrom(...names)), value: fc.option(bytes) }),
      { maxLength: 30 },
    ),
  })
  const settings = [
    kafkaSettingsFor(),
    kafkaSettingsFor({ acceptUnlistedServices: true, maxMessageBytes: 100, compression: 'gzip' }),
    kafkaSettingsFor({ services: { uber: { dlqTopic: 'dlq', keyFormat: 'uber' } }, maxMessageBytes: 100 }),
  ]

  it('are facts that survive JSON', () => {
    fc.assert(
      fc.property(arbitrary, fc.constantFrom(...settings), (sample, given) => {
        const facts = readEvent(sample, given, () => MINTED)
        expect(JSON.parse(JSON.stringify(facts))).toEqual(facts)
        expect(JSON.stringify(facts).isWellFormed()).toBe(true)
        expect(REASONS).toEqual(expect.arrayContaining([...facts.reasons]))
        expect(WARNINGS).toEqual(expect.arrayContaining([...facts.warnings]))
        expect(new Set(facts.reasons).size).toBe(facts.reasons.length)
        expect(new Set(facts.warnings).size).toBe(facts.warnings.length)
      }),
      { numRuns: 500 },
    )
  })

  it('are bounded, however many headers there are', () => {
    const many = Array.from({ length: 20_000 }, (_, number) => header(`name-${number}`, 'x'))
    const long = record({ excMsg: 'm'.repeat(1_000_000), more: [['event_id', 'e'.repeat(1_000_000)]] })
    const facts = read({ ...long, headers: [...long.headers, ...many] })
    expect(JSON.stringify(facts).length).toBeLessThan(64 * 1024)
    expect(facts.warnings).toEqual(['event_id_invalid', 'header_duplicate'])
  })
})
