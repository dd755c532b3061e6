/** Taking an event for a while: it is claimed, under a token of its own, until a lease runs out. Whoever lost it can do nothing to it. */
import { type Instant, later } from '../../core/clock.ts'
import { said } from '../../core/content.ts'
import type { Transaction } from '../../db/database.ts'
import { type Caller, type EventId, STATE, type StoredEvent } from '../event.ts'
import { putHold } from './hold.ts'
import { leaseUs, type ReturnParts } from './parts.ts'

/** An event in somebody's hands. */
export interface Claim {
  readonly event: StoredEvent
  readonly caller: Caller
  /** Of this claim alone. */
  readonly token: string
}

/** Writes a claim on an event whose letter is locked. */
export const putClaimed = (tx: Transaction, now: Instant, claim: Claim, parts: ReturnParts): Promise<void> =>
  putHold(tx, claim.event.letterId, {
    ...heldBy(now, claim, parts),
    state: STATE.claimed,
    eventId: claim.event.eventId,
  })

/** Writes that what is under a claim is being published under this id; the lease begins anew. */
export const putPublishing = (
  tx: Transaction,
  now: Instant,
  claim: Claim,
  eventId: EventId,
  parts: ReturnParts,
): Promise<void> =>
  putHold(tx, claim.event.letterId, { ...heldBy(now, claim, parts), state: STATE.publishing, eventId })

const heldBy = (now: Instant, { token, caller }: Claim, { settings, instance }: ReturnParts) => ({
  claim: token,
  claimedBy: `${said(caller.actor)}${on(instance)}`,
  leaseUntil: later(now, leaseUs(settings)),
})

const on = (instance: string): string => ` on ${instance}`

/** Whether it was this server that claimed it. */
export const isClaimOf = (claimedBy: string, instance: string): boolean => claimedBy.endsWith(on(instance))
