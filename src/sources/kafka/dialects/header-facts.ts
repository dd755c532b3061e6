/**
 * What headers tell. No tool names itself: the family with the most names is meant. With `key_format: uber` the key tells instead, a
 * protobuf message with the original key in it. What cannot be read stays empty; the letter has the raw header.
 */
import { isUtf8 } from 'node:buffer'
import { BinaryReader, WireType } from '@bufbuild/protobuf/wire'
import { isTopicName } from '../../../outgoing/kafka/record.ts'
import type { ExceptionFacts, Origin } from '../event.ts'
import { bufferOf, latin1, shownText } from '../wire/bytes.ts'
import { type Encoding, FAMILIES, type Family, type FamilyHeader, type Field } from './families.ts'
import type { HeaderValue, NamedHeaders } from './named-headers.ts'

export interface HeaderFacts {
  readonly origin: Origin
  /** When it died first somewhere else. */
  readonly firstOrigin?: Origin
  readonly exception: ExceptionFacts
  readonly attempts: number | null
  /** In base64. */
  readonly originalKey?: string
}

/** One name may be anybody's. */
const ENOUGH = 2

const NO_COUNTS: readonly number[] = FAMILIES.map(() => 0)

/** Family numbers by header name. */
const writers = new Map<string, number[]>()
for (const [number, { headers }] of FAMILIES.entries()) {
  for (const { name } of headers) writers.set(name, [...(writers.get(name) ?? []), number])
}

/** Of several the first in the table. */
export function familyOf(headers: NamedHeaders): Family | null {
  const counts: number[] = NO_COUNTS.slice()
  for (const name of headers.names) {
    const families = writers.get(name)
    if (families === undefined) continue
    for (const number of families) counts[number] = (counts[number] ?? 0) + 1
  }
  let best: Family | null = null
  let most = ENOUGH - 1
  for (let number = 0; number < FAMILIES.length; number++) {
    const count = counts[number] ?? 0
    const family = FAMILIES[number]
    if (count <= most || !family?.needs.every((name) => headers.has(name))) continue
    best = family
    most = count
  }
  return best
}

type Fields = { [F in Field]?: string }

const ORIGIN = ['topic', 'partition', 'offset', 'timestampMs', 'consumerGroup', 'destination'] as const

/** How many bytes of a text are copied; the letter has the whole. */
const LIMITS: { readonly [F in Field]?: number } = {
  message: 32 * 1024,
  causeMessage: 32 * 1024,
  stack: 64 * 1024,
}
export const SHORT_TEXT = 4 * 1024

const NUMBERS: { readonly [F in Field]?: bigint } = {
  partition: 2n ** 31n - 1n,
  attempts: 2n ** 31n - 1n,
  offset: 2n ** 63n - 1n,
  timestampMs: 2n ** 63n - 1n,
  failedAtMs: 2n ** 63n - 1n,
}

/** The newest hop, and the oldest when it differs. */
export function factsInHeaders(family: Family, headers: NamedHeaders): HeaderFacts {
  const newest: Fields = {}
  for (const header of family.headers) {
    if (header.tells !== null) read(newest, header, header.tells, headers.value(header.name, family.newest))
  }
  const origin = originOf(newest)
  const first = family.newest === family.oldest ? null : oldestOrigin(family, headers)
  return {
    origin,
    ...(first !== null && !sameOrigin(origin, first) ? { firstOrigin: first } : {}),
    exception: exceptionOf(newest),
    attempts: newest.attempts === undefined ? null : Number(newest.attempts),
  }
}

/** Only repeated headers can differ. */
function oldestOrigin(family: Family, headers: NamedHeaders): Origin | null {
  if (headers.repeated.size === 0) return null
  const oldest: Fields = {}
  for (const header of family.headers) {
    const field = ORIGIN.find((each) => each === header.tells)
    if (field !== undefined) read(oldest, header, field, headers.value(header.name, family.oldest))
  }
  return originOf(oldest)
}

/** The first header that tells a field counts. */
function read(fields: Fields, header: FamilyHeader, field: Field, value: HeaderValue | undefined): void {
  if (value == null || fields[field] !== undefined) return
  const largest = NUMBERS[field]
  if (largest !== undefined) {
    const number = numberIn(value, header.as)
    if (number !== null && number <= largest) fields[field] = String(number)
    return
  }
  const text = shownText(header.as === 'b64' ? base64In(value) : value, LIMITS[field] ?? SHORT_TEXT)
  if (header.as === 'class: message') {
    const [name, message] = cutAt(text, ': ')
    fields.class = name
    if (message !== null) fields.message ??= message
  } else fields[field] = header.as === 'class in source' ? cutAt(text, ' in ')[0] : text
}

function cutAt(text: string, separator: string): [string, string | null] {
  const at = text.indexOf(separator)
  return at === -1 ? [text, null] : [text.slice(0, at), text.slice(at + separator.length)]
}

