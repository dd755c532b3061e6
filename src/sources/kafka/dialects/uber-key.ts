/** `key_format: uber`: keys of dead records that are a protobuf message about where the record was, with its original key in it. */
import { BinaryReader, WireType } from '@bufbuild/protobuf/wire'
import { isTopicName } from '../../../outgoing/kafka/record.ts'
import { bufferOf, latin1 } from '../wire/bytes.ts'
import type { Told } from './told.ts'

const ATTEMPTS = 1
const TOPIC = 2
const PARTITION = 3
const OFFSET = 4
const TIMESTAMP_NS = 5
const KEY = 6

/** What such a key tells; null when it is none. Numbers that are 0, and an empty key, are not written at all. */
export function toldByKey(key: Uint8Array | null): Told | null {
  const fields = key === null ? null : fieldsOf(key)
  const topic = latin1(fields?.bytes.get(TOPIC) ?? NO_BYTES)
  if (fields === null || !isTopicName(topic)) return null
  const number = (field: number): bigint => fields.numbers.get(field) ?? 0n
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
    originalKey: bufferOf(fields.bytes.get(KEY) ?? NO_BYTES).toString('base64'),
  }
}

const NO_BYTES = new Uint8Array(0)

const isInt32 = (number: bigint): boolean => number >= 0n && number < 2n ** 31n

interface Fields {
  readonly numbers: ReadonlyMap<number, bigint>
  readonly bytes: ReadonlyMap<number, Uint8Array>
}

/** The fields of a message, of each the last; null when it is none, or a known field has another type. */
function fieldsOf(message: Uint8Array): Fields | null {
  const numbers = new Map<number, bigint>()
  const bytes = new Map<number, Uint8Array>()
  const reader = new BinaryReader(message)
  try {
    while (reader.pos < reader.len) {
      const [field, type] = reader.tag()
      const isBytes = field === TOPIC || field === KEY
      if (field <= KEY && type !== (isBytes ? WireType.LengthDelimited : WireType.Varint)) return null
      if (type === WireType.StartGroup) return null
      if (type === WireType.Varint) numbers.set(field, BigInt(reader.int64()))
      else if (type === WireType.LengthDelimited) bytes.set(field, reader.bytes())
      else reader.skip(type)
    }
    return { numbers, bytes }
  } catch {
    return null
  }
}
