/** Letters that were sent back and of which nothing was heard yet, newest failure first, along their own index. */
import { type Integer, type Session, sql } from '../db/database.ts'
import type { Choice } from './choice.ts'
import { limitedStretch, lookOn, type PositionRow, type Span, type Stretch, toPosition } from './positions.ts'

/** On letters_unconfirmed, which no other order can stand in for. */
const newestUnconfirmed = sql(
  'letters.unconfirmed',
  {
    postgres: `SELECT id, last_failure_at AS at, drawer, dequeue_count FROM bartleby.letters
               WHERE resolution = 'retry' AND confirmed_at IS NULL AND (last_failure_at, id) < ($1, $2) AND last_failure_at >= $3
               ORDER BY last_failure_at DESC, id DESC LIMIT $4`,
    sqlite: `SELECT id, last_failure_at AS at, drawer, dequeue_count FROM letters INDEXED BY letters_unconfirmed
             WHERE resolution = 'retry' AND confirmed_at IS NULL AND (last_failure_at, id) < ($1, $2) AND last_failure_at >= $3
             ORDER BY last_failure_at DESC, id DESC LIMIT $4`,
  },
  { bigints: true },
)

interface Row extends PositionRow {
  readonly drawer: Integer
  readonly dequeue_count: Integer
}

/** Rows of one look, and looks of one page: there are few such letters, unless nobody ever says what became of them. */
const LOOK = 500
const MAX_LOOKS = 20

/** The next `limit` of the choice; fewer when the span ends, or when too many had to be passed over. */
export async function scanUnconfirmed(
  session: Session,
  { drawers, facts }: Choice,
  span: Span,
  limit: number,
): Promise<Stretch> {
  const inDrawer = drawers === null ? null : new Set(drawers)
  const fits = ({ drawer, dequeue_count }: Row): boolean =>
    (inDrawer === null || inDrawer.has(Number(drawer))) && Number(dequeue_count) >= (facts?.minAttempts ?? 0)
  const isChecked = inDrawer !== null || (facts?.minAttempts ?? 0) > 0
  const look = isChecked ? LOOK : limit
  return lookOn(span, limit, MAX_LOOKS, async ({ below, from }) => {
    const rows = await session.rows<Row>(newestUnconfirmed, below.at, below.id, from, look)
    const { end } = limitedStretch(rows.map(toPosition), look)
    return { positions: rows.filter(fits).map(toPosition), end }
  })
}
