/** Records as they are written to topics, and names of topics. */
/** Names may come twice, and in any bytes. */
export interface RawHeader {
  readonly name: Uint8Array
  readonly value: Uint8Array | null
}

/** Null and empty are different. */
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
