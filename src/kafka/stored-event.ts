/** Dead events as the store keeps them: the row of `kafka_events` beside its letter. */
import { instant } from '../core/clock.ts'
import { formatRowKey } from '../core/row-key.ts'
import type { Integer } from '../db/database.ts'
import { letterId } from '../letters/letter.ts'
import { dlqId, type EventFacts, eventId, type State, type StoredEvent } from './event.ts'
import { decodeHeaders } from './wire/headers.ts'

/** The order of the queue of a service. */
export const QUEUE_ORDER = 'event.order_ts, event.topic, event.partition, event.record_offset, event.intake'

/**
 * What `toEvent` reads, from `kafka_events AS event` and `letters AS letter`. Select it with `bigints: true`. UUIDs are cast: PostgreSQL
 * gives them as texts, and so does SQLite.
 */
export const EVENT_COLUMNS = `event.letter_id, event.order_ts, event.record_offset, event.intake, event.record_ts, event.partition,
  event.attempts, event.state, event.value_null, event.dlq_id, event.event_id, event.service, event.original_topic, event.topic,
  event.record_key, event.facts, letter.captured_at, letter.source_id, letter.headers, letter.payload, letter.edited,
  letter.edited_payload`

/** The same without what may be large: such an event has an empty value, whatever its own is. */
export const SMALL_EVENT_COLUMNS = EVENT_COLUMNS.replace('letter.payload', 'NULL AS payload').replace(
  'letter.edited_payload',
  'NULL AS edited_payload',
)

export interface EventRow {
  readonly letter_id: Integer
  readonly order_ts: Integer
  readonly record_offset: Integer
  readonly intake: Integer
  readonly record_ts: Integer
  readonly partition: Integer
  readonly attempts: Integer
  readonly state: Integer
  readonly value_null: Integer
  readonly dlq_id: string
  readonly event_id: string | null
  readonly service: string
  readonly original_topic: string
  readonly topic: string
  readonly record_key: Uint8Array | null
  readonly facts: Uint8Array
  readonly captured_at: Integer
  readonly source_id: string
  readonly headers: Uint8Array | null
  readonly payload: Uint8Array | null
  readonly edited: Integer
  readonly edited_payload: Uint8Array | null
}

const EMPTY = new Uint8Array(0)

/** The event of a row. */
export const toEvent = (row: EventRow): StoredEvent => ({
  letterId: letterId(row.letter_id),
  rowKey: formatRowKey(row.source_id, instant(BigInt(row.captured_at))),
  // The store keeps nothing else.
  state: Number(row.state) as State,
  service: row.service,
  originalTopic: row.original_topic,
  order: {
    orderTs: BigInt(row.order_ts),
    topic: row.topic,
    partition: Number(row.partition),
    offset: BigInt(row.record_offset),
    intake: BigInt(row.intake),
  },
  dlqId: dlqId(row.dlq_id),
  timestampMs: BigInt(row.record_ts),
  key: row.record_key,
  // Letters keep empty payloads as NULL.
  value: Number(row.value_null) === 1 ? null : (row.payload ?? EMPTY),
  editedValue: Number(row.edited) === 1 ? (row.edited_payload ?? EMPTY) : null,
  headers: decodeHeaders(row.headers),
  facts: factsOf(row.facts),
  attempts: Number(row.attempts),
  eventId: row.event_id === null ? null : eventId(row.event_id),
})

/** Facts as they are kept. */
export const factsBytes = (facts: EventFacts): Uint8Array => Buffer.from(JSON.stringify(facts))

/** The facts that were kept. */
export const factsOf = (bytes: Uint8Array): EventFacts =>
  // Written by `factsBytes`.
  JSON.parse(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8')) as EventFacts
