/**
 * The payload of a new message, on its way into the column that keeps it. What the database would refuse is refused here:
 * on PostgreSQL a statement that fails takes the application's whole transaction with it.
 */
import { isUtf8 } from 'node:buffer'
import { failure } from '../../../core/errors.ts'
import { isClosing, isOpening, isQuote, jsonProblem, skipSpace, tokenEnd } from '../../../core/json/tokens.ts'
import type { Layout } from '../table/layout.ts'

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

/** PostgreSQL reads JSON recursively; it ended between 10,000 and 20,000 levels with its usual stack. */
const MOST_LEVELS = 5_000
/** Digits before and behind the point that `numeric` has at most. */
const MOST_WHOLE_DIGITS = 131_072
const MOST_FRACTION_DIGITS = 16_383

/**
 * Why a column of this type cannot keep what is JSON; undefined when it can. PostgreSQL keeps no nesting beyond its stack, and in
 * `jsonb` no U+0000, halves of characters and numbers that `numeric` cannot hold. One pass over a text that is known to be JSON.
 */
export function columnProblem(text: string, type: 'json' | 'jsonb'): string | undefined {
  let depth = 0
  for (let at = skipSpace(text, 0), end = 0; at < text.length; at = skipSpace(text, end)) {
    end = tokenEnd(text, at)
    const code = text.charCodeAt(at)
    if (isOpening(code)) {
      if (++depth > MOST_LEVELS) return `is nested deeper than ${MOST_LEVELS} levels`
    } else if (isClosing(code)) depth--
    else if (type === 'jsonb') {
      // Most are short, and far from any limit.
      const isShort = end - at < (isQuote(code) ? SHORTEST_ESCAPE : SHORTEST_EXPONENT)
      const problem = isShort ? undefined : valueProblem(text.slice(at, end))
      if (problem !== undefined) return problem
    }
  }
  return undefined
}

/** `"\u0000"` and `1e999`: what is shorter has no problem. */
const SHORTEST_ESCAPE = 8
const SHORTEST_EXPONENT = 5

const valueProblem = (written: string): string | undefined =>
  written.startsWith('"') ? stringProblem(written) : numberProblem(written)

const ESCAPE = /\\(?:u([\da-fA-F]{4})|.)/g

function stringProblem(string: string): string | undefined {
  if (!string.includes('\\u')) return undefined
  const decoded = string.replace(ESCAPE, (_, hex?: string) =>
    hex === undefined ? ' ' : String.fromCharCode(Number.parseInt(hex, 16)),
  )
  if (decoded.includes('\0')) return 'holds U+0000, which a column of jsonb cannot keep'
  if (!decoded.isWellFormed())
    return 'holds half a character (a lone surrogate), which a column of jsonb cannot keep'
  return undefined
}

/** Words have no digits. */
function numberProblem(number: string): string | undefined {
  const [mantissa = '', exponent = '0'] = number.replace(/^-/, '').split(/[eE]/)
  const [whole = '', fraction = ''] = mantissa.split('.')
  const shift = Number(exponent)
  const isKept = whole.length + shift <= MOST_WHOLE_DIGITS && fraction.length - shift <= MOST_FRACTION_DIGITS
  return isKept ? undefined : 'holds a number beyond what a column of jsonb can keep'
}
