/**
 * The headers of an HTTP delivery: what the office says about the message, what the operator configured, what the
 * application gave the message. None of them can split the request or make it unsendable, whatever it contains.
 */
import type { KeyObject } from 'node:crypto'
import type { Clock } from '../../core/clock.ts'
import { signWebhook } from '../../core/standard-webhooks.ts'
import type { OutboxMessage } from '../message.ts'
import { encoded, guessedContentType, namedContentType, percentEncoded, tokenEncoded } from './encoding.ts'

/** These belong to the connection or frame the request: a message that carried them would break it. */
const BARRED: ReadonlySet<string> = new Set([
  'connection',
  'content-length',
  'expect',
  'host',
  'http2-settings',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])

/** These say what the message is. */
const ABOUT_MESSAGE: ReadonlySet<string> = new Set([
  'idempotency-key',
  'x-event-type',
  'x-tenant-id',
  'x-correlation-id',
  'webhook-id',
  'webhook-timestamp',
  'webhook-signature',
])

const TOKEN = /^[A-Za-z0-9!#$%&'*+\-.^_`|~]+$/
const VALUE = /^[\t\x20-\x7e]*$/

/** What is wrong with a header that an operator configured; null when nothing is. */
export function problemOfHeader(name: string, value: unknown): string | null {
  const lower = name.toLowerCase()
  if (!TOKEN.test(name)) return 'it is no name of a header'
  if (BARRED.has(lower)) return 'it belongs to the connection'
  if (ABOUT_MESSAGE.has(lower)) return 'it is set for each message'
  if (typeof value !== 'string') return 'it is not a text'
  // The value may be a secret.
  return VALUE.test(value) ? null : 'its value has characters other than visible ASCII and spaces'
}

export interface HeaderSources {
  /** By lower-case name; they win over those of messages, apart from the content type. */
  readonly configured: ReadonlyMap<string, string>
  /** Messages are signed with all of these. */
  readonly keys: readonly KeyObject[]
  readonly clock: Clock
}

/** All headers of one delivery: names and values in turn. */
export function headersOf(message: OutboxMessage, { configured, keys, clock }: HeaderSources): string[] {
  const { payload, key, eventType, tenantId, correlationId } = message
  const headers = new Map([['user-agent', 'bartleby']])
  for (const [name, value] of Object.entries(message.headers)) {
    const lower = tokenEncodedName(name)
    if (lower !== '' && !BARRED.has(lower)) headers.set(lower, sendable(value))
  }
  for (const [name, value] of configured) headers.set(name, value)
  const named = namedContentType(message)
  if (named !== null) headers.set('content-type', sendable(named))
  else headers.set('content-type', configured.get('content-type') ?? guessedContentType(payload))

  const id = percentEncoded(key)
  headers.set('idempotency-key', id)
  headers.set('x-event-type', percentEncoded(eventType))
  headers.set('x-tenant-id', percentEncoded(tenantId))
  if (correlationId !== null) headers.set('x-correlation-id', percentEncoded(correlationId))
  if (keys.length > 0) {
    const unixSeconds = Number(clock.now() / 1_000_000n)
    for (const [name, value] of Object.entries(signWebhook(keys, { id, unixSeconds, body: payload })))
      headers.set(name, value)
  }
  return [...headers].flat()
}

const tokenEncodedName = (name: string): string =>
  (TOKEN.test(name) ? name : tokenEncoded(name)).toLowerCase()

/** A value as the application gave it; what HTTP does not allow in it, and all beyond ASCII, percent-encoded. */
const sendable = (value: string): string => (VALUE.test(value) ? value : encoded(value, VALUE))
