/**
 * The payload of a new message, on its way into the column that keeps it. What the database would refuse is refused here:
 * on PostgreSQL a statement that fails takes the application's whole transaction with it.
 */
import { isUtf8 } from 'node:buffer'
import { failure } from '../../core/errors.ts'
import { jsonProblem } from '../../core/json/tokens.ts'
import type { Layout } from '../layout.ts'
import { columnProblem } from './json-limits.ts'

/** A payload as it will be sent: bytes and texts as they are, anything else as its JSON. */
export type Content =
  | { readonly kind: 'bytes'; readonly bytes: Buffer }
  | { readonly kind: 'text' | 'json'; readonly text: string }

/** Which message of a call is looked at; -1 when there is only one. */
export type Place = number

/** Refuses a field of a message. */
export function refuseField(field: string, reason: string, at: Place = -1): never {
  throw failure('outbox_message_invalid', { field: at < 0 ? field : `messages[${at}].${field}`, reason })
}

function refuse(reason: string, at: Place): never {
  refuseField('payload', reason, at)
}

/** Reads a payload; refuses what has no JSON. */
export function readPayload(payload: unknown, at: Place): Content {
  if (typeof payload === 'string') {
    if (!payload.isWellFormed()) refuse('holds half a character (a lone surrogate)', at)
    return { kind: 'text', text: payload }
  }
  if (ArrayBuffer.isView(payload)) {
    const { buffer, byteOffset, byteLength } = payload
    return { kind: 'bytes', bytes: Buffer.from(buffer, byteOffset, byteLength) }
  }
  if (payload instanceof ArrayBuffer) return { kind: 'bytes', bytes: Buffer.from(payload) }
  const text = jsonOf(payload, at)
  if (text === undefined) refuse(`is ${nounOf(payload)}, which has no JSON`, at)
  return { kind: 'json', text }
}

function jsonOf(payload: unknown, at: Place): string | undefined {
  try {
    // Its type promises a text; of undefined and of functions there is none.
    return JSON.stringify(payload) as string | undefined
  } catch (error) {
    // A bigint, a circle, or a toJSON that throws.
    return refuse(`has no JSON: ${error instanceof Error ? error.message : String(error)}`, at)
  }
}

const nounOf = (value: unknown): string => (value === undefined ? 'missing' : `a ${typeof value}`)

/** The payload as a parameter for its column: bytes where it keeps bytes, else a text. */
export type PayloadFitter = (content: Content, at: Place) => Buffer | string

/** How payloads are fitted to the column of a table. */
export function payloadFitter(layout: Layout): PayloadFitter {
  if (layout.keepsBytes)
    return (content) => (content.kind === 'bytes' ? content.bytes : Buffer.from(content.text, 'utf8'))
  const isPostgres = layout.dialect === 'postgres'
  const isJson = layout.keepsJson
  const type = layout.types.payload
  return (content, at) => {
    const text = content.kind === 'bytes' ? decode(content.bytes, at) : content.text
    if (isPostgres && text.includes('\0')) refuse(`holds U+0000, which a column of ${type} cannot keep`, at)
    if (isJson) {
      const reason = content.kind === 'json' ? null : jsonProblem(text)
      if (reason !== null) refuse(`is not JSON, and its column takes nothing else: ${reason}`, at)
      const problem = columnProblem(text, type === 'jsonb' ? 'jsonb' : 'json')
      if (problem !== undefined) refuse(problem, at)
    }
    return text
  }
}

function decode(bytes: Buffer, at: Place): string {
  if (!isUtf8(bytes)) refuse('is not UTF-8, and its column keeps text', at)
  return bytes.toString('utf8')
}
