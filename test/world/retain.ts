/** A round of retention on a store without an office. */
import type { Clock } from '../../src/core/clock.ts'
import { silentLog } from '../../src/core/log.ts'
import { type Removed, Retention, type RetentionOptions } from '../../src/letters/retention/retention.ts'
import { officeRuns } from '../../src/letters/work.ts'
import type { Database } from '../../src/store/database.ts'

export async function retain(
  { db, clock }: { readonly db: Database; readonly clock: Clock },
  options: Omit<RetentionOptions, 'log'>,
): Promise<Removed> {
  const runs = officeRuns(db, clock, silentLog)
  try {
    return await new Retention(runs, { ...options, log: silentLog }).runNow()
  } finally {
    await runs.stop()
  }
}
