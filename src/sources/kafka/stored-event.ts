/**
 * Dead events as the store keeps them, and their neighbours with the same service, original topic and key: to publish the older of two
 * after the younger may undo what the younger did.
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
export const QUEUE_ORDER = ofTable('event', ORDER)

/** Of `kafka_events AS event`. UUIDs are texts in both stores. */
const EVENT = rowShape({
  letterId,
  /** Milliseconds; never less than that of the record before in its partition. */
  orderTs: big,
  recordOffset: big,
  intake: big,
  recordTs: big,
  partition: integer,
  attempts: integer,
  state: stateOf,
  valueNull: flag,
  dlqId,
  /** While it is publishing, uncertain or published. */
  eventId: orNull(eventId),
  service: text,
  originalTopic: text,
  topic: text,
  recordKey: bytes,
  facts: factsOf,
})

/** Of `letters AS letter`. */
const LETTER = rowShape({
  ...{ capturedAt: at, shortKey: orNull(big), sourceId: text, headers: decodeHeaders },
  ...{ payload: bytes, edited: flag, editedPayload: bytes },
})

function ofTable(table: string, columns: string): string {
  return columns.replaceAll(/\w+/g, `${table}.$&`)
}

/** For `toEvent`. Select with `bigints: true`. */
export const EVENT_COLUMNS = `${ofTable('event', EVENT.columns)}, ${ofTable('letter', LETTER.columns)}`

/** Without what may be large: the value is empty, whatever it is. */
export const SMALL_EVENT_COLUMNS = EVENT_COLUMNS.replace('letter.payload', 'NULL AS payload').replace(
  'letter.edited_payload',
  'NULL AS edited_payload',
)

export type StoredEvent = Readonly<ReturnType<typeof toEvent>>

export type QueueOrder = StoredEvent['order']

export function toEvent(row: object) {
  const { orderTs, topic, partition, recordOffset, intake, recordTs, recordKey, valueNull, ...event } =
    EVENT.read(row)
  const { capturedAt, shortKey, sourceId, headers, payload, edited, editedPayload } = LETTER.read(row)
  return {
    ...event,
    rowKey: formatRowKey({ name: sourceId, at: capturedAt, number: keyNumber(event.letterId, shortKey) }),
    order: { orderTs, topic, partition, offset: recordOffset, intake } as const,
    timestampMs: recordTs,
    key: recordKey,
    // Letters keep empty payloads as NULL.
    value: valueNull ? null : storedPayload(payload),
    /** By an operator. */
    editedValue: edited ? storedPayload(editedPayload) : null,
    headers,
  }
}

export const factsBytes = (facts: EventFacts): Uint8Array => Buffer.from(JSON.stringify(facts))

export function factsOf(bytes: Uint8Array): EventFacts {
  // Written by `factsBytes`.
  return JSON.parse(utf8(bytes)) as EventFacts
}

/** Both by primary key, in any order. */
const eventsBy = (name: string, columns: string): Statement =>
  sql(
    name,
    `SELECT ${columns} FROM bartleby.kafka_events AS event JOIN bartleby.letters AS letter ON letter.id = event.letter_id
     WHERE event.letter_id = ANY($1::bigint[])`,
    { bigints: true },
  )
const readEvents = eventsBy('kafka.events', EVENT_COLUMNS)
export const readSmallEvents = eventsBy('kafka.smallEvents', SMALL_EVENT_COLUMNS)

/** In this order; those that are gone are left out. */
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

/** By unique index. Spent names too. */
const findByDlqId = sql(
  'kafka.letterOfDlqId',
  'SELECT letter_id FROM bartleby.kafka_records WHERE dlq_id = $1::uuid',
  { bigints: true },
)

const FOUND = rowShape({ letterId })

export async function eventOfLetter(session: Session, id: LetterId): Promise<StoredEvent | null> {
  const [event] = await eventsOf(session, [id])
  return event ?? null
}

/** `id` is a UUID in lower case. */
export async function eventNamed(session: Session, id: string): Promise<StoredEvent | null> {
  const found = await FOUND.one(session, findByDlqId, id)
  return found === null ? null : eventOfLetter(session, found.letterId)
}

/** Texts of requests may hold what stores refuse. */
export const canHaveLetters = (service: string, topic: string | null): boolean =>
  (service === UNKNOWN || isServiceName(service)) &&
  (topic === null || topic === UNKNOWN || isTopicName(topic))

/** On kafka_same_key. Nearly all with the hash have the key. A key inside that of the record differs each time: the hash decides alone. */
const SAME = `service = $1 AND original_topic = $2 AND same_key = $3 AND same_key IS NOT NULL AND state <> ${STATE.discarded}
  AND (record_key = $4 OR $4 IS NULL)`
const PLACE = '($5, $6, $7, $8, $9)'

const find = (name: string, where: string): Statement =>
  sql(
    name,
    `SELECT letter_id FROM bartleby.kafka_events INDEXED BY kafka_same_key WHERE ${SAME} AND ${where} LIMIT 1`,
    { bigints: true },
  )

const findLater = find('kafka.laterSameKey', `(${ORDER}) > ${PLACE}`)

/** Not before the first of the topic's queue, so that long resolved events of the key are not walked through. */
const findEarlierOpen = find(
  'kafka.earlierOpenSameKey',
  `(${ORDER}) < ${PLACE} AND state < ${STATE.published} AND (${ORDER}) >= (
     SELECT ${ORDER} FROM bartleby.kafka_events INDEXED BY kafka_queue_of_topic
     WHERE service = $1 AND original_topic = $2 AND state < ${STATE.published} ORDER BY ${ORDER} LIMIT 1)`,
)

type Keyed = Pick<StoredEvent, 'service' | 'originalTopic' | 'key' | 'facts' | 'order'>

/** Discarded ones do not count. No such letter is no proof. */
export const hasLaterSameKey = async (session: Session, event: Keyed): Promise<boolean> =>
  (await neighbour(session, findLater, event)) !== null

export const earlierOpenSameKey = (session: Session, event: Keyed): Promise<LetterId | null> =>
  neighbour(session, findEarlierOpen, event)

async function neighbour(session: Session, statement: Statement, event: Keyed): Promise<LetterId | null> {
  const { service, originalTopic, facts, order } = event
  const key = eventKey(event.key, facts)
  // Two unknown topics may or may not be the same.
  if (key === null || service === UNKNOWN || originalTopic === UNKNOWN) return null
  const place: Value[] = [order.orderTs, order.topic, order.partition, order.offset, order.intake]
  const compared = facts.originalKey === undefined ? key : null
  const same = [service, originalTopic, sameKeyOf(key), compared] as const
  return (await FOUND.one(session, statement, ...same, ...place))?.letterId ?? null
}

/** The first eight bytes of the SHA-256, signed. Other keys may share them: compare the keys too. */
export const sameKeyOf = (key: Uint8Array): bigint =>
  Buffer.from(hash('sha256', key, 'hex').slice(0, 16), 'hex').readBigInt64BE()

/** The record's key, or the one inside it (`key_format: uber`). */
export const eventKey = (key: Uint8Array | null, { originalKey }: EventFacts): Uint8Array | null =>
  originalKey === undefined ? key : Buffer.from(originalKey, 'base64')
