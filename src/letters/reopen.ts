/**
 * A letter whose retried item died again is the same case: it is pending again, with the new failure on top and the
 * old one among its attempts.
 */
import { type Instant, instant } from '../core/clock.ts'
import { base64 } from '../core/content.ts'
import { type Integer, integerList, sql, type Transaction, type Value } from '../db/database.ts'
import { freeAt } from '../history/record.ts'
import type { DeathNote } from './death-note.ts'
import { type Act, isUnconfirmed, type LetterId, letterId, type SourceName, STATUS } from './letter.ts'
import type { OfficeWork } from './work.ts'

/** A death under a case that has a letter. */
export interface Relapse {
  readonly letterId: LetterId
  readonly note: DeathNote
  /** The id that the item had when it died; null when nobody knows it any more. */
  readonly diedAs: string | null
  /** Deliveries since it was sent back. */
  readonly attempts: number
  readonly grave: {
    readonly deadQueue: string
    readonly part: number
    readonly serial: number
    readonly laidAt: Instant
  } | null
  /** The instant of its history row; left out, that of its last failure. */
  readonly recordedAt?: Instant
}

/** Letters by primary key, locked in the order of their numbers. */
const lockCases = sql('letters.lockCases', {
  postgres: 'SELECT id FROM bartleby.letters WHERE id = ANY($1::bigint[]) ORDER BY id FOR UPDATE',
  sqlite: 'SELECT id FROM letters WHERE id IN (SELECT value FROM json_each($1))',
})

/** What they say; as in `lockLetter`, not by the statement that waits for their locks. */
const readCases = sql(
  'letters.readCases',
  {
    postgres: `SELECT id, drawer, status, resolved_at, resolution, confirmed_at, redrive, engine, dead_queue, sent_as,
                 (SELECT source FROM bartleby.drawers WHERE drawers.id = drawer) AS source,
                 (SELECT queue FROM bartleby.drawers WHERE drawers.id = drawer) AS queue
               FROM bartleby.letters WHERE id = ANY($1::bigint[]) ORDER BY id`,
    sqlite: `SELECT letters.id, drawer, status, resolved_at, resolution, confirmed_at, redrive, source, letters.engine, queue,
               dead_queue, sent_as
             FROM letters JOIN drawers ON drawers.id = letters.drawer
             WHERE letters.id IN (SELECT value FROM json_each($1)) ORDER BY letters.id`,
  },
  { bigints: true },
)

export interface CaseRow {
  readonly id: LetterId
  readonly drawer: number
  readonly status: number
  readonly resolvedAt: Instant | null
  readonly resolution: Act | null
  readonly confirmedAt: Instant | null
  /** The redrive that sent it back last. */
  readonly redrive: number | null
  readonly source: SourceName
  readonly engine: string
  readonly queue: string
  /** The dead queue that it belongs to. */
  readonly deadQueue: string | null
  /** What its latest retry made. */
  readonly sentAs: string | null
}

interface StoredCase {
  readonly id: Integer
  readonly drawer: Integer
  readonly status: Integer
  readonly resolved_at: Integer | null
  readonly resolution: Act | null
  readonly confirmed_at: Integer | null
  readonly redrive: Integer | null
  readonly source: SourceName
  readonly engine: string
  readonly queue: string
  readonly dead_queue: string | null
  readonly sent_as: string | null
}

/** A letter as it is once its item has been sent back. */
export const sentBack = (letter: CaseRow): CaseRow => ({
  ...letter,
  status: STATUS.Resolved,
  resolution: 'retry',
  confirmedAt: null,
})

/** A letter as it is once it was reopened into a drawer. */
export const reopenedIn = (letter: CaseRow, drawer: number): CaseRow => ({
  ...letter,
  drawer,
  status: STATUS.Pending,
  resolution: null,
  confirmedAt: null,
})

/** Locks the letters of these cases until the transaction ends, as far as there are any. */
export async function lockLetters(tx: Transaction, ids: readonly LetterId[]): Promise<void> {
  // SQLite has one writer.
  if (ids.length > 0 && tx.dialect === 'postgres') {
    await tx.rows(lockCases, integerList(tx.dialect, ids.map(Number)))
  }
}

/** The letters of these cases, as far as there are any, locked until the transaction ends. */
export async function lockLettersOf(
  tx: Transaction,
  caseIds: readonly LetterId[],
): Promise<Map<LetterId, CaseRow>> {
  if (caseIds.length === 0) return new Map()
  const ids = integerList(tx.dialect, caseIds.map(Number))
  const [, rows] = await Promise.all([tx.rows(lockCases, ids), tx.rows<StoredCase>(readCases, ids)])
  return new Map(
    rows.map(({ resolved_at, confirmed_at, dead_queue, sent_as, ...row }) => [
      letterId(row.id),
      {
        ...row,
        id: letterId(row.id),
        drawer: Number(row.drawer),
        status: Number(row.status),
        resolvedAt: resolved_at === null ? null : instant(BigInt(resolved_at)),
        confirmedAt: confirmed_at === null ? null : instant(BigInt(confirmed_at)),
        redrive: row.redrive === null ? null : Number(row.redrive),
        deadQueue: dead_queue,
        sentAs: sent_as,
      },
    ]),
  )
}

