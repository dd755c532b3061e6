/** Keeping claims: which of them are suspect, and which last longer. */
import type { Instant } from '../../core/clock.ts'
import type { Database } from '../../db/database.ts'
import {
  dueBounds,
  dueOf,
  type Layout,
  layoutStatement,
  listType,
  pendingOf,
  quotedColumns,
  timeFrom,
} from '../layout.ts'
import { idList } from './by-id.ts'

/** Of the rows that are due again so many are looked at: those before a suspect are delivered, and it comes into reach. */
const SUSPECT_REACH = 1_000

/** Whether a suspect row is due: a look at the first that are due again, on the index of what is due. */
export function suspicionsOf(layout: Layout) {
  const c = quotedColumns(layout)
  const due = dueOf(layout)
  const { always } = dueBounds[layout.dialect]
  const statement = layoutStatement(
    layout,
    'suspects',
    `SELECT 1 AS found FROM (SELECT ${c.claimCount} AS claims FROM ${layout.sqlTable} WHERE ${pendingOf(layout)} AND ${due} > ${always}
       AND ${due} <= ${timeFrom(layout, 'claimedUntil', '$1')} ORDER BY ${due}, ${c.createdAt}, ${c.id} LIMIT ${SUSPECT_REACH}) AS first
     WHERE claims >= $2 LIMIT 1`,
  )
  return async (db: Database, now: Instant, suspectFrom: number): Promise<boolean> =>
    (await db.session('outbox.suspects', (session) => session.rows(statement, now, suspectFrom))).length > 0
}

/** Claims that are still needed last longer; gives the ids that are still ours. By primary key. */
export function renewalsOf(layout: Layout) {
  const c = quotedColumns(layout)
  const ours = `${c.claimedBy} = $2 AND ${c.processedAt} IS NULL`
  const statement = layoutStatement(layout, 'renew', {
    postgres: `UPDATE ${layout.sqlTable} SET ${c.claimedUntil} = ${timeFrom(layout, 'claimedUntil', '$3')}
      WHERE ${c.id} = ANY($1::text[]::${listType(layout, 'id')}) AND ${ours} RETURNING ${c.id}::text AS id`,
    sqlite: `UPDATE ${layout.sqlTable} SET ${c.claimedUntil} = $3
      WHERE ${c.id} IN (SELECT value FROM json_each($1)) AND ${ours} RETURNING CAST(${c.id} AS TEXT) AS id`,
  })
  return async (
    db: Database,
    ids: readonly string[],
    claimedBy: string,
    until: Instant,
  ): Promise<Set<string>> => {
    const rows = await db.transaction('outbox.renew', (tx) =>
      tx.rows<{ id: string }>(statement, idList(layout, ids), claimedBy, until),
    )
    return new Set(rows.map(({ id }) => id))
  }
}
