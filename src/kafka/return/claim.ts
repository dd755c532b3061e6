/**
 * Who holds an event, and since which publish. Whoever changes it has locked the letter: the event's row is never changed without,
 * so what was read behind the lock stays true until the transaction ends.
 */
import { type Instant, instant } from '../../core/clock.ts'
import { type Integer, sql, type Transaction } from '../../db/database.ts'
import type { LetterId } from '../../letters/letter.ts'
import { markHeld } from '../../letters/lying/lease.ts'
import { lockLetters } from '../../letters/reopen.ts'
import { type EventId, eventId, STATE, type State } from '../event.ts'

export interface Hold {
  readonly letterId: LetterId
  readonly service: string
  readonly originalTopic: string
  readonly state: State
  /** The token of the claim that it is under; null when it is free. */
  readonly claim: string | null
  readonly claimedBy: string | null
  readonly leaseUntil: Instant | null
  readonly eventId: EventId | null
  /** How history names the letter. */
  readonly correlationId: string
  readonly instanceId: string
}

/** An event and its letter, both by primary key. */
const readHold = sql(
  'kafka.hold',
  {
    postgres: `SELECT event.service, event.original_topic, event.state, event.claim, event.claimed_by, event.lease_until,
        event.event_id, letter.correlation_id, letter.source_id
      FROM (SELECT * FROM bartleby.kafka_events WHERE letter_id = $1 LIMIT 1) AS event
      CROSS JOIN LATERAL (SELECT correlation_id, source_id FROM bartleby.letters WHERE id = $1 LIMIT 1) AS letter`,
    sqlite: `SELECT event.service, event.original_topic, event.state, event.claim, event.claimed_by, event.lease_until,
        event.event_id, letter.correlation_id, letter.source_id
      FROM kafka_events AS event CROSS JOIN letters AS letter ON letter.id = event.letter_id WHERE event.letter_id = $1`,
  },
  { bigints: true },
)

/** One row by primary key. */
const writeHold = sql(
  'kafka.putHold',
  `UPDATE bartleby.kafka_events SET state = $2, event_id = $3, claim = $4, claimed_by = $5, lease_until = $6
   WHERE letter_id = $1`,
)

interface HoldRow {
  readonly service: string
  readonly original_topic: string
  readonly state: Integer
  readonly claim: string | null
  readonly claimed_by: string | null
  readonly lease_until: Integer | null
  readonly event_id: string | null
  readonly correlation_id: string | null
  readonly source_id: string
}

/** Locks a letter until the transaction ends, and tells who holds its event; null when there is none. */
export async function lockHold(tx: Transaction, letterId: LetterId): Promise<Hold | null> {
  // By a statement of its own: one that waited for the lock would not see what was committed meanwhile.
  const [, [row]] = await Promise.all([lockLetters(tx, [letterId]), tx.rows<HoldRow>(readHold, letterId)])
  if (row === undefined) return null
  return {
    letterId,
    service: row.service,
    originalTopic: row.original_topic,
    // The store keeps nothing else.
    state: Number(row.state) as State,
    claim: row.claim,
    claimedBy: row.claimed_by,
    leaseUntil: row.lease_until === null ? null : instant(BigInt(row.lease_until)),
    eventId: row.event_id === null ? null : eventId(row.event_id),
    correlationId: row.correlation_id ?? row.source_id,
    instanceId: row.source_id,
  }
}

/** What is to be written of it. */
export interface NewHold {
  readonly state: State
  readonly eventId: EventId | null
  readonly claim: string | null
  readonly claimedBy: string | null
  readonly leaseUntil: Instant | null
}

const isHeld = (state: State): boolean => state === STATE.claimed || state === STATE.publishing

/** Writes who holds the event of a locked letter. */
export async function putHold(tx: Transaction, letterId: LetterId, hold: NewHold): Promise<void> {
  const { state, claim, claimedBy, leaseUntil } = hold
  await Promise.all([
    tx.run(writeHold, letterId, state, hold.eventId, claim, claimedBy, leaseUntil),
    markHeld(tx, letterId, isHeld(state)),
  ])
}

/** Lets go of the event of a locked letter: it is in this state now. */
export const letGo = (
  tx: Transaction,
  letterId: LetterId,
  state: State,
  eventId: EventId | null,
): Promise<void> => putHold(tx, letterId, { state, eventId, claim: null, claimedBy: null, leaseUntil: null })
