/**
 * Entries that come from outside, from workers in any language. A source id makes them idempotent: the same one of the
 * same engine twice is one entry, also when both arrive at once or a server dies in between.
 */
import { randomUUID } from 'node:crypto'
import { type Instant, instant } from '../core/clock.ts'
import { refuse } from '../core/errors.ts'
import { formatRowKey } from '../core/row-key.ts'
import { type Session, sql, type Transaction } from '../db/database.ts'
import type { HistorySummary } from './entry.ts'
import { type HistoryStatus, recordHistory } from './record.ts'
import { readSeriesLabels, SUMMARY_COLUMNS, type SummaryRow, summaryOf } from './rows.ts'

/** An operation that a worker reports. */
export interface RunReport {
  readonly engine: string
  readonly operation: string
  readonly status: HistoryStatus
  readonly durationMs: number
  /** Default: the publisher itself. */
  readonly instanceId?: string | null
  /** Default: a new one. */
  readonly correlationId?: string | null
  readonly actor?: string | null
  /** Bytes and texts are kept as they are; anything else as its JSON. */
  readonly input?: unknown
  readonly output?: unknown
  /** What failed; needed when the status is Failed. */
  readonly error?: string | null
  /** The worker's own id of the run. */
  readonly sourceId?: string | null
}

/** The instance of what concerns none in particular. */
const PUBLISHER = 'publisher'

export interface Recorded {
  readonly entry: HistorySummary
  /** False when the source id was known: the entry is the one that was there. */
  readonly created: boolean
}

/** Somebody else has recorded the same source id in this moment: roll back and look again. */
export class RecordedMeanwhile extends Error {
  override readonly name = 'RecordedMeanwhile'
}

/** The entry of a source id, by two primary keys. */
const readBySource = sql(
  'history.bySource',
  `SELECT ${SUMMARY_COLUMNS} FROM bartleby.history_sources AS known
   JOIN bartleby.history ON history.series = known.series AND history.created_at = known.created_at AND history.id = known.history_id
   WHERE known.engine = $1 AND known.source_id = $2`,
  { bigints: true },
)

/** Of two that record the same source id at once, the second waits here for the first. */
const insertSource = sql(
  'history.insertSource',
  `INSERT INTO bartleby.history_sources (engine, source_id, created_at, history_id, series) VALUES ($1, $2, $3, $4, $5)
   ON CONFLICT (engine, source_id) DO NOTHING`,
)

/** Refuses a failure without a word about it: nobody could tell later what failed. */
export function insistOnError({ status, error = null }: RunReport): void {
  if (status !== 'Failed' || (error !== null && error.trim() !== '')) return
  const what = error === null ? 'it is missing' : 'it is blank'
  throw refuse('error', `${what}; a record with status Failed says what failed`)
}

/** Files the report, unless its source id is there. Throws `RecordedMeanwhile` when a twin was faster. */
export async function fileReport(tx: Transaction, report: RunReport, now: Instant): Promise<Recorded> {
  const { engine, operation, status, durationMs, sourceId = null } = report
  const known = sourceId === null ? null : await entryOfSource(tx, engine, sourceId)
  if (known !== null) return { entry: known, created: false }
  const instanceId = report.instanceId ?? PUBLISHER
  const correlationId = report.correlationId ?? randomUUID()
  const [row] = await recordHistory(tx, [
    {
      ...report,
      input: contentOf(report.input),
      output: contentOf(report.output),
      instanceId,
      correlationId,
      createdAt: now,
    },
  ])
  if (row === undefined) throw new Error('an entry that was just recorded is not there')
  if (sourceId !== null) {
    const added = await tx.run(insertSource, engine, sourceId, row.createdAt, row.id, row.series)
    if (added === 0) throw new RecordedMeanwhile()
  }
  const createdAt = instant(row.createdAt)
  const rowKey = formatRowKey({ name: correlationId, at: createdAt, number: row.id })
  const actor = report.actor ?? null
  const entry = { engine, rowKey, instanceId, operation, status, durationMs, createdAt, correlationId, actor }
  return { entry, created: true }
}

function contentOf(value: unknown): Uint8Array | null {
  if (value === undefined || value === null) return null
  if (value instanceof Uint8Array) return value
  // What JSON has nothing for, such as a function, is nothing.
  const text: string | undefined = typeof value === 'string' ? value : JSON.stringify(value)
  return text === undefined ? null : Buffer.from(text.toWellFormed(), 'utf8')
}

async function entryOfSource(
  session: Session,
  engine: string,
  sourceId: string,
): Promise<HistorySummary | null> {
  const [row] = await session.rows<SummaryRow>(readBySource, engine, sourceId)
  return row === undefined ? null : summaryOf(row, await readSeriesLabels(session))
}
