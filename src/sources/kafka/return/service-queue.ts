/**
 * The queue of a service, as those see it who take an event out: what is next, and who is in the way. The event is found and locked
 * within the transaction that takes it: "next" is never read first and taken later. First the row of the service is locked, which
 * every call that takes an event of the service does, then the letter.
 */
import type { Instant } from '../../../core/clock.ts'
import { Semaphore } from '../../../core/semaphore.ts'
import { type LetterId, letterId } from '../../../letters/letter.ts'
import { lockLetters } from '../../../letters/locked.ts'
import { type Session, sql, type Transaction } from '../../../store/database.ts'
import { at, type RowOf, rowShape, text } from '../../../store/row.ts'
import { dlqId, STATE } from '../event.ts'
import {
  canHaveLetters,
  earlierOpenSameKey,
  eventOfLetter,
  ORDER,
  type StoredEvent,
} from '../stored-event.ts'
import type { Obstacle, OneLetter, QueueHead, Target } from './terms.ts'

/** The first of a queue. */
const HEAD = rowShape({ letterId, dlqId })

/** An event in flight, and who has it for how long. */
const IN_FLIGHT = rowShape({ letterId, service: text, dlqId, claim: text, claimedBy: text, leaseUntil: at })
export type InFlight = RowOf<typeof IN_FLIGHT>

type Named = Pick<InFlight, 'letterId' | 'service' | 'dlqId'>

/** Somebody is in the way, and another attempt may do. */
export type Again =
  /** An event of the service is in flight. */
  | { readonly again: 'held'; readonly by: Named }
  /** One is said to be in flight, by somebody who is gone. */
  | { readonly again: 'lapsed'; readonly by: InFlight }
  /** What was claimed was taken away: it died again meanwhile. */
  | { readonly again: 'lost'; readonly by: Named }

/** The first of a queue that is unresolved: one row of the index of the queue. */
const head = (name: string, index: string, where: string, order: string) =>
  sql(
    name,
    `SELECT ${HEAD.columns} FROM bartleby.kafka_events INDEXED BY ${index}
     WHERE ${where} AND state < ${STATE.published} ORDER BY ${order} LIMIT 1`,
    { bigints: true },
  )
const headOfService = head('kafka.headOfService', 'kafka_queue', 'service = $1', `service, ${ORDER}`)
const headOfTopic = head(
  'kafka.headOfTopic',
  'kafka_queue_of_topic',
  'service = $1 AND original_topic = $2',
  `service, original_topic, ${ORDER}`,
)

/** What is in flight, on kafka_in_flight: one of each service at most. */
const inFlight = (name: string, where: string) =>
  sql(
    name,
    `SELECT ${IN_FLIGHT.columns} FROM bartleby.kafka_events INDEXED BY kafka_in_flight
     WHERE ${where} AND state IN (${STATE.claimed}, ${STATE.publishing}) ORDER BY service`,
    { bigints: true },
  )
const inFlightOfService = inFlight('kafka.inFlight', 'service = $1')
const inFlightOfAll = inFlight('kafka.allInFlight', "service > ''")

/** The row of a service, locked until the transaction ends. */
const lockRow = sql(
  'kafka.lockService',
  'SELECT service FROM bartleby.kafka_services WHERE service = $1 FOR UPDATE',
)
const insertRow = sql(
  'kafka.addService',
  'INSERT INTO bartleby.kafka_services (service) VALUES ($1) ON CONFLICT (service) DO NOTHING',
)

/** Whether the claim on an event in flight is over. */
export const isOver = ({ leaseUntil }: InFlight, now: Instant): boolean => leaseUntil < now

/** The event of a service that is in flight; null when none is. */
export async function inFlightOf(session: Session, service: string): Promise<InFlight | null> {
  const [row] = await session.rows<object>(inFlightOfService, service)
  return row === undefined ? null : IN_FLIGHT.read(row)
}

export async function allInFlight(session: Session): Promise<InFlight[]> {
  return (await session.rows<object>(inFlightOfAll)).map(IN_FLIGHT.read)
}

/** The event that is the target at this moment. Locks nothing. */
export async function peek(session: Session, target: Target): Promise<StoredEvent | Obstacle> {
  const head = target.by === 'queue' ? await headOf(session, target) : null
  const id = target.by === 'letter' ? target.letterId : (head?.letterId ?? null)
  const event = id === null ? null : await eventOfLetter(session, id)
  if (event === null) return EMPTY
  return isNext(target, event.dlqId) ? event : { why: 'not_next', expected: event.dlqId }
}

const EMPTY: Obstacle = { why: 'empty' }

