import { randomUUID } from 'node:crypto'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { Desk, headerIn, refusal, refusalId, TESTER } from '../../../../test/world/kafka/return.ts'
import { stores } from '../../../../test/world/stores.ts'
import { UNKNOWN } from '../event.ts'
import type { Decision } from '../processors/processors.ts'
import { lastHeader, shownBytes } from '../wire/bytes.ts'

const UUID_V4 = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

describe.each(stores)('processing on $name', (kind) => {
  let desk: Desk
  beforeAll(async () => {
    desk = await Desk.open(kind)
  })
  afterAll(() => desk?.close())
  afterEach(async () => {
    desk.decide = () => ({ action: 'publish', change: {} })
    desk.told.length = 0
    await desk.expectVerified()
  })

  describe('the next event of a service', () => {
    it('goes to the retry topic with four headers and its own bytes, and its letter is resolved', async () => {
      const service = desk.service()
      const event = await desk.deadOf(service, {
        key: 'order-1',
        value: '{"big": 12345678901234567890, "f": 1.0}',
      })
      const resolution = await desk.process(service)
      const [record] = desk.publisher.sent.slice(-1)
      if (record === undefined || resolution.outcome !== 'published') throw new Error('nothing was sent')
      expect(resolution.record).toEqual(record)
      expect(record.topic).toBe(`retry-${service}`)
      expect(shownBytes(record.key)).toBe('order-1')
      expect(shownBytes(record.value)).toBe('{"big": 12345678901234567890, "f": 1.0}')
      expect(record.headers.map(({ name }) => shownBytes(name))).toEqual([
        'original_topic',
        'type',
        'event_id',
        'correlation_id',
      ])
      expect(headerIn(record, 'original_topic')).toBe('orders')
      expect(headerIn(record, 'type')).toBe('created')
      expect(headerIn(record, 'correlation_id')).toBe(event.facts.correlationId)
      const minted = headerIn(record, 'event_id')
      expect(minted).toMatch(UUID_V4)
      expect(minted).not.toBe(shownBytes(lastHeader(event.headers, 'event_id') ?? null))

      expect(await desk.standing(event)).toEqual({ state: 'published', status: 'Resolved', eventId: minted })
      expect(await desk.letter(event)).toMatchObject({
        resolution: 'retry',
        resolvedBy: TESTER.actor,
        sentAs: minted,
        sentTo: `retry-${service}`,
        version: 2,
      })
      const row = (await desk.history()).at(-1)
      expect(row).toMatchObject({
        operation: 'kafka.published',
        actor: TESTER.actor,
        version: 2,
        failed: false,
      })
      expect(row?.output).toMatchObject({
        request_id: TESTER.requestId,
        dlq_id: event.dlqId,
        event_id: minted,
        topic: `retry-${service}`,
        partition: 0,
      })
      expect(desk.told).toEqual([`${service} orders published`])
    })

    it('is the oldest, one for each call', async () => {
      const service = desk.service()
      await desk.deadOnes(service, 3)
      for (let i = 0; i < 3; i++) await desk.process(service)
      expect(desk.sentKeys(service)).toEqual(['k0', 'k1', 'k2'])
      expect(await refusal(desk.process(service))).toEqual({
        id: 'emptyDLQError',
        status: 404,
        data: { service },
      })
    })

    it('is the oldest of a topic where one is named', async () => {
      const service = desk.service()
      await desk.deadOf(service, { key: 'first' })
      await desk.deadOf(service, { key: 'second', originalTopic: 'bills' })
      await desk.process(service, { topic: 'bills' })
      expect(desk.sentKeys(service)).toEqual(['second'])
      expect(await refusal(desk.process(service, { topic: 'bills' }))).toMatchObject({
        id: 'emptyDLQError',
        data: { service, topic: 'bills' },
      })
      for (const topic of ['no such', 'a\0b', '']) {
        expect(await refusalId(desk.process(service, { topic }))).toBe('emptyDLQError')
        expect(await refusalId(desk.process(topic))).toBe('emptyDLQError')
      }
    })

    it('must be the one that the caller names', async () => {
      const service = desk.service()
      const [first, second] = await desk.deadOnes(service, 2)
      const supplied = second?.dlqId ?? ''
      expect(await refusal(desk.process(service, { topic: 'orders', dlqId: supplied }))).toEqual({
        id: 'dlqSequenceError',
        status: 409,
        data: { service, topic: 'orders', supplied_dlq_id: supplied, expected_dlq_id: first?.dlqId },
      })
      // Without a topic it is the condition of an If-Match.
      expect(await refusal(desk.process(service, { dlqId: randomUUID() }))).toMatchObject({ status: 412 })
      await desk.process(service, { dlqId: first?.dlqId.toUpperCase() ?? '' })
      expect(desk.sentKeys(service)).toEqual(['k0'])
    })
  })

  describe('values and ids', () => {
    it('are made ASCII, and nothing else of them changes', async () => {
      const service = desk.service()
      await desk.deadOf(service, { value: '{"name":"Jürgen 🚀", "n":1.0}' })
      const resolution = await desk.process(service)
      expect(desk.sentValues(service)).toEqual(['{"name":"J\\u00fcrgen \\ud83d\\ude80", "n":1.0}'])
      expect(resolution.warnings).toContain('value_needs_escape')
    })

    it('have the correlation id that was made at intake where the record had none', async () => {
      const service = desk.service()
      const event = await desk.deadOf(service, { correlationId: null })
      await desk.process(service)
      expect(headerIn(lastSent(), 'correlation_id')).toBe(event.facts.mintedCorrelationId)
    })

    it('have it in place of one that no consumer can read only where that is asked for', async () => {
      const service = desk.service()
      const event = await desk.deadOf(service, { correlationId: 'abc' })
      expect(await refusal(desk.process(service))).toMatchObject({
        id: 'publishGuardError',
        data: { dlq_id: event.dlqId, reasons: ['correlation_id_invalid'] },
      })
      await desk.process(service, { mintCorrelationId: true })
      expect(headerIn(lastSent(), 'correlation_id')).toBe(event.facts.mintedCorrelationId)
    })
  })

  const lastSent = () => {
    const record = desk.publisher.sent.at(-1)
    if (record === undefined) throw new Error('nothing was sent')
    return record
  }

  describe('an event that must not go out', () => {
    it('stays where it is, with a history row of the refusal, and nothing is sent', async () => {
      const service = desk.service()
      const event = await desk.deadOf(service, { key: null, value: 'no JSON' })
      const refused = await refusal(desk.process(service))
      expect(refused).toEqual({
        id: 'publishGuardError',
        status: 409,
        data: { dlq_id: event.dlqId, reasons: ['value_not_json', 'key_null'] },
      })
      expect(desk.sentKeys(service)).toEqual([])
      expect(await desk.standing(event)).toEqual({ state: 'pending', status: 'Pending', eventId: null })
      const row = (await desk.history()).at(-1)
      expect(row).toMatchObject({
        operation: 'kafka.refused',
        failed: true,
        version: null,
        actor: TESTER.actor,
      })
      expect(row?.output).toEqual({
        request_id: TESTER.requestId,
        dlq_id: event.dlqId,
        reasons: ['value_not_json', 'key_null'],
      })
      expect(desk.told).toEqual([`${service} refused`])
      // The service is free again.
      await desk.discardNext(service)
    })

    it('is not let through with the bytes of another text', async () => {
      const service = desk.service()
      await desk.deadOf(service, { value: Buffer.from([0x22, 0xff, 0x22]) })
      expect((await refusal(desk.process(service)))?.data).toMatchObject({ reasons: ['value_not_ascii'] })
    })

    it('of no known service goes nowhere', async () => {
      const event = await desk.dead({ topic: 's0_dlq', service: 'nobody' })
      expect(event.service).toBe(UNKNOWN)
      expect(await refusal(desk.process(UNKNOWN))).toMatchObject({
        id: 'publishGuardError',
        data: { dlq_id: event.dlqId, reasons: ['service_unknown'] },
      })
      await desk.discard(event.dlqId)
    })

    it('is refused as the caller’s fault when it claims to come from a topic of dead events', async () => {
      const service = desk.service()
      await desk.deadOf(service, { originalTopic: 'retry-other' })
      const refused = await refusal(desk.process(service))
      expect(refused).toMatchObject({
        id: 'overrideValidationError',
        status: 400,
        data: { event: {}, reasons: ['original_topic_invalid'] },
      })
    })
  })

  describe('an override', () => {
    const given = {
      topic: 'bills',
      type: 'upserted',
      key: 'other',
      value: Buffer.from('{"n": 12345678901234567890, "ü": 1.0}'),
    }

    it('replaces topic, type, key and value, keeps the correlation id, and lets no processor run', async () => {
      const service = desk.service()
      const event = await desk.deadOf(service, { key: null, value: null, type: null, originalTopic: null })
      desk.decide = () => ({ action: 'discard', reason: null })
      await desk.process(service, { topic: UNKNOWN, dlqId: event.dlqId, override: given })
      const record = lastSent()
      expect(record.topic).toBe(`retry-${service}`)
      expect(shownBytes(record.key)).toBe('other')
      expect(shownBytes(record.value)).toBe('{"n": 12345678901234567890, "\\u00fc": 1.0}')
      expect(headerIn(record, 'original_topic')).toBe('bills')
      expect(headerIn(record, 'type')).toBe('upserted')
      expect(headerIn(record, 'correlation_id')).toBe(event.facts.correlationId)
    })

    it('passes the guard like everything', async () => {
      const service = desk.service()
      await desk.deadOf(service)
      const override = { ...given, topic: `${service}_dlq`, value: Buffer.from('{"a":1}') }
      expect(await refusal(desk.process(service, { override }))).toMatchObject({
        id: 'overrideValidationError',
        status: 400,
        data: { reasons: ['original_topic_invalid'] },
      })
      const deep = { ...given, value: Buffer.from(`${'['.repeat(20_000)}${']'.repeat(20_000)}`) }
      expect((await refusal(desk.process(service, { override: deep })))?.data).toMatchObject({
        reasons: ['value_unreadable_for_consumer'],
      })
      expect(desk.sentKeys(service)).toEqual([])
    })
  })

  describe('a processor', () => {
    it('changes what goes out', async () => {
      const service = desk.service()
      await desk.deadOf(service)
      const change = {
        topic: 'bills',
        type: 'deleted',
        key: 'k2',
        value: Buffer.from('{}'),
        correlationId: randomUUID(),
      }
      desk.decide = () => ({ action: 'publish', change })
      await desk.process(service)
      const record = lastSent()
      expect(shownBytes(record.key)).toBe('k2')
      expect(shownBytes(record.value)).toBe('{}')
      expect(['original_topic', 'type', 'correlation_id'].map((name) => headerIn(record, name))).toEqual([
        'bills',
        'deleted',
        change.correlationId,
      ])
    })

    it('discards, with its reason, and is counted apart', async () => {
      const service = desk.service()
      const events = await desk.deadOnes(service, 2)
      const [event, other] = events
      if (event === undefined || other === undefined) throw new Error('no events')
      desk.decide = () => ({ action: 'discard', reason: 'a test event' })
      const resolution = await desk.process(service)
      expect(resolution).toMatchObject({ outcome: 'discarded', reason: 'a test event' })
      expect(await desk.standing(event)).toEqual({ state: 'discarded', status: 'Resolved', eventId: null })
      expect(await desk.letter(event)).toMatchObject({ resolution: 'discard', notes: 'a test event' })
      const row = (await desk.history()).at(-1)
      expect(row).toMatchObject({ operation: 'kafka.discarded', actor: TESTER.actor, notes: 'a test event' })
      expect(row?.output).toMatchObject({ request_id: TESTER.requestId, by: 'processor' })
      desk.decide = () => ({ action: 'discard', reason: null })
      await desk.process(service)
      expect(await desk.letter(other)).toMatchObject({ notes: 'Discarded by its processor' })
      expect(desk.told).toEqual(Array(2).fill(`${service} orders discarded_processor`))
      expect(desk.sentKeys(service)).toEqual([])
    })

    const failures: readonly [Decision, string, number][] = [
      [{ action: 'failed', message: 'it threw\0' }, 'processingError', 500],
      [{ action: 'timeout', message: 'it took too long' }, 'processingTimeoutError', 504],
    ]
    it.each(failures)('that fails discards nothing: %o', async (decision, id, status) => {
      const service = desk.service()
      const event = await desk.deadOf(service)
      desk.decide = () => decision
      const refused = await refusal(desk.process(service))
      expect(refused).toMatchObject({ id, status, data: { dlq_id: event.dlqId } })
      expect(await desk.standing(event)).toMatchObject({ state: 'pending', status: 'Pending' })
      expect(await desk.historyOf(event)).toEqual(['processor_failed by nell'])
      expect(desk.told).toEqual([`${service} processor_failed`])
    })

    it('cannot get an event past the guard', async () => {
      const service = desk.service()
      await desk.deadOf(service)
      desk.decide = () => ({ action: 'publish', change: { value: Buffer.from('"ü"') } })
      expect((await refusal(desk.process(service)))?.data).toMatchObject({ reasons: ['value_not_ascii'] })
    })

    it('that breaks leaves the event free', async () => {
      const service = desk.service()
      const event = await desk.deadOf(service)
      desk.decide = () => {
        throw new Error('never')
      }
      await expect(desk.process(service)).rejects.toThrow('never')
      expect(await desk.standing(event)).toMatchObject({ state: 'pending' })
    })
  })

  describe('an event behind which another with the same key came', () => {
    it('goes out with a warning', async () => {
      const service = desk.service()
      for (const key of ['same', 'same', 'other']) await desk.deadOf(service, { key })
      expect((await desk.process(service)).warnings).toEqual(['later_same_key'])
      expect((await desk.process(service)).warnings).toEqual([])
    })

    it('does not, where that is refused', async () => {
      const service = desk.service()
      const path = desk.anotherPath({ settings: { onLaterSameKey: 'refuse' } })
      const event = await desk.deadOf(service, { key: 'same' })
      const newer = await desk.deadOf(service, { key: 'same' })
      const refused = { id: 'publishGuardError', data: { dlq_id: event.dlqId, reasons: ['later_same_key'] } }
      expect(await refusal(desk.process(service, {}, path))).toMatchObject(refused)
      await desk.discard(newer.dlqId)
      await desk.process(service, {}, path)
      expect(desk.sentKeys(service)).toEqual(['same'])
    })
  })

  it('sends records of other tools back as they were, without what the tools wrote', async () => {
    const more = [['content-type', 'avro']] as const
    await desk.dead({
      topic: 'g_dlq',
      key: null,
      value: Buffer.from([0, 255]),
      headers: [],
    })
    await desk.process('g')
    expect(lastSent()).toMatchObject({ topic: 'g_retry', key: null, headers: [] })
    expect([...(lastSent().value ?? [])]).toEqual([0, 255])
    await desk.dead({ topic: 'g_dlq', service: null, value: null, more })
    await desk.process('g')
    const { value, headers } = lastSent()
    expect(value).toBeNull()
    expect(headers.map(({ name }) => shownBytes(name))).toContain('content-type')
    expect(headers.map(({ name }) => shownBytes(name))).not.toContain('exc_class')
  })
})
