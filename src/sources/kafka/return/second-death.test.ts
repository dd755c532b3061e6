import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { oldRecord } from '../../../../test/world/kafka/records.ts'
import { Desk, DOUBT, headerIn, refusalId } from '../../../../test/world/kafka/return.ts'
import { stores } from '../../../../test/world/stores.ts'
import type { PublishOutcome } from '../../../outgoing/kafka/producer.ts'
import type { OutgoingRecord } from '../../../outgoing/kafka/record.ts'
import type { Stored } from '../intake/partition-counts.ts'
import type { StoredEvent } from '../stored-event.ts'

const AT = { partition: 1, offset: 70n } as const
const PUBLISHED: PublishOutcome = { outcome: 'published', ...AT }
const REOPENED = { created: 0, reopened: 1 }
const CREATED = { created: 1, reopened: 0 }

describe.each(stores)('a retry that fails before its publish is settled, on $name', (kind) => {
  let desk: Desk
  beforeAll(async () => {
    desk = await Desk.open(kind)
  })
  afterAll(() => desk?.close())
  afterEach(async () => {
    desk.told.length = 0
    await desk.expectVerified()
  })

  let offset = 1_000
  /** The record that a service of hexkit 4 or 5 writes: it says where it read the retry, and not what its id was. */
  const fail = (
    service: string,
    sent: OutgoingRecord,
    draft: Parameters<typeof oldRecord>[1] = {},
    at: { readonly partition: number; readonly offset: bigint } = AT,
  ): Promise<Stored> =>
    desk.take(
      oldRecord(
        { service, topic: sent.topic, ...at },
        {
          topic: `${service}_dlq`,
          offset: offset++,
          key: sent.key,
          // Written anew, as Python does.
          value: '{"a": 1}',
          originalTopic: headerIn(sent, 'original_topic'),
          type: headerIn(sent, 'type'),
          correlationId: headerIn(sent, 'correlation_id'),
          ...draft,
        },
      ),
    )

  /** The service fails while the broker's answer is still on its way to us. */
  const failDuring = (
    service: string,
    answer: PublishOutcome,
    draft: Parameters<typeof oldRecord>[1] = {},
  ) => {
    const { promise, resolve } = Promise.withResolvers<Stored>()
    desk.publisher.during(async (sent) => {
      resolve(await fail(service, sent, draft))
      return answer
    })
    return promise
  }

  const expectDiedTwice = async (event: StoredEvent): Promise<void> => {
    const now = await desk.again(event)
    expect(now.attempts).toBe(2)
    expect(await desk.standing(event)).toEqual({ state: 'pending', status: 'Pending', eventId: null })
    const letters = (await desk.events()).filter(({ service }) => service === event.service)
    expect(letters.map(({ letterId }) => letterId)).toEqual([event.letterId])
  }

  it('is the second death of the same letter', async () => {
    const service = desk.service()
    const event = await desk.deadOf(service)
    const stored = failDuring(service, PUBLISHED)
    await desk.process(service)
    expect(await stored).toMatchObject(REOPENED)
    await expectDiedTwice(event)
    expect(await desk.historyOf(event)).toEqual(['published by nell', 'reopened by system'])
    expect(desk.told).toEqual([`${service} orders published`])
    // The place is known by now, and was spent.
    const [sent] = desk.publisher.sent.filter(({ topic }) => topic === `retry-${service}`)
    if (sent === undefined) throw new Error('nothing was sent')
    expect(await fail(service, sent)).toMatchObject(CREATED)
  })

  it('is it also when nobody ever learns where the retry went', async () => {
    const service = desk.service()
    const event = await desk.deadOf(service)
    desk.publisher.next(DOUBT)
    expect(await refusalId(desk.process(service))).toBe('kafkaUnavailableError')
    const [sent] = desk.publisher.sent.slice(-1)
    if (sent === undefined) throw new Error('nothing was sent')
    expect(await fail(service, sent)).toMatchObject(REOPENED)
    await expectDiedTwice(event)
    expect(desk.told).toEqual([`${service} uncertain`])
  })

  it('is it also of the first copy when the retry was sent twice', async () => {
    const service = desk.service()
    const event = await desk.deadOf(service)
    desk.publisher.next(DOUBT, PUBLISHED)
    await refusalId(desk.process(service))
    await desk.process(service, { resend: true })
    const [sent] = desk.publisher.sent.slice(-1)
    if (sent === undefined) throw new Error('nothing was sent')
    expect(await fail(service, sent, {}, { partition: 1, offset: 69n })).toMatchObject(REOPENED)
    await expectDiedTwice(event)
  })

  it('is it when failure and settling meet in the store', async () => {
    for (let round = 0; round < 10; round++) {
      const service = desk.service()
      const event = await desk.deadOf(service)
      let stored: Promise<Stored> | undefined
      desk.publisher.during(async (sent) => {
        stored = fail(service, sent)
        return PUBLISHED
      })
      await desk.process(service)
      expect(await stored).toMatchObject(REOPENED)
      await expectDiedTwice(event)
    }
  })

  it.each([
    ['key', { key: 'another' }],
    ['type', { type: 'another' }],
    ['correlation id', { correlationId: '0b2ba3b9-39c3-4c1b-a8ba-0e7f29ab40e2' }],
    ['original topic', { originalTopic: 'another' }],
  ])('is a letter of its own when the %s is not that of the retry', async (_what, draft) => {
    const service = desk.service()
    await desk.deadOf(service)
    const stored = failDuring(service, PUBLISHED, draft)
    await desk.process(service)
    expect(await stored).toMatchObject(CREATED)
  })

  it('is a letter of its own when the retry certainly was not written', async () => {
    const service = desk.service()
    await desk.deadOf(service)
    desk.publisher.next({ outcome: 'failed', why: 'unavailable', message: 'no broker answers' })
    await refusalId(desk.process(service))
    const [sent] = desk.publisher.sent.slice(-1)
    if (sent === undefined) throw new Error('nothing was sent')
    expect(await fail(service, sent)).toMatchObject(CREATED)
  })

  it('is a letter of its own when the retry is known to be somewhere else', async () => {
    const service = desk.service()
    await desk.deadOf(service)
    desk.publisher.next(PUBLISHED)
    await desk.process(service)
    const [sent] = desk.publisher.sent.slice(-1)
    if (sent === undefined) throw new Error('nothing was sent')
    expect(await fail(service, sent, {}, { partition: 1, offset: 71n })).toMatchObject(CREATED)
  })

  it('is that of the retry which was sent last, of several that look alike', async () => {
    const service = desk.service()
    const alike = { key: 'k', correlationId: '4a8c2f1c-5a7e-4c53-9b1a-b2a1f6a2c111' }
    const [first, second] = [await desk.deadOf(service, alike), await desk.deadOf(service, alike)]
    desk.publisher.next(DOUBT)
    await refusalId(desk.process(service))
    await desk.discard(first.dlqId)
    desk.clock.advance(1_000n)
    const stored = failDuring(service, PUBLISHED)
    await desk.process(service)
    expect(await stored).toMatchObject(REOPENED)
    expect((await desk.again(second)).attempts).toBe(2)
    expect((await desk.again(first)).attempts).toBe(1)
  })
})
