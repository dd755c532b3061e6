/** Records as they are written to topics, and what topics may be called. */
import type { KafkaLibrary } from './library.ts'

/** A header as it came. Names may come twice, and in any bytes. */
export interface RawHeader {
  readonly name: Uint8Array
  readonly value: Uint8Array | null
}

/** What a record is, wherever it goes. Null and empty are different things. */
export interface RecordBytes {
  readonly key: Uint8Array | null
  readonly value: Uint8Array | null
  readonly headers: readonly RawHeader[]
}

export interface OutgoingRecord extends RecordBytes {
  readonly topic: string
}

export const COMPRESSIONS = ['none', 'gzip', 'snappy', 'lz4', 'zstd'] as const
export type Compression = (typeof COMPRESSIONS)[number]

const TOPIC = /^[A-Za-z0-9._-]{1,249}$/

export const isTopicName = (text: string): boolean => TOPIC.test(text) && text !== '.' && text !== '..'

/** The record as the library takes it. Keys go where Java's clients put them; without a key, any partition is as good as another. */
export function messageOf(
  library: KafkaLibrary,
  topic: string,
  { key, value, headers }: RecordBytes,
  partitions: number,
) {
  const keyBytes = key === null ? undefined : toBuffer(key)
  const spot =
    keyBytes === undefined
      ? Math.floor(Math.random() * partitions)
      : library.compatibilityPartitioner({ topic }, keyBytes)
  return {
    topic,
    partition: spot % partitions,
    // Names stay bytes: as texts, those that repeat would become one. The wire knows null, which these types do not.
    headers: new Map(
      headers.map((header) => [toBuffer(header.name), header.value && toBuffer(header.value)]),
    ) as Map<Buffer, Buffer>,
    ...(keyBytes === undefined ? {} : { key: keyBytes }),
    value: (value === null ? null : toBuffer(value)) as Buffer,
  }
}

export type Message = ReturnType<typeof messageOf>

/** A view of its own each time: names are keys of a map by what they are, not by what they say. */
const toBuffer = (bytes: Uint8Array): Buffer => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
