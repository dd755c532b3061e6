/** Entries of history, their filters, and the rows they are made of. */

import type { Within } from '../api/shapes.ts'
import type { Instant } from '../core/clock.ts'
import { formatRowKey, keyNumber } from '../core/row-key.ts'
import { type Integer, type Session, sql } from '../store/database.ts'
import { at, big, integer, orNull, type RowOf, rowShape, text } from '../store/row.ts'
import type { HistoryItem } from './shapes.ts'
import { HISTORY_STATUSES, type HistoryStatus } from './shapes.ts'

/** Without input and output. */
export type HistorySummary = Within<HistoryItem>

export interface HistoryDetail extends HistorySummary {
  readonly input: Uint8Array | null
  readonly output: Uint8Array | null
  readonly error: string | null
  readonly notes: string | null
  /** null: none, or not any more. */
  readonly letter: { readonly engine: string; readonly rowKey: string } | null
}

/** All given must hold. */
export interface HistoryFilter {
  readonly engine?: string | null
  readonly operation?: string | null
  readonly status?: HistoryStatus | null
  readonly instanceId?: string | null
  readonly correlationId?: string | null
  /** `from` ≤ the entry's time < `to`. */
  readonly from?: Instant | null
  readonly to?: Instant | null
}

export interface HistoryPage {
  readonly items: readonly HistorySummary[]
  /** null on the last page. */
  readonly continuationToken: string | null
}

/** Known engines and operations; each check throws with the reason or the known names. */
export interface KnownEngines {
  /** Runs may be recorded and letters filed under it. */
  check(engine: string): void
  /** An operation of the engine itself. */
  checkOwnOperation(engine: string, operation: string): void
  /** Can be looked for. */
  checkKnown(engine: string, session?: Session): Promise<void>
  /** Can be looked for, in the engine or in any. */
  checkKnownOperation(engine: string | null, operation: string): Promise<void>
}

/** A capture without a correlation id has its letter's source id: one look by primary key. */
const CORRELATION_ID = `coalesce(history.correlation_id,
  (SELECT letters.source_id FROM bartleby.letters WHERE letters.id = history.letter_id), '')`

/** Nothing large. */
export const SUMMARY_COLUMNS = `history.id, history.created_at, history.duration_ms, history.series,
  ${CORRELATION_ID} AS correlation_id, history.instance_id, history.actor, history.short_key`

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

export interface OperationKind {
  readonly engine: string
  readonly operation: string
  readonly status: HistoryStatus
}

export type OperationKinds = ReadonlyMap<number, OperationKind>

/** A few hundred at most. */
const readLabels = sql(
  'history.labels',
  'SELECT id, engine, operation, status FROM bartleby.history_series ORDER BY id',
)

export async function readOperationKinds(session: Session): Promise<OperationKinds> {
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

export function summaryOf(row: SummaryRow, kinds: OperationKinds): HistorySummary {
  const { id, series, shortKey, correlationId, createdAt, durationMs, actor } = row
  const kind = kinds.get(series)
  if (kind === undefined) throw new Error(`history row ${id} is of an unknown operation kind`)
  const rowKey = formatRowKey({ name: correlationId, at: createdAt, number: keyNumber(id, shortKey) })
  const instanceId = row.instanceId ?? correlationId
  return { ...kind, rowKey, instanceId, durationMs, createdAt, correlationId, actor }
}
