/** Closing an event without sending it, by an operator or by its processor. */
import { lockLetter } from '../../letters/detail.ts'
import { transition } from '../../letters/transition.ts'
import type { OfficeWork } from '../../letters/work.ts'
import { type Caller, KAFKA_OPERATIONS, STATE, type StoredEvent } from '../event.ts'
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
  const { tx, now } = work
  const { letterId, dlqId, eventId, service, originalTopic } = event
  const { by, caller } = discard
  const letter = await lockLetter(tx, letterId)
  if (letter === null) throw new Error(`letter ${letterId} is gone although it was locked`)
  // The id of a publish that nobody knows the end of stays: its record may come back.
  await letGo(tx, letterId, STATE.discarded, eventId)
  const notes = notesOf(event, discard)
  await transition(
    work,
    letter,
    {
      status: 'Resolved',
      resolution: 'discard',
      resolvedAt: now,
      resolvedBy: caller.actor,
      notes,
      sentAs: null,
      sentTo: null,
    },
    {
      act: 'discard',
      operation: KAFKA_OPERATIONS.discarded,
      actor: caller.actor,
      notes,
      output: told(caller, { dlq_id: dlqId, by }),
    },
  )
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
