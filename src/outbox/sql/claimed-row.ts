/** A claimed row: what is read of it, and the message that it makes. Columns of others may hold numbers, or nothing. */
import { instant } from '../../core/clock.ts'
import type { Integer } from '../../db/database.ts'
import { asText, finiteMicrosOf, type Layout, payloadOf, quotedColumns } from '../layout.ts'
import type { ClaimedMessage } from '../message.ts'
import type { ColumnName } from '../table-names.ts'

export interface ClaimedRow {
  readonly id: string
  readonly tenant: string
  readonly type: string
  readonly payload: Uint8Array
  readonly key: string
  readonly created: Integer
  readonly retries: Integer
  readonly line: string | null
  readonly headers: string | null
  readonly correlation: string | null
  readonly claims: Integer
  readonly processed: Integer | boolean
}

/** What a claim reads of a row. Times and ids to sort by stay in the database: reading them costs more than all else. */
function claimedColumns(layout: Layout): Readonly<Record<keyof ClaimedRow, string>> {
  const c = quotedColumns(layout)
  const column = (name: ColumnName | 'isProcessed') => `${layout.sqlTable}.${c[name]}`
  const text = (name: ColumnName) => (layout.dialect === 'postgres' ? asText(column(name)) : column(name))
  return {
    id: text('id'),
    tenant: text('tenantId'),
    type: text('eventType'),
    payload: payloadOf(layout, column('payload')),
    key: text('idempotencyKey'),
    created: `coalesce(${finiteMicrosOf(layout, 'createdAt', column('createdAt'))}, 0)`,
    retries: `coalesce(${column('retryCount')}, 0)`,
    line: `CASE WHEN ${column('tenantId')} IS NOT NULL THEN ${text('orderingKey')} END`,
    headers: text('headers'),
    correlation: text('correlationId'),
    claims: column('claimCount'),
    processed: layout.hasFlag ? `coalesce(${column('isProcessed')}, false)` : 'false',
  }
}

/** These columns under names of our own, and the names behind that of a query. */
export function claimedRow(layout: Layout) {
  const columns = Object.entries(claimedColumns(layout))
  return {
    selected: columns.map(([name, expression]) => `${expression} AS ${name}`).join(', '),
    namesIn: (query: string) => columns.map(([name]) => `${query}.${name}`).join(', '),
  }
}

/** The message of a row. */
export function messageOf(row: ClaimedRow): ClaimedMessage {
  return {
    id: String(row.id),
    tenantId: String(row.tenant ?? ''),
    eventType: String(row.type ?? ''),
    payload: row.payload ?? new Uint8Array(0),
    key: row.key,
    createdAt: instant(BigInt(row.created)),
    retryCount: Number(row.retries),
    orderingKey: row.line === null ? null : String(row.line),
    headers: headersOf(row.headers),
    correlationId: row.correlation === null ? null : String(row.correlation),
    claims: Number(row.claims),
    alreadyProcessed: row.processed === true || Number(row.processed) === 1,
  }
}

/** Headers that others wrote may be anything: what is no record of texts is left out. */
function headersOf(text: string | null): Readonly<Record<string, string>> {
  if (text === null) return {}
  try {
    const parsed: unknown = JSON.parse(text)
    if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed)) return {}
    const entries = Object.entries(parsed).filter(
      (entry): entry is [string, string] => typeof entry[1] === 'string',
    )
    return Object.fromEntries(entries)
  } catch {
    return {}
  }
}
