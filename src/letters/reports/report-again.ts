/**
 * Reports about a source id that has its letter. A *repetition* names a failure on file: the same error at the same time or, without a
 * time, at the same count of deliveries. It changes nothing, however late. Anything else is a *new failure*: it replaces the one on the
 * letter, which joins the attempts, and a letter that was sent back, discarded or expired is pending again.
 *
 * Reports are ordered by arrival. Reporters' clocks are never compared with ours.
 */

import type { Instant } from '../../core/clock.ts'
import { storableError } from '../../core/content.ts'
import { isImported } from '../../core/source-id.ts'
import { sql, type Transaction } from '../../store/database.ts'
import { rowsGiven } from '../../store/idioms.ts'
import { at, integer, oneOf, orNull, type RowOf, rowShape } from '../../store/row.ts'
import { type Cause, type Death, noteFailures, PLAIN_RECORD } from '../bury.ts'
import { change, type Failed, NOBODY } from '../change.ts'
import type { SourceName } from '../kinds.ts'
import { type Act, type InDeadQueue, type LetterId, STATUS } from '../letter.ts'
import { POSITION, positionOf } from '../lists/detail.ts'
import { type CaseRow, lockLettersOf } from '../locked.ts'
import type { OfficeWork } from '../work.ts'
import type { CaptureDesk } from './intake.ts'
import type { FailureReport } from './report.ts'

const ON_FILE = rowShape({
  ...POSITION,
  version: integer,
  lastFailureAt: at,
  dequeueCount: integer,
  reportedCount: orNull(integer),
  resolution: orNull(oneOf<Act>()),
})

/** Letters with their source, and whether the failure is the current one or among those that the case file shows; all by primary key. */
const readOnFile = sql(
  'letters.onFile',
  // Earlier versions noted no count: the letter's own stands for it.
  `SELECT ${ON_FILE.columns.replace(/\w+/g, 'letters.$&')}, (SELECT source FROM bartleby.drawers WHERE drawers.id = letters.drawer) AS source, (
     SELECT 1 FROM (
       SELECT letters.last_failure_at AS failed_at, coalesce(letters.reported_count, letters.dequeue_count) AS reported_count,
         letters.error_class, letters.error_message, letters.error_stack
       UNION ALL
       SELECT * FROM (
         SELECT failed_at, reported_count, error_class, error_message, error_stack FROM bartleby.letter_attempts
         WHERE letter_id = given.id ORDER BY letter_id DESC, number DESC LIMIT 1000) AS earlier
     ) AS failure
     WHERE error_class = given.error_class AND error_message = given.error_message
       AND error_stack IS NOT DISTINCT FROM given.error_stack
       AND (failed_at = given.failed_at OR (given.failed_at IS NULL AND failure.reported_count = given.reported_count))
     LIMIT 1) AS found
   FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::int[]) AS given (id, error_class, error_message, error_stack, failed_at, reported_count), bartleby.letters
   WHERE letters.id = given.id`,
  { bigints: true },
)

interface KnownReport {
  readonly id: LetterId
  readonly report: FailureReport
}

interface OnFile extends RowOf<typeof ON_FILE> {
  readonly source: SourceName
  readonly isRepetition: boolean
}

/** Files reports, each about another letter. Returns letters that still exist; the others must be captured. */
export async function reportAgain(
  work: OfficeWork,
  desk: CaptureDesk,
  reports: readonly KnownReport[],
): Promise<ReadonlySet<LetterId>> {
  if (reports.length === 0) return new Set()
  const { tx } = work
  const seen = await onFile(tx, reports)
  const news = reports.filter(({ id }) => seen.get(id)?.isRepetition === false)
  if (news.length === 0) return new Set(seen.keys())
  const ids = news.map(({ id }) => id)
  // Items before letters, as cycles of queues lock them.
  await disown(work, desk, ids, seen)
  const [cases, locked] = await Promise.all([lockLettersOf(tx, ids), onFile(tx, news)])
  const failures = news.flatMap(({ id, report }) => {
    const [before, letter] = [cases.get(id), locked.get(id)]
    // Somebody may have reported the same at once.
    return before === undefined || letter === undefined || letter.isRepetition
      ? []
      : { before, letter, report, ...deathOf(work, before, report) }
  })
  const sentSince = failures.filter(({ letter: { id, version } }) => version !== seen.get(id)?.version)
  await disown(
    work,
    desk,
    sentSince.map(({ letter }) => letter.id),
    locked,
  )
  const notes = await noteFailures(work, desk.registers, failures)
  const failed = failures.flatMap(({ before, letter, report }, i): Failed | [] => {
    const note = notes[i]
    if (note === undefined) return []
    const deliveries = deliveriesOf(letter, report) - letter.dequeueCount
    return { id: letter.id, engine: before.engine, diedAs: null, position: 'same', before, note, deliveries }
  })
  const reopened = failures.flatMap(({ before, letter }): (InDeadQueue & Pick<OnFile, 'source'>)[] =>
    before.status === STATUS.Pending ? [] : [{ ...letter, position: positionOf(letter) }],
  )
  for (const [source, letters] of Map.groupBy(reopened, ({ source }) => source))
    await desk.sourceOf(source).moved(work, letters, 'reopen')
  await change(work, 'reopen', failed, NOBODY)
  const gone = new Set(ids.filter((id) => !locked.has(id)))
  return new Set([...seen.keys()].filter((id) => !gone.has(id)))
}