function originOf(fields: Fields): Origin {
  const origin: { -readonly [K in keyof Origin]: Origin[K] } = {}
  if (fields.topic) origin.topic = fields.topic
  if (fields.partition !== undefined) origin.partition = Number(fields.partition)
  if (fields.offset !== undefined) origin.offset = fields.offset
  if (fields.timestampMs !== undefined) origin.timestampMs = fields.timestampMs
  if (fields.consumerGroup) origin.consumerGroup = fields.consumerGroup
  if (fields.destination) origin.destination = fields.destination
  if (fields.failedAtMs !== undefined) origin.failedAtMs = fields.failedAtMs
  return origin
}

function exceptionOf(fields: Fields): ExceptionFacts {
  const exception: { -readonly [K in keyof ExceptionFacts]: ExceptionFacts[K] } = {}
  if (fields.class !== undefined) exception.class = fields.class
  if (fields.message !== undefined) exception.message = fields.message
  if (fields.stack !== undefined) exception.stack = fields.stack
  if (fields.causeClass !== undefined) exception.causeClass = fields.causeClass
  if (fields.causeMessage !== undefined) exception.causeMessage = fields.causeMessage
  return exception
}

const sameOrigin = (one: Origin, other: Origin): boolean =>
  ORIGIN.every((field) => one[field] === other[field])

const DECIMAL = /^\d{1,19}$/
/** For a length that is a multiple of four. A repeated group would exhaust the stack on long texts. */
const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/
const LARGEST = 2n ** 63n - 1n

function numberIn(value: Uint8Array, as: Encoding): bigint | null {
  const number = anyNumberIn(bufferOf(value), as)
  return number !== null && number >= 0n && number <= LARGEST ? number : null
}

function anyNumberIn(value: Buffer, as: Encoding): bigint | null {
  switch (as) {
    case 'i32':
      return value.length === 4 ? BigInt(value.readInt32BE()) : null
    case 'i64':
      return value.length === 8 ? value.readBigInt64BE() : null
    case 'big':
      return value.length >= 1 && value.length <= 8 ? signed(value) : null
    case 'next attempt':
      return value.length === 4 || value.length === 1 ? signed(value) - 1n : null
    default:
      return value.length <= 19 ? decimal(latin1(value)) : null
  }
}

const signed = (value: Buffer): bigint =>
  BigInt.asIntN(value.length * 8, BigInt(`0x${value.toString('hex')}`))

const decimal = (text: string): bigint | null => (DECIMAL.test(text) ? BigInt(text) : null)

/** The text itself when it is no base64. */
function base64In(value: Uint8Array): Uint8Array {
  const text = latin1(value)
  if (text.length % 4 !== 0 || !BASE64.test(text)) return value
  const bytes = Buffer.from(text, 'base64')
  // Words of four letters look like base64 too; what they decode to is rarely text.
  return isUtf8(bytes) ? bytes : value
}

const [ATTEMPTS, TOPIC, PARTITION, OFFSET, TIMESTAMP_NS, KEY] = [1, 2, 3, 4, 5, 6] as const

/** Null when the key is no such message. Zero and the empty key are not written. */
export function factsInKey(key: Uint8Array | null): HeaderFacts | null {
  const fields = key === null ? null : fieldsOf(key)
  const topic = latin1(fields?.bytes.get(TOPIC) ?? NO_BYTES)
  if (fields === null || !isTopicName(topic)) return null
  const number = (field: number): bigint => fields.numbers.get(field) ?? 0n
  const partition = number(PARTITION)
  const offset = number(OFFSET)
  const timestampNs = number(TIMESTAMP_NS)
  const attempts = number(ATTEMPTS)
  return {
    origin: {
      topic,
      ...(isInt32(partition) ? { partition: Number(partition) } : {}),
      ...(offset >= 0n ? { offset: String(offset) } : {}),
      ...(timestampNs > 0n ? { timestampMs: String(timestampNs / 1_000_000n) } : {}),
    },
    exception: {},
    attempts: isInt32(attempts) ? Number(attempts) : null,
    originalKey: bufferOf(fields.bytes.get(KEY) ?? NO_BYTES).toString('base64'),
  }
}

const NO_BYTES = new Uint8Array(0)

const isInt32 = (number: bigint): boolean => number >= 0n && number < 2n ** 31n

/** The last of each field; null for no message, or a field of another type. */
function fieldsOf(message: Uint8Array) {
  const numbers = new Map<number, bigint>()
  const bytes = new Map<number, Uint8Array>()
  const reader = new BinaryReader(message)
  try {
    while (reader.pos < reader.len) {
      const [field, type] = reader.tag()
      const isBytes = field === TOPIC || field === KEY
      if (field <= KEY && type !== (isBytes ? WireType.LengthDelimited : WireType.Varint)) return null
      if (type === WireType.StartGroup) return null
      if (type === WireType.Varint) numbers.set(field, BigInt(reader.int64()))
      else if (type === WireType.LengthDelimited) bytes.set(field, reader.bytes())
      else reader.skip(type)
    }
    return { numbers, bytes }
  } catch {
    return null
  }
}
