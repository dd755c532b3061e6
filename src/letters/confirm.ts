/** Cases of live items: their failures while they are retried. A completed item confirms the letter it came from, or closes its case. */
import type { Instant } from '../core/clock.ts'
import { storable } from '../core/content.ts'
import type { ErrorDescription } from '../core/thrown.ts'
import { type HistoryEntry, recordHistory } from '../history/record.ts'
import { type Session, sql, type Transaction } from '../store/database.ts'
import { at, flag, integer, oneOf, orNull, type RowOf, rowShape, text } from '../store/row.ts'
import { change, NOBODY } from './change.ts'
import { type Act, isUnconfirmed, type LetterId, letterId } from './letter.ts'
import type { OfficeWork } from './work.ts'

const SENT = rowShape({
  id: letterId,
  engine: text,
  drawer: integer,
  status: integer,
  resolution: orNull(oneOf<Act>()),
  confirmedAt: orNull(at),
  redrive: orNull(integer),
})

/** Failures of cases without a letter, by primary key. Not NOT EXISTS: PostgreSQL may join all letters for it. */
const removeFailures = sql(
  'cases.close',
  `DELETE FROM bartleby.letter_attempts WHERE letter_id = ANY($1::bigint[])
   AND (SELECT true FROM bartleby.letters WHERE id = letter_id) IS NULL`,
)

/** By primary key, locked in the order of their numbers. */
const lockSent = sql(
  'letters.lockSent',
  `SELECT ${SENT.columns} FROM bartleby.letters WHERE id = ANY($1::bigint[]) ORDER BY id FOR UPDATE`,
  { bigints: true },
)

/** Items completed: letters that were sent back are confirmed. `runs` are history rows by case; each doubles as that of a confirmation. */
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

/** Items are gone: their failures go too, unless a letter has them. */
export async function closeCases(tx: Transaction, caseIds: readonly LetterId[]): Promise<void> {
  if (caseIds.length === 0) return
  await tx.run(removeFailures, caseIds)
}

/** Failures of one case are numbered in the given order; one look into their primary key each. */
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

export interface CaseFailure extends ErrorDescription {
  readonly caseId: LetterId
  /** Left out: now. */
  readonly failedAt?: Instant
  readonly failedBy: string | null
  readonly correlationId: string | null
}

const MAX_TEXT_BYTES = 32_768

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
    // Text: JSON numbers lose digits beyond 2^53.
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

/** First failures of cases and their letters, by primary key. */
const readFirst = sql(
  'cases.read',
  `SELECT letter_id AS id, correlation_id, failed_at AS first_failure_at, 0 AS of_letter FROM bartleby.letter_attempts
   WHERE letter_id = ANY($1::bigint[]) AND number = 1
   UNION ALL
   SELECT id, coalesce(correlation_id, source_id), first_failure_at, 1 FROM bartleby.letters WHERE id = ANY($1::bigint[])`,
  { bigints: true },
)

/** null: nothing on file. */
export async function readCase(session: Session, caseId: LetterId): Promise<Case | null> {
  return (await readCases(session, [caseId])).get(caseId) ?? null
}

/** Cases without anything on file are left out. */
export async function readCases(
  session: Session,
  caseIds: readonly LetterId[],
): Promise<ReadonlyMap<LetterId, Case>> {
  if (caseIds.length === 0) return new Map()
  const found = await CASE.all(session, readFirst, caseIds)
  // A letter overrides its attempts.
  const ordered = found.sort((a, b) => Number(a.ofLetter) - Number(b.ofLetter))
  return new Map(ordered.map(({ id, ofLetter: _, ...read }) => [id, read]))
}
