/**
 * The headers of a callback: the broker's, and those that the producer wanted to travel. None can split the request, and none of the
 * producer's replaces one of the broker's.
 */
import type { KeyObject } from 'node:crypto'
import type { Instant } from '../../../core/clock.ts'
import { readWebhookSecret, signWebhook } from '../../../core/standard-webhooks.ts'
import type { Xid } from '../../../core/xid.ts'
import { percentDecoded } from '../registry/texts.ts'
import type { WebhookSettings } from '../settings.ts'
import type { ClaimedJob, Receiver } from './claim.ts'
import type { Content } from './contents.ts'

/** Names and values in turn. */
export function callbackHeaders(
  job: Pick<ClaimedJob, 'id' | 'priority' | 'receiver'>,
  content: Content,
  attempt: {
    readonly requestId: Xid
    readonly now: Instant
    readonly address: URL
    readonly delivery: WebhookSettings['delivery']
  },
): string[] {
  const { delivery, address } = attempt
  const signed = signatures(job, content, attempt.now)
  const own = [
    ...constantHeaders(job.receiver, delivery),
    'Content-Type',
    asReceived(content.contentType),
    'X-Broker-Message-ID',
    asText(content.messageId),
    'X-Broker-Message-Priority',
    String(job.priority),
    'X-Request-ID',
    attempt.requestId,
    ...signed.flat(),
  ]
  const taken = new Set(['x-broker-metadata-headers'])
  if (content.headers.length > 0)
    for (let at = 0; at < own.length; at += 2) taken.add((own[at] ?? '').toLowerCase())
  const forwarded = content.headers.filter(([name]) => !taken.has(name.toLowerCase()))
  // Bytes of header names and units of texts have the same order.
  const names = forwarded.map(([name]) => name).sort()
  own.push('X-Broker-Metadata-Headers', names.join(','))
  const isAuthorized = forwarded.some(([name]) => name.toLowerCase() === 'authorization')
  const authorization = isAuthorized ? null : authorizationOf(address)
  if (authorization !== null) own.push('Authorization', authorization)
  for (const [name, value] of forwarded) own.push(name, asReceived(value))
  return own
}

const constants = new WeakMap<Receiver, readonly string[]>()

function constantHeaders(receiver: Receiver, delivery: WebhookSettings['delivery']): readonly string[] {
  const known = constants.get(receiver)
  if (known !== undefined) return known
  const headers = [
    'User-Agent',
    asText(delivery.userAgent),
    'X-Broker-Channel-ID',
    asText(receiver.channelId),
    'X-Broker-Consumer-ID',
    asText(receiver.consumerId),
    delivery.tokenHeader,
    asText(receiver.token),
  ]
  constants.set(receiver, headers)
  return headers
}

/** With each secret, so that it can be checked with the old one and the new one. */
function signatures({ id, receiver }: Pick<ClaimedJob, 'id' | 'receiver'>, content: Content, now: Instant) {
  const keys = receiver.secrets.flatMap((secret): KeyObject[] => {
    const read = readWebhookSecret(secret)
    return read.ok ? [read.key] : []
  })
  if (keys.length === 0) return []
  const unixSeconds = Number(now / 1_000_000n)
  return Object.entries(signWebhook(keys, { id, unixSeconds, body: content.payload }))
}

function authorizationOf({ username, password }: URL): string | null {
  if (username === '' && password === '') return null
  const bytes = Buffer.from(`${percentDecoded(username)}:${percentDecoded(password)}`, 'utf8')
  return `Basic ${bytes.toString('base64')}`
}

/** Not allowed in a header. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const CONTROLS = /[\x00-\x08\x0a-\x1f\x7f]/g
const escaped = (bytes: string): string =>
  bytes.replaceAll(
    CONTROLS,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`,
  )

/** Most texts are. */
const PLAIN = /^[\x20-\x7e]*$/

/** In UTF-8, one character for each byte. */
const asText = (text: string): string =>
  PLAIN.test(text) ? text : escaped(Buffer.from(text, 'utf8').toString('latin1'))

/** A received header is one character for each byte already, and is sent as it came. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: all that fit into a byte
const BYTES = /^[\x00-\xff]*$/
const asReceived = (value: string): string =>
  PLAIN.test(value) || !BYTES.test(value) ? asText(value) : escaped(value)
