/**
 * One attempt to send an event back, whoever asked for it. Nobody waits here.
 *
 *   claim ──► prepare ──► intend ──► publish ──► settle
 *     │          ├──► discard     a durable mark     └──► published, pending again, or uncertain
 *     │          └──► release                        ▲
 *     └──► what is uncertain is sent again as it was ┘
 */
import { randomUUID } from 'node:crypto'
import { inOffice } from '../../letters/work.ts'
import { STATE } from '../event.ts'
import { type Claim, discardEvent, hold, lockHold, note, noteOf, release } from './claim.ts'
import { type Ended, prepare, prepareAgain, type Ready } from './prepare.ts'
import { intend, intendAgain, publish } from './publish.ts'
import { type Again, locate, outOfTurn } from './service-queue.ts'
import type { Obstacle, ReturnParts, Target, Terms } from './terms.ts'

/** Makes an attempt. `live` has the token of its claim meanwhile. */
export async function attempt(
  parts: ReturnParts,
  live: Set<string>,
  target: Target,
  terms: Terms,
): Promise<Ended | Again> {
  const token = randomUUID()
  live.add(token)
  try {
    const taken = await take(parts, token, target, terms)
    if (!('claim' in taken)) return taken
    const { claim, again } = taken
    return again === null ? await proceed(parts, claim) : await send(parts, claim, again, true)
  } finally {
    live.delete(token)
  }
}

/** A claimed event; `again` is on file to be sent once more. */
interface Taken {
  readonly claim: Claim
  readonly again: Ready | null
}

/** Claims the target. */
function take(
  parts: ReturnParts,
  token: string,
  target: Target,
  terms: Terms,
): Promise<Taken | Obstacle | Again> {
  return inOffice(parts.db, parts.clock, 'kafka.claim', async (work): Promise<Taken | Obstacle | Again> => {
    const { tx, now } = work
    const event = await locate(tx, target, now)
    if (!('letterId' in event)) return event
    const { letterId, service, dlqId, eventId } = event
    const claim: Claim = { event, token, terms }
    if (event.state !== STATE.uncertain) {
      const obstacle = await outOfTurn(tx, target, event)
      if (obstacle !== null) return obstacle
      await hold(work, claim, parts, { state: STATE.claimed, eventId })
      return { claim, again: null }
    }
    const again = await prepareAgain(parts, tx, event, terms)
    if (!('why' in again)) {
      await intendAgain(parts, work, { claim, ...again, isResend: true })
      return { claim, again }
    }
    if (again.why === 'guarded') {
      const held = await lockHold(tx, letterId)
      if (held !== null) await note(work, held, noteOf(again, terms.caller, dlqId))
      work.afterCommit(() => parts.listener?.trouble?.(service, 'refused'))
    }
    return again
  })
}

/** What a claimed event becomes. */
async function proceed(parts: ReturnParts, claim: Claim): Promise<Ended | Again> {
  const { event, terms } = claim
  const prepared = await prepare(parts, event, terms).catch(async (error: unknown) => {
    await release(parts, claim, null).catch((second: unknown) =>
      parts.log.warn(
        { err: second, letterId: String(event.letterId) },
        'a claimed event could not be given back; it is free when its lease is over',
      ),
    )
    throw error
  })
  if ('why' in prepared) {
    await release(parts, claim, prepared)
    return prepared
  }
  const isOurs =
    prepared.outcome === 'discarded'
      ? await discardClaimed(parts, claim, prepared.reason)
      : await intend(parts, { claim, ...prepared, isResend: false })
  if (!isOurs) return { again: 'lost', by: event }
  return prepared.outcome === 'discarded' ? prepared : send(parts, claim, prepared, false)
}

/** Sends what is on file. */
async function send(parts: ReturnParts, claim: Claim, ready: Ready, isResend: boolean): Promise<Ended> {
  const obstacle = await publish(parts, { claim, ...ready, isResend })
  return obstacle ?? { outcome: 'published', event: claim.event, ...ready }
}

/** False when the claim is gone. */
function discardClaimed(
  parts: ReturnParts,
  { event, token, terms: { caller } }: Claim,
  reason: string | null,
): Promise<boolean> {
  return inOffice(parts.db, parts.clock, 'kafka.discard', async (work) => {
    const held = await lockHold(work.tx, event.letterId)
    if (held?.claim !== token) return false
    await discardEvent(parts, work, event, 'processor', caller, reason)
    return true
  })
}
