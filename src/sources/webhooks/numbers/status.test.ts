import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { stores } from '../../../../test/world/stores.ts'
import { WebhookWorld } from '../../../../test/world/webhooks/world.ts'
import { later } from '../../../core/clock.ts'
import { JOB } from '../webhook.ts'
import { Status } from './status.ts'

describe.each(stores)('the status of webhooks on $name', (store) => {
  let books: WebhookWorld
  let status: Status
  beforeAll(async () => {
    books = await WebhookWorld.open(store)
    status = new Status(books.db)
  })
  afterAll(() => books?.close())

  it('is empty where there is nothing', async () => {
    expect(await status.jobs()).toEqual({})
    expect(await status.dead()).toEqual({ consumers: [] })
    for (const unknown of ['nobody', 'no\0body', 'n'.repeat(256)]) {
      expect(await status.messages(unknown)).toEqual({ counts: {} })
    }
    await books.channel('silent')
    expect(await status.messages('silent')).toEqual({ counts: {} })
  })

  it('of jobs has each status that a consumer has jobs of, oldest and newest in whole seconds', async () => {
    const channel = await books.channel('__proto__')
    const consumer = await books.consumer(channel, { consumerId: 'k1', name: 'Con One' })
    const other = await books.consumer(channel, { consumerId: 'k2', name: 'Con Two' })
    // 2027-01-15T08:00:00.999999Z
    books.clock.advance(999_999n)
    const jobs = await books.message([...Array(5).fill(consumer), other], { state: JOB.inFlight })
    const [waiting, ready, delivered, dead] = jobs
    if (!waiting || !ready || !delivered || !dead) throw new Error('no job')
    books.clock.advance(1_000_000n)
    await books.move([waiting], JOB.later)
    books.clock.advance(1_000_000n)
    await books.move([ready], JOB.ready)
    await books.move([delivered], JOB.delivered)
    await books.die([dead])
    const names = { consumerId: 'k1', consumerName: 'Con One' }
    const at = (oldest: string, newest = oldest) => ({
      oldestItemTimestamp: `2027-01-15T08:00:${oldest}Z`,
      newestItemTimestamp: `2027-01-15T08:00:${newest}Z`,
    })
    const view = await status.jobs()
    expect(JSON.parse(JSON.stringify(view))).toEqual(
      JSON.parse(
        JSON.stringify({
          ['__proto__']: {
            [consumer.id]: [
              { status: 1001, count: 2, ...at('01', '02'), ...names },
              { status: 1002, count: 1, ...at('00'), ...names },
              { status: 1003, count: 1, ...at('02'), ...names },
              { status: 1004, count: 1, ...at('02'), ...names },
            ],
            [other.id]: [{ status: 1002, count: 1, ...at('00'), consumerId: 'k2', consumerName: 'Con Two' }],
          },
        }),
      ),
    )
    expect(await status.dead()).toEqual({
      consumers: [
        {
          channelId: '__proto__',
          channelName: '__proto__',
          consumerId: 'k1',
          consumerName: 'Con One',
          deadCount: 1,
        },
      ],
    })
  })

  it('of messages has a link for each count, and when the next one is to be sent', async () => {
    const channel = await books.channel('a b')
    await books.message([], { channel })
    await books.message([], { channel })
    const inAnHour = later(books.clock.now(), 3_600_500_000n)
    await books.message([], { channel, scheduledFor: later(inAnHour, 1_000_000n), isWaiting: true })
    await books.message([], { channel, scheduledFor: inAnHour, isWaiting: true })
    await books.message([], { channel, scheduledFor: books.clock.now() })
    expect(await status.messages('a b')).toEqual({
      counts: {
        DISPATCHED: { Count: 3, Links: { messages: '/channel/a%20b/messages?status=102' } },
        SCHEDULED_SCHEDULED: {
          Count: 2,
          Links: { messages: '/channel/a%20b/scheduled-messages?status=101' },
        },
        SCHEDULED_DISPATCHED: {
          Count: 1,
          Links: { messages: '/channel/a%20b/scheduled-messages?status=102' },
        },
      },
      next_scheduled_message_at: '2027-01-15T09:00:03Z',
    })
  })
})
