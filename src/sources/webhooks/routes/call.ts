/**
 * One call of the webhook API: path, access, description, answer. Finds what its path names and checks the tokens, in the order that
 * clients know.
 */

import type { Answer } from '../../../api/exact-answer.ts'
import type { JsonSchema } from '../../../api/proto-schema.ts'
import type { Clock } from '../../../core/clock.ts'
import type { Role } from '../../../core/roles.ts'
import { sameToken } from '../../../core/same-token.ts'
import { Refused } from '../refusal.ts'
import type { WebhookSettings } from '../settings.ts'
import type { Channel, Consumer } from '../webhook.ts'
import type { Webhooks } from '../webhooks.ts'
import type { WebhookRequest } from './request.ts'

export type CalledWebhooks = Pick<
  Webhooks,
  | 'producers'
  | 'channels'
  | 'consumers'
  | 'messages'
  | 'seeding'
  | 'broadcasts'
  | 'jobs'
  | 'bulk'
  | 'status'
  | 'settings'
>

export interface CallScope extends CalledWebhooks {
  readonly clock: Clock
}

/**
 * Once the server has tokens: whoever has tokens of channel, producer or consumer (`own`); readers; readers of such tokens, who could send
 * with them; or who may change everything.
 */
type Access = 'own' | 'read' | 'read tokens' | 'write'

export interface WebhookCall {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  /** With `:name` for its variable parts. */
  readonly path: string
  readonly access: Access
  readonly summary: string
  readonly headers?: readonly string[]
  /** With their meaning. */
  readonly query?: Readonly<Record<string, string>>
  readonly form?: Readonly<Record<string, string>>
  /** Instead of a form. */
  readonly body?: { readonly mediaType: string; readonly schema: JsonSchema }
  /** With its JSON. */
  readonly success: readonly [status: number, shape?: JsonSchema]
  readonly errors: readonly number[]
  answer(request: WebhookRequest, scope: CallScope): Promise<Answer>
}

export function roleOf(access: Access, { openManagement, api }: WebhookSettings): Role | 'open' {
  if (access === 'own' || openManagement) return 'open'
  switch (access) {
    case 'read':
      return 'viewer'
    case 'read tokens':
      return api.exposeTokens ? 'operator' : 'viewer'
    case 'write':
      return 'admin'
  }
}

export const CHANNEL_TOKEN = 'X-Broker-Channel-Token'
export const CONSUMER_TOKEN = 'X-Broker-Consumer-Token'

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

/** Without asking for tokens. */
export async function findConsumer(request: WebhookRequest, scope: CallScope): Promise<Recipient> {
  const channel = await findChannel(request, scope)
  return { channel, consumer: existing(await scope.consumers.get(channel, request.param('consumerId'))) }
}

/** With the tokens of channel and consumer. */
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
