/**
 * Settling: what came of the deliveries is written down, many at a time, where the claim is still ours. A row that
 * somebody else has settled in the meantime is left as it is.
 */
import type { Instant } from '../../core/clock.ts'
import type { Session } from '../../db/database.ts'
import {
  dueBounds,
  type Layout,
  layoutStatement,
  listType,
  quotedColumns,
  timeFrom,
  typed,
} from '../layout.ts'
import type { Settlement } from '../message.ts'
import { idList, isNull } from './by-id.ts'
import { dueAgain } from './line.ts'

export interface Settled {
  /** The ids of the rows that were written; the others are no longer this dispatcher's. */
  readonly written: ReadonlySet<string>
  /** Of some of them the office has to be told. */
  readonly letterDue: boolean
}

/** Writes settlements of rows that `claimedBy` holds. */
export type Settle = (
  session: Session,
  settlements: readonly Settlement[],
  claimedBy: string,
  now: Instant,
) => Promise<Settled>

/** The settlements of one table. */
export function settlementsOf(layout: Layout): Settle {
  const processed = processedOf(layout)
  const others = othersOf(layout)
  return async (session, settlements, claimedBy, now) => {
    const done = settlements.filter(({ kind }) => kind === 'processed').map(({ id }) => id)
    const rest = settlements.filter(({ kind }) => kind !== 'processed')
    const rows = [
      ...(done.length > 0 ? await processed(session, done, claimedBy, now) : []),
      ...(rest.length > 0 ? await others(session, rest, claimedBy, now) : []),
    ]
    return {
      written: new Set(rows.map(({ id }) => id)),
      letterDue: rows.some(({ due }) => due === true || due === 1),
    }
  }
}

interface Written {
  readonly id: string
  readonly due: boolean | number
}

/** Rows by primary key. They leave the index of what is due. */
function processedOf(layout: Layout) {
  const c = quotedColumns(layout)
  const change = (
    now: string,
  ) => `${c.processedAt} = ${now}, ${c.error} = NULL, ${c.nextAttemptAt} = NULL, ${c.claimedUntil} = NULL,
    ${c.claimedBy} = NULL, ${c.claimCount} = 0, ${c.letterDue} = ${c.letterId} IS NOT NULL${layout.hasFlag ? `, ${c.isProcessed} = true` : ''}${layout.hasFailures ? `, ${c.earlierFailures} = NULL` : ''}`
  const ours = `${c.claimedBy} = $2 AND ${c.processedAt} IS NULL`
  const statement = layoutStatement(layout, 'processed', {
    postgres: `UPDATE ${layout.sqlTable} SET ${change(timeFrom(layout, 'processedAt', '$3'))}
      WHERE ${c.id} = ANY($1::text[]::${listType(layout, 'id')}) AND ${ours} RETURNING ${c.id}::text AS id, ${c.letterDue} AS due`,
    sqlite: `UPDATE ${layout.sqlTable} SET ${change(timeFrom(layout, 'processedAt', '$3'))}
      WHERE ${c.id} IN (SELECT value FROM json_each($1)) AND ${ours} RETURNING CAST(${c.id} AS TEXT) AS id, ${c.letterDue} AS due`,
  })
  return async (
    session: Session,
    ids: readonly string[],
    claimedBy: string,
    now: Instant,
  ): Promise<readonly Written[]> => {
    return session.rows<Written>(statement, idList(layout, ids), claimedBy, now)
  }
}

/** Kept of one message at most: the first failure and the newest ones. What a letter shows, and rows stay small. */
const MOST_FAILURES = 20

/** A failure that is not the last joins those before it; a death stands in the row itself. */
function withFailure(layout: Layout): string {
  if (!layout.hasFailures) return ''
  const column = quotedColumns(layout).earlierFailures
  const kept = `${layout.sqlTable}.${column}`
  const appended =
    layout.dialect === 'postgres'
      ? `CASE WHEN jsonb_array_length(${kept}) >= ${MOST_FAILURES} THEN ${kept} - 1 ELSE coalesce(${kept}, '[]') END
        || jsonb_build_object('at', $3::bigint::text, 'error', given.error)`
      : `json_insert(CASE WHEN json_array_length(${kept}) >= ${MOST_FAILURES} THEN json_remove(${kept}, '$[1]') ELSE coalesce(${kept}, '[]') END,
        '$[#]', json_object('at', CAST($3 AS TEXT), 'error', given.error))`
  return `, ${column} = CASE given.kind WHEN 'failed' THEN ${appended} ELSE ${kept} END`
}

