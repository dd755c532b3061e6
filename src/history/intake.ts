/** Entries from workers in any language. A source id makes them idempotent within an engine, also when two arrive at once or a server dies. */

import { randomUUID } from 'node:crypto'
import type { Instant } from '../core/clock.ts'
import { refuse } from '../core/errors.ts'
import { formatRowKey } from '../core/row-key.ts'
import { sourceName, UNNAMED_INSTANCE } from '../core/source-id.ts'
import { sql, type Transaction } from '../store/database.ts'
import { filledUp, rowsGiven, runGivenAtCommit } from '../store/idioms.ts'
import { type HistorySummary, readOperationKinds, SUMMARY, SUMMARY_COLUMNS, summaryOf } from './entry.ts'
import { recordHistory } from './record.ts'
import type { HistoryStatus } from './shapes.ts'

export interface RunReport {
  readonly engine: string
  readonly operation: string
  readonly status: HistoryStatus
  readonly durationMs: number
  /** Default: the publisher. */
  readonly instanceId?: string | null
  /** Default: a new one. */
  readonly correlationId?: string | null
  readonly actor?: string | null
  /** Bytes and texts as they are, anything else as JSON. */
  readonly input?: unknown
  readonly output?: unknown
  /** Needed when the status is Failed. */
  readonly error?: string | null
  readonly sourceId?: string | null
}

export interface ReadReport extends RunReport {
  readonly input: Uint8Array | null
  readonly output: Uint8Array | null
  /** Left out: now. */
  readonly createdAt?: Instant
}

export interface Recorded {
  readonly entry: HistorySummary
  /** False: the source id was known. */
  readonly created: boolean
}

/** One step into the primary key each. */
const readKnownSources = sql(
  'history.knownSources',
  `SELECT given.engine AS engine, given.source_id AS source_id
   FROM unnest($1::text[], $2::text[]) AS given (engine, source_id)
   WHERE (SELECT 1 FROM bartleby.history_sources AS known
     WHERE known.engine = given.engine AND known.source_id = given.source_id) IS NOT NULL`,
)

const readBySource = sql(
  'history.bySource',
  `SELECT ${SUMMARY_COLUMNS} FROM bartleby.history_sources AS known
   JOIN bartleby.history ON history.series = known.series AND history.created_at = known.created_at AND history.id = known.history_id
   WHERE known.engine = $1 AND known.source_id = $2`,
  { bigints: true },
)

/** Of two that record the same source id at once, the second waits here, fails, runs again and finds the entry. */
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

function insistOnError({ status, error = null }: RunReport): void {
  if (status !== 'Failed' || (error !== null && error.trim() !== '')) return
  const what = error === null ? 'it is missing' : 'it is blank'
  throw refuse('error', `${what}; a record with status Failed says what failed`)
}

/** Files reports unless their source ids are known; returns the entry of each, in order. */
export async function fileReports(
  tx: Transaction,
  reports: readonly ReadReport[],
  now: Instant,
  known: KnownEntries,
): Promise<readonly Recorded[]> {
  // A report without a source id is unique.
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
    instanceId: report.instanceId ?? UNNAMED_INSTANCE,
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
  // In one order for all writers: of two servers only one waits.
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
  // Functions and the like have no JSON.
  const text: string | undefined = typeof value === 'string' ? value : JSON.stringify(value)
  return text === undefined ? null : Buffer.from(text.toWellFormed(), 'utf8')
}

/** By name of the source id. */
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
  const kinds = await readOperationKinds(tx)
  const entries = new Map<unknown, HistorySummary>()
  for (const { engine, source_id: sourceId } of known) {
    const row = await SUMMARY.one(tx, readBySource, engine, sourceId)
    if (row !== null) entries.set(sourceName({ engine, sourceId }), summaryOf(row, kinds))
  }
  return entries
}
