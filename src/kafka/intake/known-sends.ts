/**
 * Publishes that records may have died of. A record says so in one of three ways: by the id that was minted for the publish, by the
 * place where the broker put it, or, while that place is not on file, by looking like what was sent.
 */
import { type Integer, sql, type Transaction } from '../../db/database.ts'
import { rowsGiven } from '../../db/idioms.ts'
import { type LetterId, letterId } from '../../letters/letter.ts'
import { type EventFacts, type EventId, eventId, UNKNOWN } from '../event.ts'
import { isTopicName } from '../names.ts'
import { UNPLACED } from '../send.ts'
import { decodeHeaders, lastHeader } from '../wire/headers.ts'
import { bufferOf } from '../wire/text.ts'
import { type Incoming, placeOf } from './store-incoming.ts'
import { rowsOn, type Stretch, stretchQuery } from './store-stretches.ts'

const SENDS = 'event_id, letter_id, reopened, resends, target, published_partition, published_offset'
/** The letters of ids that were minted, by primary key. */
const readSends = sql(
  'kafka.sendsOf',
  `SELECT ${SENDS} FROM bartleby.kafka_sends WHERE event_id = ANY($1::uuid[])`,
  { bigints: true },
)

/** What was sent to stretches of partitions, on kafka_sends_at. */
const readSendsOn = stretchQuery(
  'kafka.sendsOn',
  `SELECT event_id, made_at FROM bartleby.kafka_sends
   WHERE target = given.topic AND published_partition = given.partition AND published_offset >= given.first AND published_offset <= given.last
     AND published_offset IS NOT NULL ORDER BY target, published_partition, published_offset`,
)

/** One publish of a service is under way at a time; the others are those that nobody ever learned the end of. */
const MOST_UNPLACED = 50
/** The last publishes to topics whose place is not known, the newest first, on kafka_sends_unplaced. */
const readUnplaced = sql(
  'kafka.sendsUnplaced',
  `SELECT found.* FROM unnest($1::text[]) AS given (topic) CROSS JOIN LATERAL (
     SELECT event_id, target, record_key, headers FROM bartleby.kafka_sends
     WHERE target = given.topic AND ${UNPLACED} ORDER BY target DESC, made_at DESC LIMIT ${MOST_UNPLACED}) AS found`,
)

type SendRow = Readonly<
  Record<'event_id' | 'target', string> &
    Record<'letter_id' | 'reopened' | 'resends', Integer> &
    Record<'published_partition' | 'published_offset', Integer | null>
>
type UnplacedRow = Readonly<
  Record<'event_id' | 'target', string> & { record_key: Uint8Array | null; headers: Uint8Array }
>

/** A publish that records may have died of. */
export interface KnownSend {
  readonly eventId: EventId
  readonly letterId: LetterId
  /** Whether a record has reopened its letter already. */
  readonly isSpent: boolean
  /** Where its only copy is; null when that is not known, or there are several. */
  readonly place: string | null
}

/** What was sent, by the source id of the record that died of it. */
export async function sendsOf(tx: Transaction, all: readonly Incoming[]): Promise<Map<string, EventId>> {
  const [byId, byPlace] = await Promise.all([sendsNamed(tx, all), sendsAtPlaces(tx, all)])
  return new Map([...byPlace, ...byId])
}

async function sendsNamed(tx: Transaction, all: readonly Incoming[]): Promise<Map<string, EventId>> {
  const named = all.flatMap((each) => {
    const id = sentAs(each)
    return id === null ? [] : [[each.sourceId, id] as const]
  })
  const known = await readSendsByIds(
    tx,
    named.map(([, id]) => id),
  )
  return new Map(named.filter(([, id]) => known.has(id)))
}

/** The id of the record that failed: most services tell it beside their own; some let the dead record keep it. */
function sentAs({ facts: { originalEventId }, ownId }: Incoming): EventId | null {
  const id = originalEventId ?? ownId
  return id === null ? null : eventId(id.toLowerCase())
}

