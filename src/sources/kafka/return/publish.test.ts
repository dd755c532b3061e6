import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import {
  AWAY,
  Desk,
  DOUBT,
  refusal,
  refusalId,
  TESTER,
  TOO_LARGE,
} from '../../../../test/world/kafka/return.ts'
import { stores } from '../../../../test/world/stores.ts'
import type { PublishOutcome } from '../../../outgoing/kafka/producer.ts'
import { type Integer, sql } from '../../../store/database.ts'
import { type EventId, SEND } from '../event.ts'
import type { Decision } from '../processors/processors.ts'
import { shownBytes } from '../wire/bytes.ts'

const readSends = sql(
  'test.kafka.sends',
  `SELECT event_id, outcome, resends, value_kept, value, record_key, published_partition, published_offset, settled_at, digest,
     actor, request_id
   FROM bartleby.kafka_sends WHERE letter_id = $1 ORDER BY made_at, event_id`,
  { bigints: true },
)

interface SendRow {
  readonly event_id: EventId
  readonly outcome: Integer
  readonly resends: Integer
  readonly value_kept: Integer
  readonly value: Uint8Array | null
  readonly record_key: Uint8Array | null
  readonly published_partition: Integer | null
  readonly published_offset: Integer | null
  readonly settled_at: Integer | null
  readonly digest: string
  readonly actor: string
  readonly request_id: string | null
}

