/** What `bartleby verify` finds wrong, for tests that leave a store behind. */
import type { Database } from '../../src/store/database.ts'
import { openDatabase } from '../../src/store/open.ts'
import {
  type VerifyOptions,
  type VerifyReport,
  type Violation,
  verifyStore,
} from '../../src/verify/verify.ts'

/** Verifies the store at `url`. */
export async function verifyAt(url: string): Promise<VerifyReport> {
  const db = openDatabase(url, { poolSize: 1 })
  try {
    return await verifyStore(db)
  } finally {
    await db.close()
  }
}

/** Everything that is wrong with a store: one that is open, or the one at a URL. */
export async function violationsIn(
  store: Database | string,
  options: VerifyOptions = {},
): Promise<readonly Violation[]> {
  const report = typeof store === 'string' ? await verifyAt(store) : await verifyStore(store, options)
  return report.invariants.flatMap(({ violations }) => violations)
}
