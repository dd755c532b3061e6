/** Webhooks in the demo: a storefront that refuses what it does not know, and a warehouse that is away now and then. */
import { randomUUID } from 'node:crypto'
import { REFUSED_BY_DEFAULT } from '../../core/address-ranges.ts'
import { shopEvent } from '../../demo/story/shop.ts'
import { dieAtPartner, type SourceDemo } from '../../demo/story/story.ts'
import type { SectionOf } from '../source-module.ts'
import type { WebhooksFace } from './module.ts'
import { hasChannels } from './registry/holders.ts'
import type { WebhooksSchema } from './settings.ts'

const CHANNEL = 'shop-events'
const PRODUCER = 'shop'
const WAREHOUSE = 'warehouse'
/** Refused for good by the storefront. */
const REFUSED = 'voucher.redeemed'

export const webhooksDemo: SourceDemo<SectionOf<typeof WebhooksSchema>, WebhooksFace> = {
  // A demo would send what waits there.
  isInUse: hasChannels,
  section(given, story) {
    const storefront = story.partner('/hooks/storefront', (body) =>
      body.includes(REFUSED) ? { status: 400, text: 'unknown event type' } : null,
    )
    const warehouse = story.partner('/hooks/warehouse', () =>
      story.isOut(WAREHOUSE) ? { status: 503, text: 'no healthy upstream' } : null,
    )
    // New ones at every start: nobody who knows the demo knows them.
    const token = randomUUID
    return {
      ...given,
      delivery: {
        ...given.delivery,
        maxRetry: 2,
        backoffSeconds: [4, 8],
        // Its receivers are on this machine, whatever the configuration refuses.
        refusedAddresses: REFUSED_BY_DEFAULT,
        // Low enough that a pause is seen when a partner is away for two minutes.
        breaker: { failures: 10, forSeconds: 40, pauseSeconds: 20, longestPauseSeconds: 40 },
      },
      seed: {
        channels: [{ id: CHANNEL, name: 'Events of the shop', token: token() }],
        producers: [{ id: PRODUCER, name: 'The shop', token: token() }],
        consumers: [
          { id: 'storefront', channel: CHANNEL, callbackUrl: storefront, token: token() },
          { id: WAREHOUSE, channel: CHANNEL, callbackUrl: warehouse, token: token() },
        ],
      },
      retention: { days: 1 },
    }
  },
  open(office, story) {
    const { broadcasts, courier, settings } = office.webhooks
    const { channels, producers } = settings.seed
    const send = async (eventType: string): Promise<void> => {
      const sender = await broadcasts.authorise({
        channelId: CHANNEL,
        channelToken: channels.find(({ id }) => id === CHANNEL)?.token ?? '',
        producerId: PRODUCER,
        producerToken: producers.find(({ id }) => id === PRODUCER)?.token ?? '',
      })
      const payload = shopEvent(story, eventType)
      const content = { payload, contentType: 'application/json', priority: 0, headers: [] }
      await broadcasts.accept(sender, { messageId: null, content, scheduledFor: null })
    }
    const sendReady = () => send('parcel.ready')
    const died = (count: number) =>
      dieAtPartner(office, story, { source: 'webhooks', count, send: sendReady })
    return {
      happens: [{ weight: 12, act: () => (story.chance.isOne(0.12) ? send(REFUSED) : sendReady()) }],
      outages: [{ who: WAREHOUSE, fromSecond: 30, toSecond: 150, past: { hour: 8, died } }],
      isBusy: () => courier.held > 0,
    }
  },
}
