/**
 * Queues of services as previews show them, in the order of the contract, and the earlier deaths of letters. Reads only, and no more bytes
 * than an answer may hold: sizes first.
 */

import { type LetterId, letterId } from '../../letters/letter.ts'
import type { LetterNumbers } from '../../letters/numbers/letter-numbers.ts'
import { type Database, type Integer, type Session, sql } from '../../store/database.ts'
import { at, big, integer, orNull, type RowOf, rowShape, text } from '../../store/row.ts'
import { type DlqId, dlqId, eventId, KAFKA, STATE, sendOutcomeName, UNKNOWN } from './event.ts'
import {
  canHaveLetters,
  eventNamed,
  eventsOf,
  factsOf,
  hasLaterSameKey,
  QUEUE_ORDER,
  readSmallEvents,
  type StoredEvent,
} from './stored-event.ts'

export interface QueuePart {
  readonly service: string
  /** Null: all topics of the service. */
  readonly topic: string | null
  readonly skip: number
  readonly limit: number
  /** Of values, large headers and large keys. The first event is given in any case, its value if it fits. */
  readonly maxBytes: number
}

interface NextEvents {
  readonly events: readonly StoredEvent[]
  /** Something is missing because of its size. */
  readonly truncated: boolean
  /** The size of the first event's value when that alone is beyond the limit; the value is null then. */
  readonly omittedBytes: number | null
}

interface EventDetail {
  readonly chain: readonly ChainLink[]
  readonly hasLaterSameKey: boolean
}

export interface DetailedEvent extends StoredEvent, EventDetail {}

interface Preview extends NextEvents {
  readonly details: ReadonlyMap<LetterId, EventDetail>
}

const OPEN = `event.state < ${STATE.published}`

/** Headers and keys up to this size do not count. */
const SMALL_BYTES = 4_096
const large = (part: string): string => `greatest(coalesce(octet_length(${part}), 0) - ${SMALL_BYTES}, 0)`
const VALUE_BYTES = 'coalesce(octet_length(payload), 0)'

/**
 * Sizes of the next events, by the index of their queue; letters by primary key. A size is known without reading the value. Cost: the
 * events skipped and given.
 */
const sizes = (name: string, where: string, order: string, limit: string) =>
  sql(
    name,
    `SELECT event.letter_id, ${VALUE_BYTES} AS value_bytes, ${VALUE_BYTES} + ${large('headers')} + ${large('reference')} AS bytes
     FROM bartleby.kafka_events AS event JOIN bartleby.letters AS letter ON letter.id = event.letter_id
     WHERE ${where} AND ${OPEN} ORDER BY ${order} ${limit}`,
    { bigints: true },
  )
const SIZE = rowShape({ letterId, valueBytes: integer, bytes: integer })
const [LIMITED, LIMITED_OF_TOPIC] = ['LIMIT $2 OFFSET $3', 'LIMIT $3 OFFSET $4']
const sizesOfService = sizes('kafka.queue', 'event.service = $1', `event.service, ${QUEUE_ORDER}`, LIMITED)
const sizesOfTopic = sizes(
  'kafka.queueOfTopic',
  'event.service = $1 AND event.original_topic = $2',
  `event.service, event.original_topic, ${QUEUE_ORDER}`,
  LIMITED_OF_TOPIC,
)

/** At least one, if there are any and any are asked for. */
async function nextEvents(session: Session, part: QueuePart): Promise<NextEvents> {
  const { service, topic, skip, limit, maxBytes } = part
  if (limit === 0 || !canHaveLetters(service, topic)) {
    return { events: [], truncated: false, omittedBytes: null }
  }
  const found = await (topic === null
    ? SIZE.all(session, sizesOfService, service, limit, skip)
    : SIZE.all(session, sizesOfTopic, service, topic, limit, skip))
  const [first] = found
  if (first !== undefined && first.valueBytes > maxBytes) {
    const events = await eventsOf(session, [first.letterId], readSmallEvents)
    const omittedBytes = first.valueBytes
    return { events: events.map((event) => ({ ...event, value: null })), truncated: true, omittedBytes }
  }
  let sum = 0
  const beyond = found.findIndex(({ bytes }, index) => {
    sum += bytes
    return index > 0 && sum > maxBytes
  })
  const ids = found.slice(0, beyond < 0 ? undefined : beyond).map((row) => row.letterId)
  return { events: await eventsOf(session, ids), truncated: beyond >= 0, omittedBytes: null }
}

/** Any place of the service, by the label of places; '0' follows '/', which stands between service and topic. */
const findPlace = sql(
  'kafka.placeOfService',
  `SELECT id FROM bartleby.places WHERE source = '${KAFKA}' AND engine = '${KAFKA}' AND queue > $1 AND queue < $2
   ORDER BY source, engine, queue LIMIT 1`,
)

async function detailsOf(
  session: Session,
  events: readonly StoredEvent[],
): Promise<ReadonlyMap<LetterId, EventDetail>> {
  // Only an event that died again has a past.
  const again = events.filter(({ attempts }) => attempts > 1)
  const chains = await readChain(
    session,
    again.map(({ letterId }) => letterId),
  )
  const later = await Promise.all(events.map((event) => hasLaterSameKey(session, event)))
  return new Map(
    events.map(({ letterId }, index) => [
      letterId,
      { chain: chains.get(letterId) ?? [], hasLaterSameKey: later[index] ?? false },
    ]),
  )
}

