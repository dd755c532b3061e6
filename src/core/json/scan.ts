/**
 * Whether bytes are JSON, and facts about it, in one pass without recursion or values; intake runs it on every record. JSON as Python reads it:
 * `NaN`, `Infinity` and `-Infinity` are numbers. A byte order mark is not JSON, nor is an empty text.
 */
import { isAscii, isUtf8 } from 'node:buffer'

export type JsonScan =
  | { readonly ok: false; readonly why: 'not_json' | 'not_utf8' }
  | {
      readonly ok: true
      readonly kind: 'object' | 'array' | 'scalar'
      readonly ascii: boolean
      /** Nesting of arrays and objects; 0 for a scalar. */
      readonly depth: number
      readonly longestInteger: number
      readonly nonFinite: boolean
    }

const NOT_JSON: JsonScan = { ok: false, why: 'not_json' }
const NOT_UTF8: JsonScan = { ok: false, why: 'not_utf8' }

const NOWHERE = -1

const [SPACE, QUOTE, PLUS, COMMA, MINUS, DOT, ZERO] = [0x20, 0x22, 0x2b, 0x2c, 0x2d, 0x2e, 0x30]
const [NINE, COLON, UPPER_E, UPPER_I, UPPER_N] = [0x39, 0x3a, 0x45, 0x49, 0x4e]
const [OPEN_ARRAY, BACKSLASH, CLOSE_ARRAY] = [0x5b, 0x5c, 0x5d]
const [LOWER_E, LOWER_U, OPEN_OBJECT, CLOSE_OBJECT] = [0x65, 0x75, 0x7b, 0x7d]

// What may come next. Up to ITEM_OR_END a value may; the next two begin with a name.
const VALUE = 0
const ITEM_OR_END = 1
const NAME_OR_END = 2
const NAME = 3
const COLON_NEXT = 4
const COMMA_OR_END = 5

/** By first byte. Numbers with a minus are checked before. */
const WORDS: readonly (Uint8Array | undefined)[] = Array.from({ length: 256 }, (_, first) =>
  ['true', 'false', 'null', 'NaN', 'Infinity', '-Infinity']
    .map((word) => Buffer.from(word))
    .find((word) => word[0] === first),
)

/** Quote, backslash and controls. */
const SPECIAL_IN_STRING = new Uint8Array(256)
SPECIAL_IN_STRING.fill(1, 0, SPACE)
SPECIAL_IN_STRING[QUOTE] = 1
SPECIAL_IN_STRING[BACKSLASH] = 1

/** After a backslash, besides `u`. */
const ESCAPED = new Uint8Array(256)
for (const byte of Buffer.from('"\\/bfnrt')) ESCAPED[byte] = 1

/** Enclosing containers; shared, because nothing else runs during a scan. */
const USUAL_DEPTHS = new Uint8Array(512)

