/** The past of letters that died again: every record that they stood for before, and what was sent of it. */
import { type Instant, instant } from '../../core/clock.ts'
import { type LetterId, letterId } from '../../letters/letter.ts'
import { type Integer, type Session, sql } from '../../store/database.ts'
import {
  type DlqId,
  dlqId,
  type EventFacts,
  type EventId,
  eventId,
  type SendOutcomeName,
  type StoredEvent,
  sendOutcomeName,
} from './event.ts'
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

/** The links of letters by primary key, in its order. */
const readLinks = sql(
  'kafka.chain',
  `SELECT letter_id, number, dlq_id, topic, partition, record_offset, record_ts, facts, superseded_at, event_id
   FROM bartleby.kafka_chain WHERE letter_id = ANY($1::bigint[]) ORDER BY letter_id, number`,
  { bigints: true },
)

/** What was sent, by primary key. */
const readSends = sql(
  'kafka.sendsOfChain',
  `SELECT event_id, target, published_partition, published_offset, outcome, resends, actor, request_id, made_at
   FROM bartleby.kafka_sends WHERE event_id = ANY($1::uuid[])`,
  { bigints: true },
)

type LinkRow = Readonly<
  Record<'letter_id' | 'number' | 'partition' | 'record_offset' | 'record_ts' | 'superseded_at', Integer> &
    Record<'dlq_id' | 'topic', string> & { event_id: string | null; facts: Uint8Array }
>
type SendRow = Readonly<
  Record<'outcome' | 'resends' | 'made_at', Integer> &
    Record<'published_partition' | 'published_offset', Integer | null> &
    Record<'event_id' | 'target' | 'actor', string> & { request_id: string | null }
>

export async function readChain(
  session: Session,
  letterIds: readonly LetterId[],
): Promise<Map<LetterId, ChainLink[]>> {
  if (letterIds.length === 0) return new Map()
  const rows = await session.rows<LinkRow>(readLinks, letterIds)
  const sent = rows.flatMap(({ event_id }) => event_id ?? [])
  const found = sent.length === 0 ? [] : await session.rows<SendRow>(readSends, sent)
  const sends = new Map(found.map((row) => [row.event_id, toSent(row)]))
  const ofLetters = Map.groupBy(rows, (row) => letterId(row.letter_id))
  return new Map([...ofLetters].map(([id, links]) => [id, links.map((link) => toLink(link, sends))]))
}

const toLink = (row: LinkRow, sends: ReadonlyMap<string, Sent>): ChainLink => ({
  number: Number(row.number),
  dlqId: dlqId(row.dlq_id),
  topic: row.topic,
  partition: Number(row.partition),
  offset: BigInt(row.record_offset),
  timestampMs: BigInt(row.record_ts),
  facts: factsOf(row.facts),
  supersededAt: instant(BigInt(row.superseded_at)),
  sent: row.event_id === null ? null : (sends.get(row.event_id) ?? null),
})

const toSent = (row: SendRow): Sent => ({
  eventId: eventId(row.event_id),
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