async function detailed(session: Session, event: StoredEvent): Promise<DetailedEvent> {
  const detail = (await detailsOf(session, [event])).get(event.letterId)
  if (detail === undefined) throw new Error('an event has no details')
  return { ...event, ...detail }
}

/** The reads of the API, each at one moment of the store. */
export class QueueReader {
  readonly #db: Database
  readonly #numbers: Pick<LetterNumbers, 'counts'>

  constructor(db: Database, numbers: Pick<LetterNumbers, 'counts'>) {
    this.#db = db
    this.#numbers = numbers
  }

  /** Details of those that `isDetailed` asks for, and of one without its value. */
  preview(part: QueuePart, isDetailed: (event: StoredEvent) => boolean): Promise<Preview> {
    return this.#db.snapshot('kafka.preview', async (session) => {
      const next = await nextEvents(session, part)
      const wanted = next.events.filter((event) => next.omittedBytes !== null || isDetailed(event))
      return { ...next, details: await detailsOf(session, wanted) }
    })
  }

  detailed(event: StoredEvent): Promise<DetailedEvent> {
    return this.#db.snapshot('kafka.detail', (session) => detailed(session, event))
  }

  named(id: string): Promise<DetailedEvent | null> {
    return this.#db.snapshot('kafka.named', async (session) => {
      const event = await eventNamed(session, id)
      return event === null ? null : detailed(session, event)
    })
  }

  /** The value of exactly the record that has this name. */
  value(id: string): Promise<{ readonly value: Uint8Array | null } | null> {
    return this.#db.snapshot('kafka.value', async (session) => {
      const event = await eventNamed(session, id)
      if (event === null || event.dlqId === id) return event
      return { value: await earlierValue(session, event, dlqId(id)) }
    })
  }

  /** Whether it ever had one. */
  async hasLetter(service: string): Promise<boolean> {
    if (!canHaveLetters(service, null)) return false
    const found = await this.#db.session('kafka.hasLetter', (session) =>
      session.rows(findPlace, `${service}/`, `${service}0`),
    )
    return found.length > 0
  }

  /** Unresolved letters by service and original topic. */
  async summary(): Promise<ReadonlyMap<string, ReadonlyMap<string, number>>> {
    const { items } = await this.#numbers.counts({ source: KAFKA, engine: KAFKA, status: 'Pending' }, [
      'originalQueue',
    ])
    const services = new Map<string, Map<string, number>>()
    for (const { originalQueue, count } of items) {
      // Neither name has a slash in it.
      const [service = UNKNOWN, topic = UNKNOWN] = (originalQueue ?? '').split('/')
      const topics = services.get(service) ?? new Map<string, number>()
      services.set(service, topics.set(topic, count))
    }
    return services
  }
}

/** Partition and offset are null until the broker has answered. */
const SENT = rowShape({
  eventId,
  /** The retry topic. */
  target: text,
  publishedPartition: orNull(integer),
  publishedOffset: orNull(big),
  outcome: sendOutcomeName,
  resends: integer,
  actor: text,
  requestId: orNull(text),
  madeAt: at,
})
export type Sent = RowOf<typeof SENT>

const LINK = rowShape({
  letterId,
  number: integer,
  /** Spent. */
  dlqId,
  topic: text,
  partition: integer,
  recordOffset: big,
  recordTs: big,
  facts: factsOf,
  /** When the next death took its place. */
  supersededAt: at,
  eventId: orNull(eventId),
})

/** One earlier death of a letter. */
export type ChainLink = RowOf<typeof LINK> & { readonly sent: Sent | null }

/** By primary key, in its order. */
const readLinks = sql(
  'kafka.chain',
  `SELECT ${LINK.columns} FROM bartleby.kafka_chain WHERE letter_id = ANY($1::bigint[]) ORDER BY letter_id, number`,
  { bigints: true },
)

/** By primary key. */
const readSends = sql(
  'kafka.sendsOfChain',
  `SELECT ${SENT.columns} FROM bartleby.kafka_sends WHERE event_id = ANY($1::uuid[])`,
  { bigints: true },
)

export async function readChain(
  session: Session,
  letterIds: readonly LetterId[],
): Promise<ReadonlyMap<LetterId, readonly ChainLink[]>> {
  if (letterIds.length === 0) return new Map()
  const links = await LINK.all(session, readLinks, letterIds)
  const sent = links.flatMap((link) => link.eventId ?? [])
  const found = sent.length === 0 ? [] : await SENT.all(session, readSends, sent)
  const sends = new Map(found.map((one) => [one.eventId, one]))
  const sentOf = ({ eventId: id }: RowOf<typeof LINK>) => (id === null ? null : (sends.get(id) ?? null))
  return Map.groupBy(
    links.map((link) => ({ ...link, sent: sentOf(link) })),
    (link) => link.letterId,
  )
}

/** By the letter's part of the primary key. A value that the next record had too is not kept twice: the first link behind has it. */
const readValue = sql(
  'kafka.valueInChain',
  `SELECT value, value_null FROM bartleby.kafka_chain WHERE letter_id = $1
     AND number >= (SELECT number FROM bartleby.kafka_chain WHERE letter_id = $1 AND dlq_id = $2 LIMIT 1)
     AND (value IS NOT NULL OR value_null = 1)
   ORDER BY letter_id, number LIMIT 1`,
)

/** The value of a record that the event stood for before, by its spent name. */
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
