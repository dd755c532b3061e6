import { randomUUID } from 'node:crypto'
import { afterEach, describe, expect, it } from 'vitest'
import { header, RECORD_TIME_MS, record } from '../../../../test/world/kafka/records.ts'
import { dlqIds, KafkaWorld, type KafkaWorldOptions } from '../../../../test/world/kafka/world.ts'
import { stores } from '../../../../test/world/stores.ts'
import { StoreUnavailable } from '../../../store/database.ts'
import { UNKNOWN } from '../event.ts'
import type { Gap } from './partition-counts.ts'
import { derivedDlqId, fingerprintOf } from './store-incoming.ts'

const text = (bytes: Uint8Array | null | undefined): string | null =>
  bytes == null ? null : Buffer.from(bytes).toString()

describe.each(stores)('records on $name', (kind) => {
  let opened: KafkaWorld | undefined
  const open = async (options: KafkaWorldOptions = {}): Promise<KafkaWorld> => {
    opened = await KafkaWorld.open(kind, options)
    return opened
  }
  afterEach(async () => {
    await opened?.expectVerified()
    await opened?.close()
    opened = undefined
  })

  describe('a new record', () => {
    it('becomes a letter with its bytes, its history and its count', async () => {
      const kafka = await open()
      const eventId = randomUUID()
      const correlationId = randomUUID()
      const stored = await kafka.take(
        kafka.record({ eventId, correlationId, key: 'k7', value: '{"a": 1.0}', type: 'upserted' }),
      )
      expect(stored).toEqual({ received: 1, duplicates: 0, created: 1, reopened: 0 })
      const [event] = await kafka.events()
      if (event === undefined) throw new Error('nothing was stored')
      expect(event).toMatchObject({
        dlqId: eventId,
        service: 'wps',
        originalTopic: 'orders',
        attempts: 1,
        state: 0,
        eventId: null,
        timestampMs: RECORD_TIME_MS,
      })
      expect([text(event.key), text(event.value)]).toEqual(['k7', '{"a": 1.0}'])
      const letter = await kafka.letter(event)
      expect(letter).toMatchObject({
        engine: 'kafka',
        source: 'kafka',
        originalQueue: 'wps/orders',
        status: 'Pending',
        reason: 'failed',
        correlationId,
        kind: 'upserted',
        reference: 'k7',
        errorClass: 'ValueError',
        errorMessage: 'boom',
        failedBy: 'wps',
        dequeueCount: 1,
        originalPartition: 0,
        lastFailureAt: RECORD_TIME_MS * 1000n,
      })
      expect(letter.sourceId).toMatch(/^wps_dlq:0:0:[0-9a-f]{64}$/)
      expect(await kafka.history()).toEqual([
        {
          operation: 'kafka.received',
          failed: false,
          letterId: event.letterId,
          version: 1,
          actor: 'system',
          notes: null,
          output: { topic: 'wps_dlq', partition: 0, offset: '0', dlq_id: eventId },
        },
      ])
      const counts = await kafka.letters.numbers.counts({ engine: 'kafka' }, ['originalQueue', 'status'])
      expect(counts.items).toMatchObject([{ originalQueue: 'wps/orders', status: 'Pending', count: 1 }])
    })

    it('keeps null and empty apart', async () => {
      const kafka = await open()
      await kafka.take(
        kafka.record({ value: null, key: null }),
        kafka.record({ value: '', key: '' }),
        kafka.record({ value: 'x', headers: [] }),
      )
      const events = await kafka.events()
      expect(events.map(({ value }) => text(value))).toEqual([null, '', 'x'])
      expect(events.map(({ key }) => text(key))).toEqual([null, '', 'k1'])
      expect(events[2]?.headers).toEqual([])
    })

    it('lies in the queue of its service and topic, or of none', async () => {
      const kafka = await open()
      await kafka.take(
        kafka.record({ topic: 'dlq', service: 'irs-eu', originalTopic: 'things' }),
        kafka.record({ topic: 'dlq', service: 'nobody' }),
        kafka.record({ service: 'wps', originalTopic: null }),
      )
      const queues = (await kafka.events()).map(({ service, originalTopic }) => [service, originalTopic])
      expect(queues).toContainEqual(['irs', 'things'])
      expect(queues).toContainEqual([UNKNOWN, 'orders'])
      expect(queues).toContainEqual(['wps', UNKNOWN])
    })

    it('is found by a correlation id that stands for one it does not have', async () => {
      const kafka = await open()
      const without = await kafka.dead({ correlationId: null })
      const bad = await kafka.dead({ correlationId: 'not a uuid \u0000' })
      expect((await kafka.letter(without)).correlationId).toBe(without.facts.mintedCorrelationId)
      expect((await kafka.letter(bad)).correlationId).toBe('not a uuid \uFFFD')
    })

    it('dates its letter with the present when its own time cannot be', async () => {
      const kafka = await open()
      await kafka.take(
        kafka.record({ timestampMs: -1 }),
        kafka.record({ timestampMs: 2n ** 63n - 1n }),
        kafka.record({ timestampMs: -(2n ** 63n) }),
      )
      const now = kafka.clock.now()
      for (const event of await kafka.events()) {
        expect((await kafka.letter(event)).lastFailureAt).toBe(now)
      }
    })
  })

  describe('a record that is here already', () => {
    it('is counted and changes nothing, whatever became of its letter', async () => {
      const kafka = await open()
      const one = kafka.record()
      const two = kafka.record()
      await kafka.take(one, two)
      const [first] = await kafka.events()
      if (first === undefined) throw new Error('nothing was stored')
      await kafka.publish(first)
      const before = await kafka.events()
      expect(await kafka.take(one, two)).toEqual({ received: 2, duplicates: 2, created: 0, reopened: 0 })
      expect(await kafka.events()).toEqual(before)
      expect(await kafka.operations()).toEqual(['kafka.received', 'kafka.received', 'kafka.published'])
      expect(await kafka.partitions()).toMatchObject([
        { received: 4, duplicates: 2, created: 2, reopened: 0, nextOffset: 2n },
      ])
    })

    it('is one also within a batch', async () => {
      const kafka = await open()
      const one = kafka.record()
      expect(await kafka.take(one, one, kafka.record(), one)).toEqual({
        received: 4,
        duplicates: 2,
        created: 2,
        reopened: 0,
      })
    })

    it('stays one when its letter is long gone', async () => {
      const kafka = await open()
      const made = kafka.record()
      await kafka.take(made)
      const event = await kafka.eventAt(made)
      const letter = await kafka.letter(event)
      await kafka.letters.change(
        { engine: 'kafka', rowKey: letter.rowKey },
        { status: 'Resolved', notes: 'not needed', actor: 'tester' },
      )
      await kafka.removeResolved()
      expect(await kafka.events()).toEqual([])
      expect(await kafka.take(made)).toMatchObject({ duplicates: 1, created: 0 })
      expect(await kafka.events()).toEqual([])
    })

    it('is a letter of its own when the same place has another record', async () => {
      const kafka = await open()
      const first = kafka.record({ offset: 0, eventId: null })
      const second = kafka.record({ offset: 0, eventId: null })
      await kafka.take(first)
      expect(await kafka.take(second, first)).toMatchObject({ created: 1, duplicates: 1 })
      const events = await kafka.events()
      expect(events.map(({ facts }) => facts.warnings.includes('position_reused'))).toEqual([false, true])
      expect(dlqIds(events)).toEqual([first, second].map((each) => derivedDlqId(each, fingerprintOf(each))))
    })

    it('is stored once by two servers at the same time', async () => {
      const kafka = await open()
      if (kafka.db.dialect === 'sqlite') return
      const other = kafka.anotherIntake()
      const records = Array.from({ length: 60 }, (_, i) => kafka.record({ partition: i % 3 }))
      const halves = [
        records.slice(0, 40),
        records.slice(20),
        records.toReversed().slice(0, 30).toReversed(),
        records,
      ]
      const stored = await Promise.all(
        halves.map((half, i) => (i % 2 === 0 ? kafka.records : other).prepare(half)()),
      )
      expect(stored.reduce((sum, { created }) => sum + created, 0)).toBe(60)
      expect(stored.reduce((sum, { duplicates }) => sum + duplicates, 0)).toBe(110)
      expect(await kafka.events()).toHaveLength(60)
    })
  })

  describe('the name of a record', () => {
    it('is its event id, and derived when that is taken', async () => {
      const kafka = await open()
      const eventId = randomUUID()
      const made = [
        kafka.record({ eventId: eventId.toUpperCase() }),
        kafka.record({ eventId }),
        kafka.record({ eventId: 'no uuid' }),
      ]
      await kafka.take(...made)
      const third = kafka.record({ eventId })
      await kafka.take(third)
      const [a, b, c, d] = await kafka.events()
      expect(a?.dlqId).toBe(eventId)
      for (const [event, from] of [
        [b, made[1]],
        [d, third],
      ] as const) {
        if (from === undefined) throw new Error('there is no such record')
        expect(event?.dlqId).toBe(derivedDlqId(from, fingerprintOf(from)))
        expect(event?.facts).toMatchObject({ duplicateOf: eventId })
        expect(event?.facts.warnings).toContain('duplicate_event_id')
      }
      expect(c?.facts.warnings).toContain('event_id_invalid')
      expect(c?.facts.warnings).not.toContain('duplicate_event_id')
    })

    it('is another one when somebody has taken the one it would get', async () => {
      const kafka = await open()
      const victim = record({ offset: 5, eventId: null })
      const derived = derivedDlqId(victim, fingerprintOf(victim))
      await kafka.take(record({ offset: 4, eventId: derived }), victim)
      const [first, second] = await kafka.events()
      expect(first?.dlqId).toBe(derived)
      expect(second?.dlqId).not.toBe(derived)
      const later = record({ offset: 7, eventId: null })
      await kafka.take(record({ offset: 6, eventId: derivedDlqId(later, fingerprintOf(later)) }))
      expect(await kafka.take(later)).toMatchObject({ created: 1 })
    })

    it('is decided by one of two servers that read it from two partitions', async () => {
      const kafka = await open()
      if (kafka.db.dialect === 'sqlite') return
      const other = kafka.anotherIntake()
      for (let i = 0; i < 5; i++) {
        const eventId = randomUUID()
        await Promise.all([
          kafka.records.prepare([kafka.record({ eventId, partition: 1 })])(),
          other.prepare([kafka.record({ eventId, partition: 2 })])(),
        ])
        const events = await kafka.events()
        expect(events.filter((event) => event.dlqId === eventId)).toHaveLength(1)
      }
    })
  })

  describe('the order', () => {
    const at = (ms: number): bigint => RECORD_TIME_MS + BigInt(ms)

    it('is that of offsets within a partition, also when the clock goes backwards', async () => {
      const kafka = await open()
      await kafka.take(
        kafka.record({ timestampMs: at(100), key: 'a' }),
        kafka.record({ timestampMs: at(50), key: 'b' }),
        kafka.record({ timestampMs: -1, key: 'c' }),
      )
      await kafka.take(
        kafka.record({ timestampMs: at(70), key: 'd' }),
        kafka.record({ timestampMs: at(100), key: 'e' }),
      )
      const events = await kafka.events()
      expect(events.map(({ key }) => text(key))).toEqual(['a', 'b', 'c', 'd', 'e'])
      expect(events.map(({ order }) => order.orderTs)).toEqual(events.map(() => at(100)))
      expect(events.map(({ timestampMs }) => timestampMs)).toEqual([at(100), at(50), -1n, at(70), at(100)])
    })

    it('is that of time across partitions, and of topic and partition at equal times', async () => {
      const kafka = await open()
      await kafka.take(
        kafka.record({ partition: 2, timestampMs: at(10), key: '2a' }),
        kafka.record({ partition: 0, timestampMs: at(20), key: '0a' }),
        kafka.record({ partition: 1, timestampMs: at(20), key: '1a' }),
        kafka.record({ partition: 0, timestampMs: at(5), key: '0b' }),
        kafka.record({ topic: 'ucs_dlq', service: 'ucs', timestampMs: at(20), key: 'u' }),
        kafka.record({ partition: 2, timestampMs: at(30), key: '2b' }),
      )
      const keys = (await kafka.events()).map(({ key }) => text(key))
      expect(keys).toEqual(['2a', 'u', '0a', '0b', '1a', '2b'])
    })

    it('goes on where it was when a topic is made anew', async () => {
      const kafka = await open()
      await kafka.take(kafka.record({ timestampMs: at(100), key: 'old' }))
      await kafka.take(kafka.record({ offset: 0, timestampMs: at(100), key: 'new' }))
      const events = await kafka.events()
      expect(events.map(({ key }) => text(key))).toEqual(['old', 'new'])
      expect(await kafka.partitions()).toMatchObject([{ nextOffset: 1n, created: 2 }])
    })
  })

  describe('a gap', () => {
    it('is in history and in the books of its partition', async () => {
      const gaps: Gap[] = []
      const kafka = await open({ listener: { gap: (gap) => gaps.push(gap) } })
      const gap = { topic: 'wps_dlq', partition: 1, expected: 7n, found: 2n ** 53n + 1n }
      await kafka.records.gap(gap)
      expect(await kafka.partitions()).toMatchObject([
        { topic: 'wps_dlq', partition: 1, gaps: 1, received: 0 },
      ])
      expect(await kafka.history()).toMatchObject([
        {
          operation: 'kafka.gap',
          letterId: null,
          actor: 'system',
          output: { topic: 'wps_dlq', partition: 1, expected: '7', found: '9007199254740993' },
        },
      ])
      expect(gaps).toEqual([gap])
      await kafka.take(kafka.record({ partition: 1, offset: 9, timestampMs: -1 }))
      expect((await kafka.events())[0]?.order.orderTs).toBe(-1n)
    })
  })

  it('may fail for as many reasons as there are', async () => {
    const kafka = await open()
    const words = (n: number): string => n.toString(2).replaceAll('0', ' no').replaceAll('1', ' one')
    const records = Array.from({ length: 120 }, (_, n) => kafka.record({ excMsg: words(n + 64) }))
    expect(await kafka.take(...records)).toMatchObject({ created: 120 })
    const { items } = await kafka.letters.numbers.counts({ engine: 'kafka' }, ['signature'])
    expect(items).toHaveLength(120)
  })

  it('tells who listens, after the commit', async () => {
    const told: unknown[] = []
    const kafka = await open({
      listener: {
        stored: (topic, stored) => told.push([topic, stored]),
        quarantined: (service, reasons) => told.push([service, reasons]),
      },
    })
    const one = kafka.record()
    await kafka.take(one, one, kafka.record({ topic: 'ucs_dlq', service: 'ucs', value: null }))
    expect(told).toEqual([
      ['ucs_dlq', { received: 1, duplicates: 0, created: 1, reopened: 0 }],
      ['wps_dlq', { received: 2, duplicates: 1, created: 1, reopened: 0 }],
      ['ucs', ['value_null']],
    ])
  })

  it('stores nothing at all when the store is away, and says so', async () => {
    const told: string[] = []
    const kafka = await open({ listener: { stored: (topic) => told.push(topic) } })
    const made = [kafka.record(), kafka.record()]
    await kafka.place.refuseWrites()
    await expect(kafka.take(...made)).rejects.toThrow(
      kafka.db.dialect === 'postgres' ? StoreUnavailable : Error,
    )
    await kafka.place.acceptWrites()
    expect(told).toEqual([])
    expect(await kafka.take(...made)).toMatchObject({ created: 2 })
  })

  it('takes nothing, which is nothing', async () => {
    const kafka = await open()
    expect(await kafka.take()).toEqual({ received: 0, duplicates: 0, created: 0, reopened: 0 })
  })

  describe('whatever its bytes', () => {
    it('is stored and comes back as it was', async () => {
      const kafka = await open()
      const odd = [
        kafka.record({
          excMsg: 'nul \u0000 here',
          excClass: '\u0000',
          type: '\u0000',
          correlationId: '\u0000',
        }),
        kafka.record({
          excMsg: Buffer.from([0xed, 0xa0, 0x80]).toString('latin1'),
          key: Buffer.from([0xff, 0, 0xfe]),
        }),
        kafka.record({ value: '{"a":"\\ud800"}', key: '\\ud800\u0000' }),
        kafka.record({ more: [['huge', 'x'.repeat(300_000)]], correlationId: 'ü'.repeat(50_000) }),
        kafka.record({
          excMsg: 'm'.repeat(200_000),
          service: 's'.repeat(10_000),
          originalTopic: 't'.repeat(10_000),
        }),
        kafka.record({ headers: [header('', null), header('a', null), header('a', Buffer.from([0x80]))] }),
        kafka.record({ timestampMs: 2n ** 63n - 1n, offset: 2n ** 63n - 1n, partition: 2 ** 31 - 1 }),
      ]
      expect(await kafka.take(...odd)).toMatchObject({ created: odd.length })
      for (const made of odd) {
        const event = await kafka.eventAt(made)
        expect(Buffer.from(event.value ?? [])).toEqual(Buffer.from(made.value ?? []))
        expect(Buffer.from(event.key ?? [])).toEqual(Buffer.from(made.key ?? []))
        expect(plain(event.headers)).toEqual(plain(made.headers))
      }
    })

    it('is stored: records of random bytes', async () => {
      const kafka = await open()
      const random = randomRecords(400)
      expect(await kafka.take(...random.map((draft) => kafka.record(draft)))).toMatchObject({ created: 400 })
      const events = await kafka.events()
      expect(events).toHaveLength(400)
      for (const event of events) {
        const made = random[Number(event.order.offset)]
        expect(plain(event.headers)).toEqual(plain(made?.headers ?? []))
        expect(hex(event.value)).toBe(hex(made?.value ?? null))
        expect(hex(event.key)).toBe(hex(made?.key ?? null))
      }
    })
  })
})

const hex = (bytes: Uint8Array | null): string | null =>
  bytes === null ? null : Buffer.from(bytes).toString('hex')

const plain = (headers: readonly { readonly name: Uint8Array; readonly value: Uint8Array | null }[]) =>
  headers.map(({ name, value }) => [hex(name), hex(value)])

/** Records whose names and values are bytes of a generator, some of them under names that mean something. */
function randomRecords(count: number) {
  let state = 0x2545f491
  const next = (below: number): number => {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    return (state >>> 0) % below
  }
  const NAMES = [
    'exc_class',
    'exc_msg',
    'original_topic',
    'original_event_id',
    'service',
    'type',
    'event_id',
    'correlation_id',
  ]
  const bytes = (most: number): Buffer => Buffer.from(Array.from({ length: next(most) }, () => next(256)))
  const maybe = (most: number): Buffer | null => (next(6) === 0 ? null : bytes(most))
  return Array.from({ length: count }, () => ({
    key: maybe(12),
    value: maybe(40),
    headers: Array.from({ length: next(10) }, () => {
      const name = next(2) === 0 ? Buffer.from(NAMES[next(NAMES.length)] ?? '') : bytes(8)
      return { name, value: maybe(30) }
    }),
  }))
}
