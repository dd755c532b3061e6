/**
 * Runs of workers over live items, as rows of history, and the cases of items. The first failure a worker records opens a case; the item
 * carries its number from then on, whatever its id becomes.
 */
import type { Instant } from '../../core/clock.ts'
import { MAX_MESSAGE_BYTES, storable } from '../../core/content.ts'
import { serialFromId } from '../../core/ksuid.ts'
import { type HistoryEntry, recordHistory } from '../../history/record.ts'
import { allocateLetterIds } from '../../letters/capture.ts'
import { type CaseFailure, fileCaseFailures } from '../../letters/confirm.ts'
import type { LetterId } from '../../letters/letter.ts'
import { sql, type Transaction } from '../../store/database.ts'
import { runGiven } from '../../store/idioms.ts'
import type { Cycle } from '../cycles/cycle.ts'
import type { FailedRun, GivenError, Run } from '../queue.ts'
import type { Partition } from '../records.ts'
import { SHELF } from '../schema.ts'
import type { ItemFacts } from '../sql/inspect.ts'
import { describeGiven } from './bury.ts'

/** By primary key of one partition, on any leasable shelf. */
const writeCases = sql(
  'items.assignCases',
  `UPDATE bartleby.items AS item SET case_id = given.case_id
   WHERE item.part = $3 AND item.shelf IN (${SHELF.queue}, ${SHELF.scheduled}) AND item.id = ANY($1::bigint[])`,
  { under: ['item.id', 'case_id'] },
)

/** The case of an item; null takes it away. */
export interface Assignment {
  readonly serial: number
  readonly caseId: LetterId | null
}

export async function assignCases(
  tx: Transaction,
  part: number,
  assignments: readonly Assignment[],
): Promise<void> {
  const rows = assignments.map(({ serial, caseId }) => ({ id: serial, case_id: caseId }))
  await runGiven(tx, writeCases, rows, part)
}

/** Words for a failure whose consumer gave none. */
const GIVEN_BACK = { errorClass: 'GivenBack', errorMessage: 'a consumer gave it back' }

/**
 * Files failures of items that live on: in their cases, and as runs in history. `serial` is where the item is now. A letter that goes back
 * to its dead queue has no case but its own, so its runs are in history only.
 */
export async function fileRuns(
  cycle: Cycle,
  part: number,
  failed: readonly {
    readonly item: ItemFacts
    readonly run: FailedRun | null
    readonly error: GivenError | null
    readonly serial: number
  }[],
): Promise<void> {
  const withReason = failed.filter(
    ({ item, run, error }) => !item.isLetter && (run !== null || error !== null),
  )
  const unopened = withReason.filter(({ item }) => item.caseId === null)
  const numbers = await allocateLetterIds(cycle.tx, unopened.length)
  const opened = new Map(unopened.map(({ serial }, i) => [serial, numbers[i] ?? null]))
  await assignCases(
    cycle.tx,
    part,
    [...opened].map(([serial, caseId]) => ({ serial, caseId })),
  )
  const failures = withReason.flatMap(({ item, run, error, serial }): CaseFailure[] => {
    const caseId = item.caseId ?? opened.get(serial) ?? null
    const unnamed = { ...describeGiven(error, GIVEN_BACK), failedBy: null, correlationId: null }
    return caseId === null ? [] : [{ ...(run === null ? unnamed : { ...run, failedBy: run.actor }), caseId }]
  })
  await fileCaseFailures(cycle, failures)
  await recordHistory(
    cycle.tx,
    failed.flatMap(({ run }) => (run === null ? [] : failedRun(run, cycle.now))),
  )
}

/** Names of runs are index keys, which cannot be long. */
const MAX_NAME_BYTES = 512

/** The run with storable names; error texts are cut and cleaned where they are written. */
export const storableRun = <R extends Run>(run: R): R => ({
  ...run,
  instanceId: storable(run.instanceId, MAX_NAME_BYTES),
  correlationId: storable(run.correlationId, MAX_NAME_BYTES),
  actor: storable(run.actor, MAX_NAME_BYTES),
})

export const runsBySerial = (
  partition: Partition,
  runs: ReadonlyMap<string, Run>,
): ReadonlyMap<number, Run> =>
  new Map(
    [...runs].flatMap(([id, run]) => {
      const serial = serialFromId(partition.idPrefix, id)
      return serial === null ? [] : [[serial, storableRun(run)] as const]
    }),
  )

/** A failed run as a row of history, unless it is the row of a death. */
export const failedRun = (run: FailedRun, at: Instant): HistoryEntry => ({
  ...run,
  status: 'Failed',
  createdAt: at,
  error: storable(run.errorMessage, MAX_MESSAGE_BYTES),
})

export const succeededRun = (run: Run, at: Instant): HistoryEntry => ({
  ...run,
  status: 'Succeeded',
  createdAt: at,
})
