/**
 * Walks letters newest first, along the index that suits the filter:
 *
 *   correlation or instance            its own index, and the queue letter whose source id stands for it
 *   sent back and not confirmed        their own index
 *   source, engine, queue, signature   matching ranges (drawer, status), merged
 *   a status, or nothing               the ranges of the statuses, merged
 *
 * Every walk reads a bounded number of rows and says how far it came. Attempts and outcomes, which no index orders, are looked up
 * letter by letter, a bounded number per page; a page may be short.
 */

import { PLAIN_ENGINE } from '../../history/plain-capture.ts'
import { type Integer, type Session, type Snapshot, type Statement, sql } from '../../store/database.ts'
import { filledUp, type GivenRow, rowsGiven } from '../../store/idioms.ts'
import { at, integer, oneOf, orNull, type RowOf, rowShape } from '../../store/row.ts'
import { type Act, isUnconfirmed, type LetterId, letterId, STATUSES } from '../letter.ts'
import { type Facts, type FilterPlan, isOfUnconfirmed } from './filter.ts'
import {
  inOrder,
  limitedStretch,
  lookOn,
  mergeStretches,
  type Position,
  type PositionRow,
  type Span,
  type Stretch,
  toPosition,
} from './positions.ts'

interface Sighted extends PositionRow {
  readonly status: Integer
  readonly drawer: Integer
}

/** Letters of one walk, and one more that tells of a next page. */
const MAX_WALK = 2_000
const MOST_OF_RANGE = MAX_WALK + 1

/**
 * The newest of each range (key values) behind a position, merged: `$n` in all, up to `$n - 1` of each; SQLite returns as many of each.
 * A row comparison makes it a range of the index: with equalities PostgreSQL may sort the whole range, or walk another index past
 * letters of all other ranges.
 *
 * `hidden` keeps the limit from PostgreSQL, which would plan every call anew, as long as the read itself. It then expects a tenth of
 * what is possible; `MOST_OF_RANGE` bounds that, because sixty ranges of a million letters looked dear enough for JIT.
 */
const newestOfRanges = (
  name: string,
  index: string,
  { key, columns, hidden }: { key: readonly string[]; columns: string; hidden: boolean },
): Statement => {
  const n = key.length
  const limit = (value: number) => (hidden ? `(SELECT $${value}::bigint)` : `$${value}`)
  const lists = key.map((_, i) => `$${i + 1}::int[]`)
  const [keys, range] = [key.join(', '), key.map((column) => `given.${column}`).join(', ')]
  return sql(
    name,
    `SELECT sighted.* FROM unnest(${lists.join(', ')}) AS given (${keys}) CROSS JOIN LATERAL (
       ${hidden ? 'SELECT * FROM (' : ''}SELECT id, last_failure_at AS at, ${columns} FROM bartleby.letters INDEXED BY ${index}
       WHERE (${keys}, last_failure_at, id) < (${range}, $${n + 1}, $${n + 2}) AND (${keys}, last_failure_at) >= (${range}, $${n + 3})
       ORDER BY ${key.map((column) => `${column} DESC, `).join('')}last_failure_at DESC, id DESC
       ${hidden ? `LIMIT ${MOST_OF_RANGE}) AS lane ` : ''}LIMIT ${limit(n + 4)}) AS sighted
     ORDER BY sighted.at DESC, sighted.id DESC LIMIT ${limit(n + 5)}`,
    { bigints: true },
  )
}

/** Covered by the index. */
const newestOf = newestOfRanges('letters.newest', 'letters_newest', {
  key: ['status'],
  columns: 'status',
  hidden: true,
})
const newestInDrawers = newestOfRanges('letters.newestInDrawers', 'letters_in_drawer', {
  key: ['drawer', 'status'],
  columns: 'status, drawer',
  hidden: true,
})
/** Not covered: with a hidden limit PostgreSQL would sort a tenth of a million letters from another index. */
const newestAndDrawers = newestOfRanges('letters.newestAndDrawers', 'letters_newest', {
  key: ['status'],
  columns: 'status, drawer',
  hidden: false,
})

