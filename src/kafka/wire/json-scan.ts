/**
 * Whether bytes are JSON, and what a consumer needs to know of it, without making a value of them: one pass over the bytes, without
 * recursion, so that no nesting is too deep. Intake runs it on every record.
 *
 * JSON here is what Python reads: bare `NaN`, `Infinity` and `-Infinity` are numbers. A byte order mark is not JSON, nor is nothing.
 */
import { isAscii, isUtf8 } from 'node:buffer'

export type JsonScan =
  | { readonly ok: false; readonly why: 'not_json' | 'not_utf8' }
  | {
      readonly ok: true
      readonly kind: 'object' | 'array' | 'scalar'
      readonly ascii: boolean
      /** How many arrays and objects stand in each other at most; 0 for a scalar. */
      readonly depth: number
      /** The digits of the longest number that has neither fraction nor exponent. */
      readonly longestInteger: number
      /** Whether NaN or an infinity is in it. */
      readonly nonFinite: boolean
    }

/** What Python's reader takes: beyond that it refuses JSON that is none the worse. */
const DEEPEST = 500
const LONGEST_INTEGER = 4300

/** Whether a consumer written in Python can read it. */
export const isReadableForPython = (scan: JsonScan & { readonly ok: true }): boolean =>
  scan.depth <= DEEPEST && scan.longestInteger <= LONGEST_INTEGER

const NOT_JSON: JsonScan = { ok: false, why: 'not_json' }
const NOT_UTF8: JsonScan = { ok: false, why: 'not_utf8' }

/** What a position is when there is none. */
const NOWHERE = -1

const SPACE = 0x20
const QUOTE = 0x22
const PLUS = 0x2b
const COMMA = 0x2c
const MINUS = 0x2d
const DOT = 0x2e
const ZERO = 0x30
const NINE = 0x39
const COLON = 0x3a
const UPPER_E = 0x45
const UPPER_I = 0x49
const UPPER_N = 0x4e
const OPEN_ARRAY = 0x5b
const BACKSLASH = 0x5c
const CLOSE_ARRAY = 0x5d
const LOWER_E = 0x65
const LOWER_F = 0x66
const LOWER_N = 0x6e
const LOWER_T = 0x74
const LOWER_U = 0x75
const OPEN_OBJECT = 0x7b
const CLOSE_OBJECT = 0x7d

// What may come next. Up to ITEM_OR_END a value may; the next two begin with a name.
const VALUE = 0
const ITEM_OR_END = 1
const NAME_OR_END = 2
const NAME = 3
const COLON_NEXT = 4
const COMMA_OR_END = 5

const TRUE = Buffer.from('true')
const FALSE = Buffer.from('false')
const NULL = Buffer.from('null')
const NAN = Buffer.from('NaN')
const INFINITY = Buffer.from('Infinity')

/** Bytes that end a plain run in a string: quote, backslash and controls. */
const SPECIAL_IN_STRING = new Uint8Array(256)
SPECIAL_IN_STRING.fill(1, 0, SPACE)
SPECIAL_IN_STRING[QUOTE] = 1
SPECIAL_IN_STRING[BACKSLASH] = 1

/** What may stand behind a backslash, besides `u`. */
const ESCAPED = new Uint8Array(256)
for (const byte of Buffer.from('"\\/bfnrt')) ESCAPED[byte] = 1

/** What the containers are that stand around a place, for usual depths: nothing else runs while a scan does. */
const USUAL_DEPTHS = new Uint8Array(512)

/** Says whether bytes are JSON, and which. One loop over the tokens: with a function for each part of the grammar it takes twice as long. */
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
          at = wordEnd(bytes, digits, byte)
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

/** A byte, or −1 behind the end: reading there would make every later read slow. */
const byteAt = (bytes: Uint8Array, at: number): number => (at < bytes.length ? (bytes[at] ?? -1) : -1)

/** Behind the closing quote of the string whose first character is at `from`. */
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

/** Behind the fraction and the exponent of a number, if it has them. */
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

/** Behind the word that begins at `from`; `first` is its first byte, or the minus before it. */
function wordEnd(bytes: Uint8Array, from: number, first: number): number {
  const word = wordWith(first)
  if (word === null) return NOWHERE
  for (let index = 0; index < word.length; index++) {
    if (byteAt(bytes, from + index) !== word[index]) return NOWHERE
  }
  return from + word.length
}

function wordWith(first: number): Uint8Array | null {
  switch (first) {
    case LOWER_T:
      return TRUE
    case LOWER_F:
      return FALSE
    case LOWER_N:
      return NULL
    case UPPER_N:
      return NAN
    case UPPER_I:
    case MINUS:
      return INFINITY
    default:
      return null
  }
}

function twiceAsLong(open: Uint8Array): typeof USUAL_DEPTHS {
  const longer = new Uint8Array(open.length * 2)
  longer.set(open)
  return longer
}
