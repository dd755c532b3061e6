/**
 * Filters that no order of the list knows: how often a letter was tried, and what became of its retry. The letters of the list are
 * looked at one after the other, a bounded number for each page; a page that found too little by then is short.
 */
import { type Integer, type Session, sql } from '../db/database.ts'
import { type Choice, type Facts, isOfUnconfirmed } from './choice.ts'
import { idList } from './id-list.ts'
import { type Act, isUnconfirmed, type LetterId, letterId } from './letter.ts'
import { lookOn, mergeStretches, type Span, type Stretch } from './positions.ts'
import { scanLetters, walkLimit } from './scan.ts'

/** Letters by primary key. */
const readFacts = sql(
  'letters.facts',
  {
    postgres: `SELECT id, dequeue_count, resolution, confirmed_at FROM bartleby.letters WHERE id = ANY($1::bigint[])`,
    sqlite: `SELECT id, dequeue_count, resolution, confirmed_at FROM letters WHERE id IN (SELECT value FROM json_each($1))`,
  },
  { bigints: true },
)

interface Row {
  readonly id: Integer
  readonly dequeue_count: Integer
  readonly resolution: Act | null
  readonly confirmed_at: Integer | null
}

/** Letters of the first look, which is often enough, and of each after it; and looks of one page. */
const FIRST_LOOK = 200
const LOOK = 1_000
const MAX_LOOKS = 6

/** Those of the stretch that the facts are true of. */
export async function fitting(session: Session, stretch: Stretch, facts: Facts): Promise<Stretch> {
  if (stretch.positions.length === 0) return stretch
  const rows = await session.rows<Row>(readFacts, idList(session.dialect, stretch.positions))
  const found = new Set<LetterId>(rows.filter((row) => isTrue(facts, row)).map(({ id }) => letterId(id)))
  return { ...stretch, positions: stretch.positions.filter(({ id }) => found.has(id)) }
}

function isTrue({ minAttempts, outcome }: Facts, row: Row): boolean {
  if (Number(row.dequeue_count) < minAttempts) return false
  if (outcome === null) return true
  return (
    row.resolution === 'retry' &&
    isUnconfirmed({ resolution: row.resolution, confirmedAt: row.confirmed_at }) ===
      (outcome === 'unconfirmed')
  )
}

/** The next `limit` letters of the span that the facts are true of; fewer when it ends or too many had to be looked at. */
export async function scanFitting(
  session: Session,
  choice: Choice,
  span: Span,
  limit: number,
): Promise<Stretch> {
  const { facts } = choice
  if (facts === null || isOfUnconfirmed(choice))
    return mergeStretches([await scanLetters(session, choice, span, limit)], limit)
  const most = walkLimit(choice)
  const found = await lookOn(span, limit, MAX_LOOKS, async (part) => {
    const look = Math.min(most, part.below === span.below ? FIRST_LOOK : LOOK)
    return fitting(session, await scanLetters(session, choice, part, look), facts)
  })
  return mergeStretches([found], limit)
}
