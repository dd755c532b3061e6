/**
 * Bytes of records: shown as text, measured as brokers do, and headers as letters keep them: a JSON list of [name, value], searchable, from
 * which every byte comes back. What is no UTF-8 is `{"base64": …}`.
 */
import { isAscii, isUtf8 } from 'node:buffer'
import type { OutgoingRecord, RawHeader } from '../../../outgoing/kafka/record.ts'

type Stored = string | { readonly base64: string } | null

export const encodeHeaders = (headers: readonly RawHeader[]): Uint8Array =>
  Buffer.from(JSON.stringify(headers.map(({ name, value }) => [stored(name), stored(value)])))

export function decodeHeaders(kept: Uint8Array | null): readonly RawHeader[] {
  if (kept === null) return []
  // Written by `encodeHeaders`.
  const pairs = JSON.parse(utf8(kept)) as readonly (readonly [Stored, Stored])[]
  return pairs.map(([name, value]) => ({ name: bytes(name) ?? Buffer.alloc(0), value: bytes(value) }))
}

/** Text, or `base64:` and base64 when it is no UTF-8. */
export function shownBytes(value: Uint8Array): string
export function shownBytes(value: Uint8Array | null): string | null
export function shownBytes(value: Uint8Array | null): string | null {
  if (value === null) return null
  return isUtf8(value) ? utf8(value) : `base64:${bufferOf(value).toString('base64')}`
}

/** As consumers read it; undefined if absent, null if null. */
export function lastHeader(headers: readonly RawHeader[], name: string): Uint8Array | null | undefined {
  const wanted = Buffer.from(name)
  return headers.findLast((header) => wanted.equals(header.name))?.value
}

function stored(value: Uint8Array | null): Stored {
  if (value === null) return null
  return isUtf8(value) ? utf8(value) : { base64: bufferOf(value).toString('base64') }
}

function bytes(value: Stored): Uint8Array | null {
  if (value === null) return null
  return typeof value === 'string' ? Buffer.from(value) : Buffer.from(value.base64, 'base64')
}

export const sameBytes = (one: Uint8Array | null, other: Uint8Array | null): boolean =>
  one === null || other === null ? one === other : bufferOf(one).equals(other)

export const uuidText = (id: Buffer): string =>
  id.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')

export const utf8 = (value: Uint8Array): string => bufferOf(value).toString('utf8')

/** Not ASCII, so that nobody publishes a text that was cut. */
const CUT = '… [cut]'

/** Up to this length a loop is faster than the call into the runtime. */
const SHORT = 64

export const bufferOf = (bytes: Uint8Array): Buffer =>
  Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)

/** One character for each byte: different bytes are different texts. */
export const latin1 = (bytes: Uint8Array): string => bufferOf(bytes).toString('latin1')

export function isAsciiText(bytes: Uint8Array): boolean {
  if (bytes.length > SHORT) return isAscii(bytes)
  for (let at = 0; at < bytes.length; at++) if ((bytes[at] ?? 0) >= 0x80) return false
  return true
}

export const isText = (bytes: Uint8Array): boolean => isAsciiText(bytes) || isUtf8(bytes)

/** At most `maxBytes`; a cut is marked. */
export function shownText(bytes: Uint8Array, maxBytes: number): string {
  if (bytes.length <= maxBytes) return isAsciiText(bytes) ? latin1(bytes) : shownBytes(bytes)
  if (!isUtf8(bytes)) return `${shownBytes(bytes.subarray(0, maxBytes))}${CUT}`
  let end = maxBytes
  // Not in the middle of a character: continuation bytes are 10xxxxxx.
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end--
  return `${shownBytes(bytes.subarray(0, end))}${CUT}`
}

const BATCH_HEAD = 61
/** Attributes, and the distances to the batch's time and offset, which are 0. */
const RECORD_HEAD = 3

/** In a batch of its own. */
export function recordSize({ key, value, headers }: Omit<OutgoingRecord, 'topic'>): number {
  let body = RECORD_HEAD + fieldSize(key) + fieldSize(value) + lengthSize(headers.length)
  for (const header of headers) body += headerSize(header)
  return BATCH_HEAD + lengthSize(body) + body
}

const headerSize = ({ name, value }: RawHeader): number => fieldSize(name) + fieldSize(value)

const fieldSize = (bytes: Uint8Array | null): number =>
  bytes === null ? 1 : lengthSize(bytes.length) + bytes.length

/** Zigzag varints: one bit for the sign, then seven in each byte. */
function lengthSize(length: number): number {
  let size = 1
  for (let rest = length; rest >= 64; rest = Math.floor(rest / 128)) size++
  return size
}
