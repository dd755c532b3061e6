/**
 * Pages of history, newest first. Each filter has a lane of its own (series, correlation id, instance). With several
 * filters the lanes are read in turn, a stretch of each, and the one that first fills the page or ends decides: a rare
 * operation is found quickly within a busy instance, and a rare instance within a busy operation.
 */

import { type Session, type Statement, sql, type Value } from '../store/database.ts'
import {
  type HistoryFilter,
  type HistorySummary,
  readSeriesLabels,
  type SeriesLabel,
  type SeriesLabels,
  SUMMARY,
  SUMMARY_COLUMNS,
  type SummaryRow,
  summaryOf,
} from './entry.ts'
import { captureOfSource } from './plain-capture.ts'

/** The last row of a page, or of what was looked through for it. */
export interface HistoryCursor {
  readonly at: bigint
  readonly id: bigint
}

interface ListedHistory {
  readonly items: readonly HistorySummary[]
  /** Where the next page begins; null when there is none. */
  readonly next: HistoryCursor | null
}

/** Rows that a stretch of a lane has at most. */
const MAX_STRETCH = 1_000
/** Rows of each lane that one page may look through; a page that found too few ends early, and the next goes on. */
const MAX_EXAMINED = 10_000

export async function listHistory(
  session: Session,
  filter: HistoryFilter,
  after: HistoryCursor | null,
  limit: number,
): Promise<ListedHistory> {
  const labels = await readSeriesLabels(session)
  const lanes = lanesOf(filter, labels)
  const whole = stretchOf(filter.from ?? null, filter.to ?? null)
  const stretch = after === null ? whole : { ...whole, beforeAt: after.at, beforeId: after.id }
  const found = await race(session, labels, lanes, stretch, limit)
  const rows = found.rows.slice(0, limit)
  const last = rows.at(-1)
  const next = found.rows.length > limit && last !== undefined ? cursorOf(last) : found.next
  // A series that is newer than the labels was made, with its row, while this page was read.
  const known = rows.every((row) => labels.has(row.series)) ? labels : await readSeriesLabels(session)
  return { items: rows.map((row) => summaryOf(row, known)), next }
}

const cursorOf = (row: SummaryRow): HistoryCursor => ({ at: row.createdAt, id: row.id })

/** One lane for each filter; without any, one of all series. */
function lanesOf(filter: HistoryFilter, labels: SeriesLabels): Lane[] {
  const lanes: Lane[] = []
  const { correlationId, instanceId, engine, operation, status } = filter
  if (correlationId != null) lanes.push({ kind: 'correlation', id: correlationId })
  if (instanceId != null) lanes.push({ kind: 'instance', id: instanceId })
  if (lanes.length === 0 || engine != null || operation != null || status != null) {
    const wanted = (label: SeriesLabel) =>
      (engine == null || label.engine === engine) &&
      (operation == null || label.operation === operation) &&
      (status == null || label.status === status)
    lanes.push({
      kind: 'series',
      series: [...labels].filter(([, label]) => wanted(label)).map(([number]) => number),
    })
  }
  return lanes
}

type Test = (row: SummaryRow) => boolean

function matcher(lanes: readonly Lane[]): Test {
  const tests = lanes.map(testOf)
  return (row) => tests.every((test) => test(row))
}

function testOf(lane: Lane): Test {
  switch (lane.kind) {
    case 'correlation':
      return (row) => row.correlationId === lane.id
    case 'instance':
      return (row) => (row.instanceId ?? row.correlationId) === lane.id
    case 'series': {
      const wanted = new Set(lane.series)
      return (row) => wanted.has(row.series)
    }
  }
}

interface Runner {
  readonly lane: Lane
  readonly found: SummaryRow[]
  stretch: Stretch
}

interface Found {
  readonly rows: readonly SummaryRow[]
  /** Where to go on when the page ended early; null when the lane has no more. */
  readonly next: HistoryCursor | null
}

