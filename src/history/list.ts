/**
 * Pages of history, newest first. Each filter has a lane of its own (series, correlation id, instance). With several
 * filters the lanes are read in turn, a stretch of each, and the one that first fills the page or ends decides: a rare
 * operation is found quickly within a busy instance, and a rare instance within a busy operation.
 */
import type { Session } from '../db/database.ts'
import type { HistoryFilter, HistorySummary } from './entry.ts'
import { type Lane, readLane, type Stretch, stretchOf } from './lanes.ts'
import { readSeriesLabels, type SeriesLabel, type SeriesLabels, type SummaryRow, summaryOf } from './rows.ts'

/** The last row of a page, or of what was looked through for it. */
export interface HistoryCursor {
  readonly at: bigint
  readonly id: bigint
}

export interface ListedHistory {
  readonly items: readonly HistorySummary[]
  /** Where the next page begins; null when there is none. */
  readonly next: HistoryCursor | null
}

/** Rows that a stretch of a lane has at most. */
const MAX_STRETCH = 1_000
/** Rows of each lane that one page may look through; a page that found too few ends early, and the next goes on. */
const MAX_EXAMINED = 10_000

/** The page of at most `limit` entries behind `after`. */
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
  const known = rows.every((row) => labels.has(Number(row.series))) ? labels : await readSeriesLabels(session)
  return { items: rows.map((row) => summaryOf(row, known)), next }
}

const cursorOf = (row: SummaryRow): HistoryCursor => ({ at: BigInt(row.created_at), id: BigInt(row.id) })

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

/** Whether a row is in all lanes. */
function matcher(lanes: readonly Lane[]): Test {
  const tests = lanes.map(testOf)
  return (row) => tests.every((test) => test(row))
}

function testOf(lane: Lane): Test {
  switch (lane.kind) {
    case 'correlation':
      return (row) => row.correlation_id === lane.id
    case 'instance':
      return (row) => (row.instance_id ?? row.correlation_id) === lane.id
    case 'series': {
      const wanted = new Set(lane.series)
      return (row) => wanted.has(Number(row.series))
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
