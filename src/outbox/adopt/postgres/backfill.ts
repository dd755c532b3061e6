/** Keys for the rows of a PostgreSQL table. */
import { type Layout, quotedColumns, typed } from '../../layout.ts'
import { type Filling, fillingOf, lackingOf } from '../fill.ts'
import type { AdoptSettings } from '../report.ts'
import type { AdoptSession } from './session.ts'

/** Lets replicas and vacuum keep up, and readers that wait for no row see free ones. */
const PAUSE_MS = 20

/**
 * Fills one chunk: locks the first rows behind the last id that need it and that nobody holds, and fills those. One
 * statement, one transaction; it walks the index of the ids, so that all chunks together read the table once.
 */
function chunkStatement(layout: Layout, first: boolean): string {
  const { id, idempotencyKey } = quotedColumns(layout)
  const behind = first ? '' : ` AND ${id} > ${typed(layout, 'id', '$2')}`
  return `WITH chosen AS MATERIALIZED (
  SELECT ${id} AS chosen_id, ${idempotencyKey} IS NULL AS keyless FROM ${layout.sqlTable}
  WHERE ${lackingOf(layout)}${behind} ORDER BY ${id} LIMIT $1 FOR UPDATE SKIP LOCKED
), filled AS (
  UPDATE ${layout.sqlTable} AS message SET ${fillingOf(layout, 'message.')}
  FROM chosen WHERE message.${id} = chosen_id RETURNING keyless
)
SELECT count(*) AS rows, count(*) FILTER (WHERE keyless) AS keys,
  (SELECT chosen_id::text FROM chosen ORDER BY chosen_id DESC LIMIT 1) AS last FROM filled`
}

/** With stale statistics the planner would rather sort the whole table for every chunk; what is off costs so much that JIT compiled each. */
const BY_INDEX = `SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off; SET LOCAL enable_sort = off;
  SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off; SET LOCAL jit = off`

export const postgresFilling = (
  session: AdoptSession,
  layout: Layout,
  { chunk }: AdoptSettings,
): Filling<string> => ({
  sql: `-- $1: ${chunk}, the rows of a chunk; $2: the last id of the chunk before\n${chunkStatement(layout, false)};`,
  holders: () => session.holdersOf(layout.sqlTable),
  pauseMs: () => PAUSE_MS,
  async fill(after) {
    const isFirst = after === null
    const parameters = isFirst ? [chunk] : [chunk, after]
    const [row] = await session.runWith(BY_INDEX, chunkStatement(layout, isFirst), parameters)
    const last = row?.last == null ? null : String(row.last)
    return { rows: Number(row?.rows), keys: Number(row?.keys), last }
  },
})
