/** complete: leased items are done and leave the store; letters of a dead queue are resolved. */

import { type HistoryEntry, recordHistory } from '../history/record.ts'
import { closeCasesOf } from '../letters/confirm.ts'
import type { LetterId } from '../letters/letter.ts'
import { type CompleteAsk, type Cycle, insistOn, type Job } from './cycle.ts'
import { resolveFromDeadQueue } from './dead-queue.ts'
import type { Run } from './queue.ts'
import type { Partition } from './records.ts'
import { succeededRun } from './run-record.ts'
import { SHELF } from './schema.ts'
import { removeLeased } from './sql/remove.ts'

/**
 * Removes the items of all requests, one statement per partition. Requests are all or nothing, so one bad id
 * throws `Mismatch`: rolling back is cheaper, over all requests, than locking every item to look first.
 */
export async function complete(cycle: Cycle, jobs: readonly Job<CompleteAsk, void>[]): Promise<void> {
  for (const [partition, mine] of Map.groupBy(jobs, ({ ask }) => cycle.partition(ask.partition))) {
    // Ascending: servers that meet on the same rows lock them in the same order.
    const serials = mine.flatMap(({ ask }) => ask.serials).sort((a, b) => a - b)
    const runs = new Map(mine.flatMap(({ ask }) => [...(ask.runs ?? [])]))
    await completeIn(cycle, partition, serials, runs)
  }
  for (const job of jobs) cycle.afterCommit(job.resolve)
}

async function completeIn(
  cycle: Cycle,
  partition: Partition,
  serials: readonly number[],
  runs: ReadonlyMap<number, Run>,
): Promise<void> {
  const records = new Map([...runs].map(([serial, run]) => [serial, succeededRun(run, cycle.now)]))
  let items = serials
  if (partition.holdsLetters) {
    const letters = await resolveFromDeadQueue(cycle, partition, serials, {
      act: 'complete',
      by: null,
      runs: records,
      leasedOnly: true,
      shelves: [SHELF.queue],
    })
    cycle.changes.add(partition.part, letters.change)
    items = serials.filter((serial) => !letters.serials.has(serial))
    for (const serial of letters.serials) records.delete(serial)
    if (items.length === 0) return
  }
  const { count, change, cases } = await removeLeased(cycle.tx, partition.part, items)
  insistOn(items.length, count)
  cycle.changes.add(partition.part, change)
  await recordOutcomes(cycle, records, cases)
}

/** History of the runs, and the end of the items' cases. */
async function recordOutcomes(
  cycle: Cycle,
  records: ReadonlyMap<number, HistoryEntry>,
  cases: ReadonlyMap<number, LetterId>,
): Promise<void> {
  const plain: HistoryEntry[] = []
  const ofCases = new Map<LetterId, HistoryEntry>()
  for (const [serial, entry] of records) {
    const caseId = cases.get(serial)
    if (caseId === undefined) plain.push(entry)
    else ofCases.set(caseId, entry)
  }
  if (plain.length > 0) await recordHistory(cycle.tx, plain)
  if (cases.size > 0) await closeCasesOf(cycle, [...cases.values()].sort(ascending), ofCases)
}

const ascending = (a: bigint, b: bigint): number => (a < b ? -1 : 1)
