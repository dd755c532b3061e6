/**
 * Pages of messages, without payloads. Every list follows an index and looks at its first 100,000 rows only, so the
 * cost of a page has a bound, whatever the filter.
 */
import Type from 'typebox'
import { INTEGER, oneOf, orNull, type Shape, TEXT, TEXT_OR_NULL, TIME_OR_NULL } from '../../../api/shapes.ts'
import { instant } from '../../../core/clock.ts'
import { formatMicros, isTimestamp } from '../../../core/timestamp.ts'
import type { Integer, Session, Statement } from '../../../store/database.ts'
import { asText, type Layout, perLayout, type Stored } from '../table/layout.ts'
import { OUTBOX_STATUSES, type OutboxStatus } from '../table/message.ts'
import type { ColumnName } from '../table/table-names.ts'
import { deadOf, failedOf } from './health.ts'

/** Rows that are read and counted at most. */
export const LIST_REACH = 100_000

const SNIPPET_CHARACTERS = 200

export interface ListRequest {
  /** Null: all. `pending` includes `failed`. */
  readonly status: OutboxStatus | null
  readonly eventType: string | null
  readonly tenantId: string | null
  /** From 1. */
  readonly page: number
  readonly pageSize: number
}

/** A message as lists show it. */
export const MESSAGE = Type.Object({
  id: TEXT,
  tenantId: TEXT,
  eventType: TEXT,
  createdAt: TIME_OR_NULL,
  retryCount: INTEGER,
  processedAt: TIME_OR_NULL,
  deadAt: TIME_OR_NULL,
  /** Null also while it waits for a message before it in its line. */
  nextAttemptAt: TIME_OR_NULL,
  status: oneOf(OUTBOX_STATUSES),
  /** Null for rows from before the adoption that nobody has used yet. */
  idempotencyKey: TEXT_OR_NULL,
  orderingKey: TEXT_OR_NULL,
  lastErrorSnippet: orNull(TEXT, { maxLength: SNIPPET_CHARACTERS }),
})

type ListedMessage = Shape<typeof MESSAGE>

type Time = 'createdAt' | 'processedAt' | 'deadAt' | 'nextAttemptAt'
type ListedRow = Stored<Omit<ListedMessage, Time>> & Readonly<Record<Time, Integer | null>>

type ListStatements = Readonly<Record<'page' | 'total', Statement>>

/** A capped total counts what was found among the rows that were read. */
export async function listMessages(session: Session, layout: Layout, request: ListRequest) {
  const { eventType, tenantId, page, pageSize } = request
  const filter = eventType === null && tenantId === null ? [] : [eventType, tenantId]
  const offset = (page - 1) * pageSize
  const statements = statementsOf(layout, request.status, filter.length > 0)
  const [rows, [counted]] = await Promise.all([
    offset < LIST_REACH ? session.rows<ListedRow>(statements.page, ...filter, pageSize, offset) : [],
    session.rows<{ looked: Integer; found: Integer }>(statements.total, ...filter),
  ])
  return {
    items: rows.map(messageOf),
    total: Math.min(Number(counted?.found ?? 0), LIST_REACH),
    totalIsCapped: Number(counted?.looked ?? 0) > LIST_REACH,
  }
}

/** Rows and order of a list, as an index has them. */
function stateOf(layout: Layout, status: OutboxStatus | null) {
  const { id, createdAt, processedAt, deadAt } = layout.c
  switch (status) {
    case 'pending':
      return { where: layout.pending, order: [layout.due, createdAt, id], direction: 'ASC' }
    case 'failed':
      return { where: failedOf(layout), order: [layout.due, createdAt, id], direction: 'ASC' }
    case 'dead':
      return { where: deadOf(layout), order: [deadAt, id], direction: 'DESC' }
    case 'processed':
      return { where: `${processedAt} IS NOT NULL`, order: [processedAt, id], direction: 'DESC' }
    case null:
      return { where: 'true', order: [id], direction: 'DESC' }
  }
}

const known = perLayout(() => new Map<string, ListStatements>())

export function statementsOf(layout: Layout, status: OutboxStatus | null, filtered: boolean): ListStatements {
  const name = `${status ?? 'all'}${filtered ? '.filtered' : ''}`
  const statements = known(layout).get(name) ?? listStatements(layout, status, filtered, name)
  known(layout).set(name, statements)
  return statements
}

/**
 * A page is found in the order of the index, then its rows are read by primary key: on the way only the filtered
 * columns are read. Filters have no index; they choose among the first rows of the list.
 */
