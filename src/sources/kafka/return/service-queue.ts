/**
 * The queue of a service: what is next, and who is in the way. An event is found and locked in the transaction that takes it. Lock order:
 * the row of the service, which every taker locks, then the letter.
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

const HEAD = rowShape({ letterId, dlqId })

const IN_FLIGHT = rowShape({ letterId, service: text, dlqId, claim: text, claimedBy: text, leaseUntil: at })
export type InFlight = RowOf<typeof IN_FLIGHT>

type Named = Pick<InFlight, 'letterId' | 'service' | 'dlqId'>

/** Somebody is in the way; another attempt may do. */
export type Again =
  /** An event of the service is in flight. */
  | { readonly again: 'held'; readonly by: Named }
  /** Its holder is gone. */
  | { readonly again: 'lapsed'; readonly by: InFlight }
  /** The claimed event died again meanwhile. */
  | { readonly again: 'lost'; readonly by: Named }

/** One row of the queue's index. */
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

/** On kafka_in_flight: at most one of each service. */
const inFlight = (name: string, where: string) =>
  sql(
    name,
    `SELECT ${IN_FLIGHT.columns} FROM bartleby.kafka_events INDEXED BY kafka_in_flight
     WHERE ${where} AND state IN (${STATE.claimed}, ${STATE.publishing}) ORDER BY service`,
    { bigints: true },
  )
const inFlightOfService = inFlight('kafka.inFlight', 'service = $1')
const inFlightOfAll = inFlight('kafka.allInFlight', "service > ''")

const lockRow = sql(
  'kafka.lockService',
  'SELECT service FROM bartleby.kafka_services WHERE service = $1 FOR UPDATE',
)
const insertRow = sql(
  'kafka.addService',
  'INSERT INTO bartleby.kafka_services (service) VALUES ($1) ON CONFLICT (service) DO NOTHING',
)

export const isOver = ({ leaseUntil }: InFlight, now: Instant): boolean => leaseUntil < now

export const inFlightOf = (session: Session, service: string): Promise<InFlight | null> =>
  IN_FLIGHT.one(session, inFlightOfService, service)

export const allInFlight = (session: Session): Promise<InFlight[]> => IN_FLIGHT.all(session, inFlightOfAll)

/** Locks nothing. */
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

/** Locks service and letter until the transaction ends, unless somebody holds an event. */
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
  // Before any lock: a service without events gets no row.
  if ((await headOf(tx, target)) === null) return EMPTY
  await lockService(tx, service)
  for (;;) {
    const next = await headOf(tx, target)
    if (next === null) return EMPTY
    const busy = await inTheWay(tx, service, now)
    if (busy !== null) return busy
    if (!isNext(target, next.dlqId)) return { why: 'not_next', expected: next.dlqId }
    const event = await lockEvent(tx, next.letterId)
    // Discarded, reopened or reassigned while we waited for its lock: something else is next.
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

/** A letter may be taken out of its turn, but not before an older one with the same key. */
export async function outOfTurn(
  session: Session,
  target: Target,
  event: StoredEvent,
): Promise<Obstacle | null> {
  const before = target.by === 'letter' ? await earlierOpenSameKey(session, event) : null
  if (before === null) return null
  return { why: 'earlier_same_key', before: (await eventOfLetter(session, before))?.rowKey ?? '' }
}

/** Unresolved, and held by nobody. */
export const isOpen = ({ state }: StoredEvent): boolean =>
  state === STATE.pending || state === STATE.uncertain

async function headOf(session: Session, { service, topic }: QueueHead): Promise<RowOf<typeof HEAD> | null> {
  if (!canHaveLetters(service, topic)) return null
  return topic === null
    ? HEAD.one(session, headOfService, service)
    : HEAD.one(session, headOfTopic, service, topic)
}

export async function inTheWay(tx: Transaction, service: string, now: Instant): Promise<Again | null> {
  const by = await inFlightOf(tx, service)
  return by === null ? null : { again: isOver(by, now) ? 'lapsed' : 'held', by }
}

/** Locks the letter until the transaction ends. */
export async function lockEvent(tx: Transaction, id: LetterId): Promise<StoredEvent | null> {
  const [, event] = await Promise.all([lockLetters(tx, [id]), eventOfLetter(tx, id)])
  return event
}

async function lockService(tx: Transaction, service: string): Promise<void> {
  if ((await tx.rows(lockRow, service)).length > 0) return
  await tx.run(insertRow, service)
  await tx.rows(lockRow, service)
}

interface Line {
  readonly turns: Semaphore
  /** Calls that have the turn or wait for it. */
  calls: number
}

/** Calls of this process on one service, in the order in which they came. */
export class ServiceQueues {
  readonly #lines = new Map<string, Line>()

  /** Rejects with the signal's reason when that comes first. */
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
