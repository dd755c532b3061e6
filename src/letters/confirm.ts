/**
 * The cases of live items: their failures are filed while they are tried again, and when the item completes, the
 * letter it was sent back from is confirmed. A case that never became a letter is closed with its item.
 */
import type { Instant } from '../core/clock.ts'
import { storable } from '../core/content.ts'
import type { ErrorDescription } from '../core/thrown.ts'
import { type HistoryEntry, recordHistory } from '../history/record.ts'
import { type Session, sql, type Transaction } from '../store/database.ts'
import { at, flag, integer, oneOf, orNull, type RowOf, rowShape, text } from '../store/row.ts'
import { change, NOBODY } from './change.ts'
import { type Act, isUnconfirmed, type LetterId, letterId } from './letter.ts'
import type { OfficeWork } from './work.ts'

/** What a letter says of whether it was sent back. */
const SENT = rowShape({
  id: letterId,
  engine: text,
  drawer: integer,
  status: integer,
  resolution: orNull(oneOf<Act>()),
  confirmedAt: orNull(at),
  redrive: orNull(integer),
})

/** The failures of cases without a letter, by primary key. Not NOT EXISTS: PostgreSQL may make a join with all letters of it. */
const removeFailures = sql(
  'cases.close',
  `DELETE FROM bartleby.letter_attempts WHERE letter_id = ANY($1::bigint[])
   AND (SELECT true FROM bartleby.letters WHERE id = letter_id) IS NULL`,
)

/** Letters by primary key, locked in the order of their numbers. */
const lockSent = sql(
  'letters.lockSent',
  `SELECT ${SENT.columns} FROM bartleby.letters WHERE id = ANY($1::bigint[]) ORDER BY id FOR UPDATE`,
  { bigints: true },
)

/**
 * The items of these cases completed: what was sent back is confirmed. `runs` are the history rows of the runs that did it, by case:
 * each doubles as the row of a confirmation.
 */
export async function closeCasesOf(
  work: OfficeWork,
  caseIds: readonly LetterId[],
  runs: ReadonlyMap<LetterId, HistoryEntry>,
): Promise<void> {
  if (caseIds.length === 0) return
  const sent = (await SENT.all(work.tx, lockSent, caseIds)).filter(isUnconfirmed)
  const confirmed = sent.map((before) => ({
    ...{ id: before.id, engine: before.engine, run: runs.get(before.id), before },
  }))
  await change(work, 'confirm', confirmed, NOBODY)
  const ids = new Set(sent.map(({ id }) => id))
  const others = caseIds.filter((id) => !ids.has(id))
  await recordHistory(
    work.tx,
    others.flatMap((id) => runs.get(id) ?? []),
  )
  await closeCases(work.tx, others)
}

/** The items of these cases are gone: what is on file about them goes too, unless it belongs to a letter. */
export async function closeCases(tx: Transaction, caseIds: readonly LetterId[]): Promise<void> {
  if (caseIds.length === 0) return
  await tx.run(removeFailures, caseIds)
}

/** Several of one case are numbered in the order given; one look into their primary key each. */
const fileFailures = sql(
  'cases.fileFailure',
  `INSERT INTO bartleby.letter_attempts
     (letter_id, number, failed_at, failed_by, error_class, error_message, error_stack, correlation_id)
   SELECT failure.id, coalesce((SELECT max(number) FROM bartleby.letter_attempts WHERE letter_id = failure.id), 0) + failure.place,
     failure.failed_at, failure.failed_by, failure.error_class, failure.error_message, failure.error_stack, failure.correlation_id
   FROM jsonb_to_recordset($1::jsonb) AS failure (
     id bigint, place int, failed_at bigint, failed_by text, error_class text, error_message text, error_stack text,
     correlation_id text)`,
)

/** A failure of an item that lives on. */
export interface CaseFailure extends ErrorDescription {
  readonly caseId: LetterId
  /** Left out: now. */
  readonly failedAt?: Instant
  readonly failedBy: string | null
  readonly correlationId: string | null
}

const MAX_TEXT_BYTES = 32_768

/** Adds failures to the cases of their items. */
export async function fileCaseFailures(work: OfficeWork, failures: readonly CaseFailure[]): Promise<void> {
  if (failures.length === 0) return
  const places = new Map<LetterId, number>()
  const placeOf = (id: LetterId): number => {
    const place = (places.get(id) ?? 0) + 1
    places.set(id, place)
    return place
  }
  const rows = failures.map((failure) => ({
    id: Number(failure.caseId),
    place: placeOf(failure.caseId),
    // As text: JSON numbers would lose the digits beyond 2^53.
    failed_at: (failure.failedAt ?? work.now).toString(),
    failed_by: failure.failedBy,
    error_class: storable(failure.errorClass, 256),
    error_message: storable(failure.errorMessage, MAX_TEXT_BYTES),
    error_stack: failure.errorStack === null ? null : storable(failure.errorStack, MAX_TEXT_BYTES),
    correlation_id: failure.correlationId,
  }))
  await work.tx.run(fileFailures, JSON.stringify(rows))
}

const CASE = rowShape({ id: letterId, correlationId: orNull(text), firstFailureAt: at, ofLetter: flag })
export type Case = Pick<RowOf<typeof CASE>, 'correlationId' | 'firstFailureAt'>

/** The first failures of cases, and their letters as far as there are any, by primary key. */
const readFirst = sql(
  'cases.read',
  `SELECT letter_id AS id, correlation_id, failed_at AS first_failure_at, 0 AS of_letter FROM bartleby.letter_attempts
   WHERE letter_id = ANY($1::bigint[]) AND number = 1
   UNION ALL
   SELECT id, coalesce(correlation_id, source_id), first_failure_at, 1 FROM bartleby.letters WHERE id = ANY($1::bigint[])`,
  { bigints: true },
)

/** What is on file about an item that failed before; null when there is nothing. */
export async function readCase(session: Session, caseId: LetterId): Promise<Case | null> {
  return (await readCases(session, [caseId])).get(caseId) ?? null
}

/** The same for many; those about which there is nothing are left out. */
export async function readCases(
  session: Session,
  caseIds: readonly LetterId[],
): Promise<ReadonlyMap<LetterId, Case>> {
  if (caseIds.length === 0) return new Map()
  const found = await CASE.all(session, readFirst, caseIds)
  // What a letter says comes last, and counts.
  const ordered = found.sort((a, b) => Number(a.ofLetter) - Number(b.ofLetter))
  return new Map(ordered.map(({ id, ofLetter: _, ...read }) => [id, read]))
}
