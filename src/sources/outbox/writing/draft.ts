/** A new message, checked as far as that needs no look at the table. */
import { randomUUID } from 'node:crypto'
import { failure } from '../../../core/errors.ts'
import type { NewMessage } from '../table/message.ts'

/** Bytes and texts as they are, anything else as its JSON. */
export type Content =
  | { readonly kind: 'bytes'; readonly bytes: Buffer }
  | { readonly kind: 'text' | 'json'; readonly text: string }

/** Index of the message in its call; -1 when there is only one. */
export type Place = number

export function refuseField(field: string, reason: string, at: Place = -1): never {
  throw failure('outbox_message_invalid', { field: at < 0 ? field : `messages[${at}].${field}`, reason })
}

export interface Draft {
  readonly tenantId: string
  readonly eventType: string
  readonly content: Content
  /** In lower case. */
  readonly key: string
  /** The application gave the key: it may be known already. */
  readonly keyIsGiven: boolean
  readonly orderingKey: string | null
  /** JSON. */
  readonly headers: string | null
  readonly correlationId: string | null
}

const FIELDS = {
  tenantId: true,
  eventType: true,
  payload: true,
  key: true,
  orderingKey: true,
  headers: true,
  correlationId: true,
} as const satisfies Record<keyof NewMessage, true>

const UUID = /^[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}$/i

export const isUuid = (text: string): boolean => UUID.test(text)

export function readMessage(message: NewMessage, at: Place = -1): Draft {
  if (typeof message !== 'object' || message === null)
    refuseField('message', 'is missing; it is an object with tenantId, eventType and payload', at)
  for (const field in message) {
    // A mistyped key would be random, and the message sent again and again.
    if (!(field in FIELDS)) refuseField(field, `is unknown; there are ${Object.keys(FIELDS).join(', ')}`, at)
  }
  const key = readKey(message.key, at)
  return {
    tenantId: readText(message.tenantId, 'tenantId', at),
    eventType: readText(message.eventType, 'eventType', at),
    content: readPayload(message.payload, at),
    key: key ?? randomUUID(),
    keyIsGiven: key !== null,
    orderingKey: readOptionalText(message.orderingKey, 'orderingKey', at),
    headers: readHeaders(message.headers, at),
    correlationId: readOptionalText(message.correlationId, 'correlationId', at),
  }
}

/** `Guid.Empty`, what .NET has without a key. As a key it would make all such messages one. */
const EMPTY_GUID = '00000000-0000-0000-0000-000000000000'

function readKey(key: unknown, at: Place): string | null {
  if (key === undefined || key === null || key === EMPTY_GUID) return null
  if (typeof key !== 'string' || !isUuid(key))
    refuseField('key', 'is no uuid; make one of the parts that identify the message with createKey()', at)
  return key.toLowerCase()
}

function readText(text: unknown, field: string, at: Place): string {
  if (typeof text !== 'string') refuseField(field, `is ${text === undefined ? 'missing' : 'no text'}`, at)
  if (text === '') refuseField(field, 'is empty', at)
  refuseUnkept(text, field, at)
  return text
}

/** Databases do not keep these characters. */
export function refuseUnkept(text: string, field: string, at?: Place): void {
  if (text.includes('\0')) refuseField(field, 'holds U+0000', at)
  if (!text.isWellFormed()) refuseField(field, 'holds half a character (a lone surrogate)', at)
}

const readOptionalText = (text: unknown, field: string, at: Place): string | null =>
  text === undefined || text === null ? null : readText(text, field, at)

function readHeaders(headers: unknown, at: Place): string | null {
  if (headers === undefined || headers === null) return null
  if (typeof headers !== 'object' || Array.isArray(headers))
    refuseField('headers', 'is no object of names and texts', at)
  for (const [name, value] of Object.entries(headers)) {
    const field = `headers[${JSON.stringify(name)}]`
    if (typeof value !== 'string') refuseField(field, 'is no text', at)
    if (name === '') refuseField(field, 'has no name', at)
    refuseUnkept(name + value, field, at)
  }
  return JSON.stringify(headers)
}

export function refusePayload(reason: string, at: Place): never {
  refuseField('payload', reason, at)
}

function readPayload(payload: unknown, at: Place): Content {
  if (typeof payload === 'string') {
    if (!payload.isWellFormed()) refusePayload('holds half a character (a lone surrogate)', at)
    return { kind: 'text', text: payload }
  }
  if (ArrayBuffer.isView(payload)) {
    const { buffer, byteOffset, byteLength } = payload
    return { kind: 'bytes', bytes: Buffer.from(buffer, byteOffset, byteLength) }
  }
  if (payload instanceof ArrayBuffer) return { kind: 'bytes', bytes: Buffer.from(payload) }
  const text = jsonOf(payload, at)
  if (text === undefined) refusePayload(`is ${nounOf(payload)}, which has no JSON`, at)
  return { kind: 'json', text }
}

function jsonOf(payload: unknown, at: Place): string | undefined {
  try {
    // Undefined for undefined and for functions, whatever its type says.
    return JSON.stringify(payload) as string | undefined
  } catch (error) {
    // A bigint, a circle, or a toJSON that throws.
    return refusePayload(`has no JSON: ${error instanceof Error ? error.message : String(error)}`, at)
  }
}

const nounOf = (value: unknown): string => (value === undefined ? 'missing' : `a ${typeof value}`)
