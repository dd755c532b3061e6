/**
 * Finds the event that a call is about and locks it, within the transaction that takes it: "next" is never read first and taken
 * later. First the row of the service is locked, which every call that takes an event of the service does, then the letter.
 */
import { type Instant, instant } from '../../core/clock.ts'
import { type Integer, type Session, sql, type Transaction } from '../../db/database.ts'
import { type LetterId, letterId } from '../../letters/letter.ts'
import { lockLetters } from '../../letters/reopen.ts'
import { type DlqId, dlqId, STATE, type StoredEvent, UNKNOWN } from '../event.ts'
import { isServiceName, isTopicName } from '../names.ts'
import { EVENT_COLUMNS, type EventRow, toEvent } from '../stored-event.ts'
import type { Goal, LetterGoal, QueueGoal } from './errand.ts'

/** An event in flight, and who has it for how long. */
export interface Flying {
  readonly letterId: LetterId
  readonly service: string
  readonly dlqId: DlqId
  readonly claim: string
  readonly claimedBy: string
  readonly leaseUntil: Instant
}

export type Sought =
  /** Nobody has it. Its service and its letter are locked until the transaction ends. */
  | { readonly found: 'free'; readonly event: StoredEvent }
  | { readonly found: 'none' }
  /** Another event is next. */
  | { readonly found: 'another'; readonly head: DlqId }
  /** An event of the service is in flight. */
  | { readonly found: 'held'; readonly by: Pick<Flying, 'service' | 'dlqId'> }
  /** An event of the service is said to be in flight, by somebody who is gone. */
  | { readonly found: 'lapsed'; readonly lapse: Flying }

const ORDER = 'order_ts, topic, partition, record_offset, intake'
/** As a range, in the order that only one index has: under an equality PostgreSQL may walk past all other topics of the service. */
const OF_TOPIC = 'original_topic BETWEEN $2 AND $2'

/** The first of a queue that is unresolved: one row of the index of the queue. */
const head = (name: string, index: string, where: string, order: string) => {
  const rest = `WHERE ${where} AND state < ${STATE.published} ORDER BY ${order} LIMIT 1`
  return sql(
    name,
    {
      postgres: `SELECT letter_id, dlq_id FROM bartleby.kafka_events ${rest}`,
      sqlite: `SELECT letter_id, dlq_id FROM kafka_events INDEXED BY ${index} ${rest}`,
    },
    { bigints: true },
  )
}
const headOfService = head('kafka.headOfService', 'kafka_queue', 'service = $1', ORDER)
const headOfTopic = head(
  'kafka.headOfTopic',
  'kafka_queue_of_topic',
  `service = $1 AND ${OF_TOPIC}`,
  `original_topic, ${ORDER}`,
)

const FLYING = `state IN (${STATE.claimed}, ${STATE.publishing})`

/** What is in flight, on kafka_in_flight: one of each service at most. */
const inFlight = (name: string, where: string) =>
  sql(
    name,
    {
      postgres: `SELECT letter_id, service, dlq_id, claim, claimed_by, lease_until FROM bartleby.kafka_events
                 WHERE ${where} AND ${FLYING} ORDER BY service`,
      sqlite: `SELECT letter_id, service, dlq_id, claim, claimed_by, lease_until FROM kafka_events INDEXED BY kafka_in_flight
               WHERE ${where} AND ${FLYING} ORDER BY service`,
    },
    { bigints: true },
  )
const inFlightOfService = inFlight('kafka.inFlight', 'service = $1')
const inFlightOfAll = inFlight('kafka.allInFlight', "service > ''")

/** An event with its letter, both by primary key. */
const readOne = sql(
  'kafka.eventOfLetter',
  {
    postgres: `SELECT ${EVENT_COLUMNS} FROM (SELECT * FROM bartleby.kafka_events WHERE letter_id = $1 LIMIT 1) AS event
               CROSS JOIN LATERAL (SELECT * FROM bartleby.letters WHERE id = $1 LIMIT 1) AS letter`,
    sqlite: `SELECT ${EVENT_COLUMNS} FROM kafka_events AS event CROSS JOIN letters AS letter ON letter.id = event.letter_id
             WHERE event.letter_id = $1`,
  },
  { bigints: true },
)

/** The row of a service, locked until the transaction ends. */
const lockRow = sql('kafka.lockService', {
  postgres: 'SELECT service FROM bartleby.kafka_services WHERE service = $1 FOR UPDATE',
  sqlite: '',
})
const insertRow = sql('kafka.addService', {
  postgres: 'INSERT INTO bartleby.kafka_services (service) VALUES ($1) ON CONFLICT (service) DO NOTHING',
  sqlite: '',
})

interface HeadRow {
  readonly letter_id: Integer
  readonly dlq_id: string
}

interface FlyingRow extends HeadRow {
  readonly service: string
  readonly claim: string
  readonly claimed_by: string
  readonly lease_until: Integer
}

