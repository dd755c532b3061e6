/** KSUIDs: 27 base62 characters in the order of time. Ours are a random prefix of 18 and a serial in the last 9 (62^9 > 2^53). */
import { randomBytes } from 'node:crypto'
import type { Instant } from './clock.ts'

/** 160 one bits. */
export const MAX_KSUID = 'aWgEPTl1tmebfsQzFP4bxwgy80V'

const MIN_KSUID = '000000000000000000000000000'
export const KSUID_LENGTH = 27
const PREFIX_LENGTH = 18

const WRONG_LENGTH = 'Valid encoded KSUIDs are 27 characters'
const OUT_OF_BOUNDS = `Valid encoded KSUIDs are bounded by ${MIN_KSUID} and ${MAX_KSUID}`

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const BASE = 62
const PAIR = BASE ** 2
const FOUR = BASE ** 4

/** 2014-05-13T16:53:20Z. */
const EPOCH_SECONDS = 1_400_000_000
const PAYLOAD_BITS = 128n
const LARGEST = (1n << 160n) - 1n

/** By ASCII code; -1 for foreign characters. */
const DIGIT_OF_CODE = Int8Array.from({ length: 128 }, (_, code) =>
  ALPHABET.indexOf(String.fromCharCode(code)),
)

/** Two-character numerals: nine characters cost five look-ups. */
const PAIRS: readonly string[] = Array.from(
  { length: PAIR },
  (_, n) => ALPHABET.charAt(Math.floor(n / BASE)) + ALPHABET.charAt(n % BASE),
)

/** Why `text` is no KSUID; null if it is one. Cheap: completing checks every id. */
export function checkKsuid(text: string): string | null {
  if (text.length !== KSUID_LENGTH) return refusal(text)
  for (let i = 0; i < KSUID_LENGTH; i++) {
    if (digitOf(text.charCodeAt(i)) < 0) return refusal(text)
  }
  return text > MAX_KSUID ? refusal(text) : null
}

export function formatKsuid(value: bigint): string {
  if (value < 0n || value > LARGEST) throw new RangeError('a KSUID is a number of 160 bits')
  let text = ''
  for (let rest = value; text.length < KSUID_LENGTH; rest /= 62n) {
    text = ALPHABET.charAt(Number(rest % 62n)) + text
  }
  return text
}

/** A random prefix of the second of `at`. The very last second is never used, so every serial fits behind it. */
export function newIdPrefix(at: Instant): string {
  const seconds = Number(at / 1_000_000n) - EPOCH_SECONDS
  const stamp = BigInt(Math.min(Math.max(seconds, 0), 2 ** 32 - 2))
  const payload = BigInt(`0x${randomBytes(16).toString('hex')}`)
  return formatKsuid((stamp << PAYLOAD_BITS) | payload).slice(0, PREFIX_LENGTH)
}

export function idFromSerial(prefix: string, serial: number): string {
  if (!(serial >= 0 && serial <= Number.MAX_SAFE_INTEGER)) throw new RangeError(`serial ${serial} is no id`)
  // Both halves fit 32 bits, where division is cheap: 2^53 / 62^4 < 2^30.
  const low = (serial % FOUR) | 0
  const high = ((serial - low) / FOUR) | 0
  const middle = (high % FOUR) | 0
  const tail =
    ALPHABET.charAt((high / FOUR) | 0) +
    PAIRS[(middle / PAIR) | 0] +
    PAIRS[middle % PAIR] +
    PAIRS[(low / PAIR) | 0] +
    PAIRS[low % PAIR]
  return prefix + tail
}

/** null: no KSUID, another prefix, or beyond all serials. */
export function serialFromId(prefix: string, id: string): number | null {
  if (id.length !== KSUID_LENGTH || !id.startsWith(prefix)) return null
  const high = numberOf(id, PREFIX_LENGTH, PREFIX_LENGTH + 5)
  const low = numberOf(id, PREFIX_LENGTH + 5, KSUID_LENGTH)
  const serial = high * FOUR + low
  // Above 2^53 the sum is rounded, but never back below it.
  return high < 0 || low < 0 || serial > Number.MAX_SAFE_INTEGER ? null : serial
}

export const prefixOf = (id: string): string => id.slice(0, PREFIX_LENGTH)

const digitOf = (code: number): number => DIGIT_OF_CODE[code] ?? -1

function numberOf(text: string, from: number, to: number): number {
  let value = 0
  for (let i = from; i < to; i++) {
    const digit = digitOf(text.charCodeAt(i))
    if (digit < 0) return -1
    value = value * BASE + digit
  }
  return value
}

/** Length in bytes of UTF-8, as everywhere on the queue API. */
const refusal = (text: string): string =>
  Buffer.byteLength(text) === KSUID_LENGTH ? OUT_OF_BOUNDS : WRONG_LENGTH
