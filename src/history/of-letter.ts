/** What history has about one letter. */
import { type Integer, type Session, sql } from '../db/database.ts'
import type { HistorySummary } from './entry.ts'
import { readSeriesLabels, SUMMARY_COLUMNS, type SummaryRow, summaryOf } from './rows.ts'

/** An entry about a letter: without input and output, which may be large. */
export interface LetterEvent extends HistorySummary {
  readonly actor: string | null
  readonly notes: string | null
  readonly error: string | null
  /** Which transition of the letter it records; null when it changed nothing. */
  readonly letterVersion: number | null
}

interface EventRow extends SummaryRow {
  readonly actor: string | null
  readonly notes: string | null
  readonly error: string | null
  readonly letter_version: Integer | null
}

/** The newest entries of a letter, on history_of_letter; a range, so that no other order will do on PostgreSQL. */
const readOfLetter = sql(
  'history.ofLetter',
  {
    postgres: `SELECT ${SUMMARY_COLUMNS}, actor, notes, error, letter_version FROM bartleby.history 
               WHERE letter_id >= $1 AND letter_id <= $1 ORDER BY letter_id DESC, created_at DESC, id DESC LIMIT $2`,
    sqlite: `SELECT ${SUMMARY_COLUMNS}, actor, notes, error, letter_version FROM history INDEXED BY history_of_letter
             WHERE letter_id = $1 ORDER BY created_at DESC, id DESC LIMIT $2`,
  },
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
  return rows.map((row) => ({
    ...summaryOf(row, labels),
    actor: row.actor,
    notes: row.notes,
    error: row.error,
    letterVersion: row.letter_version === null ? null : Number(row.letter_version),
  }))
}
