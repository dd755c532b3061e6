/**
 * Captures that several servers make at once, on PostgreSQL: two reports of one source id wait for each other, so that
 * the second finds the first one's letter; two letters of one instance at the same moment get different times, and so
 * different row keys, without waiting. SQLite has one writer and needs none of it.
 *
 * The locks are the transaction's and end with it.
 */
import { type Instant, later } from '../core/clock.ts'
import { sql, type Transaction } from '../db/database.ts'
import { type FailureReport, freeKeyTime } from './capture.ts'

const waitFor = sql('letters.waitForTwin', {
  postgres: 'SELECT pg_advisory_xact_lock(hashtextextended($1, 1853))',
  sqlite: '',
})

const tryTake = sql('letters.takeKeyTime', {
  postgres: 'SELECT pg_try_advisory_xact_lock(hashtextextended($1, 1853)) AS taken',
  sqlite: '',
})

/** Waits until nobody else is about to file this report; gives the time for its row key, at or after `now`. */
export async function reserve(
  tx: Transaction,
  { engine, sourceId, instanceId }: FailureReport,
  now: Instant,
): Promise<Instant> {
  if (tx.dialect === 'sqlite') return now
  await tx.run(waitFor, JSON.stringify(['source', engine, sourceId]))
  for (let at = now; ; at = later(at, 1n)) {
    at = await freeKeyTime(tx, engine, instanceId, at)
    const [row] = await tx.rows<{ taken: boolean }>(
      tryTake,
      JSON.stringify(['key', engine, instanceId, `${at}`]),
    )
    // Looked at again: whoever had it before may have filed a letter under it meanwhile.
    if (row?.taken === true && (await freeKeyTime(tx, engine, instanceId, at)) === at) return at
  }
}
