/** The statements that file deaths as letters with their history rows. `bury.ts` decides what is filed. */

import type { Instant } from '../core/clock.ts'
import {
  type Integer,
  type List,
  type Statement,
  sql,
  type Transaction,
  type Value,
} from '../store/database.ts'
import type { GivenRow } from '../store/idioms.ts'
import { takeNumbers } from '../store/numbers.ts'
import type { Cause, Death, Taking } from './bury.ts'
import { type LetterId, letterId, STATUS } from './letter.ts'
import type { OfficeWork } from './work.ts'

/** A death as it is written: texts cut and cleaned, with its drawer and history row. */
export interface DeathNote extends Omit<Cause, 'record'> {
  /** null: its source id stands for it. */
  readonly instanceId: string | null
  readonly correlationId: string | null
  readonly reportedCount?: number
  readonly record: Omit<Cause['record'], 'captured' | 'reopened'> & { readonly operation: string }
  readonly drawer: number
  readonly series: number
  /** Its order among the letters of its instance. */
  readonly capturedAt: Instant
  readonly firstFailureAt: Instant
  readonly lastFailureAt: Instant
}

/** short_key is written as NULL: its default is 1. */
const LETTER = `id, captured_at, first_failure_at, last_failure_at, item_created_at, laid_at, serial, part, drawer, version,
  dequeue_count, partition, attempts, status, shelf, leased, engine, source_id, instance_id, correlation_id, reason,
  error_class, error_message, error_stack, failed_by, reported_count, dead_queue, encoding, kind, reference, headers, payload,
  short_key`

const HISTORY = `created_at, duration_ms, letter_id, series, letter_version, correlation_id, instance_id, actor, error, input, output, short_key`

const NOTE = {
  ...{ drawer: 'int', series: 'int', engine: 'text', instance_id: 'text', correlation_id: 'text' },
  ...{ captured_at: 'bigint', first_failure_at: 'bigint', last_failure_at: 'bigint', reason: 'text' },
  ...{
    error_class: 'text',
    error_message: 'text',
    error_stack: 'text',
    failed_by: 'text',
    reported_count: 'int',
  },
  ...{ duration_ms: 'bigint', actor: 'text', is_silent: 'int', input: 'bytea', output: 'bytea' },
} as const

/** PostgreSQL's captures: of deaths that share one note, and of others. */
export interface CaptureStatement {
  readonly alike: Statement
  readonly each: Statement
}

/**
 * Declares PostgreSQL's statement that files what a source gives up. `ctes` ends with a query `taken` over the source's rows, usually a
 * DELETE … RETURNING, with the columns (letter_id, note, source_id, skipped, item_created_at, laid_at, serial, part, dequeue_count,
 * partition, dead_queue, encoding, kind, reference, headers, payload). Parameters: `$1` the instant, the source's own, then the notes.
 *
 * A shared note is inlined: joined as lists of one it took three times as long, because PostgreSQL reads all lists anew for every row.
 *
 * Inserts only. A source id taken meanwhile fails the transaction, which runs again and finds the letter; nobody else pays for a look
 * or a lock. Returns one row per note: rows given up, new letters, the range of their ids, and the sums `also`.
 */
export function captureStatement(name: string, ctes: string, also = ''): CaptureStatement {
  const first = 1 + Math.max(1, ...[...ctes.matchAll(/\$(\d+)/g)].map(([, place]) => Number(place)))
  const values = Object.entries(NOTE).map(([column, type], i) => `$${first + i}::${type} AS ${column}`)
  // Not JSON: a thousand notes take 6 ms instead of 11.
  const lists = `unnest(${listsOf(NOTE, first)}) WITH ORDINALITY AS noted (${Object.keys(NOTE).join(', ')}, note)`
  return {
    alike: capturing(
      `${name}.alike`,
      also,
      ctes,
      `taken CROSS JOIN (SELECT ${values.join(', ')}) AS noted WHERE NOT skipped`,
    ),
    each: capturing(
      name,
      also,
      `${ctes}, dying AS MATERIALIZED (SELECT * FROM taken JOIN ${lists} USING (note) WHERE NOT skipped)`,
      'dying',
    ),
  }
}

const FILED = `letter_id, captured_at, first_failure_at, last_failure_at, item_created_at, laid_at, serial, part, drawer, 1,
  dequeue_count, partition, 0, ${STATUS.Pending}, CASE WHEN part IS NOT NULL THEN 0 END, 0, engine, source_id, instance_id, correlation_id, reason,
  error_class, error_message, error_stack, failed_by, reported_count, dead_queue, encoding, kind, reference, headers, payload, NULL`

