/** Keys for the rows of a PostgreSQL table, and the step that gives them. */
import { type Layout, quotedColumns, typed } from '../../layout.ts'
import { type Filling, fillingOf, fillRows, lackingOf } from '../fill.ts'
import type { Step } from '../plan.ts'
import type { AdoptSettings, Findings } from '../report.ts'
import type { AdoptSession } from './session.ts'

/** Lets replicas and vacuum keep up, and readers that wait for no row see free ones. */
const PAUSE_MS = 20

/**
 * Fills one chunk: locks the first rows behind the last id that need it and that nobody holds, and fills those. One
 * statement, one transaction; it walks the index of the ids, so that all chunks together read the table once.
 */
export function chunkStatement(layout: Layout, first: boolean): string {
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

/** The step that gives keys; in a table whose columns are still missing, every row needs one. */
export function backfillStep(
  session: AdoptSession,
  layout: Layout,
  settings: AdoptSettings,
  findings: Findings,
): Step {
  const { idempotencyKey } = quotedColumns(layout)
  const count = async (which: string): Promise<number> => {
    const [row] = await session.run(`SELECT count(*) AS rows FROM ${layout.sqlTable} WHERE ${which}`, [])
    return Number(row?.rows)
  }
  const filling: Filling<string> = {
    lacking: () => count(lackingOf(layout)),
    keysMissing: () => count(`${idempotencyKey} IS NULL`),
    holders: () => session.holdersOf(layout.sqlTable),
    pauseMs: () => PAUSE_MS,
    async fill(after) {
      const [row] = await session.runWith(
        BY_INDEX,
        chunkStatement(layout, after === null),
        after === null ? [settings.chunk] : [settings.chunk, after],
      )
      return {
        rows: Number(row?.rows),
        keys: Number(row?.keys),
        last: row?.last == null ? null : String(row.last),
      }
    },
  }
  return {
    what: `give keys to rows without one, ${settings.chunk} at a time, until none is left`,
    sql: `-- $1: ${settings.chunk}, the rows of a chunk; $2: the last id of the chunk before\n${chunkStatement(layout, false)};`,
    async needed() {
      const [row] = await session.run(
        `SELECT true AS some FROM ${layout.sqlTable} WHERE ${await lackingNow(session, layout)} LIMIT 1`,
        [],
      )
      return row !== undefined
    },
    async run() {
      await fillRows(filling, settings, findings)
      return 'done'
    },
  }
}

/** What needs filling in the table as it is at this moment: a dry run meets it without its new columns. */
async function lackingNow(session: AdoptSession, layout: Layout): Promise<string> {
  const [row] = await session.run(
    `SELECT count(*) AS there FROM pg_attribute
     WHERE attrelid = to_regclass($1) AND attname = ANY($2::text[]) AND NOT attisdropped`,
    [layout.sqlTable, [layout.columns.idempotencyKey, layout.columns.processedAt]],
  )
  return Number(row?.there) === 2 ? lackingOf(layout) : 'true'
}
