/**
 * Who holds an event. Each claim has its own token and a lease; whoever lost it can do nothing to the event. Whoever changes the row of an
 * event has locked its letter.
 */
import { later } from '../../../core/clock.ts'
import { storable, storableText } from '../../../core/content.ts'
import { recordHistory } from '../../../history/record.ts'
import { change } from '../../../letters/change.ts'
import { markHeld } from '../../../letters/in-dead-queue/move.ts'
import { type LetterId, letterId } from '../../../letters/letter.ts'
import { lockLetters } from '../../../letters/locked.ts'
import { inOffice, type OfficeWork } from '../../../letters/work.ts'
import { sql, type Transaction } from '../../../store/database.ts'
import { at, integer, orNull, type RowOf, rowShape, text } from '../../../store/row.ts'
import {
  type Caller,
  type EventId,
  eventId,
  KAFKA,
  KAFKA_OPERATIONS,
  STATE,
  type State,
  stateOf,
} from '../event.ts'
import type { StoredEvent } from '../stored-event.ts'
import { leaseUs, type Obstacle, type ReturnParts, type Terms } from './terms.ts'

export interface Claim {
  readonly event: StoredEvent
  readonly token: string
  readonly terms: Terms
}

const CLAIM = rowShape({
  letterId,
  service: text,
  state: stateOf,
  /** Null when it is free. */
  claim: orNull(text),
  claimedBy: orNull(text),
  leaseUntil: orNull(at),
  eventId: orNull(eventId),
  /** How history names the letter, unless by its source id. */
  correlationId: orNull(text),
  sourceId: text,
  /** The redrive that it left for last. */
  redrive: orNull(integer),
})
export type ClaimOnFile = RowOf<typeof CLAIM>

/** Both by primary key. */
const readClaim = sql(
  'kafka.claimOnFile',
  `SELECT event.letter_id, event.service, event.state, event.claim, event.claimed_by, event.lease_until, event.event_id,
     letter.correlation_id, letter.source_id, letter.redrive
   FROM bartleby.kafka_events AS event JOIN bartleby.letters AS letter ON letter.id = event.letter_id
   WHERE event.letter_id = $1`,
  { bigints: true },
)

/** By primary key. */
const writeClaim = sql(
  'kafka.putClaim',
  `UPDATE bartleby.kafka_events SET state = $2, event_id = $3, claim = $4, claimed_by = $5, lease_until = $6
   WHERE letter_id = $1`,
)

/** Locks a letter until the transaction ends. Null when it has no event. */
export async function lockClaim(tx: Transaction, letterId: LetterId): Promise<ClaimOnFile | null> {
  // Its own statement: one that waited for the lock would not see what was committed meanwhile.
  const [, claim] = await Promise.all([lockLetters(tx, [letterId]), CLAIM.one(tx, readClaim, letterId)])
  return claim
}

/** Claims the event of a locked letter, or renews the claim's lease. */
export const claimEvent = (
  { tx, now }: OfficeWork,
  { event: { letterId }, token, terms: { caller } }: Claim,
  { settings, instance }: ReturnParts,
  at: { readonly state: State; readonly eventId: EventId | null },
): Promise<unknown> =>
  Promise.all([
    tx.run(
      writeClaim,
      letterId,
      at.state,
      at.eventId,
      token,
      `${storableText(caller.actor)}${on(instance)}`,
      later(now, leaseUs(settings)),
    ),
    markHeld(tx, letterId, true),
  ])

/** Ends the claim on the event of a locked letter. */
export const letGo = (
  tx: Transaction,
  letterId: LetterId,
  state: State,
  eventId: EventId | null,
): Promise<unknown> =>
  Promise.all([tx.run(writeClaim, letterId, state, eventId, null, null, null), markHeld(tx, letterId, false)])

const on = (instance: string): string => ` on ${instance}`

export const isClaimOf = (claimedBy: string, instance: string): boolean => claimedBy.endsWith(on(instance))

/** Gives back a claimed event that did not leave. `obstacle` is null after an unexpected error. */
export function release(
  { db, clock, listener }: ReturnParts,
  { event, token, terms: { caller } }: Claim,
  obstacle: Obstacle | null,
): Promise<void> {
  return inOffice(db, clock, 'kafka.release', async (work) => {
    const held = await lockClaim(work.tx, event.letterId)
    if (held?.claim !== token || held.state !== STATE.claimed) return
    await letGo(work.tx, event.letterId, STATE.pending, held.eventId)
    if (obstacle === null) return
    const row = noteOf(obstacle, caller, event.dlqId)
    await note(work, held, row)
    const what = row.operation === 'processorFailed' ? 'processor_failed' : 'refused'
    work.afterCommit(() => listener?.trouble?.(event.service, what))
  })
}

/** For an event whose letter is locked and that nobody else holds. */
export async function discardEvent(
  { listener }: ReturnParts,
  work: OfficeWork,
  { letterId, dlqId, eventId, service, originalTopic, state }: StoredEvent,
  by: 'operator' | 'processor',
  caller: Caller,
  reason: string | null = null,
): Promise<void> {
  // The id of an uncertain publish stays: its record may come back.
  await letGo(work.tx, letterId, STATE.discarded, eventId)
  const details = outputOf(caller, { dlq_id: dlqId, by })
  const plain = by === 'processor' ? 'Discarded by its processor' : 'Discarded'
  await change(work, 'discard', [{ id: letterId, engine: KAFKA, details }], {
    actor: caller.actor,
    notes: state === STATE.uncertain ? 'assumed published' : (reason ?? plain),
  })
  work.afterCommit(() => listener?.resolved?.(service, originalTopic, `discarded_${by}`))
}

const MAX_ERROR_BYTES = 4_096

/** History of an attempt that changed no letter. */
interface Note {
  readonly operation: keyof typeof KAFKA_OPERATIONS
  readonly caller: Caller
  readonly details: object
  readonly error: string | null
}

export async function note(
  { tx, now }: OfficeWork,
  { letterId, sourceId, correlationId }: ClaimOnFile,
  { operation, caller, details, error }: Note,
): Promise<void> {
  await recordHistory(tx, [
    {
      engine: KAFKA,
      operation: KAFKA_OPERATIONS[operation],
      status: error === null ? 'Succeeded' : 'Failed',
      instanceId: correlationId === null || correlationId === sourceId ? null : sourceId,
      correlationId: correlationId ?? sourceId,
      createdAt: now,
      durationMs: 0,
      letterId,
      actor: storableText(caller.actor),
      error: error === null ? null : storable(error, MAX_ERROR_BYTES),
      output: Buffer.from(JSON.stringify(outputOf(caller, details))),
    },
  ])
}

export const outputOf = ({ requestId }: Caller, details: object): object => ({
  request_id: requestId,
  ...details,
})

/** An obstacle that was met before anything was sent. */
export function noteOf(obstacle: Obstacle, caller: Caller, dlqId: string): Note {
  switch (obstacle.why) {
    case 'processor_failed':
    case 'processor_timeout': {
      const details = { dlq_id: dlqId, timeout: obstacle.why === 'processor_timeout' }
      return { operation: 'processorFailed', caller, details, error: obstacle.message }
    }
    default: {
      const reasons = 'reasons' in obstacle ? obstacle.reasons : [obstacle.why]
      const details = { dlq_id: dlqId, reasons }
      return { operation: 'refused', caller, details, error: reasons.join(', ') }
    }
  }
}
