/** One try to send an event back: claim, processor, guard, intent, publish, settle. Nobody waits here. */
import { randomUUID } from 'node:crypto'
import { inOffice } from '../../letters/work.ts'
import { type EventId, type OutgoingRecord, STATE, type StoredEvent, type Warning } from '../event.ts'
import { earlierOpenSameKey } from '../later-same-key.ts'
import { type Claim, putClaimed } from './claim.ts'
import { discardEvent } from './discard.ts'
import type { Errand, Goal } from './errand.ts'
import { type Flight, fly, intend } from './flight.ts'
import { lockHold } from './hold.ts'
import type { Obstacle } from './obstacle.ts'
import type { ReturnParts } from './parts.ts'
import { type Prepared, prepare, withLater } from './prepare.ts'
import { giveBackQuietly, release } from './release.ts'
import { claimAgain } from './resend.ts'
import { eventOfLetter, type Flying, seek } from './seek.ts'

/** What one try gave: it is done, whatever came of it, or somebody was in the way and another try may do. */
type Again =
  /** An event of the service is in flight. */
  | { readonly outcome: 'held'; readonly by: Pick<Flying, 'service' | 'dlqId'> }
  /** One is said to be in flight, by somebody who is gone. */
  | { readonly outcome: 'lapsed'; readonly lapse: Flying }
  /** What was claimed was taken away: it died again meanwhile. */
  | { readonly outcome: 'lost'; readonly from: Pick<Flying, 'service' | 'dlqId'> }

export type Tried<T> = { readonly outcome: 'done'; readonly result: T } | Again

/** Needs no other try. */
export const done = <T>(result: T): Tried<T> => ({ outcome: 'done', result })

/** How an errand ended. */
export type Ended =
  | {
      readonly outcome: 'published'
      readonly event: StoredEvent
      readonly eventId: EventId
      readonly record: OutgoingRecord
      readonly warnings: readonly Warning[]
    }
  | {
      readonly outcome: 'discarded'
      readonly event: StoredEvent
      readonly reason: string | null
      readonly warnings: readonly Warning[]
    }
  | { readonly outcome: 'stopped'; readonly obstacle: Obstacle }

/** It ended because of this. */
export const stopped = (obstacle: Obstacle): Ended => ({ outcome: 'stopped', obstacle })

/** Tries it once. `live` has the token of its claim while it is tried. */
export async function attempt(
  parts: ReturnParts,
  live: Set<string>,
  goal: Goal,
  errand: Errand,
): Promise<Tried<Ended>> {
  const token = randomUUID()
  live.add(token)
  try {
    const taken = await take(parts, token, goal, errand)
    if ('outcome' in taken) return taken
    if ('flight' in taken) {
      const { flight, hasLater } = taken
      return await arrive(parts, flight, errand, withLater(flight.claim.event.facts.warnings, hasLater))
    }
    return await proceed(parts, taken.claim, errand)
  } finally {
    live.delete(token)
  }
}

/** Claims what the goal names; what is to be sent again is in flight then. */
type Taken =
  | Tried<Ended>
  | { readonly claim: Claim }
  | { readonly flight: Flight; readonly hasLater: boolean }

function take(parts: ReturnParts, token: string, goal: Goal, errand: Errand): Promise<Taken> {
  return inOffice(parts.db, parts.clock, 'kafka.claim', async (work): Promise<Taken> => {
    const { tx, now } = work
    const sought = await seek(tx, goal, now)
    switch (sought.found) {
      case 'none':
        return done(stopped({ why: 'empty' }))
      case 'another':
        return done(stopped({ why: 'not_next', expected: sought.head }))
      case 'held':
        return { outcome: 'held', by: sought.by }
      case 'lapsed':
        return { outcome: 'lapsed', lapse: sought.lapse }
      case 'free':
    }
    const claim: Claim = { event: sought.event, caller: errand.caller, token }
    if (claim.event.state === STATE.uncertain) {
      const again = await claimAgain(parts, work, claim, errand)
      return 'why' in again ? done(stopped(again)) : again
    }
    // Who names a letter may take it out of its turn, but not before an older one with the same key.
    const before = goal.by === 'letter' ? await earlierOpenSameKey(tx, claim.event) : null
    if (before !== null) {
      const rowKey = (await eventOfLetter(tx, before))?.rowKey ?? ''
      return done(stopped({ why: 'earlier_same_key', before: rowKey }))
    }
    await putClaimed(tx, now, claim, parts)
    return { claim }
  })
}

/** What a claimed event becomes. */
async function proceed(parts: ReturnParts, claim: Claim, errand: Errand): Promise<Tried<Ended>> {
  const prepared = await preparedOrBack(parts, claim, errand)
  const { event } = claim
  switch (prepared.outcome) {
    case 'refused':
      await release(parts, claim, errand, prepared.obstacle)
      return done(stopped(prepared.obstacle))
    case 'discard': {
      const { reason, warnings } = prepared
      const isDone = await discardClaimed(parts, claim, errand, reason)
      if (!isDone) return { outcome: 'lost', from: event }
      return done({ outcome: 'discarded', event, reason, warnings })
    }
    case 'publish': {
      const { eventId, record, warnings } = prepared
      const flight = { claim, eventId, record, isResend: false }
      if (!(await intend(parts, flight, errand))) return { outcome: 'lost', from: event }
      return arrive(parts, flight, errand, warnings)
    }
  }
}

async function preparedOrBack(parts: ReturnParts, claim: Claim, errand: Errand): Promise<Prepared> {
  try {
    return await prepare(parts, claim.event, errand)
  } catch (error) {
    await giveBackQuietly(parts, claim)
    throw error
  }
}

async function arrive(
  parts: ReturnParts,
  flight: Flight,
  errand: Errand,
  warnings: readonly Warning[],
): Promise<Tried<Ended>> {
  const obstacle = await fly(parts, flight, errand)
  if (obstacle !== null) return done(stopped(obstacle))
  const { claim, eventId, record } = flight
  return done({ outcome: 'published', event: claim.event, eventId, record, warnings })
}

/** False when the claim is gone. */
function discardClaimed(
  parts: ReturnParts,
  { event, token }: Claim,
  { caller }: Errand,
  reason: string | null,
): Promise<boolean> {
  return inOffice(parts.db, parts.clock, 'kafka.discard', async (work) => {
    const hold = await lockHold(work.tx, event.letterId)
    if (hold?.claim !== token) return false
    await discardEvent(parts, work, event, { by: 'processor', caller, reason })
    return true
  })
}