/** The newest with one value: a range of its index, in its order. */
const newestWith = (name: string, column: string, index: string): Statement =>
  sql(
    name,
    `SELECT id, last_failure_at AS at, status, drawer, coalesce(instance_id, source_id) AS instance
     FROM bartleby.letters INDEXED BY ${index} WHERE ${column} IS NOT NULL
       AND (${column}, last_failure_at, id) < ($1, $2, $3) AND (${column}, last_failure_at) >= ($1, $4)
     ORDER BY ${column} DESC, last_failure_at DESC, id DESC LIMIT $5`,
    { bigints: true },
  )

const ofCorrelation = newestWith('letters.ofCorrelation', 'correlation_id', 'letters_by_correlation')
const ofInstance = newestWith('letters.ofInstance', 'instance_id', 'letters_by_instance')

/** A queue letter whose source id stands for correlation and instance; one row of letters_by_source. */
const ofSource = sql(
  'letters.ofQueueItem',
  `SELECT id, last_failure_at AS at, status, drawer, instance_id, correlation_id,
     coalesce(instance_id, source_id) AS instance
   FROM bartleby.letters WHERE engine = '${PLAIN_ENGINE}' AND source_id = $1`,
  { bigints: true },
)

/** Rows per look, where more must be checked. */
const LOOK = 500
/** Looks per page; the next page goes on where a short one ended. */
const MAX_LOOKS = 40

/** With more ranges than this, the newest letters of all mostly fill the page. */
const MANY_RANGES = 200

/** Rows read along all ranges together. */
const RANGE_ROWS = 20_000

/** In no order. */
const ALL = `SELECT id, last_failure_at AS at FROM bartleby.letters
  WHERE status = ANY($1::int[]) AND (last_failure_at, id) < ($2, $3) AND last_failure_at >= $4`
const readAll = sql('letters.all', ALL, { bigints: true })
const readAllInDrawers = sql('letters.allInDrawers', `${ALL} AND drawer = ANY($5::int[])`, { bigints: true })

/** All matching letters in batches, in no order: one reading, whichever plan PostgreSQL takes. null: an index of their own finds them. */
export function allLetters(session: Snapshot, plan: FilterPlan): AsyncIterable<readonly LetterId[]> | null {
  const { statuses, drawers, span, facts } = plan
  if (plan.correlationId !== null || plan.instanceId !== null || isOfUnconfirmed(plan)) return null
  const values = [statuses, span.below.at, span.below.id, span.from] as const
  const batches =
    drawers === null
      ? session.batches<PositionRow>(readAll, ...values)
      : session.batches<PositionRow>(readAllInDrawers, ...values, drawers)
  return portionsOf(session, batches, facts)
}

async function* portionsOf(
  session: Session,
  batches: AsyncIterable<readonly PositionRow[]>,
  facts: Facts | null,
): AsyncGenerator<readonly LetterId[]> {
  for await (const rows of batches) {
    const stretch = { positions: rows.map(toPosition), end: null }
    const found = facts === null ? stretch : await filterByFacts(session, stretch, facts)
    yield found.positions.map(({ id }) => id)
  }
}

/** Letters that one walk may read and stay as cheap as a page. */
export function walkLimit(plan: FilterPlan): number {
  const ranges = (plan.drawers?.length ?? 1) * plan.statuses.length
  return Math.max(100, Math.min(MAX_WALK, Math.floor(RANGE_ROWS / ranges)))
}

