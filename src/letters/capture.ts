/**
 * The one capture: whatever died becomes a letter here, with its count and its history row, in the transaction that
 * takes it away from where it was. A source id that already has a letter is not captured a second time.
 */
import type { Instant } from '../core/clock.ts'
import { base64, textBytes } from '../core/content.ts'
import { type Integer, type Statement, sql, type Transaction, textList } from '../db/database.ts'
import { freeAt } from '../history/record.ts'
import { type DeathNote, noteDeath, type Registers } from './death-note.ts'
import { type LetterId, letterId, type SourceName, STATUS } from './letter.ts'
import type { OfficeWork } from './work.ts'

const LETTER = `id, captured_at, first_failure_at, last_failure_at, item_created_at, laid_at, serial, part, drawer, version,
  dequeue_count, partition, attempts, status, shelf, leased, engine, source_id, instance_id, correlation_id, reason,
  error_class, error_message, error_stack, failed_by, reported_count, dead_queue, encoding, kind, reference, headers, payload`

const HISTORY = `created_at, duration_ms, letter_id, series, letter_version, correlation_id, instance_id, actor, error, input, output`

/**
 * Declares PostgreSQL's statement that files what a source gives up. `ctes` begins the statement and ends with a query
 * called `taken` over the source's own rows, usually what a DELETE returned, with the columns (letter_id, note, source_id, skipped, item_created_at,
 * laid_at, serial, part, dequeue_count, partition, dead_queue, encoding, kind, reference, headers, payload); `$1` are
 * the death notes, the other parameters are the source's. Letters never travel to the server and back.
 *
 * One look into letters_by_source for each, then only inserts. Rows: one per note with its number of new letters and
 * the range of their ids, and note 0 with the number of rows that the source gave up and, as `last`, of those it skipped.
 */
export const captureStatement = (name: string, ctes: string): Statement =>
  sql(name, {
    postgres: `
      WITH ${ctes}, dying AS MATERIALIZED (
        SELECT coalesce(taken.letter_id, nextval('bartleby.letter_ids')) AS id, taken.note, taken.source_id,
          taken.item_created_at, taken.laid_at, taken.serial, taken.part, taken.dequeue_count, taken.partition,
          taken.dead_queue, taken.encoding, taken.kind, taken.reference, taken.headers, taken.payload,
          note.drawer, note.series, note.engine, note.instance_id, note.correlation_id, note.captured_at,
          note.first_failure_at, note.last_failure_at, note.reason, note.error_class, note.error_message,
          note.error_stack, note.failed_by, note.reported_count, note.duration_ms, note.actor, note.error, note.input, note.output,
          note.recorded_at, note.turn
        FROM taken
        -- Not jsonb: they are read once. A thousand notes take 10 ms instead of 18.
        JOIN json_to_recordset($1::json) AS note (
          note int, drawer int, series int, engine text, instance_id text, correlation_id text, captured_at bigint,
          first_failure_at bigint, last_failure_at bigint, reason text, error_class text, error_message text,
          error_stack text, failed_by text, reported_count int, duration_ms bigint, actor text, error text, input text, output text,
          recorded_at bigint, turn int
        ) ON note.note = taken.note
        -- Not NOT EXISTS: the planner would make a join of it, and on a table without statistics read all letters.
        WHERE NOT taken.skipped AND (
          SELECT true FROM bartleby.letters AS known
          WHERE known.engine = note.engine AND known.source_id = taken.source_id) IS NULL
      ), filed AS (
        INSERT INTO bartleby.letters (${LETTER})
        SELECT id, captured_at, first_failure_at, last_failure_at, item_created_at, laid_at, serial, part, drawer, 1,
          dequeue_count, partition, 0, ${STATUS.Pending}, CASE WHEN part IS NOT NULL THEN 0 END, 0, engine, source_id,
          instance_id, correlation_id, reason, error_class, error_message, error_stack, failed_by, reported_count,
          dead_queue, encoding, kind, reference, headers, payload
        FROM dying
      ), recorded AS (
        INSERT INTO bartleby.history (${HISTORY})
        SELECT CASE WHEN correlation_id IS NULL THEN captured_at
            ELSE ${freeAt('dying.correlation_id', 'dying.recorded_at')} + turn END,
          duration_ms, id, series, 1, correlation_id, instance_id, actor, error,
          decode(input, 'base64'), decode(output, 'base64')
        FROM dying
      )
      SELECT note, count(*) AS letters, min(id) AS first, max(id) AS last FROM dying GROUP BY note
      UNION ALL SELECT 0, count(*), NULL, count(*) FILTER (WHERE skipped) FROM taken`,
    sqlite: '',
  })

