/** A claimed row: what is read of it, and the message that it makes. Columns of others may hold numbers, or nothing. */
import { instant } from '../../../core/clock.ts'
import type { Integer } from '../../../store/database.ts'
import { isTrue, type Layout, type Stored } from '../table/layout.ts'
import type { ClaimedMessage } from '../table/message.ts'
import type { ColumnName } from '../table/table-names.ts'

/** What is read of a message; its headers are JSON. */
export type ClaimedRow = Stored<Omit<ClaimedMessage, 'headers'> & { readonly headers: string | null }>

/** What a claim reads of a row. Times and ids to sort by stay in the database: reading them costs more than all else. */
function claimedColumns(layout: Layout): Readonly<Record<keyof ClaimedRow, string>> {
  const { c } = layout
  const column = (name: ColumnName | 'isProcessed') => `${layout.sqlTable}.${c[name]}`
  const text = (name: ColumnName) => layout.text(column(name))
  return {
    id: text('id'),
    tenantId: text('tenantId'),
    eventType: text('eventType'),
    payload: layout.payloadBytes(column('payload')),
    key: text('idempotencyKey'),
    createdAt: `coalesce(${layout.finiteMicros('createdAt', column('createdAt'))}, 0)`,
    retryCount: `coalesce(${column('retryCount')}, 0)`,
    orderingKey: `CASE WHEN ${column('tenantId')} IS NOT NULL THEN ${text('orderingKey')} END`,
    headers: text('headers'),
    correlationId: text('correlationId'),
    claims: column('claimCount'),
    alreadyProcessed: layout.hasFlag ? `coalesce(${column('isProcessed')}, false)` : 'false',
  }
}

/** These columns under names of our own, and the names behind that of a query. */
export function claimedRow(layout: Layout) {
  const columns = Object.entries(claimedColumns(layout))
  return {
    selected: columns.map(([name, expression]) => `${expression} AS "${name}"`).join(', '),
    namesIn: (query: string) => columns.map(([name]) => `${query}."${name}"`).join(', '),
  }
}

/** A row as it is read: an id of SQLite may be a number, and a row of others may have no key. */
type ReadRow = Omit<ClaimedRow, 'id' | 'key'> & {
  readonly id: Integer | string
  readonly key: string | null
}

/** The message of a row, with the key and the claims that it has now. */
export const messageOf = (
  row: ReadRow,
  key = row.key ?? '',
  claims = Number(row.claims),
): ClaimedMessage => ({
  id: String(row.id),
  tenantId: String(row.tenantId ?? ''),
  eventType: String(row.eventType ?? ''),
  payload: row.payload ?? new Uint8Array(0),
  key,
  createdAt: instant(BigInt(row.createdAt)),
  retryCount: Number(row.retryCount),
  orderingKey: row.orderingKey === null ? null : String(row.orderingKey),
  headers: headersOf(row.headers),
  correlationId: row.correlationId === null ? null : String(row.correlationId),
  claims,
  alreadyProcessed: isTrue(row.alreadyProcessed),
})

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
