/** Text and payload as stored: of items as bytes, NULL for empty, because PostgreSQL refuses U+0000; of others as text, cut and cleaned. */
import { isUtf8 } from 'node:buffer'
import type { ErrorDescription } from './thrown.ts'

const EMPTY = new Uint8Array(0)

/** null when empty. */
export const textBytes = (text: string): Uint8Array | null => (text === '' ? null : Buffer.from(text, 'utf8'))

export const storedText = (bytes: Uint8Array | null): string =>
  bytes === null ? '' : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8')

/** UTF-8 as text, with a byte order mark if there is one; other bytes in base64. */
export function showBytes(bytes: Uint8Array): {
  readonly text: string
  readonly encoding: 'utf8' | 'base64'
} {
  const encoding = isUtf8(bytes) ? 'utf8' : 'base64'
  return { text: Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString(encoding), encoding }
}

export const storedPayload = (bytes: Uint8Array | null): Uint8Array => bytes ?? EMPTY

export interface StoredContent {
  readonly encoding: Uint8Array | null
  readonly kind: Uint8Array | null
  readonly reference: Uint8Array | null
  readonly payload: Uint8Array | null
}

/** Strings as UTF-8. */
export function payloadBytes(payload: Uint8Array | string | undefined): Uint8Array {
  if (payload === undefined) return EMPTY
  return typeof payload === 'string' ? Buffer.from(payload, 'utf8') : payload
}

export const base64 = (bytes: Uint8Array | null | undefined): string | null =>
  bytes == null ? null : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64')

export const MAX_MESSAGE_BYTES = 32_768
const MAX_STACK_BYTES = 65_536
const MAX_CLASS_BYTES = 256
const CUT_MARK = '… [cut]'

export const storableError = ({
  errorClass,
  errorMessage,
  errorStack,
}: ErrorDescription): ErrorDescription => ({
  errorClass: storable(errorClass, MAX_CLASS_BYTES),
  errorMessage: storable(errorMessage, MAX_MESSAGE_BYTES),
  errorStack: errorStack === null ? null : storable(errorStack, MAX_STACK_BYTES),
})

/** HTTP allows notes a quarter of this. */
const MAX_TEXT_BYTES = 16_384

/** People's words, cut and cleaned. */
export function storableText(text: string): string
export function storableText(text: string | null): string | null
export function storableText(text: string | null): string | null {
  return text === null ? null : storable(text, MAX_TEXT_BYTES)
}

/** At most `maxBytes` of UTF-8, with a mark where it was cut; without U+0000, which PostgreSQL refuses, and half characters. */
export function storable(text: string, maxBytes: number): string {
  // At most three bytes per UTF-16 unit: the rest cannot be needed.
  const cut = text.length > maxBytes ? text.slice(0, maxBytes) : text
  const clean = cut.toWellFormed().replaceAll('\0', '\uFFFD')
  const bytes = Buffer.from(clean, 'utf8')
  if (bytes.length <= maxBytes && cut.length === text.length) return clean
  const room = maxBytes - Buffer.byteLength(CUT_MARK)
  let end = Math.min(room, bytes.length)
  // Not within a character: continuation bytes are 10xxxxxx.
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end--
  return bytes.subarray(0, end).toString('utf8') + CUT_MARK
}

/** Terminals and logs would obey control characters. */
export const hasControlCharacter = (text: string): boolean => /\p{Cc}/u.test(text)
