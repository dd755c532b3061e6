/** Records of DLQ topics as hexkit writes them, for tests that have no broker. */
import { randomUUID } from 'node:crypto'
import type { RawHeader } from '../../../src/outgoing/kafka/record.ts'
import type { RawRecord } from '../../../src/sources/kafka/event.ts'

/** What a test says of a record; the rest is that of a plain dead event. A header that is null is left out. */
export interface RecordDraft {
  readonly topic?: string
  readonly partition?: number
  readonly offset?: bigint | number
  readonly timestampMs?: bigint | number
  readonly key?: string | Uint8Array | null
  /** An object is written as JSON. */
  readonly value?: string | Uint8Array | object | null
  readonly service?: string | null
  readonly originalTopic?: string | null
  readonly type?: string | null
  readonly correlationId?: string | null
  readonly eventId?: string | null
  readonly originalEventId?: string | null
  readonly excClass?: string | null
  readonly excMsg?: string | null
  /** Behind those of hexkit. */
  readonly more?: readonly (readonly [name: string, value: string | Uint8Array | null])[]
  /** Instead of all others. */
  readonly headers?: readonly RawHeader[]
}

/** Where drafts that name no topic are. */
export const DLQ_TOPIC = 'wps_dlq'

/** 2027-01-15T08:00:00Z, where the clocks of test stores stand. */
export const RECORD_TIME_MS = 1_800_000_000_000n

/** A record as a hexkit service of generation 6 or later writes it to its DLQ topic. */
export function record(draft: RecordDraft = {}): RawRecord {
  return {
    topic: draft.topic ?? DLQ_TOPIC,
    partition: draft.partition ?? 0,
    offset: BigInt(draft.offset ?? 0),
    timestampMs: BigInt(draft.timestampMs ?? RECORD_TIME_MS),
    key: bytesOf(draft.key === undefined ? 'k1' : draft.key),
    value: bytesOf(draft.value === undefined ? { a: 1 } : draft.value),
    headers: draft.headers ?? headersOf(draft),
  }
}

/** A record of generation 4 or 5: `readFrom` is where its service read the event that failed. */
export function oldRecord(
  readFrom: {
    readonly service: string
    readonly topic: string
    readonly partition: number
    readonly offset: bigint | number
  },
  draft: RecordDraft = {},
): RawRecord {
  const { service, topic, partition, offset } = readFrom
  return record({
    ...draft,
    headers: draft.headers ?? [
      header('exc_class', draft.excClass ?? 'ValueError'),
      header('exc_msg', draft.excMsg ?? 'boom'),
      header('event_id', `${service},${topic},${partition},${offset}`),
      header('original_topic', draft.originalTopic ?? 'orders'),
      header('type', draft.type ?? 'created'),
      header('correlation_id', draft.correlationId ?? randomUUID()),
    ],
  })
}

/** One header. */
export const header = (name: string, value: string | Uint8Array | null): RawHeader => ({
  name: Buffer.from(name),
  value: typeof value === 'string' ? Buffer.from(value) : value,
})

function headersOf(draft: RecordDraft): RawHeader[] {
  const named: readonly (readonly [string, string | null])[] = [
    ['exc_class', said(draft.excClass, 'ValueError')],
    ['exc_msg', said(draft.excMsg, 'boom')],
    ['original_topic', said(draft.originalTopic, 'orders')],
    ['original_event_id', said(draft.originalEventId, randomUUID())],
    ['service', said(draft.service, 'wps')],
    ['type', said(draft.type, 'created')],
    ['event_id', said(draft.eventId, randomUUID())],
    ['correlation_id', said(draft.correlationId, randomUUID())],
  ]
  return [
    ...named.flatMap(([name, value]) => (value === null ? [] : [header(name, value)])),
    ...(draft.more ?? []).map(([name, value]) => header(name, value)),
  ]
}

const said = (value: string | null | undefined, otherwise: string): string | null =>
  value === undefined ? otherwise : value

function bytesOf(value: string | Uint8Array | object | null): Uint8Array | null {
  if (value === null || value instanceof Uint8Array) return value
  return Buffer.from(typeof value === 'string' ? value : JSON.stringify(value))
}
