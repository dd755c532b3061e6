/** One entry of history by its key, and the entries of one letter. */

import { failure } from '../core/errors.ts'
import { formatRowKey, keyNumber, parseRowKey, type RowKey } from '../core/row-key.ts'
import { type Session, sql } from '../store/database.ts'
import { at, integer, orNull, rowShape, text } from '../store/row.ts'
import {
  DETAIL,
  DETAIL_COLUMNS,
  type DetailRow,
  EVENT,
  type HistoryDetail,
  type HistorySummary,
  type OperationKinds,
  readOperationKinds,
  SUMMARY_COLUMNS,
  summaryOf,
} from './entry.ts'
import { captureOfLetter, captureOfSource, PLAIN_ENGINE } from './plain-capture.ts'

/** By primary key. */
const readByNumber = sql(
  'history.byNumber',
  `SELECT ${DETAIL_COLUMNS} FROM bartleby.history
   WHERE series = ANY($1::int[]) AND created_at = $2 AND id = $3 AND short_key IS NULL`,
  { bigints: true },
)

/** Rows of earlier versions, on history_by_correlation: at most one per engine. */
const readByShortKey = sql(
  'history.byShortKey',
  `SELECT ${DETAIL_COLUMNS} FROM bartleby.history
   WHERE history.correlation_id = $1 AND created_at = $2 AND short_key = 1`,
  { bigints: true },
)

const LETTER_KEY = rowShape({ engine: text, name: text, capturedAt: at, shortKey: orNull(integer) })

/** By primary key. */
const readLetterKey = sql(
  'history.letterKey',
  'SELECT engine, coalesce(instance_id, source_id) AS name, captured_at, short_key FROM bartleby.letters WHERE id = $1',
  { bigints: true },
)

export async function getHistory(session: Session, engine: string, rowKey: string): Promise<HistoryDetail> {
  const unknown = () => failure('history_unknown', { engine, rowKey })
  const key = parseRowKey(rowKey)
  // No store keeps U+0000 in a name.
  if (key === null || key.name.includes('\0')) throw unknown()
  const kinds = await readOperationKinds(session)
  const row = await (key.number === null
    ? rowOfShortKey(session, kinds, engine, key)
    : rowOfNumber(session, kinds, engine, key, key.number))
  if (row === null) throw unknown()
  return {
    ...summaryOf(row, kinds),
    input: row.input,
    output: row.output,
    error: row.error,
    notes: row.notes,
    letter: row.letterId === null ? null : await letterKey(session, row.letterId),
  }
}

async function rowOfNumber(
  session: Session,
  kinds: OperationKinds,
  engine: string,
  key: RowKey,
  number: bigint,
): Promise<DetailRow | null> {
  const series = [...kinds].filter(([, kind]) => kind.engine === engine).map(([of]) => of)
  const row = await DETAIL.one(session, readByNumber, series, key.at, number)
  return row?.correlationId === key.name ? row : null
}

async function rowOfShortKey(
  session: Session,
  kinds: OperationKinds,
  engine: string,
  { name, at }: RowKey,
): Promise<DetailRow | null> {
  const rows = await DETAIL.all(session, readByShortKey, name, at)
  const row = rows.find(({ series }) => kinds.get(series)?.engine === engine)
  if (row !== undefined || engine !== PLAIN_ENGINE) return row ?? null
  const capture = await captureOfSource(session, kinds, name)
  return capture !== null && capture.shortKey !== null && capture.createdAt === at ? capture : null
}

async function letterKey(session: Session, id: bigint): Promise<HistoryDetail['letter']> {
  const letter = await LETTER_KEY.one(session, readLetterKey, id)
  if (letter === null) return null
  const { engine, name, capturedAt, shortKey } = letter
  return { engine, rowKey: formatRowKey({ name, at: capturedAt, number: keyNumber(id, shortKey) }) }
}

/** Without input and output, which may be large. */
export interface LetterEvent extends HistorySummary {
  readonly notes: string | null
  readonly error: string | null
  /** null: it changed nothing. */
  readonly letterVersion: number | null
}

/** On history_of_letter, which lacks captures of plain queues. */
const readOfLetter = sql(
  'history.ofLetter',
  `SELECT ${SUMMARY_COLUMNS}, actor, notes, error, letter_version FROM bartleby.history
   WHERE letter_id = $1 AND history.correlation_id IS NOT NULL ORDER BY created_at DESC, id DESC LIMIT $2`,
  { bigints: true },
)

/** Newest first. */
export async function historyOfLetter(
  session: Session,
  letterId: bigint,
  limit: number,
): Promise<LetterEvent[]> {
  const rows = await EVENT.all(session, readOfLetter, letterId, limit)
  // After the rows: an operation kind exists before its first row.
  const kinds = await readOperationKinds(session)
  // The capture is the oldest.
  const capture = rows.length < limit ? await captureOfLetter(session, kinds, letterId) : null
  if (capture !== null) rows.push(capture)
  return rows.map((row) => {
    const { notes, error, letterVersion } = row
    return { ...summaryOf(row, kinds), notes, error, letterVersion }
  })
}
