/** Dead events as the store keeps them: the row of `kafka_events` beside its letter. */
import { instant } from '../../core/clock.ts'
import { formatRowKey, keyNumber } from '../../core/row-key.ts'
import { type LetterId, letterId } from '../../letters/letter.ts'
import { isTopicName } from '../../outgoing/kafka/record.ts'
import { type Integer, type Session, type Statement, sql } from '../../store/database.ts'
import { dlqId, type EventFacts, eventId, type State, type StoredEvent, UNKNOWN } from './event.ts'
import { isServiceName } from './names.ts'
import { decodeHeaders, utf8 } from './wire/bytes.ts'

export const QUEUE_ORDER = 'event.order_ts, event.topic, event.partition, event.record_offset, event.intake'

/**
 * What `toEvent` reads, from `kafka_events AS event` and `letters AS letter`. Select it with `bigints: true`. UUIDs are cast: PostgreSQL
 * gives them as texts, and so does SQLite.
 */
export const EVENT_COLUMNS = `event.letter_id, event.order_ts, event.record_offset, event.intake, event.record_ts, event.partition,
  event.attempts, event.state, event.value_null, event.dlq_id, event.event_id, event.service, event.original_topic, event.topic,
  event.record_key, event.facts, letter.captured_at, letter.short_key, letter.source_id, letter.headers, letter.payload, letter.edited,
  letter.edited_payload`

/** The same without what may be large: such an event has an empty value, whatever its own is. */
export const SMALL_EVENT_COLUMNS = EVENT_COLUMNS.replace('letter.payload', 'NULL AS payload').replace(
  'letter.edited_payload',
  'NULL AS edited_payload',
)

export type EventRow = Readonly<
  Record<'letter_id' | 'order_ts' | 'record_offset' | 'intake' | 'record_ts' | 'partition', Integer> &
    Record<'attempts' | 'state' | 'value_null' | 'captured_at' | 'edited', Integer> &
    Record<'dlq_id' | 'service' | 'original_topic' | 'topic' | 'source_id', string> &
    Record<'record_key' | 'headers' | 'payload' | 'edited_payload', Uint8Array | null> & {
      event_id: string | null
      short_key: Integer | null
      facts: Uint8Array
    }
>

const EMPTY = new Uint8Array(0)

export const toEvent = (row: EventRow): StoredEvent => ({
  letterId: letterId(row.letter_id),
  rowKey: formatRowKey({
    name: row.source_id,
    at: instant(BigInt(row.captured_at)),
    number: keyNumber(row.letter_id, row.short_key),
  }),
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

export const factsBytes = (facts: EventFacts): Uint8Array => Buffer.from(JSON.stringify(facts))

export const factsOf = (bytes: Uint8Array): EventFacts =>
  // Written by `factsBytes`.
  JSON.parse(utf8(bytes)) as EventFacts

/** Events with their letters, both by primary key, in any order. */
const eventsBy = (name: string, columns: string): Statement =>
  sql(
    name,
    `SELECT ${columns} FROM bartleby.kafka_events AS event JOIN bartleby.letters AS letter ON letter.id = event.letter_id
     WHERE event.letter_id = ANY($1::bigint[])`,
    { bigints: true },
  )
const readEvents = eventsBy('kafka.events', EVENT_COLUMNS)
export const readSmallEvents = eventsBy('kafka.smallEvents', SMALL_EVENT_COLUMNS)

/** The events of these letters, in this order; one that is gone is left out. */
export async function eventsOf(
  session: Session,
  ids: readonly Integer[],
  statement = readEvents,
): Promise<StoredEvent[]> {
  if (ids.length === 0) return []
  const rows = await session.rows<EventRow>(statement, ids)
  const byId = new Map(rows.map((row) => [BigInt(row.letter_id), row]))
  return ids.flatMap((id) => {
    const row = byId.get(BigInt(id))
    return row === undefined ? [] : toEvent(row)
  })
}

/** The letter of a record by its own name, also one that is spent. By unique index, then by primary keys. */
const findByDlqId = sql(
  'kafka.letterOfDlqId',
  'SELECT letter_id FROM bartleby.kafka_records WHERE dlq_id = $1::uuid',
  { bigints: true },
)

export async function eventOfLetter(session: Session, id: LetterId): Promise<StoredEvent | null> {
  const [event] = await eventsOf(session, [id])
  return event ?? null
}

/** The event that a record's name belongs to; null when there is none. `id` is a UUID in lower case. */
export async function eventNamed(session: Session, id: string): Promise<StoredEvent | null> {
  const [row] = await session.rows<{ letter_id: Integer }>(findByDlqId, id)
  return row === undefined ? null : eventOfLetter(session, letterId(row.letter_id))
}

/** Whether letters can have these names; texts of requests may hold what stores refuse. */
export const canHaveLetters = (service: string, topic: string | null): boolean =>
  (service === UNKNOWN || isServiceName(service)) &&
  (topic === null || topic === UNKNOWN || isTopicName(topic))