/** Failed, dead and given-back rows, by primary key. */
function othersOf(layout: Layout) {
  const c = quotedColumns(layout)
  const { never } = dueBounds[layout.dialect]
  const table = layout.sqlTable
  const change = (now: string) => `
    ${c.retryCount} = coalesce(${table}.${c.retryCount}, 0) + given.failures,
    ${c.error} = CASE WHEN given.kind IN ('released', 'parked') THEN ${table}.${c.error} ELSE ${typed(layout, 'error', 'given.error')} END,
    ${c.nextAttemptAt} = CASE given.kind WHEN 'failed' THEN ${timeFrom(layout, 'nextAttemptAt', 'given.at')} WHEN 'parked' THEN ${never}
      WHEN 'released' THEN ${dueAgain[layout.dialect]} END,
    ${c.claimedUntil} = NULL, ${c.claimedBy} = NULL,
    ${c.claimCount} = CASE WHEN given.kind IN ('failed', 'dead') OR ${c.claimCount} < 1 THEN 0 ELSE ${c.claimCount} - 1 END,
    ${c.deadAt} = CASE given.kind WHEN 'dead' THEN ${now} END,
    ${c.letterDue} = ${table}.${c.letterDue} OR given.kind = 'dead'${withFailure(layout)}`
  const isOpen = (column: string) => isNull(layout.dialect, `${table}.${column}`)
  const ours = `${table}.${c.claimedBy} = $2 AND ${isOpen(c.processedAt)} AND ${isOpen(c.deadAt)}`
  const now = timeFrom(layout, 'deadAt', '$3')
  const whole = /int/.test(layout.types.id)
  const statement = layoutStatement(layout, 'unprocessed', {
    postgres: `
      UPDATE ${table} SET ${change(now)}
      FROM jsonb_to_recordset($1::jsonb) AS given (id text, kind text, error text, at bigint, failures int)
      WHERE ${table}.${c.id} = given.id::${layout.types.id} AND ${ours}
        AND ${table}.${c.id} = ANY(ARRAY(SELECT each.id::${layout.types.id} FROM jsonb_to_recordset($1::jsonb) AS each (id text)))
      RETURNING ${table}.${c.id}::text AS id, ${table}.${c.letterDue} AS due`,
    sqlite: `
      UPDATE ${table} SET ${change(now)}
      FROM (SELECT ${whole ? "CAST(value ->> 'id' AS INTEGER)" : "value ->> 'id'"} AS id, value ->> 'kind' AS kind, value ->> 'error' AS error,
              CAST(value ->> 'at' AS INTEGER) AS at, value ->> 'failures' AS failures FROM json_each($1)) AS given
      WHERE ${table}.${c.id} = given.id AND ${ours} RETURNING CAST(${table}.${c.id} AS TEXT) AS id, ${table}.${c.letterDue} AS due`,
  })
  return async (
    session: Session,
    settlements: readonly Settlement[],
    claimedBy: string,
    at: Instant,
  ): Promise<readonly Written[]> => {
    const rows = settlements.map((settlement) => ({
      // As text: JSON numbers would lose the digits beyond 2^53.
      id: settlement.id,
      kind: settlement.kind === 'released' && settlement.parked ? 'parked' : settlement.kind,
      error: 'error' in settlement ? settlement.error : null,
      // As text: JSON numbers would lose the digits beyond 2^53.
      at: settlement.kind === 'failed' ? settlement.nextAttemptAt.toString() : null,
      failures: settlement.kind === 'failed' ? 1 : settlement.kind === 'dead' ? settlement.failures : 0,
    }))
    return session.rows<Written>(statement, JSON.stringify(rows), claimedBy, at)
  }
}