function capturing(name: string, also: string, ctes: string, dying: string): Statement {
  return sql(name, {
    postgres: `
      WITH ${ctes}, filed AS (
        INSERT INTO bartleby.letters (${LETTER})
        SELECT ${FILED}
        FROM ${dying}
      ), recorded AS (
        INSERT INTO bartleby.history (${HISTORY})
        SELECT $1::bigint, duration_ms, letter_id, series, 1, correlation_id, instance_id, actor,
          CASE WHEN is_silent = 0 THEN error_message END, input, output, NULL
        FROM ${dying}
      )
      SELECT note, count(*) AS taken, count(CASE WHEN NOT skipped THEN 1 END) AS letters,
        min(CASE WHEN NOT skipped THEN letter_id END) AS first, max(CASE WHEN NOT skipped THEN letter_id END) AS last${also}
      FROM taken GROUP BY note`,
  })
}

/**
 * Declares SQLite's statement that files deaths sharing a note at once: one by one takes twice as long. `taken` is a query over the
 * source's rows with the columns of `captureStatement` but those of notes; the note follows its parameters.
 */
export function captureAlike(name: string, taken: string): Statement {
  const first = 1 + Math.max(...[...taken.matchAll(/\$(\d+)/g)].map(([, place]) => Number(place)))
  const values = Object.keys(NOTE).map((column, i) => `$${first + i} AS ${column}`)
  return sql(name, {
    sqlite: `INSERT INTO letters (${LETTER}) SELECT ${FILED} FROM (${taken}) CROSS JOIN (SELECT ${values.join(', ')})`,
  })
}

/** Captures of the letters `$2` to `$3`. */
const recordAlike = sql('letters.recordAlike', {
  sqlite: `INSERT INTO history (${HISTORY}) SELECT $1, $4, id, $5, 1, $6, $7, $8, $9, $10, $11, NULL
           FROM letters WHERE id BETWEEN $2 AND $3 ORDER BY id`,
})

/** Files deaths that share a note; returns how many. */
export async function fileAlike(
  work: OfficeWork,
  note: DeathNote,
  { first, last }: { readonly first: LetterId; readonly last: LetterId },
  file: { readonly statement: Statement; readonly values: readonly Value[] },
): Promise<number> {
  const { tx } = work
  const { values } = capturingBy({ alike: file.statement, each: file.statement }, [note])
  const filed = await tx.run(file.statement, ...file.values, ...values)
  await tx.run(recordAlike, work.now, first, last, ...recordValues(note))
  if (filed > 0) noteCaptured(work, note, filed, first, last)
  return filed
}

export const errorInHistory = ({ record, errorMessage }: DeathNote): string | null =>
  record.isSilent === true ? null : errorMessage

function recordValues(note: DeathNote): readonly Value[] {
  const { duration_ms, series, correlation_id, instance_id, actor, input, output } = noteRow(note)
  return [duration_ms, series, correlation_id, instance_id, actor, errorInHistory(note), input, output]
}

const insertRecord = sql('letters.recordCapture', {
  sqlite: `INSERT INTO history (${HISTORY})
           VALUES ($1, $3, $2, $4, 1, $5, $6, $7, $8, $9, $10, NULL)`,
})

/** The statement for these notes and their parameters; note numbers start at 1. */
export function capturingBy(
  { alike, each }: CaptureStatement,
  notes: readonly DeathNote[],
): { readonly statement: Statement; readonly values: readonly Value[] } {
  const lists = noteLists(notes)
  return notes.length === 1
    ? { statement: alike, values: lists.map(([only = null]) => only) }
    : { statement: each, values: lists }
}

export const noteLists = (notes: readonly DeathNote[]): readonly List[] => columnsOf(NOTE, notes.map(noteRow))

export const noteRow = ({
  record,
  ...note
}: DeathNote): Readonly<Record<keyof typeof NOTE, List[number]>> => ({
  drawer: note.drawer,
  series: note.series,
  engine: note.engine,
  instance_id: note.instanceId,
  correlation_id: note.correlationId,
  captured_at: note.capturedAt,
  first_failure_at: note.firstFailureAt,
  last_failure_at: note.lastFailureAt,
  reason: note.reason,
  error_class: note.errorClass,
  error_message: note.errorMessage,
  error_stack: note.errorStack,
  failed_by: note.failedBy,
  reported_count: note.reportedCount ?? null,
  duration_ms: Math.round(record.durationMs),
  actor: record.actor,
  is_silent: record.isSilent === true ? 1 : 0,
  input: record.input,
  output: record.output,
})

