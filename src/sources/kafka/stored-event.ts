/**
 * Dead events as the store keeps them: the row of `kafka_events` beside its letter, and its neighbours with the same service, original
 * topic and key. To publish the older of two after the younger may undo what the younger did.
 */

import { hash } from 'node:crypto'
import { storedPayload } from '../../core/content.ts'
import { formatRowKey, keyNumber } from '../../core/row-key.ts'
import { type LetterId, letterId } from '../../letters/letter.ts'
import { isTopicName } from '../../outgoing/kafka/record.ts'
import { type Integer, type Session, type Statement, sql, type Value } from '../../store/database.ts'
import { at, big, bytes, flag, integer, orNull, rowShape, text } from '../../store/row.ts'
import { dlqId, type EventFacts, eventId, STATE, stateOf, UNKNOWN } from './event.ts'
import { isServiceName } from './settings/settings.ts'
import { decodeHeaders, utf8 } from './wire/bytes.ts'

/** The order of a queue. */
export const ORDER = 'order_ts, topic, partition, record_offset, intake'
/** The same of `kafka_events AS event`. */
export const QUEUE_ORDER = ofTable('event', ORDER)

/** What is read of `kafka_events AS event`. UUIDs are texts in both stores. */
const EVENT = rowShape({
  letterId,
  /** Milliseconds; never less than that of the record before in its partition. */
  orderTs: big,
  recordOffset: big,
  intake: big,
  recordTs: big,
  partition: integer,
  /** How often the event died. */
  attempts: integer,
  state: stateOf,
  valueNull: flag,
  dlqId,
  /** The id of the current publish: while it is publishing, uncertain or published. */
  eventId: orNull(eventId),
  service: text,
  originalTopic: text,
  topic: text,
  recordKey: bytes,
  facts: factsOf,
})

/** And of `letters AS letter`. */
const LETTER = rowShape({
  ...{ capturedAt: at, shortKey: orNull(big), sourceId: text, headers: decodeHeaders },
  ...{ payload: bytes, edited: flag, editedPayload: bytes },
})

function ofTable(table: string, columns: string): string {
  return columns.replaceAll(/\w+/g, `${table}.$&`)
}

/** What `toEvent` reads. Select it with `bigints: true`. */
export const EVENT_COLUMNS = `${ofTable('event', EVENT.columns)}, ${ofTable('letter', LETTER.columns)}`

/** The same without what may be large: such an event has an empty value, whatever its own is. */
export const SMALL_EVENT_COLUMNS = EVENT_COLUMNS.replace('letter.payload', 'NULL AS payload').replace(
  'letter.edited_payload',
  'NULL AS edited_payload',
)

/** A dead event as the store keeps it. */
export type StoredEvent = Readonly<ReturnType<typeof toEvent>>

/** The place of an event in the queue of its service. */
export type QueueOrder = StoredEvent['order']

export function toEvent(row: object) {
  const { orderTs, topic, partition, recordOffset, intake, recordTs, recordKey, valueNull, ...event } =
    EVENT.read(row)
  const { capturedAt, shortKey, sourceId, headers, payload, edited, editedPayload } = LETTER.read(row)
  return {
    ...event,
    /** The letter's name in the office. */
    rowKey: formatRowKey({ name: sourceId, at: capturedAt, number: keyNumber(event.letterId, shortKey) }),
    /** By these, in this order. */
    order: { orderTs, topic, partition, offset: recordOffset, intake } as const,
    timestampMs: recordTs,
    key: recordKey,
    // Letters keep empty payloads as NULL.
    value: valueNull ? null : storedPayload(payload),
    /** What an operator made of the value; null when nobody did. */
    editedValue: edited ? storedPayload(editedPayload) : null,
    headers,
  }
}

export const factsBytes = (facts: EventFacts): Uint8Array => Buffer.from(JSON.stringify(facts))

export function factsOf(bytes: Uint8Array): EventFacts {
  // Written by `factsBytes`.
  return JSON.parse(utf8(bytes)) as EventFacts
}

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
  const rows = await session.rows<{ letter_id: Integer }>(statement, ids)
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

/**
 * What has the same key, on kafka_same_key. Nearly all that have the hash have the key. Where the key stands inside that of the record,
 * which is another one each time, the hash decides alone.
 */
const SAME = `service = $1 AND original_topic = $2 AND same_key = $3 AND same_key IS NOT NULL AND state <> ${STATE.discarded}
  AND (record_key = $4 OR $4 IS NULL)`
const PLACE = '($5, $6, $7, $8, $9)'

const find = (name: string, where: string): Statement =>
  sql(
    name,
    `SELECT letter_id FROM bartleby.kafka_events INDEXED BY kafka_same_key WHERE ${SAME} AND ${where} LIMIT 1`,
    { bigints: true },
  )

/** One behind a place in the order. */
const findLater = find('kafka.laterSameKey', `(${ORDER}) > ${PLACE}`)

/**
 * An unresolved one before it: not before the first of the queue of the topic, so that those of a key that came and went long ago
 * are not walked through.
 */
const findEarlierOpen = find(
  'kafka.earlierOpenSameKey',
  `(${ORDER}) < ${PLACE} AND state < ${STATE.published} AND (${ORDER}) >= (
     SELECT ${ORDER} FROM bartleby.kafka_events INDEXED BY kafka_queue_of_topic
     WHERE service = $1 AND original_topic = $2 AND state < ${STATE.published} ORDER BY ${ORDER} LIMIT 1)`,
)

/** What decides about it. */
type Keyed = Pick<StoredEvent, 'service' | 'originalTopic' | 'key' | 'facts' | 'order'>

/** Whether a letter with the same key has a later place in the order and was not discarded. No such letter is no proof. */
export const hasLaterSameKey = async (session: Session, event: Keyed): Promise<boolean> =>
  (await neighbour(session, findLater, event)) !== null

/** A letter with the same key that is unresolved and has an earlier place in the order; null when there is none. */
export const earlierOpenSameKey = (session: Session, event: Keyed): Promise<LetterId | null> =>
  neighbour(session, findEarlierOpen, event)

async function neighbour(session: Session, statement: Statement, event: Keyed): Promise<LetterId | null> {
  const { service, originalTopic, facts, order } = event
  const key = eventKey(event.key, facts)
  // Of two topics that nobody knows, nobody knows whether they are the same.
  if (key === null || service === UNKNOWN || originalTopic === UNKNOWN) return null
  const place: Value[] = [order.orderTs, order.topic, order.partition, order.offset, order.intake]
  const [row] = await session.rows<{ letter_id: Integer }>(
    statement,
    service,
    originalTopic,
    sameKeyOf(key),
    facts.originalKey === undefined ? key : null,
    ...place,
  )
  return row === undefined ? null : letterId(row.letter_id)
}

/** The first eight bytes of the key's SHA-256 as a signed integer. Other keys may have the same: compare the keys too. */
export const sameKeyOf = (key: Uint8Array): bigint =>
  Buffer.from(hash('sha256', key, 'hex').slice(0, 16), 'hex').readBigInt64BE()

/** The key that an event is about: the record's, or the one that was put into it (`key_format: uber`). */
export const eventKey = (key: Uint8Array | null, { originalKey }: EventFacts): Uint8Array | null =>
  originalKey === undefined ? key : Buffer.from(originalKey, 'base64')