/** The failure that stands on a letter goes to its attempts; one look into their primary key each. */
const keepFailures = sql('letters.keepFailures', {
  postgres: `
    INSERT INTO bartleby.letter_attempts
      (letter_id, number, failed_at, superseded_at, failed_by, error_class, error_message, error_stack, reported_count)
    SELECT id, coalesce((SELECT max(number) FROM bartleby.letter_attempts WHERE letter_id = letters.id), 0) + 1,
      last_failure_at, $2, failed_by, error_class, error_message, error_stack, reported_count
    FROM bartleby.letters WHERE id = ANY($1::bigint[])`,
  sqlite: `
    INSERT INTO letter_attempts
      (letter_id, number, failed_at, superseded_at, failed_by, error_class, error_message, error_stack, reported_count)
    SELECT id, coalesce((SELECT max(number) FROM letter_attempts WHERE letter_id = letters.id), 0) + 1,
      last_failure_at, $2, failed_by, error_class, error_message, error_stack, reported_count
    FROM letters WHERE id IN (SELECT value FROM json_each($1))`,
})

const REOPENED = `status = ${STATUS.Pending}, version = version + 1, dequeue_count = dequeue_count + relapse.attempts,
  drawer = relapse.drawer, last_failure_at = relapse.last_failure_at, reason = relapse.reason,
  error_class = relapse.error_class, error_message = relapse.error_message, error_stack = relapse.error_stack,
  failed_by = relapse.failed_by, died_as = relapse.died_as, dead_queue = relapse.dead_queue, part = relapse.part, serial = relapse.serial,
  shelf = relapse.shelf, laid_at = relapse.laid_at, leased = 0, lease_deadline = NULL, attempts = 0, enqueue_at = NULL,
  reported_count = NULL, resolved_at = NULL, resolved_by = NULL, resolution = NULL, notes = NULL, confirmed_at = NULL, expired_at = NULL`

/** Rewrites letters by primary key, which the list of ids insists on: a join alone may read all letters. */
const reopenMany = sql('letters.reopenMany', {
  postgres: `
    UPDATE bartleby.letters SET ${REOPENED.replaceAll(/(dequeue_count|version) \+/g, 'letters.$1 +')}
    FROM jsonb_to_recordset($1::jsonb) AS relapse (
      id bigint, attempts int, drawer int, last_failure_at bigint, reason text, error_class text, error_message text,
      error_stack text, failed_by text, died_as text, dead_queue text, part int, serial bigint, shelf smallint,
      laid_at bigint)
    WHERE letters.id = relapse.id
      AND letters.id = ANY(ARRAY(SELECT id FROM jsonb_to_recordset($1::jsonb) AS each (id bigint)))`,
  sqlite: '',
})

const reopenOne = sql('letters.reopenOne', {
  postgres: '',
  sqlite: `UPDATE letters SET ${REOPENED.replaceAll(/(dequeue_count|version) \+/g, 'letters.$1 +')}
    FROM (SELECT $1 AS id, $2 AS attempts, $3 AS drawer, $4 AS last_failure_at, $5 AS reason, $6 AS error_class,
      $7 AS error_message, $8 AS error_stack, $9 AS failed_by, $10 AS dead_queue, $11 AS part, $12 AS serial,
      $13 AS shelf, $14 AS laid_at, $15 AS died_as) AS relapse
    WHERE letters.id = relapse.id`,
})

const CORRELATION_ID = 'coalesce(letters.correlation_id, letters.source_id)'