/** Takes items of retries out of the way, one source at a time. */
async function disown(
  work: OfficeWork,
  desk: CaptureDesk,
  ids: readonly LetterId[],
  letters: ReadonlyMap<LetterId, OnFile>,
): Promise<void> {
  const bySource = Map.groupBy(ids, (id) => letters.get(id)?.source)
  for (const [source, those] of [...bySource].sort())
    if (source !== undefined) await desk.sourceOf(source).disown?.(work, those)
}

async function onFile(
  tx: Transaction,
  reports: readonly KnownReport[],
): Promise<ReadonlyMap<LetterId, OnFile>> {
  const byId = new Map(reports.map(({ id, report }) => [id, report]))
  const asked = reports.map(({ id, report }) => {
    const { errorClass, errorMessage, errorStack } = storableError(report)
    return {
      ...{ id, error_class: errorClass, error_message: errorMessage, error_stack: errorStack },
      ...{ failed_at: report.lastFailureAt, reported_count: report.dequeueCount },
    }
  })
  type Row = Pick<OnFile, 'source'> & { readonly found: unknown }
  const rows = await rowsGiven<Row>(tx, readOnFile, asked)
  return new Map(
    rows.map((row) => {
      const letter = ON_FILE.read(row)
      const report = byId.get(letter.id)
      const isRepetition =
        report !== undefined && isImported(report.sourceId)
          ? isOld(report, letter.lastFailureAt)
          : row.found !== null
      return [letter.id, { ...letter, source: row.source, isRepetition }]
    }),
  )
}

/** An import is news when its failure is later than the last one here. */
const isOld = ({ lastFailureAt }: FailureReport, last: Instant): boolean =>
  lastFailureAt === null || lastFailureAt <= last

export const causeOf = (
  { errorClass, errorMessage, errorStack, failedBy, actor }: FailureReport,
  where: Pick<Cause, 'source' | 'engine' | 'queue'>,
): Cause => ({
  ...where,
  ...{ reason: 'failed', errorClass, errorMessage, errorStack, failedBy },
  record: { ...PLAIN_RECORD, actor },
})

/** The letter stays in its place; only the failure is new. */
function deathOf(
  work: OfficeWork,
  { id, source, engine, queue, status }: CaseRow,
  report: FailureReport,
): { readonly death: Death; readonly operation: string } {
  const { firstFailureAt, sourceId } = report
  const lastFailureAt = report.lastFailureAt ?? work.now
  const isEarlier = firstFailureAt !== null && firstFailureAt < lastFailureAt
  const death: Death = {
    cause: causeOf(report, { source, engine, queue: queue || null }),
    caseId: id,
    sourceId,
    diedAs: null,
    attempts: 0,
    position: null,
    reportedCount: report.dequeueCount,
    firstFailureAt: isEarlier ? firstFailureAt : lastFailureAt,
    lastFailureAt,
  }
  return { death, operation: status === STATUS.Pending ? 'capture' : 'reopen' }
}

const MOST_DELIVERIES = 2_147_483_647

/** Deliveries over a letter's life. A larger count continues the reported one; a smaller one, or one after a retry, starts anew. */
function deliveriesOf(letter: OnFile, { sourceId, dequeueCount }: FailureReport): number {
  const { dequeueCount: before, reportedCount, resolution } = letter
  const isContinued = isImported(sourceId) || resolution !== 'retry'
  const counted = isContinued && reportedCount !== null && dequeueCount > reportedCount ? reportedCount : 0
  return Math.min(before + dequeueCount - counted, MOST_DELIVERIES)
}