const columnsOf = <Column extends string>(
  types: Readonly<Record<Column, string>>,
  rows: readonly Readonly<Record<Column, List[number]>>[],
): List[] =>
  // The keys are those of the type.
  (Object.keys(types) as Column[]).map((column) => rows.map((row) => row[column]))

function listsOf(types: Readonly<Record<string, string>>, first: number): string {
  return Object.values(types)
    .map((type, i) => `$${first + i}::${type}[]`)
    .join(', ')
}

export interface CapturedRow {
  readonly note: Integer
  readonly taken: Integer
  readonly letters: Integer
  readonly first: Integer | null
  readonly last: Integer | null
}

/** Counts captured letters; returns rows given up and new letters. */
export function countCaptured(
  work: OfficeWork,
  notes: readonly DeathNote[],
  rows: readonly CapturedRow[],
): { readonly taken: number; readonly captured: number } {
  let taken = 0
  let captured = 0
  for (const { note: number, taken: given, letters, first, last } of rows) {
    const note = notes[Number(number) - 1]
    taken += Number(given)
    captured += Number(letters)
    if (note !== undefined && first !== null && last !== null)
      noteCaptured(work, note, Number(letters), letterId(first), letterId(last))
  }
  return { taken, captured }
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

export interface DeadItem {
  readonly itemCreatedAt: Instant | null
  readonly dequeueCount: number
  readonly partition: number | null
  readonly encoding: Uint8Array | null
  readonly kind: Uint8Array | null
  readonly reference: Uint8Array | null
  readonly headers: Uint8Array | null
  readonly payload: Uint8Array | null
}

const ITEM = {
  ...{ id: 'bigint', source_id: 'text', item_created_at: 'bigint', laid_at: 'bigint', serial: 'bigint' },
  ...{ part: 'int', dequeue_count: 'int', partition: 'int', dead_queue: 'text', encoding: 'bytea' },
  ...{ kind: 'bytea', reference: 'bytea', headers: 'bytea', payload: 'bytea' },
} as const

const itemRow = (
  id: LetterId | null,
  { sourceId, position }: Pick<Death, 'sourceId' | 'position'>,
  left: DeadItem,
): Readonly<Record<keyof typeof ITEM, List[number]>> => ({
  id,
  source_id: sourceId,
  item_created_at: left.itemCreatedAt,
  laid_at: position?.laidAt ?? null,
  serial: position?.serial ?? null,
  part: position?.part ?? null,
  dequeue_count: left.dequeueCount,
  partition: left.partition,
  dead_queue: position?.deadQueue ?? null,
  encoding: left.encoding,
  kind: left.kind,
  reference: left.reference,
  headers: left.headers,
  payload: left.payload,
})

const ONE = ['letter_id', ...Object.keys(ITEM), ...Object.keys(NOTE)]
const insertLetter = sql('letters.insert', {
  sqlite: `INSERT INTO letters (${LETTER}) SELECT ${FILED} FROM (SELECT ${ONE.map((column, i) => `$${i + 1} AS ${column}`).join(', ')})`,
})

export async function captureOne(
  work: OfficeWork,
  id: LetterId,
  note: DeathNote,
  death: Pick<Death, 'sourceId' | 'position'>,
  left: DeadItem,
): Promise<void> {
  const { tx, now } = work
  const row: GivenRow = { letter_id: id, ...itemRow(id, death, left), ...noteRow(note) }
  await tx.run(insertLetter, ...ONE.map((column) => row[column] ?? null))
  await tx.run(insertRecord, now, id, ...recordValues(note))
  noteCaptured(work, note, 1, id, id)
}

/** Fresh numbers for letters or cases, ascending. */
export const allocateLetterIds = async (tx: Transaction, count: number): Promise<readonly LetterId[]> =>
  (await takeNumbers(tx, 'letters', count)).map(letterId)

/** A death that brings its content: the source keeps its row, or has none here. */
export interface GivenDeath extends Death {
  readonly item: DeadItem
}

/** Letters are numbered in the given order. */
const takeGiven = captureStatement(
  'letters.capture',
  `taken AS MATERIALIZED (
     SELECT coalesce(id, nextval('bartleby.letter_ids')) AS letter_id, false AS skipped, remains.*
     FROM unnest($2::int[], ${listsOf(ITEM, 3)}) AS remains (note, ${Object.keys(ITEM).join(', ')})
   )`,
)

export const takingGiven = <D extends GivenDeath>(): Taking<D> => ({
  async end() {},
  all: (deaths, notes) => ({
    statement: takeGiven,
    values: [
      notes,
      ...columnsOf(
        ITEM,
        deaths.map((death) => itemRow(death.caseId, death, death.item)),
      ),
    ],
  }),
  each: async ({ item }) => item,
})
