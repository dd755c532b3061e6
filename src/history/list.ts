/**
 * Pages of history, newest first. Each filter (operation kind, correlation id, instance) is a range of its own index. Several are read in
 * turn, a stretch of each; the first that fills the page or ends decides, so a rare operation is found in a busy instance and the reverse.
 */

import { type Session, type Statement, sql, type Value } from '../store/database.ts'
import {
  type HistoryFilter,
  type HistorySummary,
  type OperationKind,
  type OperationKinds,
  readOperationKinds,
  SUMMARY,
  SUMMARY_COLUMNS,
  type SummaryRow,
  summaryOf,
} from './entry.ts'
import { captureOfSource } from './plain-capture.ts'

/** The last row of a page, or of what was examined for it. */
export interface HistoryCursor {
  readonly at: bigint
  readonly id: bigint
}

interface ListedHistory {
  readonly items: readonly HistorySummary[]
  /** null on the last page. */
  readonly next: HistoryCursor | null
}

const MAX_STRETCH = 1_000
/** Rows per range and page; a page that found too few ends early. */
const MAX_EXAMINED = 10_000

export async function listHistory(
  session: Session,
  filter: HistoryFilter,
  after: HistoryCursor | null,
  limit: number,
): Promise<ListedHistory> {
  const kinds = await readOperationKinds(session)
  const ranges = rangesOf(filter, kinds)
  const whole = stretchOf(filter.from ?? null, filter.to ?? null)
  const stretch = after === null ? whole : { ...whole, beforeAt: after.at, beforeId: after.id }
  const found = await race(session, kinds, ranges, stretch, limit)
  const rows = found.rows.slice(0, limit)
  const last = rows.at(-1)
  const next = found.rows.length > limit && last !== undefined ? cursorOf(last) : found.next
  // Newer than the kinds: made while this page was read.
  const known = rows.every((row) => kinds.has(row.series)) ? kinds : await readOperationKinds(session)
  return { items: rows.map((row) => summaryOf(row, known)), next }
}

const cursorOf = (row: SummaryRow): HistoryCursor => ({ at: row.createdAt, id: row.id })

/** One range per filter; without any, all operation kinds. */
function rangesOf(filter: HistoryFilter, kinds: OperationKinds): HistoryRange[] {
  const ranges: HistoryRange[] = []
  const { correlationId, instanceId, engine, operation, status } = filter
  if (correlationId != null) ranges.push({ kind: 'correlation', id: correlationId })
  if (instanceId != null) ranges.push({ kind: 'instance', id: instanceId })
  if (ranges.length === 0 || engine != null || operation != null || status != null) {
    const wanted = (kind: OperationKind) =>
      (engine == null || kind.engine === engine) &&
      (operation == null || kind.operation === operation) &&
      (status == null || kind.status === status)
    ranges.push({
      kind: 'series',
      series: [...kinds].filter(([, kind]) => wanted(kind)).map(([number]) => number),
    })
  }
  return ranges
}

type Test = (row: SummaryRow) => boolean

function matcher(ranges: readonly HistoryRange[]): Test {
  const tests = ranges.map(testOf)
  return (row) => tests.every((test) => test(row))
}

function testOf(range: HistoryRange): Test {
  switch (range.kind) {
    case 'correlation':
      return (row) => row.correlationId === range.id
    case 'instance':
      return (row) => (row.instanceId ?? row.correlationId) === range.id
    case 'series': {
      const wanted = new Set(range.series)
      return (row) => wanted.has(row.series)
    }
  }
}

interface Runner {
  readonly range: HistoryRange
  readonly found: SummaryRow[]
  stretch: Stretch
}

interface Found {
  readonly rows: readonly SummaryRow[]
  /** Where a page that ended early continues; null at the end. */
  readonly next: HistoryCursor | null
}