describe.each(stores)('an event in flight on $name', (kind) => {
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

  const sends = ({ letterId }: { readonly letterId: bigint }) =>
    desk.db.session('test', (session) => session.rows<SendRow>(readSends, letterId))
  const outcomes = async (event: { readonly letterId: bigint }) =>
    (await sends(event)).map(({ outcome }) => Number(outcome))

  /** An event of which nobody knows whether it was published. */
  const uncertainOne = async (draft: Parameters<Desk['deadOf']>[1] = {}) => {
    const service = desk.service()
    const event = await desk.deadOf(service, draft)
    desk.publisher.next(DOUBT)
    expect(await refusalId(desk.process(service))).toBe('kafkaUnavailableError')
    const [id] = desk.sentIds(service)
    if (id === undefined) throw new Error('nothing was sent')
    return { service, event, id }
  }

  it('is on file before its first byte leaves', async () => {
    const service = desk.service()
    const event = await desk.deadOf(service, { key: '', value: '{"a":1}' })
    const flight = desk.publisher.hold()
    const call = desk.process(service)
    await flight.begun
    const [id] = desk.sentIds(service)
    expect(await desk.standing(event)).toEqual({ state: 'publishing', status: 'Pending', eventId: id })
    const [send] = await sends(event)
    expect(send).toMatchObject({
      event_id: id,
      value: null,
      actor: TESTER.actor,
      request_id: TESTER.requestId,
      settled_at: null,
    })
    expect(Number(send?.outcome)).toBe(SEND.publishing)
    expect(Number(send?.value_kept)).toBe(1)
    expect(send?.record_key).toHaveLength(0)
    expect(send?.digest).toMatch(/^[0-9a-f]{64}$/)
    flight.release({ outcome: 'published', partition: 3, offset: 99n })
    await call
    const [settled] = await sends(event)
    expect(Number(settled?.outcome)).toBe(SEND.published)
    expect([settled?.published_partition, settled?.published_offset].map(Number)).toEqual([3, 99])
    expect(settled?.settled_at).not.toBeNull()
  })

  it('is left alone by the expiry of old letters', async () => {
    const service = desk.service()
    const event = await desk.deadOf(service)
    const flight = desk.publisher.hold()
    const call = desk.process(service)
    await flight.begun
    desk.clock.advance(3n * 86_400_000_000n)
    await desk.letters.expireOlder({ olderThanDays: 1, engine: 'kafka', actor: 'clock' })
    flight.release()
    await call
    expect(await desk.standing(event)).toMatchObject({ state: 'published', status: 'Resolved' })
    const waiting = await desk.deadOf(service)
    desk.clock.advance(3n * 86_400_000_000n)
    await desk.letters.expireOlder({ olderThanDays: 1, engine: 'kafka', actor: 'clock' })
    expect(await desk.standing(waiting)).toMatchObject({ state: 'discarded', status: 'Expired' })
    expect(await refusalId(desk.process(service))).toBe('emptyDLQError')
  })

  const NO: readonly [PublishOutcome, string, number][] = [
    [TOO_LARGE, 'publishGuardError', 409],
    [AWAY, 'kafkaUnavailableError', 503],
    [{ ...AWAY, why: 'topic_missing' }, 'kafkaUnavailableError', 503],
    [{ ...AWAY, why: 'not_authorized' }, 'kafkaUnavailableError', 503],
  ]
  it.each(NO)('that was certainly not written is pending again: $why', async (outcome, id, status) => {
    const service = desk.service()
    const event = await desk.deadOf(service)
    desk.publisher.next(outcome)
    expect(await refusal(desk.process(service))).toMatchObject({ id, status })
    expect(await desk.standing(event)).toEqual({ state: 'pending', status: 'Pending', eventId: null })
    expect(await desk.historyOf(event)).toEqual(['publish_failed by nell'])
    expect(await outcomes(event)).toEqual([SEND.failed])
    expect(desk.told).toEqual([`${service} publish_failed`])
    await desk.process(service)
    const ids = desk.sentIds(service)
    expect(new Set(ids).size).toBe(2)
    expect(await desk.standing(event)).toMatchObject({ state: 'published', eventId: ids[1] })
  })

  describe('of which nobody knows whether it arrived', () => {
    it('is shown as such, and is not sent again by itself', async () => {
      const { service, event, id } = await uncertainOne()
      expect(await desk.standing(event)).toEqual({ state: 'uncertain', status: 'Pending', eventId: id })
      expect(await desk.historyOf(event)).toEqual(['uncertain by nell'])
      expect(desk.told).toEqual([`${service} uncertain`])
      expect(await refusal(desk.process(service))).toEqual({
        id: 'uncertainPublishError',
        status: 409,
        data: { dlq_id: event.dlqId, event_id: id },
      })
      expect(desk.sentIds(service)).toEqual([id])
      expect(await outcomes(event)).toEqual([SEND.uncertain])
    })

    it('stays at the head of its queue', async () => {
      const { service, event } = await uncertainOne({ key: 'first' })
      await desk.deadOf(service, { key: 'second' })
      expect(await refusalId(desk.process(service))).toBe('uncertainPublishError')
      await desk.process(service, { resend: true })
      await desk.process(service)
      expect(desk.sentKeys(service)).toEqual(['first', 'first', 'second'])
      expect(await desk.standing(event)).toMatchObject({ state: 'published' })
    })

    it('is sent again with the same id and the same bytes, whatever processors say by now', async () => {
      const value = '{"ü":1}'
      desk.decide = () => ({
        action: 'publish',
        change: { key: 'changed', value: Buffer.from('{"x": 1.0}') },
      })
      const { service, event, id } = await uncertainOne({ value })
      desk.decide = () => ({ action: 'discard', reason: 'no longer wanted' })
      await desk.process(service, { resend: true })
      const [first, second] = desk.publisher.sent.filter(({ topic }) => topic === `retry-${service}`)
      const bytes = (record: typeof first) => [
        shownBytes(record?.key ?? null),
        shownBytes(record?.value ?? null),
        record?.headers.map((header) => [shownBytes(header.name), shownBytes(header.value)]),
      ]
      expect(bytes(second)).toEqual(bytes(first))
      expect(bytes(second).slice(0, 2)).toEqual(['changed', '{"x": 1.0}'])
      expect(desk.sentIds(service)).toEqual([id, id])
      expect(await desk.standing(event)).toEqual({ state: 'published', status: 'Resolved', eventId: id })
      expect(await desk.historyOf(event)).toEqual([
        'uncertain by nell',
        'resent by nell',
        'published by nell',
      ])
      expect((await sends(event)).map(({ resends }) => Number(resends))).toEqual([1])
    })

    it('is sent again with an empty key and the value of the letter', async () => {
      const { service } = await uncertainOne({ key: '', value: '{"plain": true}' })
      await desk.process(service, { resend: true })
      expect(desk.sentKeys(service)).toEqual(['', ''])
      expect(desk.sentValues(service)).toEqual(['{"plain": true}', '{"plain": true}'])
    })

    it('is sent again also when a processor said that a batch is to go out as it is', async () => {
      const packed = { compression: 'lz4', records: 7, mostBytes: 1_000 } as const
      const value = '{"whole": true}'
      const record = { ...desk.record({ topic: 'g_dlq', value, headers: [] }), packed }
      await desk.take(record)
      const event = await desk.eventAt(record)
      desk.decide = () => ({ action: 'publish', change: { value: Buffer.from(value) } })
      desk.publisher.next(DOUBT)
      expect(await refusalId(desk.process('g'))).toBe('kafkaUnavailableError')
      await desk.process('g', { resend: true })
      expect(await desk.standing(event)).toMatchObject({ state: 'published' })
    })

    it('is sent again by the next call, where that is how it is set', async () => {
      const { service, id } = await uncertainOne()
      const path = desk.anotherPath({ settings: { onUncertain: 'resend' } })
      await desk.process(service, {}, path)
      expect(desk.sentIds(service)).toEqual([id, id])
    })

    it('is not sent again with what a caller would like instead', async () => {
      const { service, id } = await uncertainOne()
      const override = { topic: 'orders', type: 'created', key: 'other', value: Buffer.from('{}') }
      expect(await refusalId(desk.process(service, { override, resend: true }))).toBe('uncertainPublishError')
      expect(desk.sentIds(service)).toEqual([id])
    })

    it('passes the guard again', async () => {
      const { service, event } = await uncertainOne()
      const path = desk.anotherPath({ settings: { maxMessageBytes: 10 } })
      expect((await refusal(desk.process(service, { resend: true }, path)))?.data).toMatchObject({
        reasons: ['too_large'],
      })
      expect(await desk.standing(event)).toMatchObject({ state: 'uncertain' })
      expect(await desk.historyOf(event)).toEqual(['uncertain by nell', 'refused by nell'])
    })

    it('is not sent again over a later one with the same key, where that is refused', async () => {
      const { service } = await uncertainOne({ key: 'same' })
      await desk.deadOf(service, { key: 'same' })
      const path = desk.anotherPath({ settings: { onLaterSameKey: 'refuse' } })
      const resend = { resend: true }
      expect((await refusal(desk.process(service, resend, path)))?.data).toMatchObject({
        reasons: ['later_same_key'],
      })
      expect((await desk.dryRun(service, resend)).warnings).toEqual(['later_same_key'])
      expect((await desk.process(service, resend)).warnings).toEqual(['later_same_key'])
    })

    it('is still uncertain when it certainly does not arrive a second time', async () => {
      const { service, event, id } = await uncertainOne()
      desk.publisher.next(AWAY)
      expect(await refusalId(desk.process(service, { resend: true }))).toBe('kafkaUnavailableError')
      expect(await desk.standing(event)).toEqual({ state: 'uncertain', status: 'Pending', eventId: id })
      expect(await outcomes(event)).toEqual([SEND.uncertain])
      desk.publisher.next(DOUBT)
      expect(await refusalId(desk.process(service, { resend: true }))).toBe('kafkaUnavailableError')
      await desk.process(service, { resend: true })
      expect(await desk.historyOf(event)).toEqual([
        'uncertain by nell',
        'resent by nell',
        'publish_failed by nell',
        'resent by nell',
        'uncertain by nell',
        'resent by nell',
        'published by nell',
      ])
      expect(new Set(desk.sentIds(service))).toEqual(new Set([id]))
    })

    it('is closed without sending', async () => {
      const { service, event, id } = await uncertainOne()
      await desk.discardNext(service)
      expect(await desk.standing(event)).toEqual({ state: 'discarded', status: 'Resolved', eventId: id })
      expect(await desk.letter(event)).toMatchObject({ notes: 'assumed published' })
      expect(desk.sentIds(service)).toEqual([id])
      // Restored, it is what it was: nobody knows more than before.
      const letter = await desk.letter(event)
      await desk.letters.change(letter, { status: 'Pending', notes: null, actor: 'nell' })
      expect(await desk.standing(event)).toMatchObject({ state: 'uncertain' })
      await desk.discard(event.dlqId)
      expect(await desk.letter(event)).toMatchObject({ notes: 'assumed published' })
    })

    it('was published when it comes back dead', async () => {
      const { service, event, id } = await uncertainOne()
      const again = await desk.deadOf(service, { originalEventId: id })
      expect(again).toMatchObject({ letterId: event.letterId, attempts: 2 })
      await desk.process(service)
      expect(await desk.standing(event)).toMatchObject({ state: 'published' })
      expect(new Set(desk.sentIds(service)).size).toBe(2)
      expect(await outcomes(event)).toEqual([SEND.published, SEND.published])
    })
  })

  describe('that dies again before we know that it arrived', () => {
    it('is reopened, and its receipt is kept', async () => {
      const service = desk.service()
      const event = await desk.deadOf(service)
      desk.publisher.during(async () => {
        await desk.deadOf(service, { originalEventId: desk.sentIds(service)[0] ?? '' })
        return { outcome: 'published', partition: 2, offset: 7n }
      })
      expect(await desk.process(service)).toMatchObject({ outcome: 'published' })
      expect(await desk.standing(event)).toEqual({ state: 'pending', status: 'Pending', eventId: null })
      const [send] = await sends(event)
      expect([send?.published_partition, send?.published_offset].map(Number)).toEqual([2, 7])
      await desk.process(service)
      expect(await desk.standing(event)).toMatchObject({ state: 'published' })
      expect(await desk.historyOf(event)).toEqual([
        'published by nell',
        'reopened by system',
        'published by nell',
      ])
    })

    it.each([AWAY, DOUBT])('is not touched by what the broker said: $outcome', async (outcome) => {
      const service = desk.service()
      const event = await desk.deadOf(service)
      desk.publisher.during(async () => {
        await desk.deadOf(service, { originalEventId: desk.sentIds(service)[0] ?? '' })
        return outcome
      })
      expect(await refusalId(desk.process(service))).toBe('kafkaUnavailableError')
      expect(await desk.standing(event)).toEqual({ state: 'pending', status: 'Pending', eventId: null })
      expect(await desk.historyOf(event)).toEqual(['published by nell', 'reopened by system'])
      expect(await outcomes(event)).toEqual([SEND.published])
    })
  })

  describe('that dies again while it is claimed', () => {
    const reopenedOnce = async (decision: Decision) => {
      const service = desk.service()
      const event = await desk.deadOf(service, { value: { n: 1 } })
      await desk.process(service)
      const letter = await desk.letter(event)
      await desk.letters.change(letter, { status: 'Pending', notes: null, actor: 'nell' })
      const [sent] = desk.sentIds(service)
      let isFirst = true
      desk.decide = async () => {
        if (isFirst) await desk.deadOf(service, { originalEventId: sent ?? '', value: { n: 2 } })
        isFirst = false
        return decision
      }
      return { service, event }
    }

    it('is taken anew, as what it is by then', async () => {
      const { service, event } = await reopenedOnce({ action: 'publish', change: {} })
      await desk.process(service)
      expect(desk.sentValues(service)).toEqual(['{"n":1}', '{"n":2}'])
      expect(await desk.standing(event)).toMatchObject({ state: 'published' })
    })

    it('is discarded by what its processor says of what it is by then', async () => {
      const { service, event } = await reopenedOnce({ action: 'discard', reason: null })
      expect(await desk.process(service)).toMatchObject({ outcome: 'discarded', event: { attempts: 2 } })
      expect(await desk.standing(event)).toMatchObject({ state: 'discarded' })
    })
  })

  it('whose publisher breaks may have arrived', async () => {
    const service = desk.service()
    const event = await desk.deadOf(service)
    desk.publisher.during(() => Promise.reject(new Error('it never throws')))
    expect(await refusalId(desk.process(service))).toBe('kafkaUnavailableError')
    expect(await desk.standing(event)).toMatchObject({ state: 'uncertain' })
  })

  it('is not lost when the store cannot be told that it arrived', async () => {
    const service = desk.service()
    const event = await desk.deadOf(service)
    desk.publisher.during(async () => {
      await desk.place.refuseWrites()
      return desk.publisher.success()
    })
    await expect(desk.process(service)).rejects.toThrow()
    await desk.place.acceptWrites()
    expect(await desk.standing(event)).toMatchObject({ state: 'publishing', status: 'Pending' })
    desk.passLease()
    expect(await refusalId(desk.process(service))).toBe('uncertainPublishError')
    expect(await desk.standing(event)).toMatchObject({ state: 'uncertain' })
    await desk.process(service, { resend: true })
    expect(new Set(desk.sentIds(service)).size).toBe(1)
  })

  it('does not leave when the store cannot be told that it will', async () => {
    const service = desk.service()
    const event = await desk.deadOf(service)
    desk.decide = async () => {
      await desk.place.refuseWrites()
      return { action: 'publish', change: {} }
    }
    await expect(desk.process(service)).rejects.toThrow()
    await desk.place.acceptWrites()
    expect(desk.sentIds(service)).toEqual([])
    expect(await desk.standing(event)).toMatchObject({ state: 'claimed' })
    desk.passLease()
    desk.decide = () => ({ action: 'publish', change: {} })
    await desk.process(service)
    expect(await desk.standing(event)).toMatchObject({ state: 'published' })
  })
})
