import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { stores } from '../../../../test/world/stores.ts'
import { refusalOf, WebhookWorld } from '../../../../test/world/webhooks/world.ts'
import { Senders } from './senders.ts'

describe.each(stores)('a sender on $name', (kind) => {
  let store: WebhookWorld
  let senders: Senders
  const given = (change: object = {}) => ({
    channelId: 'events',
    channelToken: 'ctok',
    producerId: 'shop',
    producerToken: 'ptok',
    ...change,
  })
  beforeAll(async () => {
    store = await WebhookWorld.open(kind)
    senders = new Senders(store.db)
    await store.channel('events')
    await store.producers.put('shop', { name: null, token: 'ptok' }, null)
  })

  it('is the producer on the channel, when both tokens are right', async () => {
    const channel = await store.channels.get('events')
    const producer = await store.producers.get('shop')
    expect(await senders.authorise(given())).toEqual({
      channel: channel?.number,
      channelId: 'events',
      producer: producer?.id,
    })
  })

  it.each([
    ['resource_unknown', { channelId: 'Events', channelToken: '', producerId: '', producerToken: '' }],
    ['resource_unknown', { channelId: 'event_' }],
    ['resource_unknown', { channelId: 'events\0' }],
    ['channel_token_wrong', { channelToken: 'ctok ', producerId: 'nobody' }],
    ['channel_token_wrong', { channelToken: '' }],
    ['channel_token_wrong', { channelToken: 'x'.repeat(5_000) }],
    ['producer_unknown', { producerId: 'SHOP', producerToken: '' }],
    ['producer_unknown', { producerId: '' }],
    ['producer_token_wrong', { producerToken: 'Ptok' }],
    ['producer_token_wrong', { producerToken: '' }],
  ])('is refused with %s for %j', async (refusal, change) => {
    expect(await refusalOf(senders.authorise(given(change)))).toBe(refusal)
  })

  it('is judged by itself when others ask at the same time', async () => {
    await store.channel('quotes "and\\ é')
    const answers = await Promise.all([
      refusalOf(senders.authorise(given())),
      refusalOf(senders.authorise(given({ channelId: 'quotes "and\\ é' }))),
      refusalOf(senders.authorise(given({ channelId: 'gone' }))),
      refusalOf(senders.authorise(given({ producerId: 'events' }))),
      refusalOf(senders.authorise(given({ producerToken: 'no' }))),
    ])
    expect(answers).toEqual(['done', 'done', 'resource_unknown', 'producer_unknown', 'producer_token_wrong'])
  })

  it('needs the new token as soon as there is one, on every server', async () => {
    const other = new Senders(store.another())
    await other.authorise(given())
    const { updatedAt } = (await store.channels.get('events')) ?? expect.fail('the channel is gone')
    const date = new Date(Number(updatedAt / 1_000n)).toUTCString()
    await store.channels.put('events', { name: null, token: 'fresh' }, date)
    expect(await refusalOf(other.authorise(given()))).toBe('channel_token_wrong')
    expect(await refusalOf(other.authorise(given({ channelToken: 'fresh' })))).toBe('done')
  })
  afterAll(() => store?.close())
})