const isNext = (target: Target, head: string): boolean =>
  target.by === 'letter' || target.dlqId === null || target.dlqId.toLowerCase() === head

/** Finds the target; when nobody has it, its service and its letter are locked until the transaction ends. */
export const locate = (
  tx: Transaction,
  target: Target,
  now: Instant,
): Promise<StoredEvent | Obstacle | Again> =>
  target.by === 'queue' ? locateHead(tx, target, now) : locateLetter(tx, target, now)

async function locateHead(
  tx: Transaction,
  target: QueueHead,
  now: Instant,
): Promise<StoredEvent | Obstacle | Again> {
  const { service } = target
  // Before anything is locked: services that have nothing get no row.
  if ((await headOf(tx, target)) === null) return EMPTY
  await lockService(tx, service)
  for (;;) {
    const next = await headOf(tx, target)
    if (next === null) return EMPTY
    const busy = await inTheWay(tx, service, now)
    if (busy !== null) return busy
    if (!isNext(target, next.dlqId)) return { why: 'not_next', expected: next.dlqId }
    const event = await lockEvent(tx, next.letterId)
    // Discarded, reopened or reassigned while its lock was waited for: then something else is next.
    if (event?.service === service && event.dlqId === next.dlqId && isOpen(event)) return event
  }
}

async function locateLetter(
  tx: Transaction,
  target: OneLetter,
  now: Instant,
): Promise<StoredEvent | Obstacle | Again> {
  const { letterId: id } = target
  const before = await eventOfLetter(tx, id)
  if (before === null) return EMPTY
  await lockService(tx, before.service)
  const busy = await inTheWay(tx, before.service, now)
  if (busy !== null) return busy
  const event = await lockEvent(tx, id)
  if (event === null || !isOpen(event)) return EMPTY
  // Reassigned meanwhile: its new service is not locked.
  return event.service === before.service ? event : { again: 'held', by: event }
}

/** Who names a letter may take it out of its turn, but not before an older one with the same key. */
export async function outOfTurn(
  session: Session,
  target: Target,
  event: StoredEvent,
): Promise<Obstacle | null> {
  const before = target.by === 'letter' ? await earlierOpenSameKey(session, event) : null
  if (before === null) return null
  return { why: 'earlier_same_key', before: (await eventOfLetter(session, before))?.rowKey ?? '' }
}

/** Whether it is unresolved, and nobody holds it. */
export const isOpen = ({ state }: StoredEvent): boolean =>
  state === STATE.pending || state === STATE.uncertain

async function headOf(session: Session, { service, topic }: QueueHead): Promise<RowOf<typeof HEAD> | null> {
  if (!canHaveLetters(service, topic)) return null
  const [row] = await (topic === null
    ? session.rows<object>(headOfService, service)
    : session.rows<object>(headOfTopic, service, topic))
  return row === undefined ? null : HEAD.read(row)
}

/** Whoever has an event of the service in flight; null when nobody does. */
export async function inTheWay(tx: Transaction, service: string, now: Instant): Promise<Again | null> {
  const by = await inFlightOf(tx, service)
  return by === null ? null : { again: isOver(by, now) ? 'lapsed' : 'held', by }
}

/** Locks a letter until the transaction ends, and gives its event; null when there is none. */
export async function lockEvent(tx: Transaction, id: LetterId): Promise<StoredEvent | null> {
  const [, event] = await Promise.all([lockLetters(tx, [id]), eventOfLetter(tx, id)])
  return event
}

/** Locks a service until the transaction ends. */
async function lockService(tx: Transaction, service: string): Promise<void> {
  if ((await tx.rows(lockRow, service)).length > 0) return
  await tx.run(insertRow, service)
  await tx.rows(lockRow, service)
}

interface Line {
  readonly turns: Semaphore
  /** How many calls have the turn or wait for it. */
  calls: number
}

/** The calls of this process on one service, one after the other, in the order in which they came. Each waits only so long. */
export class ServiceQueues {
  readonly #lines = new Map<string, Line>()

  /** Acts when it is its turn; rejects with the signal's reason when that is aborted before. */
  async inTurn<T>(service: string, deadline: AbortSignal, act: () => Promise<T>): Promise<T> {
    const line = this.#lines.get(service) ?? { turns: new Semaphore(1), calls: 0 }
    this.#lines.set(service, line)
    line.calls += 1
    try {
      await line.turns.take(deadline)
      try {
        return await act()
      } finally {
        line.turns.giveBack()
      }
    } finally {
      line.calls -= 1
      if (line.calls === 0) this.#lines.delete(service)
    }
  }
}
