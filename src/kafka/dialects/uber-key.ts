/** `key_format: uber`: keys of dead records that are a protobuf message about where the record was, with its original key in it. */
import { isTopicName } from '../names.ts'
import { bufferOf } from '../wire/text.ts'
import type { Told } from './told.ts'

const ATTEMPTS = 1
const TOPIC = 2
const PARTITION = 3
const OFFSET = 4
const TIMESTAMP_NS = 5
const KEY = 6

const VARINT = 0
const FIXED_64 = 1
const BYTES = 2
const FIXED_32 = 5

/** What such a key tells; null when it is none. Numbers that are 0, and an empty key, are not written at all. */
export function toldByKey(key: Uint8Array | null): Told | null {
  const fields = key === null ? null : fieldsOf(bufferOf(key))
  const topic = fields?.bytes.get(TOPIC)?.toString('latin1')
  if (!fields || topic === undefined || !isTopicName(topic)) return null
  const number = (field: number): bigint => BigInt.asIntN(64, fields.numbers.get(field) ?? 0n)
  const partition = number(PARTITION)
  const offset = number(OFFSET)
  const timestampNs = number(TIMESTAMP_NS)
  const attempts = number(ATTEMPTS)
  return {
    origin: {
      topic,
      ...(isInt32(partition) ? { partition: Number(partition) } : {}),
      ...(offset >= 0n ? { offset: String(offset) } : {}),
      ...(timestampNs > 0n ? { timestampMs: String(timestampNs / 1_000_000n) } : {}),
    },
    exception: {},
    attempts: isInt32(attempts) ? Number(attempts) : null,
    originalKey: (fields.bytes.get(KEY) ?? Buffer.alloc(0)).toString('base64'),
  }
}

const isInt32 = (number: bigint): boolean => number >= 0n && number < 2n ** 31n

interface Fields {
  readonly numbers: ReadonlyMap<number, bigint>
  readonly bytes: ReadonlyMap<number, Buffer>
}

/** The fields of a message, of each the last; null when it is none, or a known field has another type. */
function fieldsOf(message: Buffer): Fields | null {
  const numbers = new Map<number, bigint>()
  const bytes = new Map<number, Buffer>()
  let at = 0
  while (at < message.length) {
    const tag = varint(message, at)
    if (tag === null) return null
    const field = Number(tag.number >> 3n)
    const type = Number(tag.number & 7n)
    if (field === 0 || (field <= KEY && type !== (field === TOPIC || field === KEY ? BYTES : VARINT)))
      return null
    at = tag.end
    if (type === VARINT || type === BYTES) {
      const number = varint(message, at)
      if (number === null) return null
      at = number.end
      if (type === VARINT) numbers.set(field, number.number)
      else {
        if (number.number > BigInt(message.length - at)) return null
        const end = at + Number(number.number)
        bytes.set(field, message.subarray(at, end))
        at = end
      }
    } else if (type === FIXED_64 || type === FIXED_32) {
      at += type === FIXED_64 ? 8 : 4
      if (at > message.length) return null
    } else return null
  }
  return { numbers, bytes }
}

/** Seven bits in each byte, the lowest first; ten bytes at most. */
function varint(message: Buffer, from: number): { readonly number: bigint; readonly end: number } | null {
  let number = 0n
  for (let at = from; at < from + 10; at++) {
    const byte = message[at]
    if (byte === undefined) return null
    number |= BigInt(byte & 0x7f) << BigInt(7 * (at - from))
    if (byte < 0x80) return { number, end: at + 1 }
  }
  return null
}
