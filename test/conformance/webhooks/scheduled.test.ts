/** Messages for later: when they may be for, when they go out, and that each goes out once. */
import { describe, expect, it } from 'vitest'
import { Broker } from '../../world/webhooks/broker.ts'
import { brokers, expectRefusal, expectStatus, freshId, Lane } from './bed.ts'
import { VECTORS } from './vectors.ts'

/** How often the scheduler looks, and the grace after that. */
const LATEST_SECONDS = 5 + 2

const FORM = 'invalid date format for X-Broker-Scheduled-For, expected ISO-8601/RFC3339 format'
const scheduledFor = (text: string) => ({ 'X-Broker-Scheduled-For': text })

interface Counts {
  readonly counts: Readonly<Record<string, { readonly Count: number }>>
  readonly next_scheduled_message_at?: string
}

brokers('a scheduled message', (ground) => {
  const countsOf = async (lane: Lane) => {
    const answer = await ground().client.get(`${lane.channelPath}/messages-status`)
    const { counts, next_scheduled_message_at } = answer.json<Counts>()
    const numbers = Object.fromEntries(Object.entries(counts).map(([name, { Count }]) => [name, Count]))
    return { ...numbers, next: next_scheduled_message_at }
  }

  const MORE_INVALID = [
    '2999-13-01T00:00:00Z',
    '2999-02-30T00:00:00Z',
    '2999-01-01T25:00:00Z',
    '2999-01-01T00:00:00+0600',
    '2999-01-01T00:00:00.Z',
    '2999-01-01T00:00Z',
    '+002999-01-01T00:00:00Z',
    '29990101T000000Z',
    '2999-01-01T00:00:00Z trailing',
    'Sun, 15 Nov 2999 01:08:28 GMT',
  ]

  it.each([...VECTORS.scheduledFor.invalid, ...MORE_INVALID])('is not for %j', async (text) => {
    const lane = await Lane.open(ground(), 'pull')
    await expectRefusal(400, FORM, lane.post('x', scheduledFor(text)))
  })

  it.each(VECTORS.scheduledFor.valid)('may be for %j', async (text) => {
    const lane = await Lane.open(ground(), 'pull')
    const id = await lane.broadcast('x', scheduledFor(text))
    const shown = (await ground().client.get(`${lane.channelPath}/scheduled-message/${id}`)).json()
    expect(shown.dispatchSchedule).toBe(`${new Date(text).toISOString().slice(0, 19)}Z`)
  })

  it('is at least two minutes ahead', async () => {
    const lane = await Lane.open(ground(), 'pull')
    const text = 'scheduled time must be at least 2 minutes in the future'
    for (const seconds of [119.9, 60, 0, -3600]) {
      await expectRefusal(412, text, lane.post('x', scheduledFor(ground().at(seconds))))
    }
    await expectStatus(201, lane.post('x', scheduledFor(ground().at(120.1))))
  })

  it('is no message until it is due, and one after that', async () => {
    const lane = await Lane.open(ground(), 'push')
    const { client } = ground()
    const dueAt = ground().at(600)
    const due = ground().now + 600_000_000n
    const id = await lane.broadcast('later', {
      ...scheduledFor(dueAt),
      'Content-Type': 'text/plain',
      'X-Broker-Message-Priority': '4',
      'X-Broker-Metadata-Headers': 'X-Kept',
      'X-Kept': 'kept',
    })
    await lane.broadcast('much later', scheduledFor(ground().at(7200)))
    const message = `${lane.channelPath}/message/${id}`
    const scheduled = `${lane.channelPath}/scheduled-message/${id}`
    const second = `${dueAt.slice(0, 19)}Z`
    expect(await countsOf(lane)).toEqual({ SCHEDULED_SCHEDULED: 2, next: second })
    await ground().jump(590)
    await ground().pass(9.75)
    expect((await client.get(message)).status).toBe(404)
    expect((await client.get(`${lane.channelPath}/messages`)).json()).toMatchObject({ Result: [] })
    expect((await client.get(scheduled)).json()).toMatchObject({ status: 'SCHEDULED', dispatchedAt: null })
    expect(lane.callbacks()).toEqual([])

    // Who is registered when it goes out gets it.
    const late = await lane.beside('push')
    await ground().within(LATEST_SECONDS, () => {
      expect([lane.callbacks().length, late.callbacks().length]).toEqual([1, 1])
    })
    const [callback] = lane.callbacks()
    expect(callback?.at).toBeGreaterThanOrEqual(due)
    expect(callback?.body.toString()).toBe('later')
    expect(callback?.headers).toMatchObject({
      'content-type': 'text/plain',
      'x-broker-message-id': id,
      'x-broker-message-priority': '4',
      'x-broker-metadata-headers': 'X-Kept',
      'x-kept': 'kept',
    })
    expect((await client.get(message)).json()).toMatchObject({
      ID: id,
      Status: 'DISPATCHED',
      Payload: 'later',
    })
    expect((await client.get(scheduled)).json()).toMatchObject({
      status: 'DISPATCHED',
      dispatchSchedule: second,
      dispatchedAt: expect.any(String),
    })
    expect((await client.get(`${lane.channelPath}/messages`)).json()).toMatchObject({ Result: [message] })
    const left = await countsOf(lane)
    expect(left).toMatchObject({ DISPATCHED: 1, SCHEDULED_SCHEDULED: 1, SCHEDULED_DISPATCHED: 1 })
    expect(left.next).not.toBe(second)
    for (const [status, count] of [
      [101, 1],
      [102, 1],
      [103, 0],
    ] as const) {
      const list = await client.get(`${lane.channelPath}/scheduled-messages?status=${status}`)
      expect(list.json<{ result: string[] }>().result).toHaveLength(count)
    }
    await ground().pass(10, 1)
    expect([lane.callbacks().length, late.callbacks().length]).toEqual([1, 1])
  })

  it('has an id that no other message of its channel has, before and after it went out', async () => {
    const lane = await Lane.open(ground(), 'pull')
    const id = { 'X-Broker-Message-ID': freshId('m') }
    const later = () => ({ ...id, ...scheduledFor(ground().at(3600)) })
    await expectStatus(201, lane.post('x', later()))
    const refused = async () => {
      await expectRefusal(409, 'duplicate message id for channel', lane.post('x', id))
      await expectRefusal(409, 'duplicate scheduled message id for channel', lane.post('x', later()))
    }
    await refused()
    await ground().jump(3600)
    await ground().within(LATEST_SECONDS, async () => {
      expect(await lane.queued()).toHaveLength(1)
    })
    await refused()
  })

  describe('with many others', () => {
    const MANY = 120

    it('goes out once, though two servers look after them', async () => {
      const lane = await Lane.open(ground(), 'push')
      const ids = await Promise.all(
        Array.from({ length: MANY }, (_, n) =>
          lane.broadcast(`${n}`, scheduledFor(ground().at(300 + (n % 3)))),
        ),
      )
      const second = await Broker.start(ground().kind, { beside: ground(), webhooks: ground().webhooks })
      try {
        await ground().jump(298)
        await ground().within(4 * LATEST_SECONDS, () => {
          expect(lane.callbacks().length).toBeGreaterThanOrEqual(MANY)
        })
        await ground().pass(12, 1)
        const got = lane.callbacks().map(({ headers }) => headers['x-broker-message-id'])
        expect(got.toSorted()).toEqual(ids.toSorted())
        expect(await countsOf(lane)).toEqual({
          DISPATCHED: MANY,
          SCHEDULED_DISPATCHED: MANY,
          next: undefined,
        })
      } finally {
        await second.stop()
      }
    })
  })
})

brokers(
  'the least lead of a scheduled message',
  (ground) => {
    it('is what the setting says', async () => {
      const lane = await Lane.open(ground(), 'pull')
      const text = 'scheduled time must be at least 7 minutes in the future'
      await expectRefusal(412, text, lane.post('x', scheduledFor(ground().at(419))))
      await expectStatus(201, lane.post('x', scheduledFor(ground().at(421))))
    })
  },
  { webhooks: { scheduler: { minDelayMinutes: 7 } } },
)