/** The numbers, and on SQLite the first of them. */
const nextLetterIds = sql('letters.nextIds', {
  postgres: `SELECT nextval('bartleby.letter_ids') AS id FROM generate_series(1, $1::int)`,
  sqlite: `UPDATE serials SET last = last + $1 WHERE name = 'letters' RETURNING last - $1 + 1 AS id`,
})

const insertLetter = sql('letters.insert', {
  postgres: '',
  sqlite: `INSERT INTO letters (${LETTER}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, 1, $10, $11, 0, ${STATUS.Pending}, $12, 0,
             $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26, $27, $28)
           ON CONFLICT (engine, source_id) DO NOTHING`,
})

const insertRecord = sql('letters.recordCapture', {
  postgres: '',
  sqlite: `INSERT INTO history (${HISTORY})
           VALUES (${freeAt('$5', '$1')}, $2, $3, $4, 1, $5, $6, $7, $8, $9, $10)`,
})

/** The death notes of one capture as PostgreSQL's parameter; the first is note 1. */
export function noteList(notes: readonly DeathNote[]): string {
  const turns = new Map<string, { readonly from: Instant; turn: number }>()
  // Rows of one statement do not see each other: those of one correlation id take one microsecond after the other.
  const turnOf = ({ correlationId, capturedAt }: DeathNote) => {
    const before = turns.get(correlationId ?? '')
    if (before !== undefined) before.turn++
    const turn = before ?? { from: capturedAt, turn: 0 }
    turns.set(correlationId ?? '', turn)
    return { recorded_at: turn.from.toString(), turn: turn.turn }
  }
  return JSON.stringify(
    notes.map((note, i) => ({
      note: i + 1,
      drawer: note.drawer,
      series: note.series,
      engine: note.engine,
      instance_id: note.instanceId,
      correlation_id: note.correlationId,
      // As text: JSON numbers would lose the digits beyond 2^53.
      captured_at: note.capturedAt.toString(),
      first_failure_at: note.firstFailureAt.toString(),
      last_failure_at: note.lastFailureAt.toString(),
      reason: note.reason,
      error_class: note.errorClass,
      error_message: note.errorMessage,
      error_stack: note.errorStack,
      failed_by: note.failedBy,
      reported_count: note.reportedCount ?? null,
      duration_ms: Math.round(note.record.durationMs),
      actor: note.record.actor,
      error: errorOf(note),
      input: base64(note.record.input),
      output: base64(note.record.output),
      ...turnOf(note),
    })),
  )
}

const errorOf = (note: DeathNote): string | null =>
  note.record.status === 'Failed' ? note.errorMessage : null

/** A row of a capture statement. */
export interface CapturedRow {
  readonly note: Integer
  readonly letters: Integer
  readonly first: Integer | null
  readonly last: Integer | null
}

/** Counts what a capture statement filed; gives how many rows the source gave up, skipped, and how many letters are new. */
export function countCaptured(
  work: OfficeWork,
  notes: readonly DeathNote[],
  rows: readonly CapturedRow[],
): { readonly taken: number; readonly skipped: number; readonly captured: number } {
  let taken = 0
  let skipped = 0
  let captured = 0
  for (const row of rows) {
    const note = notes[Number(row.note) - 1]
    if (note === undefined) {
      taken = Number(row.letters)
      skipped = Number(row.last ?? 0)
    } else {
      captured += Number(row.letters)
      noteCaptured(work, note, Number(row.letters), letterId(row.first ?? 0), letterId(row.last ?? 0))
    }
  }
  return { taken, skipped, captured }
}

function noteCaptured(
  work: OfficeWork,
  note: DeathNote,
  count: number,
  first: LetterId,
  last: LetterId,
): void {
  work.letters.captured(note.drawer, count, note.lastFailureAt)
  work.letters.toFile(first, last)
}

