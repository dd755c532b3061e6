/** Sending once more what may have arrived: under the same id and in the same bytes, so that consumers can drop the copy. */
import type { Session } from '../../db/database.ts'
import type { OfficeWork } from '../../letters/work.ts'
import type { EventId, OutgoingRecord, Reason, StoredEvent } from '../event.ts'
import { hasLaterSameKey } from '../later-same-key.ts'
import { serviceNamed } from '../settings.ts'
import { type Claim, putPublishing } from './claim.ts'
import type { Errand } from './errand.ts'
import type { Flight } from './flight.ts'
import { guard } from './guard.ts'
import { lockHold } from './hold.ts'
import type { Obstacle } from './obstacle.ts'
import type { ReturnParts } from './parts.ts'
import { withoutService } from './prepare.ts'
import { noteOf } from './release.ts'
import { noteResend, sentRecord } from './sends.ts'
import { note } from './trail.ts'

/** What would be sent again. */
export interface Rerun {
  readonly eventId: EventId
  readonly record: OutgoingRecord
  readonly hasLater: boolean
}

/** The record of an uncertain event, as it was sent; or what is in the way of sending it again. */
export async function rerunOf(
  parts: ReturnParts,
  session: Session,
  event: StoredEvent,
  errand: Errand,
): Promise<Rerun | Obstacle> {
  const { dlqId, eventId } = event
  if (eventId === null) throw new Error(`letter ${event.letterId} is uncertain, and nothing was sent`)
  // Nobody shall believe that an override was used.
  if (!errand.resend || errand.override !== null) return { why: 'uncertain', dlqId, eventId }
  const record = await sentRecord(session, event, eventId)
  const hasLater = await hasLaterSameKey(session, event)
  const reasons = reasonsOf(parts, event, record, hasLater)
  return reasons.length > 0 ? { why: 'guarded', event, reasons } : { eventId, record, hasLater }
}

function reasonsOf(
  { settings }: ReturnParts,
  event: StoredEvent,
  record: OutgoingRecord,
  hasLater: boolean,
): readonly Reason[] {
  const service = serviceNamed(settings, event.service)
  if (service === null) return withoutService(event)
  const reasons = guard(record, service, settings)
  if (reasons.length > 0) return reasons
  return hasLater && settings.onLaterSameKey === 'refuse' ? ['later_same_key'] : []
}

/** Claims an uncertain event, whose letter is locked, to send it again; or says what is in the way. */
export async function claimAgain(
  parts: ReturnParts,
  work: OfficeWork,
  claim: Claim,
  errand: Errand,
): Promise<{ readonly flight: Flight; readonly hasLater: boolean } | Obstacle> {
  const { tx, now } = work
  const { event } = claim
  const { letterId, dlqId } = event
  const rerun = await rerunOf(parts, tx, event, errand)
  const hold = await lockHold(tx, letterId)
  if (hold === null) throw new Error(`letter ${letterId} is gone although it was locked`)
  if ('why' in rerun) {
    if (rerun.why === 'guarded') {
      await note(work, hold, noteOf(rerun, errand, dlqId))
      work.afterCommit(() => parts.listener?.trouble?.(event.service, 'refused'))
    }
    return rerun
  }
  const { eventId, record, hasLater } = rerun
  await noteResend(tx, eventId)
  await putPublishing(tx, now, claim, eventId, parts)
  const { caller } = errand
  const details = { dlq_id: dlqId, event_id: eventId, topic: record.topic }
  await note(work, hold, { operation: 'resent', caller, details, error: null })
  return { flight: { claim, eventId, record, isResend: true }, hasLater }
}
