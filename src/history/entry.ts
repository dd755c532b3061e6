/** What history shows: entries as lists and details have them, what lists are filtered by, and the rows that entries are made of. */

import type { Within } from '../api/shapes.ts'
import type { Instant } from '../core/clock.ts'
import { formatRowKey, keyNumber } from '../core/row-key.ts'
import { type Integer, type Session, sql } from '../store/database.ts'
import { at, big, integer, orNull, type RowOf, rowShape, text } from '../store/row.ts'
import type { HistoryItem } from './shapes.ts'
import { HISTORY_STATUSES, type HistoryStatus } from './shapes.ts'

/** An entry as lists show it: without input and output. */
export type HistorySummary = Within<HistoryItem>

/** An entry with everything that is known about it. */
export interface HistoryDetail extends HistorySummary {
  readonly input: Uint8Array | null
  readonly output: Uint8Array | null
  readonly error: string | null
  readonly notes: string | null
  /** The letter it concerns; null when there is none, or none any more. */
  readonly letter: { readonly engine: string; readonly rowKey: string } | null
}

/** Which entries; what is given must all hold. */
export interface HistoryFilter {
  readonly engine?: string | null
  readonly operation?: string | null
  readonly status?: HistoryStatus | null
  readonly instanceId?: string | null
  readonly correlationId?: string | null
  /** `from` ≤ the time of the entry < `to`. */
  readonly from?: Instant | null
  readonly to?: Instant | null
}

export interface HistoryPage {
  readonly items: readonly HistorySummary[]
  /** Asks for the page after this one; null on the last. */
  readonly continuationToken: string | null
}

/** The engines and operations that there are; each check refuses with the reason or with the list of what is known. */
export interface KnownEngines {
  /** One that runs may be recorded of, and letters filed under. */
  check(engine: string): void
  /** An operation of the engine itself. */
  checkOwnOperation(engine: string, operation: string): void
  /** One to look for. */
  checkKnown(engine: string, session?: Session): Promise<void>
  /** An operation to look for, of the engine, or of any when none is named. */
  checkKnownOperation(engine: string | null, operation: string): Promise<void>
}

/** Of a capture without a correlation id of its own it is the source id of its letter: one look at that by primary key. */
const CORRELATION_ID = `coalesce(history.correlation_id,
  (SELECT letters.source_id FROM bartleby.letters WHERE letters.id = history.letter_id), '')`

/** What a list needs of a row: nothing that may be large. */
export const SUMMARY_COLUMNS = `history.id, history.created_at, history.duration_ms, history.series,
  ${CORRELATION_ID} AS correlation_id, history.instance_id, history.actor, history.short_key`

/** Everything about a row. */
export const DETAIL_COLUMNS = `${SUMMARY_COLUMNS}, letter_id, letter_version, notes, error, input, output`

const FIELDS = {
  id: big,
  createdAt: at,
  durationMs: integer,
  series: integer,
  correlationId: text,
  instanceId: orNull(text),
  actor: orNull(text),
  shortKey: orNull(integer),
} as const
export const SUMMARY = rowShape(FIELDS)
export type SummaryRow = RowOf<typeof SUMMARY>

const EVENT_FIELDS = {
  ...FIELDS,
  letterVersion: orNull(integer),
  notes: orNull(text),
  error: orNull(text),
} as const
/** Without input and output, which may be large. */
export const EVENT = rowShape(EVENT_FIELDS)

const bytes = (value: Uint8Array | null) => value
export const DETAIL = rowShape({
  ...EVENT_FIELDS,
  letterId: orNull(big),
  input: bytes,
  output: bytes,
})
export type DetailRow = RowOf<typeof DETAIL>

/** What the number of a series stands for. */
export interface SeriesLabel {
  readonly engine: string
  readonly operation: string
  readonly status: HistoryStatus
}

export type SeriesLabels = ReadonlyMap<number, SeriesLabel>

/** All series: some for every engine and operation that was ever recorded. Never more than a few hundred. */
const readLabels = sql(
  'history.labels',
  'SELECT id, engine, operation, status FROM bartleby.history_series ORDER BY id',
)

export async function readSeriesLabels(session: Session): Promise<SeriesLabels> {
  const rows = await session.rows<{ id: Integer; engine: string; operation: string; status: Integer }>(
    readLabels,
  )
  return new Map(
    rows.map(({ id, engine, operation, status }) => [
      Number(id),
      { engine, operation, status: HISTORY_STATUSES[Number(status)] ?? 'Failed' },
    ]),
  )
}

export function summaryOf(row: SummaryRow, labels: SeriesLabels): HistorySummary {
  const { id, series, shortKey, correlationId, createdAt, durationMs, actor } = row
  const label = labels.get(series)
  if (label === undefined) throw new Error(`history row ${id} is of an unknown series`)
  const rowKey = formatRowKey({ name: correlationId, at: createdAt, number: keyNumber(id, shortKey) })
  const instanceId = row.instanceId ?? correlationId
  return { ...label, rowKey, instanceId, durationMs, createdAt, correlationId, actor }
}
