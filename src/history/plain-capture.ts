/**
 * Captures of plain queues, which a storm writes: in no index but that of their operation kind, without a correlation id. Each is found by
 * its letter and the time of capture. Letters captured together share the time, so a few hundred rows may be passed.
 */
import { type Integer, type Session, type Statement, sql } from '../store/database.ts'
import { DETAIL, DETAIL_COLUMNS, type DetailRow, type OperationKinds } from './entry.ts'

export const PLAIN_ENGINE = 'queues'

const plainLetter = (name: string, key: string): Statement =>
  sql(name, `SELECT id, captured_at FROM bartleby.letters WHERE ${key} AND correlation_id IS NULL`, {
    bigints: true,
  })

/** By primary key. */
const letterById = plainLetter('history.plainLetter', 'id = $1')
/** On letters_by_source. */
const letterBySource = plainLetter('history.plainLetterOf', `engine = '${PLAIN_ENGINE}' AND source_id = $1`)

/** Rows of one microsecond, by primary key. */
const readCapture = sql(
  'history.plainCapture',
  `SELECT ${DETAIL_COLUMNS} FROM bartleby.history
   WHERE series = $1 AND created_at = $2 AND letter_id = $3 AND correlation_id IS NULL`,
  { bigints: true },
)

/** null: none yet. */
export function plainCaptureKind(kinds: OperationKinds): number | null {
  const found = [...kinds].find(
    ([, { engine, operation, status }]) =>
      engine === PLAIN_ENGINE && operation === 'capture' && status === 'Succeeded',
  )
  return found?.[0] ?? null
}

/** null: it has a correlation id of its own. */
export const captureOfLetter = (session: Session, kinds: OperationKinds, letterId: bigint) =>
  captureOf(session, kinds, letterById, letterId)

export const captureOfSource = (session: Session, kinds: OperationKinds, sourceId: string) =>
  captureOf(session, kinds, letterBySource, sourceId)

async function captureOf(
  session: Session,
  kinds: OperationKinds,
  readLetter: Statement,
  key: bigint | string,
): Promise<DetailRow | null> {
  const series = plainCaptureKind(kinds)
  if (series === null) return null
  const [letter] = await session.rows<{ id: Integer; captured_at: Integer }>(readLetter, key)
  if (letter === undefined) return null
  return DETAIL.one(session, readCapture, series, letter.captured_at, letter.id)
}
