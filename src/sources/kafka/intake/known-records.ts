/**
 * What the store knows of incoming records: which it has, which names are taken, which are the next death of a publish. Their partitions
 * are locked, so nobody stores them meanwhile.
 *
 * A record tells what it died of in three ways: the id minted for the publish, the place where the broker put it or, while that is not on
 * file, a likeness to what was sent.
 */

import { type LetterId, letterId } from '../../../letters/letter.ts'
import { isTopicName } from '../../../outgoing/kafka/record.ts'
import { type Integer, type Statement, sql, type Transaction } from '../../../store/database.ts'
import { rowsGiven } from '../../../store/idioms.ts'
import { big, flag, integer, orNull, rowShape, text } from '../../../store/row.ts'
import { type DlqId, dlqId, type EventFacts, type EventId, eventId, UNKNOWN, UNPLACED } from '../event.ts'
import { decodeHeaders, lastHeader, sameBytes } from '../wire/bytes.ts'
import { derivedId, type Incoming, placeOf, sourceIdOf } from './store-incoming.ts'

/** Consecutive offsets of a partition, as records mostly come: one question for all of them. */
interface Stretch {
  readonly topic: string
  readonly partition: number
  readonly first: bigint
  /** Inclusive. */
  readonly last: bigint
}

export function stretchesOf(
  places: readonly Pick<Incoming['record'], 'topic' | 'partition' | 'offset'>[],
): Stretch[] {
  const done: Stretch[] = []
  const open = new Map<string, { -readonly [Field in keyof Stretch]: Stretch[Field] }>()
  for (const { topic, partition, offset } of places) {
    const key = `${topic}:${partition}`
    const stretch = open.get(key)
    if (stretch !== undefined && offset === stretch.last + 1n) stretch.last = offset
    else if (stretch === undefined || offset < stretch.first || offset > stretch.last) {
      if (stretch !== undefined) done.push(stretch)
      open.set(key, { topic, partition, first: offset, last: offset })
    }
  }
  return [...done, ...open.values()]
}

/** A question about stretches, each called `given`. */
const stretchQuery = (name: string, text: string): Statement =>
  sql(
    name,
    `SELECT given.n AS n, found.*
     FROM unnest($1::text[], $2::int[], $3::bigint[], $4::bigint[], $5::int[]) AS given (topic, partition, first, last, n)
     CROSS JOIN LATERAL (${text}) AS found`,
    { bigints: true },
  )

/** Each row with the stretch that it answers. */
async function rowsOn<Row extends object, On extends Stretch = Stretch>(
  tx: Transaction,
  statement: Statement,
  stretches: readonly On[],
): Promise<(Row & { readonly on: On })[]> {
  const asked = stretches.map(({ topic, partition, first, last }, n) => ({
    ...{ topic, partition, first, last, n },
  }))
  const rows = await rowsGiven<Row & { readonly n: Integer }>(tx, statement, asked)
  return rows.flatMap((row) => {
    const on = stretches[Number(row.n)]
    return on === undefined ? [] : [{ ...row, on }]
  })
}

/** Records of stretches, by primary key. */
const readOn = stretchQuery(
  'kafka.recordsOn',
  `SELECT record_offset, fingerprint FROM bartleby.kafka_records
   WHERE topic = given.topic AND partition = given.partition AND record_offset >= given.first AND record_offset <= given.last
   ORDER BY topic, partition, record_offset`,
)

/** By unique index. */
const readTaken = sql(
  'kafka.takenIds',
  'SELECT dlq_id FROM bartleby.kafka_records WHERE dlq_id = ANY($1::uuid[])',
)

export interface Known {
  /** Source ids of stored records. */
  readonly records: ReadonlySet<string>
  /** Places that have any record. */
  readonly places: ReadonlySet<string>
  readonly takenIds: ReadonlySet<DlqId>
  /** Publishes by the source id of the record that died of them. */
  readonly sends: ReadonlyMap<string, EventId>
}

/** On PostgreSQL the statements travel together. */
export async function lookUp(tx: Transaction, all: readonly Incoming[]): Promise<Known> {
  const [at, takenIds, sends] = await Promise.all([
    recordsAt(tx, all),
    takenAmong(
      tx,
      all.map((each) => each.ownId ?? derivedId(each)),
    ),
    sendsOf(tx, all),
  ])
  return { ...at, takenIds, sends }
}

async function recordsAt(
  tx: Transaction,
  all: readonly Incoming[],
): Promise<Pick<Known, 'records' | 'places'>> {
  const stretches = stretchesOf(all.map(({ record }) => record))
  const rows = await rowsOn<{ record_offset: Integer; fingerprint: Uint8Array }>(tx, readOn, stretches)
  const records = new Set<string>()
  const places = new Set<string>()
  for (const { on, record_offset, fingerprint } of rows) {
    const place = placeOf(on.topic, on.partition, BigInt(record_offset))
    places.add(place)
    records.add(sourceIdOf(place, fingerprint))
  }
  return { records, places }
}

