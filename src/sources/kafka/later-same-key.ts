/**
 * Letters with the same service, original topic and key. To publish the older of two after the younger may undo what the younger
 * did; who sends letters back out of their order must know of those before.
 */
import { hash } from 'node:crypto'
import { type LetterId, letterId } from '../../letters/letter.ts'
import { type Integer, type Session, type Statement, sql, type Value } from '../../store/database.ts'
import { type EventFacts, STATE, type StoredEvent, UNKNOWN } from './event.ts'

const ORDER = 'order_ts, topic, partition, record_offset, intake'

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