/** The next letters of the span; fewer at its end, or after too many others. Facts are checked only where an index has them. */
export async function scanLetters(
  session: Session,
  plan: FilterPlan,
  span: Span,
  wanted: number,
): Promise<Stretch> {
  const limit = Math.min(wanted, MOST_OF_RANGE)
  if (plan.correlationId !== null || plan.instanceId !== null) {
    return scanNarrow(session, plan, span, limit)
  }
  if (isOfUnconfirmed(plan)) return scanUnconfirmed(session, plan, span, limit)
  const { drawers, statuses } = plan
  const ofStatuses = statuses.map((status) => ({ status }))
  if (drawers === null)
    return limitedStretch(await readRanges(session, newestOf, ofStatuses, span, limit, limit), limit)
  if (drawers.length * statuses.length <= MANY_RANGES) {
    return scanDrawers(session, drawers, statuses, span, limit)
  }
  const inDrawer = new Set(drawers)
  const looked = await readRanges(session, newestAndDrawers, ofStatuses, span, LOOK, LOOK)
  const newest = {
    ...limitedStretch(looked, LOOK),
    positions: looked.filter(({ drawer }) => inDrawer.has(drawer)),
  }
  if (newest.end === null || newest.positions.length >= limit) return mergeStretches([newest], limit)
  const rest = await scanDrawers(session, drawers, statuses, { ...span, below: newest.end }, limit)
  return mergeStretches([{ positions: [...newest.positions, ...rest.positions], end: rest.end }], limit)
}

/** A position with its range; drawer 0 if the statement does not select it. */
interface InRange extends Position {
  readonly drawer: number
  readonly status: number
}

/** The newest `most` of the ranges, up to `each` of one. */
async function readRanges(
  session: Session,
  statement: Statement,
  ranges: readonly GivenRow[],
  { below, from }: Span,
  each: number,
  most: number,
): Promise<readonly InRange[]> {
  const given = filledUp(session, ranges)
  type Row = PositionRow & Pick<Sighted, 'status'> & Partial<Pick<Sighted, 'drawer'>>
  const rows = await rowsGiven<Row>(session, statement, given, below.at, below.id, from, each, most)
  return rows
    .map((row) => ({ ...toPosition(row), drawer: Number(row.drawer ?? 0), status: Number(row.status) }))
    .sort(inOrder)
    .slice(0, most)
}

/** With more ranges than this, their heads are read first. */
const FEW_RANGES = 10

async function scanDrawers(
  session: Session,
  drawers: readonly number[],
  statuses: readonly number[],
  span: Span,
  limit: number,
): Promise<Stretch> {
  const ranges = drawers.flatMap((drawer) => statuses.map((status) => ({ drawer, status })))
  const read = (those: readonly GivenRow[], within: Span, each: number) =>
    readRanges(session, newestInDrawers, those, within, each, limit)
  if (ranges.length <= FEW_RANGES) return limitedStretch(await read(ranges, span, limit), limit)
  // As many heads bound the page from below: each other range costs one step into the index.
  const seen = await read(ranges, span, Math.ceil(limit / ranges.length))
  const from = seen[limit - 1]?.at ?? span.from
  const first = new Map(seen.map(({ drawer, status }) => [`${drawer} ${status}`, { drawer, status }]))
  return limitedStretch(await read([...first.values()], { ...span, from }, limit), limit)
}

async function scanNarrow(session: Session, plan: FilterPlan, span: Span, limit: number): Promise<Stretch> {
  const { statuses, drawers, instanceId, correlationId } = plan
  const inDrawer = drawers === null ? null : new Set(drawers)
  const fits = (row: Sighted & { readonly instance: string }): boolean =>
    statuses.includes(Number(row.status)) &&
    (inDrawer === null || inDrawer.has(Number(row.drawer))) &&
    (instanceId === null || row.instance === instanceId)
  const [statement, value] =
    correlationId === null ? [ofInstance, instanceId] : [ofCorrelation, correlationId]
  const checked = inDrawer !== null || statuses.length < STATUSES.length || instanceId !== null
  const rowLimit = checked ? LOOK : limit
  const indexed = await lookOn(span, limit, MAX_LOOKS, async ({ below, from }) => {
    const values = [value, below.at, below.id, from, rowLimit]
    const rows = await session.rows<Sighted & { instance: string }>(statement, ...values)
    const { end } = limitedStretch(rows.map(toPosition), rowLimit)
    return { positions: rows.filter(fits).map(toPosition), end }
  })
  const standIns = await session.rows<
    Sighted & { instance: string; instance_id: string | null; correlation_id: string | null }
  >(ofSource, value)
  const own = standIns.filter((row) => {
    const column = correlationId === null ? row.instance_id : row.correlation_id
    return column === null && fits(row)
  })
  const positions = own.map(toPosition).filter((position) => isIn(span, position))
  return mergeStretches([indexed, { positions, end: null }], limit)
}

