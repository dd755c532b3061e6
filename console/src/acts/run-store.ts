/** Runs are kept for the time of the tab, so that what was done is known after it was loaded anew. */
import { keep, kept } from '../kit/kept.ts'
import { afterReload, type Run } from './run.ts'

const KEPT_AS = 'bartleby.runs'
const MOST_KEPT = 20

/** Runs of before; those that were under way are interrupted. */
export function keptRuns(): readonly Run[] {
  try {
    // Written by `keepRuns`; what an older version wrote is another thing, and is dropped when it does not read as runs.
    const runs = JSON.parse(kept('tab', KEPT_AS) ?? '[]') as readonly Run[]
    return runs.map((run) => afterReload(run, new Date().toISOString()))
  } catch {
    return []
  }
}

/** Keeps the newest. */
export function keepRuns(runs: readonly Run[]): void {
  // Where there is no room, the runs go on all the same.
  keep('tab', KEPT_AS, JSON.stringify(runs.slice(0, MOST_KEPT)))
}
