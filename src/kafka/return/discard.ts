/** Closing an event without sending it, by an operator or by its processor. */
import { change } from '../../letters/change.ts'
import type { OfficeWork } from '../../letters/work.ts'
import { type Caller, KAFKA, STATE, type StoredEvent } from '../event.ts'
import { letGo } from './hold.ts'
import type { ReturnParts } from './parts.ts'
import { told } from './trail.ts'

export interface Discard {
  readonly by: 'operator' | 'processor'
  readonly caller: Caller
  /** What the processor gave; null when it gave none. */
  readonly reason: string | null
}

/** Discards an event whose letter is locked, and that nobody else holds. */
export async function discardEvent(
  parts: ReturnParts,
  work: OfficeWork,
  event: StoredEvent,
  discard: Discard,
): Promise<void> {
  const { letterId, dlqId, eventId, service, originalTopic } = event
  const { by, caller } = discard
  // The id of a publish that nobody knows the end of stays: its record may come back.
  await letGo(work.tx, letterId, STATE.discarded, eventId)
  const details = told(caller, { dlq_id: dlqId, by })
  await change(work, 'discard', [{ id: letterId, engine: KAFKA, details }], {
    actor: caller.actor,
    notes: notesOf(event, discard),
  })
  work.afterCommit(() =>
    parts.listener?.resolved?.(
      service,
      originalTopic,
      by === 'operator' ? 'discarded_operator' : 'discarded_processor',
    ),
  )
}

function notesOf({ state }: StoredEvent, { by, reason }: Discard): string {
  if (state === STATE.uncertain) return 'assumed published'
  return reason ?? (by === 'processor' ? 'Discarded by its processor' : 'Discarded')
}
