/** Taking history out that is past its time: the oldest first, one bounded batch at a time. */
import type { Instant } from '../core/clock.ts'
import { type Integer, type Statement, sql, type Transaction } from '../db/database.ts'

/**
 * The oldest rows before `$1`, on the primary key (SQLite: the index of their time). `$3` skips the range in which
 * earlier batches left dead rows.
 */
const removeRows = sql(
  'history.remove',
  {
    postgres: `DELETE FROM bartleby.history WHERE ctid = ANY(ARRAY(SELECT ctid FROM bartleby.history
                 WHERE created_at < $1 AND created_at >= $3 ORDER BY created_at, id LIMIT $2)) RETURNING created_at`,
    sqlite: `DELETE FROM history WHERE id IN (SELECT id FROM history INDEXED BY history_newest
               WHERE created_at < $1 AND created_at >= $3 ORDER BY created_at LIMIT $2) RETURNING created_at`,
  },
  { bigints: true },
)

/** The same of the source ids, on the index of their time. */
const removeSources = sql(
  'history.removeSources',
  {
    postgres: `DELETE FROM bartleby.history_sources WHERE ctid = ANY(ARRAY(SELECT ctid FROM bartleby.history_sources
                 WHERE created_at < $1 AND created_at >= $3 ORDER BY created_at LIMIT $2)) RETURNING created_at`,
    sqlite: `DELETE FROM history_sources WHERE (engine, source_id) IN (
               SELECT engine, source_id FROM history_sources INDEXED BY history_sources_created
               WHERE created_at < $1 AND created_at >= $3 ORDER BY created_at LIMIT $2) RETURNING created_at`,
  },
  { bigints: true },
)

/** Where the first batch starts. */
export const FROM_THE_OLDEST = -(2n ** 63n)

export interface RemovedHistory {
  readonly removed: number
  /** Where the next batch starts; null when there is none. */
  readonly next: bigint | null
}

/** Removes at most `limit` rows that were recorded before `before`. */
export const removeHistory = (
  tx: Transaction,
  before: Instant,
  from: bigint,
  limit: number,
): Promise<RemovedHistory> => removeBatch(tx, removeRows, before, from, limit)

/** Forgets at most `limit` source ids of that age; gives where the next batch starts, null when there is none. */
export const forgetSources = async (
  tx: Transaction,
  before: Instant,
  from: bigint,
  limit: number,
): Promise<bigint | null> => (await removeBatch(tx, removeSources, before, from, limit)).next

async function removeBatch(
  tx: Transaction,
  statement: Statement,
  before: Instant,
  from: bigint,
  limit: number,
): Promise<RemovedHistory> {
  const rows = await tx.rows<{ created_at: Integer }>(statement, before, limit, from)
  const newest = rows.reduce(
    (max, row) => (BigInt(row.created_at) > max ? BigInt(row.created_at) : max),
    from,
  )
  return { removed: rows.length, next: rows.length < limit ? null : newest }
}
