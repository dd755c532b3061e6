/** How tools write what they tell. What cannot be read is left empty: the raw header stays with the letter. */
import { isUtf8 } from 'node:buffer'
import { bufferOf, latin1 } from '../wire/text.ts'
import type { Encoding } from './families.ts'

const DECIMAL = /^\d{1,19}$/
/** Of texts whose length is a multiple of four. With a group that repeats, long texts would exhaust the stack. */
const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/
const LARGEST = 2n ** 63n - 1n

/** A number from 0 to 2^63−1; null when the bytes are not that. */
export function numberIn(value: Uint8Array, as: Encoding): bigint | null {
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

/** The bytes that base64 text stands for; the text itself when it is none. */
export function base64In(value: Uint8Array): Uint8Array {
  const text = latin1(value)
  if (text.length % 4 !== 0 || !BASE64.test(text)) return value
  const bytes = Buffer.from(text, 'base64')
  // Words of four letters look like base64 too; what comes of them is rarely text.
  return isUtf8(bytes) ? bytes : value
}