/** The history of reopened letters; their correlation and instance are the letters'. */
const recordMany = sql('letters.recordReopened', {
  postgres: `
    INSERT INTO bartleby.history (created_at, duration_ms, letter_id, series, letter_version, correlation_id, instance_id,
      actor, error, input, output)
    SELECT ${freeAt(CORRELATION_ID, 'relapse.recorded_at', 'letters.id')}
        + row_number() OVER (PARTITION BY ${CORRELATION_ID} ORDER BY letters.id) - 1,
      relapse.duration_ms, letters.id, relapse.series, letters.version,
      ${CORRELATION_ID}, letters.instance_id, relapse.actor, relapse.error,
      decode(relapse.input, 'base64'), decode(relapse.output, 'base64')
    FROM jsonb_to_recordset($1::jsonb) AS relapse (
      id bigint, recorded_at bigint, series int, duration_ms bigint, actor text, error text, input text, output text)
    JOIN bartleby.letters ON letters.id = relapse.id
      AND letters.id = ANY(ARRAY(SELECT id FROM jsonb_to_recordset($1::jsonb) AS each (id bigint)))`,
  sqlite: '',
})
const recordOne = sql('letters.recordReopenedOne', {
  postgres: '',
  sqlite: `
    INSERT INTO history (created_at, duration_ms, letter_id, series, letter_version, correlation_id, instance_id, actor,
      error, input, output)
    SELECT ${freeAt(CORRELATION_ID, '$2', 'letters.id')}, $3, id, $4, version, ${CORRELATION_ID}, instance_id, $5, $6, $7, $8
    FROM letters WHERE id = $1`,
})

/** Reopens the letters of these deaths; `cases` are those letters, locked. */
export async function reopenLetters(
  work: OfficeWork,
  relapses: readonly Relapse[],
  cases: ReadonlyMap<LetterId, CaseRow>,
): Promise<void> {
  if (relapses.length === 0) return
  const { tx, now } = work
  const ids = integerList(
    tx.dialect,
    relapses.map((relapse) => Number(relapse.letterId)),
  )
  await tx.run(keepFailures, ids, now)
  if (tx.dialect === 'postgres') {
    const rows = JSON.stringify(relapses.map(toRow))
    await tx.run(reopenMany, rows)
    await tx.run(recordMany, rows)
  } else {
    await tx.runEach(reopenOne, relapses.map(toValues))
    await tx.runEach(recordOne, relapses.map(toRecord))
  }
  for (const { letterId: id, note } of relapses) {
    const before = cases.get(id)
    if (before === undefined) throw new Error(`letter ${id} is not there to be reopened`)
    countFailure(work, before, note)
  }
}

/** Files the failure that stands on a locked letter among its attempts: a newer one takes its place. */
export async function keepFailure({ tx, now }: OfficeWork, id: LetterId): Promise<void> {
  await tx.run(keepFailures, integerList(tx.dialect, [Number(id)]), now)
}

/** Counts a letter that failed again, whatever it was before: it is pending in the drawer of the note. */
export function countFailure({ letters }: OfficeWork, before: CaseRow, note: DeathNote): void {
  letters.add(before.drawer, before.status, -1)
  letters.add(note.drawer, STATUS.Pending, 1, note.lastFailureAt)
  letters.toFile(before.id, before.id)
  if (before.resolution !== 'retry') return
  // Told of the drawer that it was sent back from, whatever it died of this time: so retries and what came of them add up.
  letters.acted('returned', before.drawer, 1)
  if (isUnconfirmed(before)) letters.add(before.drawer, STATUS.unconfirmed, -1)
  // Its item was completed, and then somebody reported that it had failed.
  else letters.ended(before.redrive, 'confirmed', -1)
  letters.ended(before.redrive, 'returned')
}

const toRow = ({ letterId: id, note, diedAs, attempts, grave, recordedAt }: Relapse) => ({
  // As text: JSON numbers would lose the digits beyond 2^53.
  id: id.toString(),
  attempts,
  drawer: note.drawer,
  series: note.series,
  last_failure_at: note.lastFailureAt.toString(),
  reason: note.reason,
  error_class: note.errorClass,
  error_message: note.errorMessage,
  error_stack: note.errorStack,
  failed_by: note.failedBy,
  died_as: diedAs,
  dead_queue: grave?.deadQueue ?? null,
  part: grave?.part ?? null,
  serial: grave?.serial ?? null,
  shelf: grave === null ? null : 0,
  laid_at: grave?.laidAt.toString() ?? null,
  recorded_at: (recordedAt ?? note.lastFailureAt).toString(),
  duration_ms: Math.round(note.record.durationMs),
  actor: note.record.actor,
  error: note.errorMessage,
  input: base64(note.record.input),
  output: base64(note.record.output),
})

const toValues = ({ letterId: id, note, diedAs, attempts, grave }: Relapse): Value[] => [
  id,
  attempts,
  note.drawer,
  note.lastFailureAt,
  note.reason,
  note.errorClass,
  note.errorMessage,
  note.errorStack,
  note.failedBy,
  grave?.deadQueue ?? null,
  grave?.part ?? null,
  grave?.serial ?? null,
  grave === null ? null : 0,
  grave?.laidAt ?? null,
  diedAs,
]

const toRecord = ({ letterId: id, note, recordedAt }: Relapse): Value[] => [
  id,
  recordedAt ?? note.lastFailureAt,
  Math.round(note.record.durationMs),
  note.series,
  note.record.actor,
  note.errorMessage,
  note.record.input,
  note.record.output,
]