function listStatements(
  layout: Layout,
  status: OutboxStatus | null,
  filtered: boolean,
  name: string,
): ListStatements {
  const { c } = layout
  const { where, order, direction } = stateOf(layout, status)
  const by = (terms: readonly string[]) => terms.map((term) => `${term} ${direction}`).join(', ')
  // Every order ends with the id.
  const places = order.map((term, index) => (term === c.id ? 'id' : `place${index}`))
  const placed = order.map((term, index) => `${term} AS ${places[index]}`).join(', ')
  const reach = `FROM ${layout.sqlTable} WHERE ${where} ORDER BY ${by(order)} LIMIT ${LIST_REACH + 1}`
  const chosen = `(${matches('type', '$1')} AND ${matches('tenant', '$2')})`
  const filters = `${asText(c.eventType)} AS type, ${asText(c.tenantId)} AS tenant`
  const found = filtered
    ? `SELECT ${places.join(', ')} FROM (SELECT ${placed}, ${filters} ${reach}) AS reach
       WHERE ${chosen} ORDER BY ${by(places)} LIMIT $3 OFFSET $4`
    : `SELECT ${placed} FROM ${layout.sqlTable} WHERE ${where} ORDER BY ${by(order)} LIMIT $1 OFFSET $2`
  const counted = filtered
    ? `SELECT count(*) AS looked, count(*) FILTER (WHERE ${chosen}) AS found FROM (SELECT ${filters} ${reach}) AS reach`
    : `SELECT count(*) AS looked, count(*) AS found
       FROM (SELECT 1 FROM ${layout.sqlTable} WHERE ${where} LIMIT ${LIST_REACH + 1}) AS reach`
  return {
    page: layout.statement(
      `list.${name}`,
      `SELECT ${listedColumns(layout)} FROM (${found}) AS page JOIN ${layout.sqlTable} AS message ON message.${c.id} = page.id
       ORDER BY ${by(places.map((place) => `page.${place}`))}`,
      { bigints: true },
    ),
    total: layout.statement(`total.${name}`, counted),
  }
}

function listedColumns(layout: Layout): string {
  const { c } = layout
  const text = (column: ColumnName) => `${asText(`message.${c[column]}`)} AS "${column}"`
  const time = (column: ColumnName) => `${layout.finiteMicros(column, `message.${c[column]}`)} AS "${column}"`
  return `${text('id')}, ${text('tenantId')}, ${text('eventType')}, ${time('createdAt')}, coalesce(message.${c.retryCount}, 0) AS "retryCount",
    ${time('processedAt')}, ${time('deadAt')}, ${time('nextAttemptAt')}, ${text('idempotencyKey')}, ${text('orderingKey')},
    substr(${asText(`message.${c.error}`)}, 1, ${SNIPPET_CHARACTERS + 1}) AS "lastErrorSnippet",
    CASE WHEN message.${c.processedAt} IS NOT NULL THEN 'processed' WHEN message.${c.deadAt} IS NOT NULL THEN 'dead'
      WHEN message.${c.retryCount} > 0 THEN 'failed' ELSE 'pending' END AS status`
}

/** A filter of null matches everything. */
const matches = (value: string, parameter: string): string =>
  `(${parameter}::text IS NULL OR ${value} = ${parameter}::text)`

const messageOf = (row: ListedRow): ListedMessage => ({
  ...row,
  // Legacy rows may have neither.
  tenantId: row.tenantId ?? '',
  eventType: row.eventType ?? '',
  createdAt: timeOf(row.createdAt),
  retryCount: Number(row.retryCount),
  processedAt: timeOf(row.processedAt),
  deadAt: timeOf(row.deadAt),
  nextAttemptAt: timeOf(row.nextAttemptAt),
  lastErrorSnippet: row.lastErrorSnippet === null ? null : snippetOf(row.lastErrorSnippet),
})

/** Null for times outside the calendar, such as infinity. */
function timeOf(micros: Integer | null): string | null {
  if (micros === null) return null
  const at = instant(BigInt(micros))
  return isTimestamp(at) ? formatMicros(at) : null
}

/** At most 200 characters, and whole ones. */
export function snippetOf(error: string): string {
  if (error.length <= SNIPPET_CHARACTERS) return error
  const cut = error.slice(0, SNIPPET_CHARACTERS)
  const endsInHalf = /[\ud800-\udbff]$/.test(cut)
  return endsInHalf ? cut.slice(0, -1) : cut
}