async function sendsAtPlaces(tx: Transaction, all: readonly Incoming[]): Promise<Map<string, EventId>> {
  const placed = all.flatMap((each) => {
    const place = sentTo(each.facts)
    return place === null ? [] : [{ ...place, each }]
  })
  if (placed.length === 0) return new Map()
  // In this order: whoever settles a publish between the two is found by the second.
  const [unplaced, rows] = await Promise.all([
    unplacedAt(tx, [...new Set(placed.map(({ topic }) => topic))]),
    rowsOn<{ event_id: string; made_at: Integer }, (typeof placed)[number]>(tx, readSendsOn, placed),
  ])
  // A topic that was made anew has places for the second time: what was sent there last is meant.
  rows.sort((a, b) => Number(BigInt(a.made_at) - BigInt(b.made_at)))
  const alike = placed.flatMap(({ topic, each }) => {
    const found = unplaced.find((send) => send.target === topic && isAlike(send, each))
    return found === undefined ? [] : [[each.sourceId, eventId(found.event_id)] as const]
  })
  return new Map([
    ...alike,
    ...rows.map(({ on, event_id }) => [on.each.sourceId, eventId(event_id)] as const),
  ])
}

const unplacedAt = (tx: Transaction, topics: readonly string[]): Promise<UnplacedRow[]> =>
  rowsGiven<UnplacedRow>(
    tx,
    readUnplaced,
    topics.map((topic) => ({ topic })),
  )

/** Whether a record is what became of a publish: all that a service of hexkit leaves as it is. It writes the value anew. */
function isAlike({ record_key, headers }: UnplacedRow, { record, facts }: Incoming): boolean {
  const { originalTopic, type, correlationId } = facts
  if (originalTopic === UNKNOWN || correlationId === null || !isSame(record_key, record.key)) return false
  const sent = decodeHeaders(headers)
  const is = (name: string, text: string) => isSame(lastHeader(sent, name) ?? null, Buffer.from(text))
  return is('correlation_id', correlationId) && is('type', type) && is('original_topic', originalTopic)
}

const isSame = (one: Uint8Array | null, other: Uint8Array | null): boolean =>
  one === null || other === null ? one === other : bufferOf(one).equals(other)

/** Where the failed record was read, when anything of ours can be there: the text came with the record. */
function sentTo({ readFrom }: EventFacts): Stretch | null {
  if (readFrom === null || !isTopicName(readFrom.topic) || !/^\d{1,18}$/.test(readFrom.offset)) return null
  const { topic, partition } = readFrom
  const offset = BigInt(readFrom.offset)
  return partition >= 0 && partition < 2 ** 31 ? { topic, partition, first: offset, last: offset } : null
}

/** These publishes, as far as they were ours. */
export async function readSendsByIds(
  tx: Transaction,
  ids: readonly EventId[],
): Promise<Map<EventId, KnownSend>> {
  if (ids.length === 0) return new Map()
  const rows = await tx.rows<SendRow>(readSends, ids)
  return new Map(rows.map((row) => [eventId(row.event_id), toSend(row)]))
}

function toSend(row: SendRow): KnownSend {
  const { published_partition: partition, published_offset: offset } = row
  const isKnown = partition !== null && offset !== null && Number(row.resends) === 0
  return {
    eventId: eventId(row.event_id),
    letterId: letterId(row.letter_id),
    isSpent: Number(row.reopened) === 1,
    place: isKnown ? placeOf(row.target, Number(partition), BigInt(offset)) : null,
  }
}

/** Whether a record was read somewhere else than where the publish is: it only looked alike while nobody knew. */
export function isElsewhere({ facts: { readFrom } }: Incoming, { place }: KnownSend): boolean {
  if (readFrom === null || place === null) return false
  return placeOf(readFrom.topic, readFrom.partition, BigInt(readFrom.offset)) !== place
}
