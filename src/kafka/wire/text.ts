/** Bytes of records as text, as far as they are text. */
import { isAscii, isUtf8 } from 'node:buffer'
import { shownBytes } from './headers.ts'

/** Ends a text that was too long to be copied. It is no ASCII, so that nobody takes the text for a whole one and publishes it. */
const CUT = '… [cut]'

/** Up to this length a loop is faster than the call into the runtime. */
const SHORT = 64

/** The same bytes with the methods of a Buffer. */
export const bufferOf = (bytes: Uint8Array): Buffer =>
  Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)

/** One character for each byte, so that different bytes are different texts; ASCII is as it is. */
export const latin1 = (bytes: Uint8Array): string => bufferOf(bytes).toString('latin1')

export function isAsciiText(bytes: Uint8Array): boolean {
  if (bytes.length > SHORT) return isAscii(bytes)
  for (let at = 0; at < bytes.length; at++) if ((bytes[at] ?? 0) >= 0x80) return false
  return true
}

export const isText = (bytes: Uint8Array): boolean => isAsciiText(bytes) || isUtf8(bytes)

/** Bytes as responses show them, at most `maxBytes` of them: what is cut off is marked. */
export function shownText(bytes: Uint8Array, maxBytes: number): string {
  if (bytes.length <= maxBytes) return isAsciiText(bytes) ? latin1(bytes) : shownBytes(bytes)
  if (!isUtf8(bytes)) return `${shownBytes(bytes.subarray(0, maxBytes))}${CUT}`
  let end = maxBytes
  // Not in the middle of a character: continuation bytes are 10xxxxxx.
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end--
  return `${shownBytes(bytes.subarray(0, end))}${CUT}`
}
