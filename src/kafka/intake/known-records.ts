/**
 * What the store knows already about records that come in: which of them it has, which names are taken, and which records are the
 * next death of something that was sent. The partitions of the records are locked, so none of them can be stored meanwhile.
 */
import { type Integer, sql, type Transaction, textList } from '../../db/database.ts'
import { type LetterId, letterId } from '../../letters/letter.ts'
import { type DlqId, dlqId, type EventFacts, type EventId, eventId } from '../event.ts'
import { isTopicName } from '../names.ts'
import { derivedId, type Incoming, placeOf, sourceIdOf } from './store-incoming.ts'
import { rowsOn, STRETCHES, type Stretch, stretchesOf } from './store-stretches.ts'

/** The records that are known on stretches of partitions, by primary key: not more than there are places on them. */
const readOn = sql(
  'kafka.recordsOn',
  {
    postgres: `SELECT asked.n, known.record_offset, known.fingerprint FROM ${STRETCHES}
      CROSS JOIN LATERAL (SELECT record_offset, fingerprint FROM bartleby.kafka_records WHERE topic = asked.topic
        AND partition = asked.partition AND record_offset >= asked.first AND record_offset <= asked.last OFFSET 0) AS known`,
    sqlite: `SELECT record_offset, fingerprint FROM kafka_records
      WHERE topic = $1 AND partition = $2 AND record_offset >= $3 AND record_offset <= $4`,
  },
  { bigints: true },
)

/** Which of these names are taken, on their unique index. */
const readTaken = sql('kafka.takenIds', {
  postgres: 'SELECT dlq_id FROM bartleby.kafka_records WHERE dlq_id = ANY($1::uuid[])',
  sqlite: 'SELECT dlq_id FROM kafka_records WHERE dlq_id IN (SELECT value FROM json_each($1))',
})

/** The letters of ids that were minted, by primary key. */
const readSends = sql(
  'kafka.sendsOf',
  {
    postgres:
      'SELECT event_id, letter_id, reopened FROM bartleby.kafka_sends WHERE event_id = ANY($1::uuid[])',
    sqlite:
      'SELECT event_id, letter_id, reopened FROM kafka_sends WHERE event_id IN (SELECT value FROM json_each($1))',
  },
  { bigints: true },
)

/** What was sent to stretches of partitions, on kafka_sends_at. */
const readSendsOn = sql(
  'kafka.sendsOn',
  {
    postgres: `SELECT asked.n, send.event_id, send.made_at FROM ${STRETCHES}
      CROSS JOIN LATERAL (SELECT event_id, made_at FROM bartleby.kafka_sends WHERE target = asked.topic
        AND published_partition = asked.partition AND published_offset >= asked.first AND published_offset <= asked.last
        AND published_offset IS NOT NULL OFFSET 0) AS send`,
    sqlite: `SELECT event_id, made_at FROM kafka_sends WHERE target = $1 AND published_partition = $2
      AND published_offset >= $3 AND published_offset <= $4 AND published_offset IS NOT NULL`,
  },
  { bigints: true },
)

interface SendRow {
  readonly event_id: string
  readonly letter_id: Integer
  readonly reopened: Integer
}

/** A publish that records may have died of. */
export interface KnownSend {
  readonly eventId: EventId
  readonly letterId: LetterId
  /** Whether a record has reopened its letter already. */
  readonly isSpent: boolean
}

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
  const rows = await tx.rows<{ dlq_id: string }>(readTaken, textList(tx.dialect, ids))
  return new Set(rows.map((row) => dlqId(row.dlq_id)))
}

async function sendsOf(tx: Transaction, all: readonly Incoming[]): Promise<Map<string, EventId>> {
  const named = all.filter(({ facts }) => facts.originalEventId !== null)
  const idOf = ({ facts }: Incoming): EventId => eventId((facts.originalEventId ?? '').toLowerCase())
  const [byId, byPlace] = await Promise.all([readSendsByIds(tx, named.map(idOf)), sendsAtPlaces(tx, all)])
  const byName = named.filter((each) => byId.has(idOf(each)))
  return new Map([...byPlace, ...byName.map((each) => [each.sourceId, idOf(each)] as const)])
}

async function sendsAtPlaces(tx: Transaction, all: readonly Incoming[]): Promise<Map<string, EventId>> {
  const placed = all.flatMap(({ sourceId, facts }) => {
    const place = sentTo(facts)
    return place === null ? [] : [{ ...place, sourceId }]
  })
  if (placed.length === 0) return new Map()
  const rows = await rowsOn<{ event_id: string; made_at: Integer }, (typeof placed)[number]>(
    tx,
    readSendsOn,
    placed,
  )
  // A topic that was made anew has places for the second time: what was sent there last is meant.
  rows.sort((a, b) => Number(BigInt(a.made_at) - BigInt(b.made_at)))
  return new Map(rows.map(({ on, event_id }) => [on.sourceId, eventId(event_id)]))
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
  const rows = await tx.rows<SendRow>(readSends, textList(tx.dialect, ids))
  return new Map(
    rows.map((row) => [
      eventId(row.event_id),
      {
        eventId: eventId(row.event_id),
        letterId: letterId(row.letter_id),
        isSpent: Number(row.reopened) === 1,
      },
    ]),
  )
}
