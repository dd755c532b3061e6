/** History of what was tried on an event and changed no letter: every row has who asked for it, and in which request. */

import { said, storable } from '../../core/content.ts'
import { recordHistory } from '../../history/record.ts'
import type { OfficeWork } from '../../letters/work.ts'
import { type Caller, KAFKA, KAFKA_OPERATIONS } from '../event.ts'
import type { Hold } from './hold.ts'

const MAX_ERROR_BYTES = 4_096

/** What a row tells beside its names. */
export interface Note {
  readonly operation: keyof typeof KAFKA_OPERATIONS
  readonly caller: Caller
  readonly details: object
  /** What went wrong; null when nothing did. */
  readonly error: string | null
}

/** Adds a row about the letter of this event. */
export async function note(
  work: OfficeWork,
  hold: Hold,
  { operation, caller, details, error }: Note,
): Promise<void> {
  await recordHistory(work.tx, [
    {
      engine: KAFKA,
      operation: KAFKA_OPERATIONS[operation],
      status: error === null ? 'Succeeded' : 'Failed',
      instanceId: hold.instanceId === hold.correlationId ? null : hold.instanceId,
      correlationId: hold.correlationId,
      createdAt: work.now,
      durationMs: 0,
      letterId: hold.letterId,
      actor: said(caller.actor),
      error: error === null ? null : storable(error, MAX_ERROR_BYTES),
      output: Buffer.from(JSON.stringify(told(caller, details))),
    },
  ])
}

/** What a row of this module has as its output. */
export const told = ({ requestId }: Caller, details: object): object => ({
  request_id: requestId,
  ...details,
})