/** More than `limit` rows that match all filters, or all there are, or those of the bounded look. */
async function race(
  session: Session,
  kinds: OperationKinds,
  ranges: readonly HistoryRange[],
  stretch: Stretch,
  limit: number,
): Promise<Found> {
  const matches = matcher(ranges)
  const runners: Runner[] = ranges.map((range) => ({ range, found: [], stretch }))
  let size = limit + 1
  for (let examined = 0; examined < MAX_EXAMINED; examined += size) {
    for (const runner of runners) {
      const rows = await readRange(session, kinds, runner.range, runner.stretch, size)
      runner.found.push(...rows.filter(matches))
      const last = rows.at(-1)
      if (runner.found.length > limit || rows.length < size || last === undefined) {
        return { rows: runner.found, next: null }
      }
      const { at, id } = cursorOf(last)
      runner.stretch = { ...runner.stretch, beforeAt: at, beforeId: id }
    }
    size = Math.min(size * 4, MAX_STRETCH)
  }
  const { found, stretch: rest } = runners.reduce((a, b) => (isOlder(b.stretch, a.stretch) ? b : a))
  return { rows: found, next: { at: rest.beforeAt, id: rest.beforeId } }
}

const isOlder = (a: Stretch, b: Stretch): boolean =>
  a.beforeAt < b.beforeAt || (a.beforeAt === b.beforeAt && a.beforeId < b.beforeId)

/** Rows that one index holds in the order of lists. Lists read their heads, so the cost grows with the page, not the table. */
type HistoryRange =
  | { readonly kind: 'series'; readonly series: readonly number[] }
  | { readonly kind: 'correlation'; readonly id: string }
  | { readonly kind: 'instance'; readonly id: string }

/** Rows older than a row, down to a time. */
interface Stretch {
  readonly beforeAt: bigint
  readonly beforeId: bigint
  readonly fromAt: bigint
}

const stretchOf = (from: bigint | null, to: bigint | null): Stretch => ({
  beforeAt: to ?? 2n ** 63n - 1n,
  beforeId: 0n,
  fromAt: from ?? -(2n ** 63n),
})

/**
 * A range in the order of its index, from the row (`$1`, `$2`) down to the time `$3`. Not `series = $5`: without statistics PostgreSQL
 * expects few rows of one key, fetches all and sorts them.
 */
const heads = (column: string, also = '', key = '$5', columns = SUMMARY_COLUMNS) => `
  SELECT ${columns} FROM bartleby.history
  WHERE (${column}, history.created_at, history.id) < (${key}, $1, $2) AND (${column}, history.created_at) >= (${key}, $3)
    AND ${column} IS NOT NULL${also}
  ORDER BY ${column} DESC, history.created_at DESC, history.id DESC LIMIT $4`

/** SQLite seeks only by columns of the index and would pass all rows of one microsecond: these are read apart, by id. Up to $4 rows each. */
const parts = (index: string, column: string, also = '') => {
  const part = (time: string) => `
    SELECT * FROM (SELECT ${SUMMARY_COLUMNS} FROM history INDEXED BY ${index}
      WHERE ${column} = $5 AND ${time} AND history.created_at >= $3${also}
      ORDER BY history.created_at DESC, history.id DESC LIMIT $4)`
  return `${part('history.created_at = $1 AND history.id < $2')} UNION ALL ${part('history.created_at < $1')}`
}

const onIndex = (name: string, index: string, column: string, also = ''): Statement =>
  sql(name, { postgres: heads(column, also), sqlite: parts(index, column, also) }, { bigints: true })