/** Something that died, with its content. */
export interface Remains {
  /** The case it died under; null when none was opened. */
  readonly caseId: LetterId | null
  readonly sourceId: string
  readonly itemCreatedAt: Instant | null
  readonly dequeueCount: number
  readonly partition: number | null
  /** Where it shall lie in a dead queue; null for a letter that lies in none. */
  readonly grave: {
    readonly deadQueue: string
    readonly part: number
    readonly serial: number
    readonly laidAt: Instant
  } | null
  readonly encoding: Uint8Array | null
  readonly kind: Uint8Array | null
  readonly reference: Uint8Array | null
  readonly headers: Uint8Array | null
  readonly payload: Uint8Array | null
}

const captureGiven = captureStatement(
  'letters.capture',
  `taken AS (SELECT $2::bigint AS letter_id, 1 AS note, $3::text AS source_id, false AS skipped, $4::bigint AS item_created_at,
     $5::bigint AS laid_at, $6::bigint AS serial, $7::int AS part, $8::int AS dequeue_count, $9::int AS partition,
     $10::text AS dead_queue, $11::bytea AS encoding, $12::bytea AS kind, $13::bytea AS reference,
     $14::bytea AS headers, $15::bytea AS payload)`,
)

/** Captures one; the id of its letter, or null when its source id has one already. */
export async function capture(work: OfficeWork, note: DeathNote, remains: Remains): Promise<LetterId | null> {
  const { tx } = work
  const { grave } = remains
  if (tx.dialect === 'postgres') {
    const rows = await tx.rows<CapturedRow>(
      captureGiven,
      noteList([note]),
      remains.caseId,
      remains.sourceId,
      remains.itemCreatedAt,
      grave?.laidAt ?? null,
      grave?.serial ?? null,
      grave?.part ?? null,
      remains.dequeueCount,
      remains.partition,
      grave?.deadQueue ?? null,
      remains.encoding,
      remains.kind,
      remains.reference,
      remains.headers,
      remains.payload,
    )
    countCaptured(work, [note], rows)
    const first = rows.find((row) => row.first !== null)?.first
    return first == null ? null : letterId(first)
  }
  const id = remains.caseId ?? (await allocateLetterId(tx))
  const filed = await tx.run(
    insertLetter,
    id,
    note.capturedAt,
    note.firstFailureAt,
    note.lastFailureAt,
    remains.itemCreatedAt,
    grave?.laidAt ?? null,
    grave?.serial ?? null,
    grave?.part ?? null,
    note.drawer,
    remains.dequeueCount,
    remains.partition,
    grave === null ? null : 0,
    note.engine,
    remains.sourceId,
    note.instanceId,
    note.correlationId,
    note.reason,
    note.errorClass,
    note.errorMessage,
    note.errorStack,
    note.failedBy,
    note.reportedCount ?? null,
    grave?.deadQueue ?? null,
    remains.encoding,
    remains.kind,
    remains.reference,
    remains.headers,
    remains.payload,
  )
  if (filed === 0) return null
  await tx.run(
    insertRecord,
    note.capturedAt,
    Math.round(note.record.durationMs),
    id,
    note.series,
    note.correlationId,
    note.instanceId,
    note.record.actor,
    errorOf(note),
    note.record.input,
    note.record.output,
  )
  noteCaptured(work, note, 1, id, id)
  return id
}

/** A fresh number for a letter, or for the case of an item that may become one. */
export async function allocateLetterId(tx: Transaction): Promise<LetterId> {
  const [id] = await allocateLetterIds(tx, 1)
  return id ?? letterId(0)
}

/** As many fresh numbers, ascending. */
export async function allocateLetterIds(tx: Transaction, count: number): Promise<readonly LetterId[]> {
  if (count === 0) return []
  const rows = await tx.rows<{ id: Integer }>(nextLetterIds, count)
  if (tx.dialect === 'postgres') return rows.map(({ id }) => letterId(id))
  const first = BigInt(rows[0]?.id ?? 0)
  return Array.from({ length: count }, (_, i) => letterId(first + BigInt(i)))
}

/** The newest row keys of instances within the second that begins at `$3`; one look into letters_by_row_key each. */
const readTaken = sql(
  'letters.takenKeys',
  {
    postgres: takenKeys('unnest($2::text[]) AS asked (value)'),
    sqlite: takenKeys('json_each($2) AS asked'),
  },
  { bigints: true },
)

