/** The vectors of the Kafka contract, as they stand in vectors.json. */
import { readFileSync } from 'node:fs'
import type { RawHeader } from '../../src/outgoing/kafka/record.ts'
import type { RawRecord } from '../../src/sources/kafka/event.ts'

/** Bytes in base64; null is null on the wire. */
type Bytes = string | null

export interface RecordVector {
  readonly topic: string
  readonly partition?: number
  readonly offset?: number
  readonly timestamp_ms?: number
  readonly key: Bytes
  readonly value: Bytes
  readonly headers: readonly (readonly [name: string, value: Bytes])[]
}

interface Named extends RecordVector {
  readonly id: string
  readonly expect?: Readonly<Record<string, unknown>>
}

export interface Vectors {
  readonly hexkit_records: readonly Named[]
  readonly identity: readonly (RecordVector & {
    readonly fingerprint: string
    readonly derived_dlq_id: string
  })[]
  readonly publish_guard: readonly (Named & {
    readonly guard: 'allow' | 'refuse'
    readonly reason?: string
  })[]
  readonly intake: readonly (Named & {
    readonly reasons: readonly string[]
    readonly warnings: readonly string[]
  })[]
  readonly foreign_headers: readonly (Named & { readonly expect: Readonly<Record<string, unknown>> })[]
  readonly partitioner: {
    readonly partitions: number
    readonly cases: readonly { readonly key: string; readonly partition: number }[]
  }
  readonly auth: { readonly token: string; readonly token_hash: string }
  readonly http: {
    readonly stored_event: Readonly<Record<string, unknown>>
    readonly publishable_event: Readonly<Record<string, unknown>>
    readonly timestamps: readonly { readonly ms: number; readonly text: string }[]
  }
}

export const VECTORS: Vectors = JSON.parse(readFileSync(new URL('vectors.json', import.meta.url), 'utf8'))

/** The record of a vector; where it does not say when, it is the time of the others. */
export const recordOf = (vector: RecordVector): RawRecord => ({
  topic: vector.topic,
  partition: vector.partition ?? 0,
  offset: BigInt(vector.offset ?? 0),
  timestampMs: BigInt(vector.timestamp_ms ?? 1_794_704_953_796),
  key: bytesOf(vector.key),
  value: bytesOf(vector.value),
  headers: vector.headers.map(
    ([name, value]): RawHeader => ({ name: Buffer.from(name), value: bytesOf(value) }),
  ),
})

/** The bytes that base64 stands for. */
export function bytesOf(text: string): Uint8Array
export function bytesOf(text: Bytes): Uint8Array | null
export function bytesOf(text: Bytes): Uint8Array | null {
  return text === null ? null : Buffer.from(text, 'base64')
}
