/**
 * The cases of live items: the first failure that a worker records opens one, and the item carries its number from
 * then on, whatever its id is.
 */
import { sql, type Transaction } from '../db/database.ts'
import { recordHistory } from '../history/record.ts'
import { allocateLetterId } from '../letters/capture.ts'
import { type CaseFailure, fileCaseFailures } from '../letters/confirm.ts'
import type { LetterId } from '../letters/letter.ts'
import type { Cycle } from './cycle.ts'
import { describeGiven } from './death-notes.ts'
import type { FailedRun, GivenError } from './queue.ts'
import { failedRun } from './run-record.ts'
import type { ItemFacts } from './sql/inspect.ts'

/** By primary key of one partition, whatever shelf the item lies on. */
const writeCase = sql('items.assignCase', {
  postgres: `UPDATE bartleby.items SET case_id = $3 WHERE part = $1 AND shelf = ANY('{0,1}') AND id = $2`,
  sqlite: 'UPDATE items SET case_id = $3 WHERE part = $1 AND id = $2',
})

/** Gives an item the number of its case; null takes it away. */
export async function assignCase(
  tx: Transaction,
  part: number,
  serial: number,
  caseId: LetterId | null,
): Promise<void> {
  await tx.run(writeCase, part, serial, caseId)
}

/** The words for a failure whose consumer left some of them out. */
const GIVEN_BACK = { errorClass: 'GivenBack', errorMessage: 'a consumer gave it back' }

/**
 * Files the failures of items that live on in their cases, and runs in history too; `serial` is where each lies now. A
 * letter that goes back to its dead queue has no case but its own: what a worker there met is in history only.
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
  const failures: CaseFailure[] = []
  for (const { item, run, error, serial } of failed) {
    if (item.isLetter || (run === null && error === null)) continue
    const caseId: LetterId = item.caseId ?? (await allocateLetterId(cycle.tx))
    if (item.caseId === null) await assignCase(cycle.tx, part, serial, caseId)
    const unnamed = { ...describeGiven(error, GIVEN_BACK), failedBy: null, correlationId: null }
    failures.push({ ...(run === null ? unnamed : { ...run, failedBy: run.actor }), caseId })
  }
  await fileCaseFailures(cycle, failures)
  await recordHistory(
    cycle.tx,
    failed.flatMap(({ run }) => (run === null ? [] : failedRun(run, cycle.now))),
  )
}
