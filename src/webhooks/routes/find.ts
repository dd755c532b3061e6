/** Finds what the path of a call names, and checks the tokens that come with it, in the order that clients know. */
import { sameToken } from '../../core/same-token.ts'
import { Refused } from '../refusal.ts'
import type { Channel, Consumer } from '../webhook.ts'
import type { CallScope } from './call.ts'
import type { WebhookRequest } from './request.ts'

export const CHANNEL_TOKEN = 'X-Broker-Channel-Token'
export const CONSUMER_TOKEN = 'X-Broker-Consumer-Token'

/** What was looked for, or the refusal that it is not there. */
export function existing<T>(found: T | null): T {
  if (found === null) throw new Refused('resource_unknown')
  return found
}

export const findChannel = async (request: WebhookRequest, { channels }: CallScope): Promise<Channel> =>
  existing(await channels.get(request.param('channelId')))

export interface Recipient {
  readonly channel: Channel
  readonly consumer: Consumer
}

/** The consumer of the path, without asking for tokens. */
export async function findConsumer(request: WebhookRequest, scope: CallScope): Promise<Recipient> {
  const channel = await findChannel(request, scope)
  return { channel, consumer: existing(await scope.consumers.get(channel, request.param('consumerId'))) }
}

/** The consumer of the path, asked for by somebody who has its token and that of the channel. */
export async function authorisedConsumer(
  request: WebhookRequest,
  scope: CallScope,
  unknown: 'consumer_unknown' | 'resource_unknown',
): Promise<Recipient> {
  const channel = await findChannel(request, scope)
  if (!sameToken(channel.token, request.header(CHANNEL_TOKEN.toLowerCase()))) {
    throw new Refused('channel_token_wrong')
  }
  const consumer = await scope.consumers.get(channel, request.param('consumerId'))
  if (consumer === null) throw new Refused(unknown)
  if (!sameToken(consumer.token, request.header(CONSUMER_TOKEN.toLowerCase()))) {
    throw new Refused('consumer_token_wrong')
  }
  return { channel, consumer }
}
