/**
 * Finds the message that has the tenant and key of a new one already, or had them before it was purged, and whether its
 * payload is the same. Payloads are compared by hash, so that none travels twice; where the database changes what it
 * keeps (`jsonb`), it compares itself.
 */
import { createHash } from 'node:crypto'
import type { Layout, RunSql } from '../table/layout.ts'
import type { ColumnName } from '../table/table-names.ts'
import type { NewRow } from '../writing/fit.ts'

export interface Existing {
  readonly id: string
  readonly samePayload: boolean
}

/** Undefined where nothing is in the way any more. */
export type FindExisting = (
  run: RunSql,
  rows: readonly NewRow[],
) => Promise<readonly (Existing | undefined)[]>

export const existingOf = (layout: Layout): FindExisting =>
  layout.dialect === 'postgres' ? onPostgres(layout) : onSqlite(layout)

const sha256 = (payload: Buffer | string): string => createHash('sha256').update(payload).digest('hex')

/**
 * Each row by the unique index on (tenant, key) and by the primary key of purged keys. The limits keep the planner from
 * joining: it takes the list for a hundred rows, and would read all keys for one.
 */
function onPostgres(layout: Layout): FindExisting {
  const { c } = layout
  const rewrites = layout.types.payload === 'jsonb'
  const same = rewrites
    ? `${c.payload} = wanted.content::jsonb`
    : `sha256(${layout.payloadBytes()}) = decode(wanted.content, 'hex')`
  const hash = rewrites
    ? `sha256(${layout.payloadBytes('wanted.content::jsonb')})`
    : `decode(wanted.content, 'hex')`
  const has = (column: ColumnName, text: string) => `${c[column]} = ${comparable(layout, column, text)}`
  const kept = `LEFT JOIN LATERAL (SELECT ${c.id}::text AS id, ${same} AS same FROM ${layout.sqlTable}
      WHERE ${has('tenantId', 'wanted.tenant')} AND ${has('idempotencyKey', 'wanted.key')} LIMIT 1) AS kept ON true`
  const purged = `LEFT JOIN LATERAL (SELECT message_id AS id, payload_sha256 = ${hash} AS same FROM ${layout.keys.sqlTable}
      WHERE tenant_id = wanted.tenant AND idempotency_key = wanted.key::uuid LIMIT 1) AS purged ON true`
  const answer = (column: string) =>
    layout.hasKeys ? `coalesce(kept.${column}, purged.${column}) AS ${column}` : `kept.${column}`
  const text = `SELECT wanted.nth AS nth, ${answer('id')}, ${answer('same')}
    FROM json_to_recordset($1::text::json) AS wanted (nth integer, tenant text, key text, content text)
    ${kept} ${layout.hasKeys ? purged : ''}`
  return async (run, rows) => {
    const wanted = rows.map(({ tenantId: tenant, key, payload }, nth) => {
      return { nth, tenant, key, content: rewrites ? payload : sha256(payload) }
    })
    const found: (Existing | undefined)[] = Array(rows.length).fill(undefined)
    for (const { nth, id, same: isSame } of await run(text, [JSON.stringify(wanted)])) {
      if (id !== null) found[Number(nth)] = { id: String(id), samePayload: isSame === true }
    }
    return found
  }
}

/** Cast so that the column's index is used. */
function comparable({ types }: Layout, column: ColumnName, text: string): string {
  const type = types[column]
  if (type.startsWith('character(')) return `${text}::bpchar`
  return /^(text|character)/.test(type) ? text : `${text}::${type}`
}

/** One by one: SQLite has no round trip to save, and the application's connection no hash function. */
function onSqlite(layout: Layout): FindExisting {
  const { c } = layout
  const purged = layout.hasKeys
    ? `UNION ALL SELECT message_id, NULL, hex(payload_sha256) FROM ${layout.keys.sqlTable}
         WHERE tenant_id = ? AND idempotency_key = ?`
    : ''
  const text = `SELECT CAST(${c.id} AS TEXT) AS id, ${layout.payloadBytes()} = CAST(? AS BLOB) AS same, NULL AS hash
    FROM ${layout.sqlTable} WHERE ${c.tenantId} = ? AND ${c.idempotencyKey} = ? ${purged}`
  return async (run, rows) => {
    const found: (Existing | undefined)[] = []
    for (const { tenantId, key, payload } of rows) {
      const identity = [tenantId, key]
      const [row] = await run(text, [payload, ...identity, ...(layout.hasKeys ? identity : [])])
      const samePayload =
        row?.hash == null ? Number(row?.same) === 1 : String(row.hash).toLowerCase() === sha256(payload)
      found.push(row === undefined ? undefined : { id: String(row.id), samePayload })
    }
    return found
  }
}
