/** Removal of old history: oldest first, one bounded batch at a time. */
import type { Instant } from '../core/clock.ts'
import { type Integer, type Statement, sql, type Transaction, type Value } from '../store/database.ts'
import { readOperationKinds } from './entry.ts'

/**
 * The oldest rows before `$1`, by primary key: up to `$2` per operation kind, then of all. `$3` skips dead rows of earlier batches. SQLite
 * reads kind by kind. PostgreSQL gets the kinds as a list: before ANALYZE it expects a thousand in their table, which costs enough for JIT.
 */
const removeRows = sql(
  'history.remove',
  {
    postgres: `
      DELETE FROM bartleby.history WHERE ctid = ANY(ARRAY(
        SELECT oldest.place FROM unnest($4::int[]) AS each (id) CROSS JOIN LATERAL (
          SELECT ctid AS place, created_at, id FROM bartleby.history
          WHERE (series, created_at) >= (each.id, $3) AND (series, created_at) < (each.id, $1)
          ORDER BY series, created_at, id LIMIT $2
        ) AS oldest ORDER BY oldest.created_at, oldest.id LIMIT $2
      )) RETURNING created_at`,
  },
  { bigints: true },
)
const readOldest = sql(
  'history.oldest',
  {
    sqlite: `SELECT id, created_at FROM history INDEXED BY history_in_series
             WHERE series = $4 AND created_at < $1 AND created_at >= $3 ORDER BY created_at, id LIMIT $2`,
  },
  { bigints: true },
)
const removeByIds = sql('history.removeByIds', {
  sqlite: 'DELETE FROM history WHERE id IN (SELECT value FROM json_each($1))',
})

/** On the index of their time. */
const removeSources = sql(
  'history.removeSources',
  `DELETE FROM bartleby.history_sources WHERE (engine, source_id) IN (
     SELECT engine, source_id FROM bartleby.history_sources INDEXED BY history_sources_created
     WHERE created_at < $1 AND created_at >= $3 ORDER BY created_at LIMIT (SELECT $2::bigint)) RETURNING created_at`,
  { bigints: true },
)

export const FROM_THE_OLDEST = -(2n ** 63n)

export interface RemovedHistory {
  readonly removed: number
  /** null: no more. */
  readonly next: bigint | null
}

/** Removes at most `limit` rows before `before`, the oldest of all. */
export async function removeHistory(
  tx: Transaction,
  before: Instant,
  from: bigint,
  limit: number,
): Promise<RemovedHistory> {
  const all = [...(await readOperationKinds(tx)).keys()]
  if (tx.dialect === 'postgres') return removeBatch(tx, removeRows, before, from, limit, all)
  const due: { readonly id: Integer; readonly created_at: Integer }[] = []
  for (const series of all) {
    due.push(...(await tx.rows<(typeof due)[number]>(readOldest, before, limit, from, series)))
  }
  due.sort((a, b) => (BigInt(a.created_at) < BigInt(b.created_at) ? -1 : 1))
  const oldest = due.slice(0, limit)
  await tx.run(removeByIds, `[${oldest.map(({ id }) => id).join(',')}]`)
  return batchOf(oldest, from, limit)
}

/** Removes at most `limit` source ids; returns where the next batch starts. */
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
  ...series: readonly Value[]
): Promise<RemovedHistory> {
  return batchOf(
    await tx.rows<{ created_at: Integer }>(statement, before, limit, from, ...series),
    from,
    limit,
  )
}

function batchOf(rows: readonly { created_at: Integer }[], from: bigint, limit: number): RemovedHistory {
  const newest = rows.reduce(
    (max, row) => (BigInt(row.created_at) > max ? BigInt(row.created_at) : max),
    from,
  )
  return { removed: rows.length, next: rows.length < limit ? null : newest }
}