const isIn = ({ below, from }: Span, position: Position): boolean =>
  inOrder(below, position) < 0 && position.at >= from

/** On letters_unconfirmed; no other index orders them. */
const newestUnconfirmed = sql(
  'letters.unconfirmed',
  `SELECT id, last_failure_at AS at, drawer, dequeue_count FROM bartleby.letters INDEXED BY letters_unconfirmed
               WHERE resolution = 'retry' AND confirmed_at IS NULL AND (last_failure_at, id) < ($1, $2) AND last_failure_at >= $3
               ORDER BY last_failure_at DESC, id DESC LIMIT $4`,
  { bigints: true },
)

type UnconfirmedRow = PositionRow & Readonly<Record<'drawer' | 'dequeue_count', Integer>>

/** Looks per page: such letters are few, unless nothing ever confirms them. */
const MAX_UNCONFIRMED_LOOKS = 20

async function scanUnconfirmed(
  session: Session,
  { drawers, facts }: FilterPlan,
  span: Span,
  limit: number,
): Promise<Stretch> {
  const inDrawer = drawers === null ? null : new Set(drawers)
  const fits = ({ drawer, dequeue_count }: UnconfirmedRow): boolean =>
    (inDrawer === null || inDrawer.has(Number(drawer))) && Number(dequeue_count) >= (facts?.minAttempts ?? 0)
  const isChecked = inDrawer !== null || (facts?.minAttempts ?? 0) > 0
  const look = isChecked ? LOOK : limit
  return lookOn(span, limit, MAX_UNCONFIRMED_LOOKS, async ({ below, from }) => {
    const rows = await session.rows<UnconfirmedRow>(newestUnconfirmed, below.at, below.id, from, look)
    const { end } = limitedStretch(rows.map(toPosition), look)
    return { positions: rows.filter(fits).map(toPosition), end }
  })
}

const FACTS = rowShape({
  id: letterId,
  dequeueCount: integer,
  resolution: orNull(oneOf<Act>()),
  confirmedAt: orNull(at),
})

/** By primary key. */
const readFacts = sql(
  'letters.facts',
  `SELECT ${FACTS.columns} FROM bartleby.letters WHERE id = ANY($1::bigint[])`,
  { bigints: true },
)

/** Letters of the first look, of later looks, and looks per page. */
const FIRST_FACTS_LOOK = 200
const FACTS_LOOK = 1_000
const MAX_FACTS_LOOKS = 6

export async function filterByFacts(session: Session, stretch: Stretch, facts: Facts): Promise<Stretch> {
  if (stretch.positions.length === 0) return stretch
  const ids = stretch.positions.map(({ id }) => id)
  const letters = await FACTS.all(session, readFacts, ids)
  const found = new Set(letters.filter((letter) => isTrue(facts, letter)).map(({ id }) => id))
  return { ...stretch, positions: stretch.positions.filter(({ id }) => found.has(id)) }
}

function isTrue({ minAttempts, outcome }: Facts, letter: RowOf<typeof FACTS>): boolean {
  if (letter.dequeueCount < minAttempts) return false
  if (outcome === null) return true
  return letter.resolution === 'retry' && isUnconfirmed(letter) === (outcome === 'unconfirmed')
}

/** The next `limit` letters that meet the facts; fewer at the end of the span, or after too many others. */
export async function scanFiltered(
  session: Session,
  plan: FilterPlan,
  span: Span,
  limit: number,
): Promise<Stretch> {
  const { facts } = plan
  if (facts === null || isOfUnconfirmed(plan))
    return mergeStretches([await scanLetters(session, plan, span, limit)], limit)
  const most = walkLimit(plan)
  const found = await lookOn(span, limit, MAX_FACTS_LOOKS, async (part) => {
    const look = Math.min(most, part.below === span.below ? FIRST_FACTS_LOOK : FACTS_LOOK)
    return filterByFacts(session, await scanLetters(session, plan, part, look), facts)
  })
  return mergeStretches([found], limit)
}
