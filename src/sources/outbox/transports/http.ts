/**
 * Delivers messages as HTTP POST requests, over connections that are kept open. What an answer of the receiver means:
 *
 *   2xx                            delivered
 *   302, 303, 307                  failed: by its meaning temporary, the receiver may be at its place the next time
 *   other 3xx                      failed for good: the address is wrong, and every try would be answered the same
 *   408, 425, 429, 5xx and beyond  failed; not before `Retry-After`, when it is given
 *   other 4xx                      failed for good
 *
 * Redirects are never followed: a POST would become a GET on the way, or its content go to a stranger.
 */
import type { KeyObject } from 'node:crypto'
import type { Static } from 'typebox'
import { addressRanges, REFUSED_BY_DEFAULT } from '../../../core/address-ranges.ts'
import type { Clock, Instant } from '../../../core/clock.ts'
import { type Fixed, section } from '../../../core/settings/kinds.ts'
import { readWebhookSecret, signWebhook } from '../../../core/standard-webhooks.ts'
import { SystemClock } from '../../../core/system-clock.ts'
import { PermanentError } from '../../../core/thrown.ts'
import { Connections } from '../../../outgoing/connections.ts'
import { type Network, SYSTEM_NETWORK } from '../../../outgoing/connector.ts'
import {
  type Answer,
  excerptOf,
  HttpDeliveryFailed,
  isSuccess,
  phrase,
  post,
  redirection,
  target,
} from '../../../outgoing/exchange.ts'
import { checkNames, quoted, readOptions, refuse } from '../refusal.ts'
import type { OutboxMessage } from '../table/message.ts'
import { encoded, guessedContentType, namedContentType, percentEncoded, tokenEncoded } from './encoding.ts'
import { HTTP_KEYS } from './keys.ts'
import { RetryLater, type Transport } from './transport.ts'

const HttpSchema = section('A transport to HTTP.', HTTP_KEYS)
type HttpSettings = Fixed<Static<typeof HttpSchema>>

export interface HttpTransportOptions extends HttpSettings {
  /** The receiver. Its query is sent and never shown. */
  readonly url: string | URL
  readonly clock?: Clock
}

const CONNECT_MS = 10_000

/** Refuses wrong options by name. */
export const httpTransport = (options: HttpTransportOptions): Transport =>
  httpTransportOver(SYSTEM_NETWORK, options)

export function httpTransportOver(network: Network, options: HttpTransportOptions): Transport {
  checkNames(options, ['url', ...Object.keys(HTTP_KEYS), 'clock'])
  const { url, clock = new SystemClock(), ...given } = options
  const address = readAddress(url)
  const settings = readOptions(HttpSchema, given)
  const { timeoutSeconds = null, connections: most = Number.POSITIVE_INFINITY } = settings
  const sources: HeaderSources = { configured: readHeaders(settings), keys: readKeys(settings), clock }
  const refuses = refusalsOf(settings)
  const connections = new Connections(address.origin, { most, connectMs: CONNECT_MS, refuses, network })
  const path = address.pathname + address.search
  return {
    name: 'http',
    async deliver(message, signal) {
      const posting = { path, headers: headersOf(message, sources), body: message.payload }
      const answer = await post(connections, posting, {
        target: target(address),
        clock,
        timeoutSeconds,
        signal,
      })
      if (!isSuccess(answer.status)) throw failureOf(answer, address, clock.now())
    },
    close: () => connections.close(),
  }
}

function readAddress(url: unknown): URL {
  if (typeof url !== 'string' && !(url instanceof URL)) refuse('url', `${quoted(url)} is no address`)
  const address = URL.parse(url)
  if (address === null) return refuse('url', 'it is no address such as https://example.com/events')
  const { protocol, username, password } = address
  if (protocol !== 'http:' && protocol !== 'https:')
    refuse('url', `it begins with ${protocol}// and not with http:// or https://`)
  if (username !== '' || password !== '')
    refuse('url', 'it holds a user name or a password; give them as headers.authorization')
  return address
}

