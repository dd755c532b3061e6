/**
 * The call that everything begins with: a producer sends a message to a channel. Who may not send is told so before the body is
 * read; then date, body and id are looked at, in this order.
 */
import type { Answer } from '../../http/exact-answer.ts'
import { readMetadataHeaders, readPriority, readScheduledFor } from '../broadcast-headers.ts'
import { Refused } from '../refusal.ts'
import { type CallScope, CHANNEL_TOKEN, type WebhookCall } from './call.ts'
import { messageUrl, scheduledUrl } from './links.ts'
import { created } from './reply.ts'
import type { WebhookRequest } from './request.ts'

const DEFAULT_CONTENT_TYPE = 'application/octet-stream'

async function broadcast(request: WebhookRequest, scope: CallScope): Promise<Answer> {
  const { broadcasts, settings, clock } = scope
  const channelId = request.param('channelId')
  const sender = await broadcasts.authorise({
    channelId,
    channelToken: request.header('x-broker-channel-token'),
    producerId: request.header('x-broker-producer-id'),
    producerToken: request.header('x-broker-producer-token'),
  })
  const payload = await request.body()
  const schedule = request.header('x-broker-scheduled-for')
  const scheduledFor =
    schedule === '' ? null : readScheduledFor(schedule, clock.now(), settings.scheduler.minDelayMinutes)
  if (payload.length === 0) throw new Refused('body_empty')
  const listed = request.header('x-broker-metadata-headers')
  const { messageId, scheduled } = await broadcasts.accept(sender, {
    messageId: request.header('x-broker-message-id') || null,
    content: {
      payload,
      contentType: request.header('content-type') || DEFAULT_CONTENT_TYPE,
      priority: readPriority(request.header('x-broker-message-priority')),
      headers:
        listed === '' ? [] : readMetadataHeaders(listed, request.rawHeaders, settings.delivery.tokenHeader),
    },
    scheduledFor,
  })
  return created(scheduled ? scheduledUrl(channelId, messageId) : messageUrl(channelId, messageId))
}

export const broadcastCall: WebhookCall = {
  method: 'POST',
  path: '/channel/:channelId/broadcast',
  access: 'own',
  summary: 'Send a message to the consumers of a channel, now or at a later time',
  headers: [
    CHANNEL_TOKEN,
    'X-Broker-Producer-ID',
    'X-Broker-Producer-Token',
    'X-Broker-Message-ID',
    'X-Broker-Message-Priority',
    'X-Broker-Metadata-Headers',
    'X-Broker-Scheduled-For',
  ],
  body: { mediaType: '*/*', schema: { type: 'string', format: 'binary' } },
  success: [201],
  errors: [400, 401, 403, 404, 409, 412, 413],
  answer: broadcast,
}
