/**
 * Captures of plain queues. Their rows are what a storm writes, and in no index but that of their series: they name no
 * correlation id. Each is found by its letter, in the one series of all such captures, at the time of the capture.
 * Letters that were captured together have the same time, so a few hundred rows may be passed on the way.
 */
import { type Integer, type Session, type Statement, sql } from '../store/database.ts'
import { DETAIL, DETAIL_COLUMNS, type DetailRow, type SeriesLabels } from './entry.ts'

/** The engine of what died in a plain queue. */
export const PLAIN_ENGINE = 'queues'

const plainLetter = (name: string, key: string): Statement =>
  sql(name, `SELECT id, captured_at FROM bartleby.letters WHERE ${key} AND correlation_id IS NULL`, {
    bigints: true,
  })

/** By primary key. */
const letterById = plainLetter('history.plainLetter', 'id = $1')
/** On letters_by_source. */
const letterBySource = plainLetter('history.plainLetterOf', `engine = '${PLAIN_ENGINE}' AND source_id = $1`)

/** The rows of one microsecond in a series, by primary key; of these the one about a letter. */
const readCapture = sql(
  'history.plainCapture',
  `SELECT ${DETAIL_COLUMNS} FROM bartleby.history
   WHERE series = $1 AND created_at = $2 AND letter_id = $3 AND correlation_id IS NULL`,
  { bigints: true },
)

/** The series of these captures; null when there was none yet. */
export function plainSeries(labels: SeriesLabels): number | null {
  const found = [...labels].find(
    ([, { engine, operation, status }]) =>
      engine === PLAIN_ENGINE && operation === 'capture' && status === 'Succeeded',
  )
  return found?.[0] ?? null
}

/** The capture of the letter with this number; null when it has a correlation id of its own. */
export const captureOfLetter = (session: Session, labels: SeriesLabels, letterId: bigint) =>
  captureOf(session, labels, letterById, letterId)

/** The capture whose correlation id is this source id of a letter; null when there is none. */
export const captureOfSource = (session: Session, labels: SeriesLabels, sourceId: string) =>
  captureOf(session, labels, letterBySource, sourceId)

async function captureOf(
  session: Session,
  labels: SeriesLabels,
  readLetter: Statement,
  key: bigint | string,
): Promise<DetailRow | null> {
  const series = plainSeries(labels)
  if (series === null) return null
  const [letter] = await session.rows<{ id: Integer; captured_at: Integer }>(readLetter, key)
  if (letter === undefined) return null
  return DETAIL.one(session, readCapture, series, letter.captured_at, letter.id)
}
