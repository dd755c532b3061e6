/** The past of letters that died again: every record that they stood for before, and what was sent of it. */
import { type Instant, instant } from '../core/clock.ts'
import { type Integer, type Session, sql } from '../db/database.ts'
import { type LetterId, letterId } from '../letters/letter.ts'
import { type DlqId, dlqId, type EventFacts, type EventId, eventId, type StoredEvent } from './event.ts'
import { type SendOutcomeName, sendOutcomeName } from './send.ts'
import { factsOf } from './stored-event.ts'

export interface Sent {
  readonly eventId: EventId
  /** The retry topic. */
  readonly target: string
  /** Where the broker put it; null when it has not said. */
  readonly partition: number | null
  readonly offset: bigint | null
  readonly outcome: SendOutcomeName
  /** How often the same was sent again. */
  readonly resends: number
  readonly actor: string
  readonly requestId: string | null
  readonly sentAt: Instant
}

/** One earlier death of a letter. */
export interface ChainLink {
  /** 1 is the first. */
  readonly number: number
  /** Spent: it names nothing any more. */
  readonly dlqId: DlqId
  readonly topic: string
  readonly partition: number
  readonly offset: bigint
  readonly timestampMs: bigint
  readonly facts: EventFacts
  /** When the next death took its place. */
  readonly supersededAt: Instant
  readonly sent: Sent | null
}

const COLUMNS = `link.letter_id, link.number, link.dlq_id, link.topic, link.partition, link.record_offset, link.record_ts, link.facts,
  link.superseded_at, send.event_id, send.target, send.published_partition, send.published_offset, send.outcome, send.resends,
  send.actor, send.request_id, send.made_at`

/** The links of letters by primary key, in its order, and the send of each by its own. */
const readLinks = sql(
  'kafka.chain',
  {
    postgres: `SELECT ${COLUMNS} FROM bartleby.kafka_chain AS link
      LEFT JOIN LATERAL (SELECT * FROM bartleby.kafka_sends WHERE event_id = link.event_id LIMIT 1) AS send ON true
      WHERE link.letter_id = ANY($1::bigint[]) ORDER BY link.letter_id, link.number`,
    sqlite: `SELECT ${COLUMNS} FROM kafka_chain AS link LEFT JOIN kafka_sends AS send ON send.event_id = link.event_id
      WHERE link.letter_id IN (SELECT value FROM json_each($1)) ORDER BY link.letter_id, link.number`,
  },
  { bigints: true },
)

type LinkRow = Readonly<
  Record<'letter_id' | 'number' | 'partition' | 'record_offset' | 'record_ts' | 'superseded_at', Integer> &
    Record<'outcome' | 'resends' | 'made_at', Integer> &
    Record<'published_partition' | 'published_offset', Integer | null> &
    Record<'dlq_id' | 'topic' | 'target' | 'actor', string> &
    Record<'event_id' | 'request_id', string | null> & { facts: Uint8Array }
>

export async function readChain(
  session: Session,
  letterIds: readonly LetterId[],
): Promise<Map<LetterId, ChainLink[]>> {
  if (letterIds.length === 0) return new Map()
  const rows = await session.rows<LinkRow>(readLinks, letterIds)
  const ofLetters = Map.groupBy(rows, (row) => letterId(row.letter_id))
  return new Map([...ofLetters].map(([id, links]) => [id, links.map(toLink)]))
}

const toLink = (row: LinkRow): ChainLink => ({
  number: Number(row.number),
  dlqId: dlqId(row.dlq_id),
  topic: row.topic,
  partition: Number(row.partition),
  offset: BigInt(row.record_offset),
  timestampMs: BigInt(row.record_ts),
  facts: factsOf(row.facts),
  supersededAt: instant(BigInt(row.superseded_at)),
  sent: row.event_id === null ? null : toSent(row.event_id, row),
})

const toSent = (id: string, row: LinkRow): Sent => ({
  eventId: eventId(id),
  target: row.target,
  partition: row.published_partition === null ? null : Number(row.published_partition),
  offset: row.published_offset === null ? null : BigInt(row.published_offset),
  outcome: sendOutcomeName(Number(row.outcome)),
  resends: Number(row.resends),
  actor: row.actor,
  requestId: row.request_id,
  sentAt: instant(BigInt(row.made_at)),
})

/**
 * The value of an earlier record, by the letter's part of the primary key. A value that the next record had too is not kept twice: it
 * is that of the first link behind that has one.
 */
const readValue = sql(
  'kafka.valueInChain',
  `SELECT value, value_null FROM bartleby.kafka_chain WHERE letter_id = $1
     AND number >= (SELECT number FROM bartleby.kafka_chain WHERE letter_id = $1 AND dlq_id = $2 LIMIT 1)
     AND (value IS NOT NULL OR value_null = 1)
   ORDER BY letter_id, number LIMIT 1`,
)

/** The value of a record that an event stood for before, by its spent name; `event` is what it stands for now. */
export async function earlierValue(
  session: Session,
  event: Pick<StoredEvent, 'letterId' | 'value'>,
  spent: DlqId,
): Promise<Uint8Array | null> {
  const [row] = await session.rows<{ value: Uint8Array | null; value_null: Integer }>(
    readValue,
    event.letterId,
    spent,
  )
  if (row === undefined) return event.value
  return Number(row.value_null) === 1 ? null : row.value
}