/** Whether the claim on an event in flight is over. */
export const isOver = ({ leaseUntil }: Flying, now: Instant): boolean => leaseUntil < now

/** The event of a service that is in flight; null when none is. */
export async function flyingOf(session: Session, service: string): Promise<Flying | null> {
  const [row] = await session.rows<FlyingRow>(inFlightOfService, service)
  return row === undefined ? null : toFlying(row)
}

/** What is in flight of all services. */
export async function allFlying(session: Session): Promise<Flying[]> {
  return (await session.rows<FlyingRow>(inFlightOfAll)).map(toFlying)
}

const toFlying = (row: FlyingRow): Flying => ({
  letterId: letterId(row.letter_id),
  service: row.service,
  dlqId: dlqId(row.dlq_id),
  claim: row.claim,
  claimedBy: row.claimed_by,
  leaseUntil: instant(BigInt(row.lease_until)),
})

/** The event of a letter; null when there is none. */
export async function eventOfLetter(session: Session, id: LetterId): Promise<StoredEvent | null> {
  const [row] = await session.rows<EventRow>(readOne, id)
  return row === undefined ? null : toEvent(row)
}

/** The event that a goal names, as it is at this moment. Locks nothing. */
export async function glance(session: Session, goal: Goal): Promise<StoredEvent | null> {
  if (goal.by === 'letter') return eventOfLetter(session, goal.letterId)
  const found = await headOf(session, goal)
  return found === null ? null : eventOfLetter(session, letterId(found.letter_id))
}

/** Finds what a goal names, and locks it when it is free. */
export const seek = (tx: Transaction, goal: Goal, now: Instant): Promise<Sought> =>
  goal.by === 'queue' ? seekHead(tx, goal, now) : seekLetter(tx, goal, now)

async function seekHead(tx: Transaction, goal: QueueGoal, now: Instant): Promise<Sought> {
  // Before anything is locked: services that have nothing get no row.
  if ((await headOf(tx, goal)) === null) return { found: 'none' }
  await lockService(tx, goal.service)
  for (;;) {
    const next = await headOf(tx, goal)
    if (next === null) return { found: 'none' }
    const obstacle = await flightObstacle(tx, goal.service, now)
    if (obstacle !== null) return obstacle
    if (goal.dlqId !== null && next.dlq_id !== goal.dlqId)
      return { found: 'another', head: dlqId(next.dlq_id) }
    const event = await lockEvent(tx, letterId(next.letter_id))
    // Discarded, reopened or reassigned while its lock was waited for: then something else is next.
    if (event?.service === goal.service && event.dlqId === next.dlq_id && isOpen(event)) {
      return { found: 'free', event }
    }
  }
}

async function seekLetter(tx: Transaction, { letterId: id }: LetterGoal, now: Instant): Promise<Sought> {
  const before = await eventOfLetter(tx, id)
  if (before === null) return { found: 'none' }
  await lockService(tx, before.service)
  const obstacle = await flightObstacle(tx, before.service, now)
  if (obstacle !== null) return obstacle
  const event = await lockEvent(tx, id)
  if (event === null || !isOpen(event)) return { found: 'none' }
  // Reassigned meanwhile: its new service is not locked.
  if (event.service !== before.service) return { found: 'held', by: event }
  return { found: 'free', event }
}

/** Whether it is unresolved, and nobody holds it. */
export const isOpen = ({ state }: StoredEvent): boolean =>
  state === STATE.pending || state === STATE.uncertain

async function headOf(session: Session, { service, topic }: QueueGoal): Promise<HeadRow | null> {
  // No letter has another name than these; and texts of requests may hold what stores refuse.
  if (service !== UNKNOWN && !isServiceName(service)) return null
  if (topic !== null && topic !== UNKNOWN && !isTopicName(topic)) return null
  const [row] = await (topic === null
    ? session.rows<HeadRow>(headOfService, service)
    : session.rows<HeadRow>(headOfTopic, service, topic))
  return row ?? null
}

async function flightObstacle(tx: Transaction, service: string, now: Instant): Promise<Sought | null> {
  const flying = await flyingOf(tx, service)
  if (flying === null) return null
  return isOver(flying, now) ? { found: 'lapsed', lapse: flying } : { found: 'held', by: flying }
}

/** Locks a letter until the transaction ends, and gives its event; null when there is none. */
export async function lockEvent(tx: Transaction, id: LetterId): Promise<StoredEvent | null> {
  const [, event] = await Promise.all([lockLetters(tx, [id]), eventOfLetter(tx, id)])
  return event
}

/** Locks a service until the transaction ends. */
async function lockService(tx: Transaction, service: string): Promise<void> {
  // SQLite has one writer.
  if (tx.dialect === 'sqlite' || (await tx.rows(lockRow, service)).length > 0) return
  await tx.run(insertRow, service)
  await tx.rows(lockRow, service)
}
