/**
 * Entries that come from outside, from workers in any language. A source id makes them idempotent: the same one of the
 * same engine twice is one entry, also when both arrive at once or a server dies in between.
 */

import { randomUUID } from 'node:crypto'
import type { Instant } from '../core/clock.ts'
import { refuse } from '../core/errors.ts'
import { formatRowKey } from '../core/row-key.ts'
import { sourceName } from '../core/source-id.ts'
import { sql, type Transaction } from '../store/database.ts'
import { filledUp, rowsGiven, runGivenAtCommit } from '../store/idioms.ts'
import { type HistorySummary, readSeriesLabels, SUMMARY, SUMMARY_COLUMNS, summaryOf } from './entry.ts'
import { recordHistory } from './record.ts'
import type { HistoryStatus } from './shapes.ts'

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

/** A report whose input and output are as they will be kept. */
export interface ReadReport extends RunReport {
  readonly input: Uint8Array | null
  readonly output: Uint8Array | null
  /** When it was done, where a record of it says so. Left out: now. */
  readonly createdAt?: Instant
}

/** The instance of what concerns none in particular. */
const PUBLISHER = 'publisher'

export interface Recorded {
  readonly entry: HistorySummary
  /** False when the source id was known: the entry is the one that was there. */
  readonly created: boolean
}

/** Source ids that are known, each by one step into the primary key. */
const readKnownSources = sql(
  'history.knownSources',
  `SELECT given.engine AS engine, given.source_id AS source_id
   FROM unnest($1::text[], $2::text[]) AS given (engine, source_id)
   WHERE (SELECT 1 FROM bartleby.history_sources AS known
     WHERE known.engine = given.engine AND known.source_id = given.source_id) IS NOT NULL`,
)

/** The entry of a source id, by two primary keys. */
const readBySource = sql(
  'history.bySource',
  `SELECT ${SUMMARY_COLUMNS} FROM bartleby.history_sources AS known
   JOIN bartleby.history ON history.series = known.series AND history.created_at = known.created_at AND history.id = known.history_id
   WHERE known.engine = $1 AND known.source_id = $2`,
  { bigints: true },
)

/** Of two that record the same source id at once, the second waits here for the first and fails. Run again, it finds the entry. */
const insertSources = sql(
  'history.insertSources',
  `INSERT INTO bartleby.history_sources (engine, source_id, created_at, history_id, series)
   SELECT given.engine, given.source_id, given.created_at, given.history_id, given.series
   FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[], $5::int[]) AS given (engine, source_id, created_at, history_id, series)`,
)

export function readRun(report: RunReport): ReadReport {
  insistOnError(report)
  return { ...report, input: contentOf(report.input), output: contentOf(report.output) }
}

/** Refuses a failure without a word about it: nobody could tell later what failed. */
function insistOnError({ status, error = null }: RunReport): void {
  if (status !== 'Failed' || (error !== null && error.trim() !== '')) return
  const what = error === null ? 'it is missing' : 'it is blank'
  throw refuse('error', `${what}; a record with status Failed says what failed`)
}

/** Files reports, each unless its source id is known. Gives the entry of each, in their order. */
export async function fileReports(
  tx: Transaction,
  reports: readonly ReadReport[],
  now: Instant,
  known: KnownEntries,
): Promise<readonly Recorded[]> {
  // A report without a source id is like no other.
  const names = reports.map(({ engine, sourceId = null }, place) =>
    sourceId === null ? place : sourceName({ engine, sourceId }),
  )
  const fresh = new Map<string | number, ReadReport>()
  for (const [place, name] of names.entries()) {
    const report = reports[place]
    if (report !== undefined && !known.has(name) && !fresh.has(name)) fresh.set(name, report)
  }
  const made = await record(tx, [...fresh.values()], now)
  const entries = new Map<unknown, HistorySummary>(known)
  for (const [i, name] of [...fresh.keys()].entries()) {
    const entry = made[i]
    if (entry !== undefined) entries.set(name, entry)
  }
  return names.flatMap((name, place) => {
    const entry = entries.get(name)
    return entry === undefined ? [] : { entry, created: fresh.get(name) === reports[place] }
  })
}

async function record(
  tx: Transaction,
  reports: readonly ReadReport[],
  now: Instant,
): Promise<HistorySummary[]> {
  const entries = reports.map((report) => ({
    ...report,
    instanceId: report.instanceId ?? PUBLISHER,
    correlationId: report.correlationId ?? randomUUID(),
    createdAt: report.createdAt ?? now,
  }))
  const rows = await recordHistory(tx, entries)
  const sources = reports.flatMap(({ engine, sourceId = null }, i) => {
    const row = rows[i]
    if (row === undefined) throw new Error('an entry that was just recorded is not there')
    const { createdAt, id, series } = row
    const source = { engine, source_id: sourceId, created_at: createdAt, history_id: id, series }
    return sourceId === null ? [] : { name: sourceName({ engine, sourceId }), source }
  })
  // In one order, whoever writes them: of two servers one waits, and not both.
  sources.sort((a, b) => (a.name < b.name ? -1 : 1))
  runGivenAtCommit(
    tx,
    insertSources,
    sources.map(({ source }) => source),
  )
  return rows.flatMap(({ id }, i) => {
    const entry = entries[i]
    if (entry === undefined) return []
    const {
      engine,
      instanceId,
      operation,
      status,
      durationMs,
      createdAt,
      correlationId,
      actor = null,
    } = entry
    const rowKey = formatRowKey({ name: correlationId, at: createdAt, number: id })
    return { engine, rowKey, instanceId, operation, status, durationMs, createdAt, correlationId, actor }
  })
}

function contentOf(value: unknown): Uint8Array | null {
  if (value === undefined || value === null) return null
  if (value instanceof Uint8Array) return value
  // What JSON has nothing for, such as a function, is nothing.
  const text: string | undefined = typeof value === 'string' ? value : JSON.stringify(value)
  return text === undefined ? null : Buffer.from(text.toWellFormed(), 'utf8')
}

/** Entries by the names of their source ids. */
export type KnownEntries = ReadonlyMap<unknown, HistorySummary>

export async function entriesOfSources(
  tx: Transaction,
  reports: readonly RunReport[],
): Promise<KnownEntries> {
  const asked = reports.flatMap(({ engine, sourceId = null }) =>
    sourceId === null ? [] : { engine, source_id: sourceId },
  )
  const known = await rowsGiven<{ engine: string; source_id: string }>(
    tx,
    readKnownSources,
    filledUp(tx, asked),
  )
  if (known.length === 0) return new Map()
  const labels = await readSeriesLabels(tx)
  const entries = new Map<unknown, HistorySummary>()
  for (const { engine, source_id: sourceId } of known) {
    const row = await SUMMARY.one(tx, readBySource, engine, sourceId)
    if (row !== null) entries.set(sourceName({ engine, sourceId }), summaryOf(row, labels))
  }
  return entries
}