function takenKeys(instances: string): string {
  return `
    SELECT asked.value AS instance_id, (
      SELECT captured_at FROM bartleby.letters
      WHERE engine = $1 AND instance_id = asked.value AND captured_at >= $3 AND captured_at < $3 + 1000000
      ORDER BY engine DESC, instance_id DESC, captured_at DESC LIMIT 1) AS captured_at
    FROM ${instances}`
}

/** The first microsecond at or after `at` that no row key of the instance has. */
export async function freeKeyTime(
  tx: Transaction,
  engine: string,
  instanceId: string,
  at: Instant,
): Promise<Instant> {
  return (await freeKeyTimes(tx, engine, [instanceId], at)).get(instanceId) ?? at
}

/** The same for each of many instances. */
export async function freeKeyTimes(
  tx: Transaction,
  engine: string,
  instanceIds: readonly string[],
  at: Instant,
): Promise<ReadonlyMap<string, Instant>> {
  const rows = await tx.rows<{ instance_id: string; captured_at: Integer | null }>(
    readTaken,
    engine,
    textList(tx.dialect, instanceIds),
    at,
  )
  return new Map(
    rows.map(({ instance_id, captured_at }) => [
      instance_id,
      // The instant after one that the store gave.
      captured_at === null ? at : ((BigInt(captured_at) + 1n) as Instant),
    ]),
  )
}

/**
 * A failure that somebody reports: another system over HTTP, or a source that keeps no items here. Reported again for a source id
 * that has its letter, it is a repetition or a new failure: see `report-again.ts`.
 */
export interface FailureReport {
  readonly source: SourceName
  readonly engine: string
  readonly instanceId: string
  readonly correlationId: string
  readonly sourceId: string
  readonly originalQueue: string | null
  readonly encoding: string
  readonly kind: string
  readonly reference: string
  readonly headers: Uint8Array | null
  readonly payload: Uint8Array
  /** Deliveries that the reporter counts. */
  readonly dequeueCount: number
  /** null: the last one is the first. */
  readonly firstFailureAt: Instant | null
  /** null: the reporter does not say; the time of receipt stands for it. */
  readonly lastFailureAt: Instant | null
  readonly errorClass: string
  readonly errorMessage: string
  readonly errorStack: string | null
  readonly failedBy: string | null
  /** Who reports it. */
  readonly actor: string
}

/** The letter of a source id. */
const readBySource = sql(
  'letters.bySource',
  'SELECT id FROM bartleby.letters WHERE engine = $1 AND source_id = $2',
)

/** Captures what was reported; a source id that is known gives the letter it has. */
export async function captureReport(
  work: OfficeWork,
  registers: Registers,
  report: FailureReport,
): Promise<{ readonly id: LetterId; readonly created: boolean }> {
  const { tx } = work
  const [known] = await tx.rows<{ id: Integer }>(readBySource, report.engine, report.sourceId)
  if (known !== undefined) return { id: letterId(known.id), created: false }
  const capturedAt = await freeKeyTime(tx, report.engine, report.instanceId, work.now)
  const { originalQueue, actor, ...death } = report
  const lastFailureAt = report.lastFailureAt ?? work.now
  const note = await noteDeath(
    work,
    registers,
    {
      ...death,
      queue: originalQueue,
      reason: 'failed',
      reportedCount: report.dequeueCount,
      record: { operation: 'capture', status: 'Succeeded', durationMs: 0, actor, input: null, output: null },
    },
    { capturedAt, firstFailureAt: report.firstFailureAt ?? lastFailureAt, lastFailureAt },
  )
  const id = await capture(work, note, {
    caseId: null,
    sourceId: report.sourceId,
    itemCreatedAt: null,
    dequeueCount: report.dequeueCount,
    partition: null,
    grave: null,
    encoding: textBytes(report.encoding),
    kind: textBytes(report.kind),
    reference: textBytes(report.reference),
    headers: report.headers,
    payload: report.payload.length === 0 ? null : report.payload,
  })
  if (id === null)
    throw new Error(`the letter of ${report.engine} '${report.sourceId}' was neither found nor filed`)
  return { id, created: true }
}