/** One loop over the tokens: a function per grammar rule takes twice as long. */
export function scanJson(bytes: Uint8Array): JsonScan {
  const ascii = isAscii(bytes)
  if (!ascii && !isUtf8(bytes)) return NOT_UTF8
  let open = USUAL_DEPTHS
  let depth = 0
  let inObject = false
  let next = VALUE
  let kind: 'object' | 'array' | 'scalar' = 'scalar'
  let deepest = 0
  let longestInteger = 0
  let nonFinite = false
  for (let at = 0; at < bytes.length; ) {
    const byte = byteAt(bytes, at)
    switch (byte) {
      case 0x20:
      case 0x0a:
      case 0x0d:
      case 0x09:
        at++
        continue
      case QUOTE:
        if (next > NAME) return NOT_JSON
        at = stringEnd(bytes, at + 1)
        next = next <= ITEM_OR_END ? COMMA_OR_END : COLON_NEXT
        break
      case COLON:
        if (next !== COLON_NEXT) return NOT_JSON
        next = VALUE
        at++
        break
      case COMMA:
        if (next !== COMMA_OR_END || depth === 0) return NOT_JSON
        next = inObject ? NAME : VALUE
        at++
        break
      case OPEN_OBJECT:
      case OPEN_ARRAY:
        if (next > ITEM_OR_END) return NOT_JSON
        inObject = byte === OPEN_OBJECT
        if (depth === 0) kind = inObject ? 'object' : 'array'
        if (depth === open.length) open = twiceAsLong(open)
        open[depth++] = byte
        if (depth > deepest) deepest = depth
        next = inObject ? NAME_OR_END : ITEM_OR_END
        at++
        break
      case CLOSE_OBJECT:
      case CLOSE_ARRAY:
        if (depth === 0 || inObject !== (byte === CLOSE_OBJECT)) return NOT_JSON
        if (next !== COMMA_OR_END && next !== (inObject ? NAME_OR_END : ITEM_OR_END)) return NOT_JSON
        depth--
        inObject = depth > 0 && open[depth - 1] === OPEN_OBJECT
        next = COMMA_OR_END
        at++
        break
      default: {
        if (next > ITEM_OR_END) return NOT_JSON
        next = COMMA_OR_END
        const digits = byte === MINUS ? at + 1 : at
        const integerEnd = digitsEnd(bytes, digits)
        if (integerEnd === digits) {
          at = wordEnd(bytes, at)
          if (byte === UPPER_N || byte === UPPER_I || byte === MINUS) nonFinite = true
        } else if (integerEnd > digits + 1 && byteAt(bytes, digits) === ZERO) return NOT_JSON
        else {
          at = numberEnd(bytes, integerEnd)
          if (at === integerEnd && at - digits > longestInteger) longestInteger = at - digits
        }
      }
    }
    if (at === NOWHERE) return NOT_JSON
  }
  if (depth > 0 || next !== COMMA_OR_END) return NOT_JSON
  return { ok: true, kind, ascii, depth: deepest, longestInteger, nonFinite }
}

/** −1 behind the end: reading there would make later reads slow. */
const byteAt = (bytes: Uint8Array, at: number): number => (at < bytes.length ? (bytes[at] ?? -1) : -1)

function stringEnd(bytes: Uint8Array, from: number): number {
  let at = from
  while (at < bytes.length) {
    const byte = byteAt(bytes, at)
    if (SPECIAL_IN_STRING[byte] === 0) at++
    else if (byte === QUOTE) return at + 1
    else if (byte !== BACKSLASH || at + 1 >= bytes.length) return NOWHERE
    else if (ESCAPED[byteAt(bytes, at + 1)] === 1) at += 2
    else if (byteAt(bytes, at + 1) === LOWER_U && isHex4(bytes, at + 2)) at += 6
    else return NOWHERE
  }
  return NOWHERE
}

function isHex4(bytes: Uint8Array, from: number): boolean {
  for (let at = from; at < from + 4; at++) {
    const byte = byteAt(bytes, at)
    const letter = byte | 0x20
    if (!((byte >= ZERO && byte <= NINE) || (letter >= 0x61 && letter <= 0x66))) return false
  }
  return true
}

function digitsEnd(bytes: Uint8Array, from: number): number {
  let at = from
  for (; at < bytes.length; at++) {
    const byte = byteAt(bytes, at)
    if (byte < ZERO || byte > NINE) break
  }
  return at
}

function numberEnd(bytes: Uint8Array, integerEnd: number): number {
  let at = integerEnd
  if (byteAt(bytes, at) === DOT) {
    const fractionEnd = digitsEnd(bytes, at + 1)
    if (fractionEnd === at + 1) return NOWHERE
    at = fractionEnd
  }
  const exponent = byteAt(bytes, at)
  if (exponent !== LOWER_E && exponent !== UPPER_E) return at
  const sign = byteAt(bytes, at + 1)
  const digits = sign === PLUS || sign === MINUS ? at + 2 : at + 1
  const end = digitsEnd(bytes, digits)
  return end === digits ? NOWHERE : end
}

function wordEnd(bytes: Uint8Array, from: number): number {
  const word = WORDS[byteAt(bytes, from)]
  if (word === undefined) return NOWHERE
  for (let index = 1; index < word.length; index++) {
    if (byteAt(bytes, from + index) !== word[index]) return NOWHERE
  }
  return from + word.length
}

function twiceAsLong(open: Uint8Array): typeof USUAL_DEPTHS {
  const longer = new Uint8Array(open.length * 2)
  longer.set(open)
  return longer
}