export async function takenAmong(tx: Transaction, ids: readonly DlqId[]): Promise<Set<DlqId>> {
  if (ids.length === 0) return new Set()
  const rows = await tx.rows<{ dlq_id: string }>(readTaken, ids)
  return new Set(rows.map((row) => dlqId(row.dlq_id)))
}

const SEND = rowShape({
  ...{ eventId, letterId, reopened: flag, resends: integer, target: text },
  ...{ publishedPartition: orNull(integer), publishedOffset: orNull(big) },
})
/** By primary key. */
const readSends = sql(
  'kafka.sendsOf',
  `SELECT ${SEND.columns} FROM bartleby.kafka_sends WHERE event_id = ANY($1::uuid[])`,
  { bigints: true },
)

/** Publishes to stretches, on kafka_sends_at. */
const readSendsOn = stretchQuery(
  'kafka.sendsOn',
  `SELECT event_id, made_at FROM bartleby.kafka_sends
   WHERE target = given.topic AND published_partition = given.partition AND published_offset >= given.first AND published_offset <= given.last
     AND published_offset IS NOT NULL ORDER BY target, published_partition, published_offset`,
)

/** A service publishes one event at a time; the others are those whose end nobody learned. */
const MOST_UNPLACED = 50
/** Latest publishes without a known place, on kafka_sends_unplaced. */
const readUnplaced = sql(
  'kafka.sendsUnplaced',
  `SELECT found.* FROM unnest($1::text[]) AS given (topic) CROSS JOIN LATERAL (
     SELECT event_id, target, record_key, headers FROM bartleby.kafka_sends
     WHERE target = given.topic AND ${UNPLACED} ORDER BY target DESC, made_at DESC LIMIT ${MOST_UNPLACED}) AS found`,
)

type UnplacedRow = Readonly<
  Record<'event_id' | 'target', string> & { record_key: Uint8Array | null; headers: Uint8Array }
>

export interface KnownSend {
  readonly eventId: EventId
  readonly letterId: LetterId
  /** A record has reopened its letter already. */
  readonly isSpent: boolean
  /** The place of its only copy; null if unknown, or if there are several. */
  readonly place: string | null
}

async function sendsOf(tx: Transaction, all: readonly Incoming[]): Promise<Map<string, EventId>> {
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

/** The id of the failed record: most services tell it beside their own, some keep it. */
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
  const topics = [...new Set(placed.map(({ topic }) => topic))].map((topic) => ({ topic }))
  // In this order: a publish that is settled between the two is found by the second.
  const [unplaced, rows] = await Promise.all([
    rowsGiven<UnplacedRow>(tx, readUnplaced, topics),
    rowsOn<{ event_id: string; made_at: Integer }, (typeof placed)[number]>(tx, readSendsOn, placed),
  ])
  // A recreated topic has places twice; the last publish counts.
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

/** Compares all that a hexkit service leaves as it is. It writes the value anew. */
function isAlike({ record_key, headers }: UnplacedRow, { record, facts }: Incoming): boolean {
  const { originalTopic, type, correlationId } = facts
  if (originalTopic === UNKNOWN || correlationId === null || !sameBytes(record_key, record.key)) return false
  const sent = decodeHeaders(headers)
  const is = (name: string, text: string) => sameBytes(lastHeader(sent, name) ?? null, Buffer.from(text))
  return is('correlation_id', correlationId) && is('type', type) && is('original_topic', originalTopic)
}

/** Where the failed record was read. Untrusted text. */
function sentTo({ readFrom }: EventFacts): Stretch | null {
  if (readFrom === null || !isTopicName(readFrom.topic) || !/^\d{1,18}$/.test(readFrom.offset)) return null
  const { topic, partition } = readFrom
  const offset = BigInt(readFrom.offset)
  return partition >= 0 && partition < 2 ** 31 ? { topic, partition, first: offset, last: offset } : null
}

export async function readSendsByIds(
  tx: Transaction,
  ids: readonly EventId[],
): Promise<Map<EventId, KnownSend>> {
  if (ids.length === 0) return new Map()
  const sends = await SEND.all(tx, readSends, ids)
  return new Map(
    sends.map(({ eventId, letterId, reopened: isSpent, resends, target, ...at }) => {
      const { publishedPartition: partition, publishedOffset: offset } = at
      const isKnown = partition !== null && offset !== null && resends === 0
      return [
        eventId,
        { eventId, letterId, isSpent, place: isKnown ? placeOf(target, partition, offset) : null },
      ]
    }),
  )
}

/** Whether the record was read elsewhere: it only looked alike while the place was unknown. */
export function isElsewhere({ facts: { readFrom } }: Incoming, { place }: KnownSend): boolean {
  if (readFrom === null || place === null) return false
  return placeOf(readFrom.topic, readFrom.partition, BigInt(readFrom.offset)) !== place
}
