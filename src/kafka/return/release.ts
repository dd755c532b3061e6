/** Letting go of an event that was claimed and did not leave: it is pending again, with a history row that says why. */
import { inOffice } from '../../letters/work.ts'
import { STATE } from '../event.ts'
import type { Claim } from './claim.ts'
import type { Errand } from './errand.ts'
import { letGo, lockHold } from './hold.ts'
import type { Obstacle } from './obstacle.ts'
import type { ReturnParts } from './parts.ts'
import { type Note, note } from './trail.ts'

/** What history says of an obstacle that was found before anything was sent. */
export function noteOf(obstacle: Obstacle, { caller }: Errand, dlqId: string): Note {
  const row = (operation: Note['operation'], details: object, error: string): Note => ({
    operation,
    caller,
    details: { dlq_id: dlqId, ...details },
    error,
  })
  switch (obstacle.why) {
    case 'processor_failed':
    case 'processor_timeout':
      return row('processorFailed', { timeout: obstacle.why === 'processor_timeout' }, obstacle.message)
    case 'guarded':
    case 'override_guarded':
      return row('refused', { reasons: obstacle.reasons }, obstacle.reasons.join(', '))
    default:
      return row('refused', { reasons: [obstacle.why] }, obstacle.why)
  }
}

/** Gives the event back because of an obstacle. */
export async function release(
  parts: ReturnParts,
  claim: Claim,
  errand: Errand,
  obstacle: Obstacle,
): Promise<void> {
  const { dlqId, service } = claim.event
  const row = noteOf(obstacle, errand, dlqId)
  const what = row.operation === 'processorFailed' ? 'processor_failed' : 'refused'
  await giveBack(parts, claim, row, () => parts.listener?.trouble?.(service, what))
}

/** Gives the event back after something that nobody expected. When that fails too, the lease runs out. */
export async function giveBackQuietly(parts: ReturnParts, claim: Claim): Promise<void> {
  try {
    await giveBack(parts, claim, null, () => {})
  } catch (error) {
    parts.log.warn(
      { err: error, letterId: String(claim.event.letterId) },
      'a claimed event could not be given back; it is free when its lease is over',
    )
  }
}

function giveBack(
  { db, clock }: ReturnParts,
  { event, token }: Claim,
  row: Note | null,
  tell: () => void,
): Promise<void> {
  return inOffice(db, clock, 'kafka.release', async (work) => {
    const hold = await lockHold(work.tx, event.letterId)
    if (hold === null || hold.claim !== token || hold.state !== STATE.claimed) return
    await letGo(work.tx, event.letterId, STATE.pending, hold.eventId)
    if (row !== null) await note(work, hold, row)
    work.afterCommit(tell)
  })
}
