/**
 * Headers as letters keep them: a JSON list of [name, value], readable and searchable, from which every byte comes back. What is no
 * UTF-8 is `{"base64": …}`, a null value is null; order and repetition stay.
 */
import { isUtf8 } from 'node:buffer'
import type { RawHeader } from '../event.ts'

type Stored = string | { readonly base64: string } | null

export const encodeHeaders = (headers: readonly RawHeader[]): Uint8Array =>
  Buffer.from(JSON.stringify(headers.map(({ name, value }) => [stored(name), stored(value)])))

export function decodeHeaders(kept: Uint8Array | null): readonly RawHeader[] {
  if (kept === null) return []
  // Written by `encodeHeaders`.
  const pairs = JSON.parse(text(kept)) as readonly (readonly [Stored, Stored])[]
  return pairs.map(([name, value]) => ({ name: bytes(name) ?? Buffer.alloc(0), value: bytes(value) }))
}

/** Bytes as responses show them: text, or `base64:` and base64 when they are no UTF-8; null stays null. */
export function shownBytes(value: Uint8Array): string
export function shownBytes(value: Uint8Array | null): string | null
export function shownBytes(value: Uint8Array | null): string | null {
  if (value === null) return null
  return isUtf8(value) ? text(value) : `base64:${buffer(value).toString('base64')}`
}

/** The value of the last header with this name, as consumers read it; undefined when there is none, null when it is null. */
export function lastHeader(headers: readonly RawHeader[], name: string): Uint8Array | null | undefined {
  const wanted = Buffer.from(name)
  return headers.findLast((header) => wanted.equals(header.name))?.value
}

function stored(value: Uint8Array | null): Stored {
  if (value === null) return null
  return isUtf8(value) ? text(value) : { base64: buffer(value).toString('base64') }
}

function bytes(value: Stored): Uint8Array | null {
  if (value === null) return null
  return typeof value === 'string' ? Buffer.from(value) : Buffer.from(value.base64, 'base64')
}

const buffer = (value: Uint8Array): Buffer => Buffer.from(value.buffer, value.byteOffset, value.byteLength)
const text = (value: Uint8Array): string => buffer(value).toString('utf8')
