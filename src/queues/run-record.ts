/** A worker's run as a row of history, in texts that both stores take. */
import type { Instant } from '../core/clock.ts'
import type { HistoryEntry } from '../history/record.ts'
import { MAX_MESSAGE_BYTES, storable } from '../letters/death-note.ts'
import type { FailedRun, Run } from './queue.ts'

/** What names a run is looked up by an index, whose keys cannot be long. */
const MAX_NAME_BYTES = 512

/** The run with names that can be stored; the texts of its error are cut and cleaned where they are written. */
export const storableRun = <R extends Run>(run: R): R => ({
  ...run,
  instanceId: storable(run.instanceId, MAX_NAME_BYTES),
  correlationId: storable(run.correlationId, MAX_NAME_BYTES),
  actor: storable(run.actor, MAX_NAME_BYTES),
})

/** The row of a run that ended well. */
export const succeededRun = (run: Run, at: Instant): HistoryEntry => ({
  ...run,
  status: 'Succeeded',
  createdAt: at,
})

/** The row of a run that failed, unless it is that of a death. */
export const failedRun = (run: FailedRun, at: Instant): HistoryEntry => ({
  ...run,
  status: 'Failed',
  createdAt: at,
  error: storable(run.errorMessage, MAX_MESSAGE_BYTES),
})