const byCorrelation = onIndex('history.byCorrelation', 'history_by_correlation', 'history.correlation_id')
const byInstance = onIndex('history.byInstance', 'history_by_instance', 'history.instance_id')
/** Rows without an instance: the correlation id stands for it. */
const byDefaultInstance = onIndex(
  'history.byDefaultInstance',
  'history_by_correlation',
  'history.correlation_id',
  ' AND history.instance_id IS NULL',
)
/** PostgreSQL reads up to $4 keys per operation kind from the primary key, sorts them and then reads the page; SQLite is asked per kind. */
const bySeries = sql(
  'history.bySeries',
  {
    postgres: `
      SELECT entry.* FROM (
        SELECT asked.series, lane.created_at, lane.id FROM unnest($5::int[]) AS asked (series)
        CROSS JOIN LATERAL (${heads('history.series', '', 'asked.series', 'history.created_at, history.id')}) AS lane
        ORDER BY lane.created_at DESC, lane.id DESC LIMIT $4
      ) AS page
      CROSS JOIN LATERAL (SELECT ${SUMMARY_COLUMNS} FROM bartleby.history
        WHERE series = page.series AND created_at = page.created_at AND id = page.id LIMIT 1) AS entry`,
    sqlite: parts('history_in_series', 'history.series'),
  },
  { bigints: true },
)

/** Newest first. */
async function readRange(
  session: Session,
  kinds: OperationKinds,
  range: HistoryRange,
  stretch: Stretch,
  limit: number,
): Promise<SummaryRow[]> {
  const { beforeAt, beforeId, fromAt } = stretch
  const read = (statement: Statement, ...key: readonly Value[]) =>
    SUMMARY.all(session, statement, beforeAt, beforeId, fromAt, limit, ...key)
  const parts: SummaryRow[][] = []
  const plainCapture = async (id: string) => {
    const row = await captureOfSource(session, kinds, id)
    return row !== null && isWithin(row, stretch) ? [row] : []
  }
  switch (range.kind) {
    case 'correlation':
      parts.push(await read(byCorrelation, range.id), await plainCapture(range.id))
      break
    case 'instance':
      parts.push(
        await read(byInstance, range.id),
        await read(byDefaultInstance, range.id),
        await plainCapture(range.id),
      )
      break
    case 'series':
      if (session.dialect === 'postgres') parts.push(await read(bySeries, `{${range.series.join(',')}}`))
      else parts.push(await mergeSeries(session, range.series, stretch, limit))
      break
  }
  return parts.flat().sort(newestFirst).slice(0, limit)
}

const MIN_CHUNK = 8

/** The newest of several operation kinds on SQLite: a few rows of each, then more of those whose last row is within the page. */
async function mergeSeries(
  session: Session,
  numbers: readonly number[],
  stretch: Stretch,
  limit: number,
): Promise<SummaryRow[]> {
  const ranges = numbers.map((series) => ({ series, rows: [] as SummaryRow[], hasMore: true }))
  let chunk = Math.max(MIN_CHUNK, Math.ceil((2 * limit) / ranges.length))
  for (;;) {
    const page = ranges
      .flatMap(({ rows }) => rows)
      .sort(newestFirst)
      .slice(0, limit)
    const end = page.length < limit ? undefined : page.at(-1)
    const open = ranges.filter(({ rows, hasMore }) => {
      const last = rows.at(-1)
      return hasMore && (last === undefined || end === undefined || newestFirst(last, end) < 0)
    })
    if (open.length === 0) return page
    for (const range of open) {
      const last = range.rows.at(-1)
      const { beforeAt, beforeId, fromAt } = stretch
      const before = last === undefined ? [beforeAt, beforeId] : [last.createdAt, last.id]
      // Two parts of up to `chunk` rows each.
      const rows = await SUMMARY.all(session, bySeries, ...before, fromAt, chunk, range.series)
      range.rows.push(...rows.sort(newestFirst).slice(0, chunk))
      range.hasMore = rows.length >= chunk
    }
    chunk *= 2
  }
}

function isWithin(row: SummaryRow, { beforeAt, beforeId, fromAt }: Stretch): boolean {
  const { createdAt: at, id } = row
  return at >= fromAt && (at < beforeAt || (at === beforeAt && id < beforeId))
}

function newestFirst(a: SummaryRow, b: SummaryRow): number {
  return descending(a.createdAt, b.createdAt) || descending(a.id, b.id)
}

const descending = (a: bigint, b: bigint): number => (a < b ? 1 : a > b ? -1 : 0)
