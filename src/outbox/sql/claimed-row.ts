/** A claimed row: what is read of it, and the message that it makes. Columns of others may hold numbers, or nothing. */
import { instant } from '../../core/clock.ts'
import type { Integer } from '../../db/database.ts'
import { finiteMicrosOf, type Layout, payloadOf, quotedColumns } from '../layout.ts'
import type { ClaimedMessage } from '../message.ts'

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

/** The names of a claimed row. Times and ids to sort by stay in the database: reading them costs more than all else. */
export const CLAIMED: readonly (keyof ClaimedRow)[] = [
  'id',
  'tenant',
  'type',
  'payload',
  'key',
  'created',
  'retries',
  'line',
  'headers',
  'correlation',
  'claims',
  'processed',
]

/** What a claim needs of a row, under names of our own. */
export function returned(layout: Layout, table = ''): string {
  const c = quotedColumns(layout)
  const text = layout.dialect === 'postgres' ? '::text' : ''
  const { hasFlag } = layout
  return `${table}${c.id}${text} AS id, ${table}${c.tenantId}${text} AS tenant, ${table}${c.eventType}${text} AS type,
    ${payloadOf(layout, table + c.payload)} AS payload, ${table}${c.idempotencyKey}${text} AS key,
    coalesce(${finiteMicrosOf(layout, 'createdAt', table + c.createdAt)}, 0) AS created, coalesce(${table}${c.retryCount}, 0) AS retries,
    CASE WHEN ${table}${c.tenantId} IS NOT NULL THEN ${table}${c.orderingKey}${text} END AS line, ${table}${c.headers}${text} AS headers, ${table}${c.correlationId}${text} AS correlation,
    ${table}${c.claimCount} AS claims, ${hasFlag ? `coalesce(${table}${c.isProcessed}, false)` : 'false'} AS processed`
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
