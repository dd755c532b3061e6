/** A new message as an application gave it, checked: everything that needs no look at the table. */
import { randomUUID } from 'node:crypto'
import type { NewMessage } from '../message.ts'
import { type Content, readPayload, refuseField } from './payload.ts'

export interface Draft {
  readonly tenantId: string
  readonly eventType: string
  readonly content: Content
  /** In lower case. */
  readonly key: string
  /** The application gave the key: it may be known already. A random one never is. */
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

/** Whether a text is a uuid as it is usually written. */
export const isUuid = (text: string): boolean => UUID.test(text)

/** Checks a message; `at` names it among others, as in `messages[3].`. */
export function readMessage(message: NewMessage, at = ''): Draft {
  if (typeof message !== 'object' || message === null)
    refuseField(`${at}message`, 'is missing; it is an object with tenantId, eventType and payload')
  for (const field in message) {
    // A key under another name would be a random one, and the message would be sent again and again.
    if (!(field in FIELDS)) refuseField(at + field, `is unknown; there are ${Object.keys(FIELDS).join(', ')}`)
  }
  const { key } = message
  const keyIsGiven = key !== undefined && key !== null
  return {
    tenantId: readText(message.tenantId, `${at}tenantId`),
    eventType: readText(message.eventType, `${at}eventType`),
    content: readPayload(message.payload, `${at}payload`),
    key: keyIsGiven ? readKey(key, `${at}key`) : randomUUID(),
    keyIsGiven,
    orderingKey: readOptionalText(message.orderingKey, `${at}orderingKey`),
    headers: readHeaders(message.headers, `${at}headers`),
    correlationId: readOptionalText(message.correlationId, `${at}correlationId`),
  }
}

function readKey(key: unknown, field: string): string {
  if (typeof key !== 'string' || !isUuid(key))
    refuseField(field, 'is no uuid; make one of the parts that identify the message with createKey()')
  return key.toLowerCase()
}

function readText(text: unknown, field: string): string {
  if (typeof text !== 'string') refuseField(field, `is ${text === undefined ? 'missing' : 'no text'}`)
  if (text === '') refuseField(field, 'is empty')
  if (text.includes('\0')) refuseField(field, 'holds U+0000')
  if (!text.isWellFormed()) refuseField(field, 'holds half a character (a lone surrogate)')
  return text
}

const readOptionalText = (text: unknown, field: string): string | null =>
  text === undefined || text === null ? null : readText(text, field)

function readHeaders(headers: unknown, field: string): string | null {
  if (headers === undefined || headers === null) return null
  if (typeof headers !== 'object' || Array.isArray(headers))
    refuseField(field, 'is no object of names and texts')
  for (const [name, value] of Object.entries(headers)) {
    const place = `${field}[${JSON.stringify(name)}]`
    if (typeof value !== 'string') refuseField(place, 'is no text')
    if (name === '') refuseField(place, 'has no name')
    if (/\0/.test(name + value)) refuseField(place, 'holds U+0000')
    if (!(name + value).isWellFormed()) refuseField(place, 'holds half a character (a lone surrogate)')
  }
  return JSON.stringify(headers)
}
