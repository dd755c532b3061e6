/** Two small readers of the protobuf wire format, for the decoders that are written by hand. */
import { isUtf8 } from 'node:buffer'

/** A length of up to 28 bits; undefined when it is longer, or cut off. */
export function varint(bytes: Uint8Array, at: number): { value: number; next: number } | undefined {
  let value = 0
  for (let index = 0; index < 4; index++) {
    const byte = bytes[at + index]
    if (byte === undefined) return undefined
    value |= (byte & 0x7f) << (7 * index)
    if (byte < 0x80) return { value, next: at + index + 1 }
  }
  return undefined
}

/** Short ASCII is read fastest by hand; the calls below cost more than the loop up to about this length. */
const BY_HAND = 24

/** The text between two positions; undefined when it is not valid UTF-8. */
export function shortText(bytes: Buffer, from: number, to: number): string | undefined {
  if (to - from <= BY_HAND) {
    let text = ''
    let at = from
    for (; at < to; at++) {
      const byte = bytes[at]
      if (byte === undefined || byte >= 0x80) break
      text += String.fromCharCode(byte)
    }
    if (at === to) return text
  }
  return isUtf8(bytes.subarray(from, to)) ? bytes.toString('utf8', from, to) : undefined
}
