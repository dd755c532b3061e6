/**
 * Writes the results of deliveries, many at a time, where the claim is still ours. Rows that somebody else settled
 * meanwhile stay as they are.
 */
import type { Instant } from '../../../core/clock.ts'
import type { Session } from '../../../store/database.ts'
import { asText, type Layout } from '../table/layout.ts'
import type { Settlement } from '../table/message.ts'
import { idList, inIdList, updateEach } from './by-id.ts'

export interface Settled {
  /** Rows that were written; the others are no longer this dispatcher's. */
  readonly written: ReadonlySet<string>
  /** The clerk has something to compare. */
  readonly letterDue: boolean
}

interface Written {
  readonly id: string
  readonly due: boolean | number
}

export function settlementsOf(layout: Layout) {
  const processed = processedStatement(layout)
  const unprocessed = unprocessedStatement(layout)
  return async (
    session: Session,
    settlements: readonly Settlement[],
    claimedBy: string,
    now: Instant,
  ): Promise<Settled> => {
    const done = settlements.filter(({ kind }) => kind === 'processed').map(({ id }) => id)
    const rest = settlements.filter(({ kind }) => kind !== 'processed').map(givenOf)
    const rows = [
      ...(done.length > 0
        ? await session.rows<Written>(processed, idList(layout, done), claimedBy, now)
        : []),
      ...(rest.length > 0
        ? await session.rows<Written>(unprocessed.statement, claimedBy, now, ...unprocessed.values(rest))
        : []),
    ]
    return {
      written: new Set(rows.map(({ id }) => id)),
      letterDue: rows.some(({ due }) => due === true || due === 1),
    }
  }
}

/** By primary key. The rows leave the index of due rows. */
function processedStatement(layout: Layout) {
  const { c } = layout
  return layout.statement(
    'processed',
    `UPDATE ${layout.sqlTable} SET ${c.processedAt} = ${layout.time('processedAt', '$3')}, ${c.error} = NULL, ${c.nextAttemptAt} = NULL,
       ${c.claimedUntil} = NULL, ${c.claimedBy} = NULL, ${c.claimCount} = 0,
       ${c.letterDue} = ${c.letterId} IS NOT NULL${layout.processedFlag(true)}${layout.hasFailures ? `, ${c.earlierFailures} = NULL` : ''}
     WHERE ${inIdList(layout)} AND ${c.claimedBy} = $2 AND ${c.processedAt} IS NULL
     RETURNING ${asText(c.id)} AS id, ${c.letterDue} AS due`,
  )
}

/** The first failure and the newest ones are kept: all that a letter shows. */
const MOST_FAILURES = 20

/** The failure a message died of is in the row itself. */
function withFailure(layout: Layout): string {
  if (!layout.hasFailures) return ''
  const column = layout.c.earlierFailures
  const kept = `${layout.sqlTable}.${column}`
  const appended =
    layout.dialect === 'postgres'
      ? `CASE WHEN jsonb_array_length(${kept}) >= ${MOST_FAILURES} THEN ${kept} - 1 ELSE coalesce(${kept}, '[]') END
        || jsonb_build_object('at', $2::bigint::text, 'error', given.error)`
      : `json_insert(CASE WHEN json_array_length(${kept}) >= ${MOST_FAILURES} THEN json_remove(${kept}, '$[1]') ELSE coalesce(${kept}, '[]') END,
        '$[#]', json_object('at', CAST($2 AS TEXT), 'error', given.error))`
  return `, ${column} = CASE given.kind WHEN 'failed' THEN ${appended} ELSE ${kept} END`
}

/** By primary key. */
function unprocessedStatement(layout: Layout) {
  const { c, sqlTable: table, dueBounds } = layout
  return updateEach(layout, 'unprocessed', {
    given: { kind: 'text', error: 'text', at: 'bigint', failures: 'bigint' },
    others: 2,
    set: `
    ${c.retryCount} = coalesce(${table}.${c.retryCount}, 0) + given.failures,
    ${c.error} = CASE WHEN given.kind IN ('released', 'parked') THEN ${table}.${c.error} ELSE ${layout.typed('error', 'given.error')} END,
    ${c.nextAttemptAt} = CASE given.kind WHEN 'failed' THEN ${layout.time('nextAttemptAt', 'given.at')}
      WHEN 'parked' THEN ${dueBounds.never} WHEN 'released' THEN ${dueBounds.again} END,
    ${c.claimedUntil} = NULL, ${c.claimedBy} = NULL,
    ${c.claimCount} = CASE WHEN given.kind IN ('failed', 'dead') OR ${c.claimCount} < 1 THEN 0 ELSE ${c.claimCount} - 1 END,
    ${c.deadAt} = CASE given.kind WHEN 'dead' THEN ${layout.time('deadAt', '$2')} END,
    ${c.letterDue} = ${table}.${c.letterDue} OR given.kind = 'dead'${withFailure(layout)}`,
    where: `${table}.${c.claimedBy} = $1 AND ${table}.${c.processedAt} IS NULL AND ${table}.${c.deadAt} IS NULL`,
    returning: `RETURNING ${asText(`${table}.${c.id}`)} AS id, ${table}.${c.letterDue} AS due`,
  })
}

const givenOf = (settlement: Settlement) => ({
  id: settlement.id,
  kind: settlement.kind === 'released' && settlement.parked ? 'parked' : settlement.kind,
  error: 'error' in settlement ? settlement.error : null,
  at: settlement.kind === 'failed' ? settlement.nextAttemptAt : null,
  failures: settlement.kind === 'failed' ? 1 : settlement.kind === 'dead' ? settlement.failures : 0,
})