function refusalsOf({ refusedAddresses = REFUSED_BY_DEFAULT }: HttpSettings): (address: string) => boolean {
  const ranges = addressRanges(refusedAddresses)
  return 'problem' in ranges ? refuse('refusedAddresses', ranges.problem) : ranges.refuses
}

const readHeaders = ({ headers = {} }: HttpSettings): ReadonlyMap<string, string> =>
  new Map(
    Object.entries(headers).map(([name, value]) => {
      const problem = problemOfHeader(name, value)
      if (problem !== null) refuse(`headers.${name}`, problem)
      return [name.toLowerCase(), value]
    }),
  )

function readKeys({ secret, secrets }: HttpSettings): readonly KeyObject[] {
  if (secret !== undefined && secrets !== undefined)
    refuse('secret', 'secrets is given too; put all of them there')
  if (secret !== undefined) return [readKey('secret', secret)]
  if (secrets === undefined) return []
  if (secrets.length === 0) return refuse('secrets', 'it names none')
  return secrets.map((each, i) => readKey(`secrets.${i}`, each))
}

function readKey(option: string, secret: string): KeyObject {
  const read = readWebhookSecret(secret)
  return read.ok ? read.key : refuse(option, read.reason)
}

const TRANSIENT: ReadonlySet<number> = new Set([302, 303, 307, 408, 425, 429])
const isTransient = (status: number): boolean => status >= 500 || TRANSIENT.has(status)

const MOST_CHARACTERS = 500

function failureOf(answer: Answer, address: URL, now: Instant): Error {
  const { status } = answer
  const text = `${target(address)} answered ${phrase(status)}${redirection(answer, address)}${excerptOf(answer, MOST_CHARACTERS)}`
  if (!isTransient(status)) return new PermanentError(text)
  const retryAfterMs = retryAfterMsOf(answer.retryAfter, now)
  return retryAfterMs === null ? new HttpDeliveryFailed(text) : new RetryLater(text, retryAfterMs)
}

const HTTP_DATE = /^[A-Za-z]{3,9},? /

/** Given in seconds or as a date; null when it is neither. */
function retryAfterMsOf(retryAfter: string | null, now: Instant): number | null {
  if (retryAfter === null) return null
  const text = retryAfter.trim()
  if (/^\d+$/.test(text)) return Math.min(Number(text) * 1_000, Number.MAX_SAFE_INTEGER)
  if (!HTTP_DATE.test(text)) return null
  // One of HTTP's three forms of dates names no zone; all are GMT.
  const atMs = Date.parse(text.endsWith('GMT') ? text : `${text} GMT`)
  if (Number.isNaN(atMs)) return null
  return Math.max(0, Math.ceil(atMs - Number(now) / 1_000))
}

/** They belong to the connection or frame the request: a message must not set them. */
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

/** Set for each message. */
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

/** Null when nothing is wrong. */
function problemOfHeader(name: string, value: unknown): string | null {
  const lower = name.toLowerCase()
  if (!TOKEN.test(name)) return 'it is no name of a header'
  if (BARRED.has(lower)) return 'it belongs to the connection'
  if (ABOUT_MESSAGE.has(lower)) return 'it is set for each message'
  if (typeof value !== 'string') return 'it is not a text'
  // The value may be a secret.
  return VALUE.test(value) ? null : 'its value has characters other than visible ASCII and spaces'
}

interface HeaderSources {
  /** By lower-case name. They win over those of messages, apart from the content type. */
  readonly configured: ReadonlyMap<string, string>
  readonly keys: readonly KeyObject[]
  readonly clock: Clock
}

/**
 * Headers of a delivery, names and values in turn: the office's, the operator's, the application's. None can split the
 * request or make it unsendable.
 */
function headersOf(message: OutboxMessage, { configured, keys, clock }: HeaderSources): string[] {
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

/** Percent-encodes what HTTP does not allow, and all beyond ASCII. */
const sendable = (value: string): string => (VALUE.test(value) ? value : encoded(value, VALUE))
