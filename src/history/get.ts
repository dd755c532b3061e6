/** One entry of history, by its engine and row key, and what history has about one letter. */
import { instant } from '../core/clock.ts'
import { failure } from '../core/errors.ts'
import { formatRowKey, keyNumber, parseRowKey, type RowKey } from '../core/row-key.ts'
import { type Integer, type Session, sql } from '../store/database.ts'
import {
  DETAIL_COLUMNS,
  type DetailRow,
  type HistoryDetail,
  type HistorySummary,
  readSeriesLabels,
  type SeriesLabels,
  SUMMARY_COLUMNS,
  summaryOf,
} from './entry.ts'
import { captureOfLetter, captureOfSource, PLAIN_ENGINE } from './plain-capture.ts'

/** The row with a number among those of a moment in some series, by primary key. */
const readByNumber = sql(
  'history.byNumber',
  `SELECT ${DETAIL_COLUMNS} FROM bartleby.history
   WHERE series = ANY($1::int[]) AND created_at = $2 AND id = $3 AND short_key IS NULL`,
  { bigints: true },
)

/** Of earlier versions, the rows of one correlation id and microsecond, on the index of correlation ids: one of each engine at most. */
const readByShortKey = sql(
  'history.byShortKey',
  `SELECT ${DETAIL_COLUMNS} FROM bartleby.history
   WHERE history.correlation_id = $1 AND created_at = $2 AND short_key = 1`,
  { bigints: true },
)

/** What the row key of a letter is made of, by primary key. */
const readLetterKey = sql(
  'history.letterKey',
  'SELECT engine, coalesce(instance_id, source_id) AS name, captured_at, short_key FROM bartleby.letters WHERE id = $1',
  { bigints: true },
)

/** The entry; a failure when there is none. */
export async function getHistory(session: Session, engine: string, rowKey: string): Promise<HistoryDetail> {
  const unknown = () => failure('history_unknown', { engine, rowKey })
  const key = parseRowKey(rowKey)
  // No store keeps a null character in a name.
  if (key === null || key.name.includes('\0')) throw unknown()
  const labels = await readSeriesLabels(session)
  const row = await (key.number === null
    ? rowOfShortKey(session, labels, engine, key)
    : rowOfNumber(session, labels, engine, key, key.number))
  if (row === undefined) throw unknown()
  return {
    ...summaryOf(row, labels),
    input: row.input,
    output: row.output,
    error: row.error,
    actor: row.actor,
    notes: row.notes,
    letter: row.letter_id === null ? null : await letterKey(session, row.letter_id),
  }
}

async function rowOfNumber(
  session: Session,
  labels: SeriesLabels,
  engine: string,
  key: RowKey,
  number: bigint,
): Promise<DetailRow | undefined> {
  const series = [...labels].filter(([, label]) => label.engine === engine).map(([of]) => of)
  const [row] = await session.rows<DetailRow>(readByNumber, series, key.at, number)
  return row?.correlation_id === key.name ? row : undefined
}

async function rowOfShortKey(
  session: Session,
  labels: SeriesLabels,
  engine: string,
  { name, at }: RowKey,
): Promise<DetailRow | undefined> {
  const rows = await session.rows<DetailRow>(readByShortKey, name, at)
  const row = rows.find(({ series }) => labels.get(Number(series))?.engine === engine)
  if (row !== undefined || engine !== PLAIN_ENGINE) return row
  const capture = await captureOfSource(session, labels, name)
  const isIt = capture !== null && capture.short_key !== null && BigInt(capture.created_at) === at
  return isIt ? capture : undefined
}

async function letterKey(session: Session, id: Integer): Promise<HistoryDetail['letter']> {
  const [row] = await session.rows<{
    engine: string
    name: string
    captured_at: Integer
    short_key: Integer | null
  }>(readLetterKey, id)
  if (row === undefined) return null
  const at = instant(BigInt(row.captured_at))
  return {
    engine: row.engine,
    rowKey: formatRowKey({ name: row.name, at, number: keyNumber(id, row.short_key) }),
  }
}

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