/** More than `limit` rows that are in all lanes, or all there are, or those that the bounded look found. */
async function race(
  session: Session,
  labels: SeriesLabels,
  lanes: readonly Lane[],
  stretch: Stretch,
  limit: number,
): Promise<Found> {
  const matches = matcher(lanes)
  const runners: Runner[] = lanes.map((lane) => ({ lane, found: [], stretch }))
  let size = limit + 1
  for (let examined = 0; examined < MAX_EXAMINED; examined += size) {
    for (const runner of runners) {
      const rows = await readLane(session, labels, runner.lane, runner.stretch, size)
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

/**
 * Lanes of history: rows that one index holds together in the order of lists, newest first. Every list reads the heads
 * of lanes, so its cost grows with the page and not with the table.
 */
type Lane =
  | { readonly kind: 'series'; readonly series: readonly number[] }
  | { readonly kind: 'correlation'; readonly id: string }
  | { readonly kind: 'instance'; readonly id: string }

/** Where a lane is read: before (older than) a row, down to a time. */
interface Stretch {
  readonly beforeAt: bigint
  readonly beforeId: bigint
  readonly fromAt: bigint
}

/** Before the first row that may be shown: all of a lane that is older than `to`, down to `from`. */
const stretchOf = (from: bigint | null, to: bigint | null): Stretch => ({
  beforeAt: to ?? 2n ** 63n - 1n,
  beforeId: 0n,
  fromAt: from ?? -(2n ** 63n),
})

/**
 * A lane as a range of its index, in whose order it is read: `$1` and `$2` are the row before which it begins, `$3` the time at which it
 * ends. Not `series = $5`: without statistics PostgreSQL believes that few rows are of one key, fetches all of them and sorts them.
 */
const heads = (column: string, also = '', key = '$5', columns = SUMMARY_COLUMNS) => `
  SELECT ${columns} FROM bartleby.history
  WHERE (${column}, history.created_at, history.id) < (${key}, $1, $2) AND (${column}, history.created_at) >= (${key}, $3)
    AND ${column} IS NOT NULL${also}
  ORDER BY ${column} DESC, history.created_at DESC, history.id DESC LIMIT $4`

/**
 * SQLite seeks by a row only as far as the index names its columns, and would pass over all rows of the same microsecond: those
 * are read by themselves, by their id. Up to $4 rows of each part.
 */
const parts = (index: string, column: string, also = '') => {
  const part = (time: string) => `
    SELECT * FROM (SELECT ${SUMMARY_COLUMNS} FROM history INDEXED BY ${index}
      WHERE ${column} = $5 AND ${time} AND history.created_at >= $3${also}
      ORDER BY history.created_at DESC, history.id DESC LIMIT $4)`
  return `${part('history.created_at = $1 AND history.id < $2')} UNION ALL ${part('history.created_at < $1')}`
}

const onIndex = (name: string, index: string, column: string, also = ''): Statement =>
  sql(name, { postgres: heads(column, also), sqlite: parts(index, column, also) }, { bigints: true })

/** The rows that store a correlation id, on their index. */
const byCorrelation = onIndex('history.byCorrelation', 'history_by_correlation', 'history.correlation_id')
/** The rows that name an instance, on their index. */
const byInstance = onIndex('history.byInstance', 'history_by_instance', 'history.instance_id')
/** The rows without an instance: their correlation id stands for it. */
const byDefaultInstance = onIndex(
  'history.byDefaultInstance',
  'history_by_correlation',
  'history.correlation_id',
  ' AND history.instance_id IS NULL',
)
/**
 * The rows of several series. PostgreSQL reads up to $4 keys of each from the primary key, sorts these, and only then
 * reads the rows of the page; SQLite is asked once per series.
 */
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

/** At most `limit` rows of a lane, the newest first. `labels` are all series. */
async function readLane(
  session: Session,
  labels: SeriesLabels,
  lane: Lane,
  stretch: Stretch,
  limit: number,
): Promise<SummaryRow[]> {
  const { beforeAt, beforeId, fromAt } = stretch
  const read = (statement: Statement, ...key: readonly Value[]) =>
    SUMMARY.all(session, statement, beforeAt, beforeId, fromAt, limit, ...key)
  const parts: SummaryRow[][] = []
  const plainCapture = async (id: string) => {
    const row = await captureOfSource(session, labels, id)
    return row !== null && isWithin(row, stretch) ? [row] : []
  }
  switch (lane.kind) {
    case 'correlation':
      parts.push(await read(byCorrelation, lane.id), await plainCapture(lane.id))
      break
    case 'instance':
      parts.push(
        await read(byInstance, lane.id),
        await read(byDefaultInstance, lane.id),
        await plainCapture(lane.id),
      )
      break
    case 'series':
      if (session.dialect === 'postgres') parts.push(await read(bySeries, `{${lane.series.join(',')}}`))
      else parts.push(await mergeSeries(session, lane.series, stretch, limit))
      break
  }
  return parts.flat().sort(newestFirst).slice(0, limit)
}

/** What a lane is asked for at least. */
const MIN_CHUNK = 8

/**
 * The newest of several series on SQLite: a few rows of each, and then more of those only whose last row is within the
 * page, because they may have others there.
 */
async function mergeSeries(
  session: Session,
  numbers: readonly number[],
  stretch: Stretch,
  limit: number,
): Promise<SummaryRow[]> {
  const lanes = numbers.map((series) => ({ series, rows: [] as SummaryRow[], hasMore: true }))
  let chunk = Math.max(MIN_CHUNK, Math.ceil((2 * limit) / lanes.length))
  for (;;) {
    const page = lanes
      .flatMap(({ rows }) => rows)
      .sort(newestFirst)
      .slice(0, limit)
    const end = page.length < limit ? undefined : page.at(-1)
    const open = lanes.filter(({ rows, hasMore }) => {
      const last = rows.at(-1)
      return hasMore && (last === undefined || end === undefined || newestFirst(last, end) < 0)
    })
    if (open.length === 0) return page
    for (const lane of open) {
      const last = lane.rows.at(-1)
      const { beforeAt, beforeId, fromAt } = stretch
      const before = last === undefined ? [beforeAt, beforeId] : [last.createdAt, last.id]
      // Of two parts, each of up to `chunk` rows.
      const rows = await SUMMARY.all(session, bySeries, ...before, fromAt, chunk, lane.series)
      lane.rows.push(...rows.sort(newestFirst).slice(0, chunk))
      lane.hasMore = rows.length >= chunk
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
