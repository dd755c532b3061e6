/** What history has about one letter. */
import { type Session, sql } from '../db/database.ts'
import type { HistorySummary } from './entry.ts'
import { captureOfLetter } from './plain-capture.ts'
import { type DetailRow, readSeriesLabels, SUMMARY_COLUMNS, summaryOf } from './rows.ts'

/** An entry about a letter: without input and output, which may be large. */
export interface LetterEvent extends HistorySummary {
  readonly actor: string | null
  readonly notes: string | null
  readonly error: string | null
  /** Which transition of the letter it records; null when it changed nothing. */
  readonly letterVersion: number | null
}

type EventRow = Omit<DetailRow, 'letter_id' | 'input' | 'output'>

/** The newest entries of a letter, on history_of_letter: all but the capture of a plain queue's. */
const readOfLetter = sql(
  'history.ofLetter',
  `SELECT ${SUMMARY_COLUMNS}, actor, notes, error, letter_version FROM bartleby.history
   WHERE letter_id = $1 AND history.correlation_id IS NOT NULL ORDER BY created_at DESC, id DESC LIMIT $2`,
  { bigints: true },
)

/** The newest `limit` entries about a letter, the newest first. */
export async function historyOfLetter(
  session: Session,
  letterId: bigint,
  limit: number,
): Promise<LetterEvent[]> {
  const rows = await session.rows<EventRow>(readOfLetter, letterId, limit)
  // After the rows: a series is there before its first row.
  const labels = await readSeriesLabels(session)
  // The capture is the oldest of all.
  const capture = rows.length < limit ? await captureOfLetter(session, labels, letterId) : null
  if (capture !== null) rows.push(capture)
  return rows.map((row) => ({
    ...summaryOf(row, labels),
    actor: row.actor,
    notes: row.notes,
    error: row.error,
    letterVersion: row.letter_version === null ? null : Number(row.letter_version),
  }))
}
