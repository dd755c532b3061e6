/** complete: leased items are done and leave the store. */
import type { Cycle } from './cycle.ts'
import type { CompleteAsk, Job } from './jobs.ts'
import { insistOn } from './mismatch.ts'
import { removeLeased } from './sql/remove.ts'

/**
 * Removes the items of all requests, one statement per partition. Requests are all or nothing, so one bad id
 * throws `Mismatch`: rolling back is cheaper, over all requests, than locking every item to look first.
 */
export async function complete(cycle: Cycle, jobs: readonly Job<CompleteAsk, void>[]): Promise<void> {
  const byPart = new Map<number, number[]>()
  for (const { ask } of jobs) {
    const serials = byPart.get(ask.partition.part)
    if (serials === undefined) byPart.set(ask.partition.part, [...ask.serials])
    else serials.push(...ask.serials)
  }
  for (const [part, serials] of byPart) {
    // Ascending: servers that meet on the same rows lock them in the same order.
    serials.sort((a, b) => a - b)
    const { count, change } = await removeLeased(cycle.tx, part, serials)
    insistOn(serials.length, count)
    cycle.changes.add(part, change)
  }
  for (const job of jobs) cycle.afterCommit(job.resolve)
}
