/**
 * Messages of the queue API as bytes, in both formats. An undecodable body is refused with the decoder's own text. JSON is as strict as its
 * schema, and no member may be named twice; binary skips unknown fields.
 */
import {
  create,
  type DescMessage,
  fromBinary,
  fromJson,
  type JsonValue,
  type MessageInitShape,
  type MessageShape,
  toBinary,
  toJsonString,
} from '@bufbuild/protobuf'
import type { Timestamp } from '@bufbuild/protobuf/wkt'
import type { Instant } from '../../core/clock.ts'
import { BartlebyError, failure } from '../../core/errors.ts'
import {
  isClosing,
  isName,
  isOpening,
  isQuote,
  skipSpace,
  stringEnd,
  stringOf,
  tokenEnd,
} from '../../core/json/tokens.ts'
import { instantFromParts, isTimestamp, partsFromInstant, ZERO_TIME } from '../../core/timestamp.ts'

export type Format = 'json' | 'protobuf'

/** JSON is text, binary is bytes. */
export type Encoded = string | Uint8Array

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** Decoders quote their input, which may be megabytes long. */
const SHOWN_CHARACTERS = 500

/** Turns whatever a decoder throws into a refusal of the body. */
export function decoding<T>(decode: () => T): T {
  try {
    return decode()
  } catch (error) {
    if (error instanceof BartlebyError) throw error
    const text = error instanceof Error ? error.message : String(error)
    const reason = text.length > SHOWN_CHARACTERS ? `${text.slice(0, SHOWN_CHARACTERS)}...` : text
    throw failure('body_undecodable', { reason: reason.toWellFormed() }, { cause: error })
  }
}

/** Refuses a zero-length body and repeated members. */
export function parseJson(body: Uint8Array): JsonValue {
  const text = utf8.decode(body)
  const value: JsonValue = JSON.parse(text)
  const twice = duplicateMember(text, value)
  if (twice !== null) throw new Error(`duplicate member ${JSON.stringify(twice)}`)
  return value
}

export function decodeMessage<D extends DescMessage>(
  schema: D,
  body: Uint8Array,
  format: Format,
): MessageShape<D> {
  return decoding(() =>
    format === 'protobuf' ? fromBinary(schema, body) : fromJson(schema, parseJson(body)),
  )
}

export function encodeMessage<D extends DescMessage>(
  schema: D,
  fields: MessageInitShape<D>,
  format: Format,
): Encoded {
  const message = create(schema, fields)
  return format === 'protobuf' ? toBinary(schema, message) : toJsonString(schema, message)
}

type Negotiated =
  | { readonly format: Format }
  /** The header's value, in no format of ours. */
  | { readonly format: undefined; readonly given: string }

const JSON_FORMAT: Negotiated = { format: 'json' }
const PROTOBUF_FORMAT: Negotiated = { format: 'protobuf' }

/** The format that a header names, cut at the first `;` or `,`. No header means JSON. */
export function negotiate(header: string | undefined): Negotiated {
  // The usual values are found without cutting them up.
  if (header === undefined || header === 'application/json') return JSON_FORMAT
  if (header === 'application/protobuf') return PROTOBUF_FORMAT
  const given = (header.split(/[;,]/, 1)[0] ?? '').trim().toLowerCase()
  switch (given) {
    case '':
    case '*/*':
    case 'application/*':
    case 'application/json':
      return JSON_FORMAT
    case 'application/protobuf':
      return PROTOBUF_FORMAT
    default:
      return { format: undefined, given }
  }
}

/** Refuses times that no calendar has, which binary messages can carry. */
export function instantFromWire(timestamp: Pick<Timestamp, 'seconds' | 'nanos'>, field: string): Instant {
  const { seconds, nanos } = timestamp
  const at = instantFromParts(seconds, nanos)
  if (nanos < 0 || nanos > 999_999_999 || !isTimestamp(at)) {
    const reason = `${field} is not a timestamp between the years 0001 and 9999`
    throw failure('body_undecodable', { reason })
  }
  return at
}

/** Fields of the protobuf timestamp. */
export type WireTime = ReturnType<typeof partsFromInstant>

/** null is the zero time. */
export const wireFromInstant = (at: Instant | null | undefined): WireTime => partsFromInstant(at ?? ZERO_TIME)

/** A received timestamp to send back, cut to microseconds. */
export function wireEcho(timestamp: Timestamp | undefined): WireTime {
  if (timestamp === undefined) return wireFromInstant(null)
  const at = instantFromParts(timestamp.seconds, timestamp.nanos)
  return wireFromInstant(isTimestamp(at) ? at : null)
}

/**
 * The first name that an object has twice, also in protobuf's two spellings. JSON.parse silently keeps the last of two members, so the
 * names in the text are counted and compared with those in `value`. 1,000 items take 0.2 ms, next to 0.25 ms of JSON.parse.
 */
export function duplicateMember(text: string, value: unknown): string | null {
  const kept = membersOf(value)
  if (kept.respelled !== null) return kept.respelled
  return kept.count === namesIn(text) ? null : repeatedName(text)
}

/** Strings with a colon behind them. */
function namesIn(text: string): number {
  let count = 0
  for (let at = text.indexOf('"'); at >= 0; at = text.indexOf('"', at)) {
    at = stringEnd(text, at)
    if (isName(text, at)) count++
  }
  return count
}

/** Number of members; `respelled` is one that also occurs under its other name. */
function membersOf(value: unknown): { readonly count: number; readonly respelled: string | null } {
  let count = 0
  const rest: object[] = typeof value === 'object' && value !== null ? [value] : []
  for (let each = rest.pop(); each !== undefined; each = rest.pop()) {
    if (Array.isArray(each)) {
      for (const inner of each) if (typeof inner === 'object' && inner !== null) rest.push(inner)
      continue
    }
    // JSON.parse makes objects without inherited members, and `__proto__` is a member like any other.
    for (const name in each) {
      const inner: unknown = (each as Readonly<Record<string, unknown>>)[name]
      if (typeof inner === 'object' && inner !== null) rest.push(inner)
      count++
      if (name.includes('_') && isRespelled(each, name)) return { count, respelled: name }
    }
  }
  return { count, respelled: null }
}

function isRespelled(of: object, name: string): boolean {
  const other = camelCase(name)
  return other !== name && Object.hasOwn(of, other)
}

/** Names in protobuf's JSON spelling. Clients use a few dozen; invented ones have no end. */
const camelCases = new Map<string, string>()
const MOST_REMEMBERED = 1_000

function camelCase(name: string): string {
  let camel = camelCases.get(name)
  if (camel === undefined) {
    camel = name.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase())
    if (camelCases.size < MOST_REMEMBERED) camelCases.set(name, camel)
  }
  return camel
}

function repeatedName(text: string): string {
  const open: Set<string>[] = []
  for (let at = skipSpace(text, 0), end = 0; at < text.length; at = skipSpace(text, end)) {
    end = tokenEnd(text, at)
    const code = text.charCodeAt(at)
    if (isOpening(code)) open.push(new Set())
    else if (isClosing(code)) open.pop()
    else if (isQuote(code) && isName(text, end)) {
      const name = stringOf(text.slice(at, end))
      const names = open.at(-1)
      if (names?.has(name)) return name
      names?.add(name)
    }
  }
  throw new Error('no name is there twice')
}
