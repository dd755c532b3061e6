/** One entry of history, by its engine and row key. */
import { instant } from '../core/clock.ts'
import { failure } from '../core/errors.ts'
import { formatRowKey, parseRowKey } from '../core/row-key.ts'
import { type Integer, type Session, sql } from '../db/database.ts'
import type { HistoryDetail } from './entry.ts'
import { captureOfSource, PLAIN_ENGINE } from './plain-capture.ts'
import { DETAIL_COLUMNS, type DetailRow, readSeriesLabels, type SeriesLabels, summaryOf } from './rows.ts'

/** The rows of one correlation id and microsecond, on the index of correlation ids: one, or one of each engine. */
const readByKey = sql(
  'history.byKey',
  `SELECT ${DETAIL_COLUMNS} FROM bartleby.history
   WHERE history.correlation_id = $1 AND created_at = $2 ORDER BY created_at, id`,
  { bigints: true },
)

/** What the row key of a letter is made of, by primary key. */
const readLetterKey = sql(
  'history.letterKey',
  'SELECT engine, source_id, instance_id, captured_at FROM bartleby.letters WHERE id = $1',
  { bigints: true },
)

/** The entry; a failure when there is none. */
export async function getHistory(session: Session, engine: string, rowKey: string): Promise<HistoryDetail> {
  const unknown = () => failure('history_unknown', { engine, rowKey })
  const key = parseRowKey(rowKey)
  // No store keeps a null character in a name.
  if (key === null || key.name.includes('\0')) throw unknown()
  const rows = await session.rows<DetailRow>(readByKey, key.name, key.at)
  const labels = await readSeriesLabels(session)
  const row =
    rows.find(({ series }) => labels.get(Number(series))?.engine === engine) ??
    (engine === PLAIN_ENGINE ? await plainCapture(session, labels, key) : undefined)
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

async function plainCapture(
  session: Session,
  labels: SeriesLabels,
  key: { readonly name: string; readonly at: bigint },
): Promise<DetailRow | undefined> {
  const row = await captureOfSource(session, labels, key.name)
  return row !== null && BigInt(row.created_at) === key.at ? row : undefined
}

async function letterKey(session: Session, id: Integer): Promise<HistoryDetail['letter']> {
  const [row] = await session.rows<{
    engine: string
    source_id: string
    instance_id: string | null
    captured_at: Integer
  }>(readLetterKey, id)
  if (row === undefined) return null
  const name = row.instance_id ?? row.source_id
  return { engine: row.engine, rowKey: formatRowKey(name, instant(BigInt(row.captured_at))) }
}
