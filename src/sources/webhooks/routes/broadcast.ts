/**
 * A producer sends a message to a channel. The sender is refused before the body is read; then date, body and id are checked, in this
 * order.
 */

import type { Answer } from '../../../api/exact-answer.ts'
import { type Instant, later } from '../../../core/clock.ts'
import { parseTimestamp } from '../../../core/timestamp.ts'
import { Refused } from '../refusal.ts'
import { DELIVERY_HEADERS, type HeaderList } from '../webhook.ts'
import { type CallScope, CHANNEL_TOKEN, type WebhookCall } from './call.ts'
import { created } from './reply.ts'
import type { WebhookRequest } from './request.ts'
import { messageUrl, scheduledUrl } from './views.ts'

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

const INTEGER = /^[+-]?\d+$/
const MINUTE_US = 60_000_000

/** 0 for anything but an integer, and for what no store keeps exactly. */
export function readPriority(text: string): number {
  const priority = INTEGER.test(text) ? Math.abs(Number(text)) : 0
  return Number.isSafeInteger(priority) ? priority : 0
}

/** Refused when it is no RFC 3339 time, or sooner than the setting allows. */
export function readScheduledFor(text: string, now: Instant, minDelayMinutes: number): Instant {
  const parsed = parseTimestamp(text)
  if (!parsed.ok) throw new Refused('schedule_invalid')
  if (parsed.at < later(now, BigInt(Math.round(minDelayMinutes * MINUTE_US)))) {
    throw new Refused(
      'schedule_too_soon',
      `scheduled time must be at least ${minDelayMinutes} minutes in the future`,
    )
  }
  return parsed.at
}

/** A producer's header replaces none of these. */
const BARRED: ReadonlySet<string> = new Set([
  ...DELIVERY_HEADERS,
  'webhook-id',
  'webhook-timestamp',
  'webhook-signature',
])
const BARRED_PREFIXES = ['x-broker-', 'proxy-'] as const

const isBarred = (lowerName: string, tokenHeader: string): boolean =>
  BARRED.has(lowerName) ||
  BARRED_PREFIXES.some((prefix) => lowerName.startsWith(prefix)) ||
  lowerName === tokenHeader.toLowerCase()

/**
 * The headers that `list` names, in its order and spelling, of two spellings the first. `rawHeaders` are names and values in turn; the
 * first value counts, and an absent, empty or barred header is left out.
 */
export function readMetadataHeaders(
  list: string,
  rawHeaders: readonly string[],
  tokenHeader: string,
): HeaderList {
  const named = new Map<string, string>()
  for (const name of list.split(',').map((part) => part.trim())) {
    const lower = name.toLowerCase()
    if (name !== '' && !named.has(lower) && !isBarred(lower, tokenHeader)) named.set(lower, name)
  }
  if (named.size === 0) return []
  const values = firstValues(rawHeaders)
  return [...named].flatMap(([lower, name]) => {
    const value = values.get(lower) ?? ''
    return value === '' ? [] : [[name, value] as const]
  })
}

function firstValues(rawHeaders: readonly string[]): ReadonlyMap<string, string> {
  const values = new Map<string, string>()
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]?.toLowerCase() ?? ''
    if (!values.has(name)) values.set(name, rawHeaders[i + 1] ?? '')
  }
  return values
}
