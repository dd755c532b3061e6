/**
 * What the store knows already about records that come in: which of them it has, which names are taken, and which records are the
 * next death of something that was sent. The partitions of the records are locked, so none of them can be stored meanwhile.
 *
 * A record says what it died of in one of three ways: by the id that was minted for the publish, by the place where the broker put it,
 * or, while that place is not on file, by looking like what was sent.
 */

import { type LetterId, letterId } from '../../../letters/letter.ts'
import { isTopicName } from '../../../outgoing/kafka/record.ts'
import { type Integer, type Statement, sql, type Transaction } from '../../../store/database.ts'
import { rowsGiven } from '../../../store/idioms.ts'
import { big, flag, integer, orNull, rowShape, text } from '../../../store/row.ts'
import { type DlqId, dlqId, type EventFacts, type EventId, eventId, UNKNOWN, UNPLACED } from '../event.ts'
import { decodeHeaders, lastHeader, sameBytes } from '../wire/bytes.ts'
import { derivedId, type Incoming, placeOf, sourceIdOf } from './store-incoming.ts'

/**
 * Stretches of partitions: offsets that follow each other without a gap, as records mostly come. The store is asked about a stretch
 * at once, and answers with no more than what was asked about, however full the partition is.
 */
interface Stretch {
  readonly topic: string
  readonly partition: number
  readonly first: bigint
  /** With this one. */
  readonly last: bigint
}

/** The stretches that these places make up; each place is on one of them. */
export function stretchesOf(
  places: readonly { readonly topic: string; readonly partition: number; readonly offset: bigint }[],
): Stretch[] {
  const done: Stretch[] = []
  const open = new Map<string, { topic: string; partition: number; first: bigint; last: bigint }>()
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

/** A question about stretches, each of which it calls `given`. */
const stretchQuery = (name: string, text: string): Statement =>
  sql(
    name,
    `SELECT given.n AS n, found.*
     FROM unnest($1::text[], $2::int[], $3::bigint[], $4::bigint[], $5::int[]) AS given (topic, partition, first, last, n)
     CROSS JOIN LATERAL (${text}) AS found`,
    { bigints: true },
  )

/** The answers to a question about stretches, each with the one that it is of. */
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

/** The records that are known on stretches of partitions, by primary key: not more than there are places on them. */
const readOn = stretchQuery(
  'kafka.recordsOn',
  `SELECT record_offset, fingerprint FROM bartleby.kafka_records
   WHERE topic = given.topic AND partition = given.partition AND record_offset >= given.first AND record_offset <= given.last
   ORDER BY topic, partition, record_offset`,
)

/** Which of these names are taken, on their unique index. */
const readTaken = sql(
  'kafka.takenIds',
  'SELECT dlq_id FROM bartleby.kafka_records WHERE dlq_id = ANY($1::uuid[])',
)

export interface Known {
  /** The source ids of records that are in the store. */
  readonly records: ReadonlySet<string>
  /** Places that have a record, whichever. */
  readonly places: ReadonlySet<string>
  readonly takenIds: ReadonlySet<DlqId>
  /** What was sent, by the source id of the record that died of it. */
  readonly sends: ReadonlyMap<string, EventId>
}

/** Looks all of them up. On PostgreSQL the statements travel together. */
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

/** Which of these names records have already. */
export async function takenAmong(tx: Transaction, ids: readonly DlqId[]): Promise<Set<DlqId>> {
  if (ids.length === 0) return new Set()
  const rows = await tx.rows<{ dlq_id: string }>(readTaken, ids)
  return new Set(rows.map((row) => dlqId(row.dlq_id)))
}

const SEND = rowShape({
  ...{ eventId, letterId, reopened: flag, resends: integer, target: text },
  ...{ publishedPartition: orNull(integer), publishedOffset: orNull(big) },
})
/** The letters of ids that were minted, by primary key. */
const readSends = sql(
  'kafka.sendsOf',
  `SELECT ${SEND.columns} FROM bartleby.kafka_sends WHERE event_id = ANY($1::uuid[])`,
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
  const topics = [...new Set(placed.map(({ topic }) => topic))].map((topic) => ({ topic }))
  // In this order: whoever settles a publish between the two is found by the second.
  const [unplaced, rows] = await Promise.all([
    rowsGiven<UnplacedRow>(tx, readUnplaced, topics),
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

/** Whether a record is what became of a publish: all that a service of hexkit leaves as it is. It writes the value anew. */
function isAlike({ record_key, headers }: UnplacedRow, { record, facts }: Incoming): boolean {
  const { originalTopic, type, correlationId } = facts
  if (originalTopic === UNKNOWN || correlationId === null || !sameBytes(record_key, record.key)) return false
  const sent = decodeHeaders(headers)
  const is = (name: string, text: string) => sameBytes(lastHeader(sent, name) ?? null, Buffer.from(text))
  return is('correlation_id', correlationId) && is('type', type) && is('original_topic', originalTopic)
}

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
  const sends = (await tx.rows<object>(readSends, ids)).map(SEND.read)
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

/** Whether a record was read somewhere else than where the publish is: it only looked alike while nobody knew. */
export function isElsewhere({ facts: { readFrom } }: Incoming, { place }: KnownSend): boolean {
  if (readFrom === null || place === null) return false
  return placeOf(readFrom.topic, readFrom.partition, BigInt(readFrom.offset)) !== place
}
