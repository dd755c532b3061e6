/**
 * A report about a source id that has its letter. A *repetition* names a failure that is on file: the same error at the same time
 * or, where the reporter gives no time, at the same count of deliveries. It changes nothing, however late it arrives. Anything else
 * is a *new failure*: it stands on the letter from now on, the one before goes to the attempts, and a letter that was sent back,
 * discarded or expired is pending again.
 *
 * Which failure is newer is decided by the order in which reports arrive. Clocks of reporters are compared with nothing of ours.
 */

import { storableError } from '../core/content.ts'
import { isImported } from '../core/imported.ts'
import { type Integer, sql, type Transaction } from '../db/database.ts'
import { noteFailure, PLAIN_RECORD } from './bury.ts'
import type { DeathNote } from './capture.ts'
import { change, type Failed, NOBODY } from './change.ts'
import { lockLetter, readLetterById } from './detail.ts'
import type { Registers } from './drawers.ts'
import { type Letter, type LetterId, STATUS } from './letter.ts'
import type { FailureReport } from './report.ts'
import type { LetterSource } from './source.ts'
import type { OfficeWork } from './work.ts'

/** The failure on top and the newest ones before it, by primary key: as many as the case file shows. */
const readOnFile = sql(
  'letters.failureOnFile',
  // Where nobody noted the count of the failure on top, the letter's own stands for it: earlier versions filed it so.
  `SELECT 1 AS found FROM (
     SELECT last_failure_at AS failed_at, coalesce(reported_count, dequeue_count) AS reported_count, error_class, error_message,
       error_stack
     FROM bartleby.letters WHERE id = $1
     UNION ALL
     SELECT * FROM (
       SELECT failed_at, reported_count, error_class, error_message, error_stack FROM bartleby.letter_attempts
       WHERE letter_id = $1 ORDER BY letter_id DESC, number DESC LIMIT 1000) AS earlier
   ) AS failure
   WHERE error_class = $2 AND error_message = $3 AND error_stack IS NOT DISTINCT FROM $4
     AND (failed_at = $5 OR (CAST($5 AS bigint) IS NULL AND reported_count = $6)) LIMIT 1`,
  { bigints: true },
)

/** What is reported about a letter that there is; `sourceOf` gives the source that the letter goes back to. */
export interface KnownReport {
  readonly id: LetterId
  readonly report: FailureReport
  sourceOf(letter: Letter): LetterSource
}

/** Files the report. False when the letter is gone meanwhile, and the report has to be captured. */
export async function reportAgain(
  work: OfficeWork,
  registers: Registers,
  { id, report, sourceOf }: KnownReport,
): Promise<boolean> {
  const { tx } = work
  const seen = await readLetterById(tx, id)
  if (seen === null) return false
  if (await isRepetition(tx, seen, report)) return true
  const source = sourceOf(seen)
  // Items before letters, as the cycles of queues lock them.
  await source.disown?.(work, id)
  const letter = await lockLetter(tx, id)
  if (letter === null) return false
  if (letter.version !== seen.version) {
    // Perhaps somebody reported the same at once.
    if (await isRepetition(tx, letter, report)) return true
    await source.disown?.(work, id)
  }
  if (letter.status !== 'Pending') await source.moved(work, [letter], 'reopen')
  const failed: Failed = {
    ...{ id, engine: letter.engine, diedAs: null, grave: 'same' },
    before: { ...letter, status: STATUS[letter.status] },
    note: await noteOf(work, registers, letter, report),
    deliveries: deliveriesOf(letter, report) - letter.dequeueCount,
  }
  await change(work, 'reopen', [failed], NOBODY)
  return true
}

/** An import tells what another office knew: it is news when that failure is later than the last one here. */
async function isRepetition(tx: Transaction, letter: Letter, report: FailureReport): Promise<boolean> {
  const { sourceId, lastFailureAt, dequeueCount } = report
  const { errorClass, errorMessage, errorStack } = storableError(report)
  if (isImported(sourceId)) return lastFailureAt === null || lastFailureAt <= letter.lastFailureAt
  const found = await tx.rows<{ found: Integer }>(
    readOnFile,
    letter.id,
    errorClass,
    errorMessage,
    errorStack,
    lastFailureAt,
    dequeueCount,
  )
  return found.length > 0
}

/** The letter stays where it was filed: only what it failed of is new. */
function noteOf(
  work: OfficeWork,
  registers: Registers,
  { id, source, engine, originalQueue, status }: Letter,
  report: FailureReport,
): Promise<DeathNote> {
  const { errorClass, errorMessage, errorStack, failedBy, actor, firstFailureAt, sourceId } = report
  const lastFailureAt = report.lastFailureAt ?? work.now
  const isEarlier = firstFailureAt !== null && firstFailureAt < lastFailureAt
  const death = {
    cause: {
      source,
      engine,
      queue: originalQueue,
      reason: 'failed',
      errorClass,
      errorMessage,
      errorStack,
      failedBy,
      record: { ...PLAIN_RECORD, actor },
    },
    caseId: id,
    sourceId,
    diedAs: null,
    attempts: 0,
    grave: null,
    reportedCount: report.dequeueCount,
    firstFailureAt: isEarlier ? firstFailureAt : lastFailureAt,
    lastFailureAt,
  } as const
  return noteFailure(work, registers, death, status === 'Pending' ? 'capture' : 'reopen')
}

/** The largest count that the store holds. */
const MOST_DELIVERIES = 2_147_483_647

/**
 * All deliveries of a letter's life. Whoever was sent the letter back counts from one again. Otherwise a larger count goes on from
 * the one reported before, and any other begins anew.
 */
function deliveriesOf(letter: Letter, { sourceId, dequeueCount }: FailureReport): number {
  const { dequeueCount: before, reportedCount, resolution } = letter
  const isContinued = isImported(sourceId) || resolution !== 'retry'
  const counted = isContinued && reportedCount !== null && dequeueCount > reportedCount ? reportedCount : 0
  return Math.min(before + dequeueCount - counted, MOST_DELIVERIES)
}
