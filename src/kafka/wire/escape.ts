/** JSON in ASCII: hexkit reads nothing else. */
import { isAscii } from 'node:buffer'
import { storedText } from '../../core/content.ts'

const ESCAPE_LENGTH = 6
const BACKSLASH = 0x5c
const LOWER_U = 0x75
const HEX = Buffer.from('0123456789abcdef')

/**
 * The same JSON text with every UTF-16 unit from U+0080 on as `\uXXXX`; nothing else changes. In JSON such characters stand in
 * strings only, so that it is the same value. Bytes that are ASCII already are given back as they are.
 */
export function escapeNonAscii(bytes: Uint8Array): Uint8Array {
  if (isAscii(bytes)) return bytes
  const text = storedText(bytes)
  // In two passes over the units: replacing each by a function takes three times as long.
  let length = text.length
  for (let at = 0; at < text.length; at++) if (text.charCodeAt(at) >= 0x80) length += ESCAPE_LENGTH - 1
  const escaped = Buffer.allocUnsafe(length)
  let end = 0
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at)
    if (unit < 0x80) escaped[end++] = unit
    else {
      escaped[end++] = BACKSLASH
      escaped[end++] = LOWER_U
      for (let shift = 12; shift >= 0; shift -= 4) escaped[end++] = HEX[(unit >> shift) & 15] ?? 0
    }
  }
  return escaped
}

/** One UTF-16 unit as JSON and Python write it. */
export const escapedUnit = (unit: string): string => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`
