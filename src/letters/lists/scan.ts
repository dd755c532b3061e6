/**
 * Walking letters newest first, along the index that suits the filter:
 *
 *   a correlation or an instance       its own index, and the letter of a queue whose source id stands for it
 *   sent back and not confirmed        their own index
 *   source, engine, queue, signature   the lanes (drawer, status) that match, merged
 *   a status, or nothing               the lanes of the statuses, merged
 *
 * Every walk reads a bounded number of rows and says how far it came. Filters that no order of the list knows (how often a
 * letter was tried, what became of its retry) are looked up for one letter after the other, a bounded number for each page;
 * a page that found too little by then is short.
 */

import { PLAIN_ENGINE } from '../../history/plain-capture.ts'
import { type Integer, type Session, type Snapshot, type Statement, sql } from '../../store/database.ts'
import { filledUp, type GivenRow, rowsGiven } from '../../store/idioms.ts'
import { at, integer, oneOf, orNull, type RowOf, rowShape } from '../../store/row.ts'
import { type Act, isUnconfirmed, type LetterId, letterId, STATUSES } from '../letter.ts'
import { type Choice, type Facts, isOfUnconfirmed } from './filter.ts'
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

/** What a walk knows of a letter before it is read. */
interface Sighted extends PositionRow {
  readonly status: Integer
  readonly drawer: Integer
}

/** Letters that a walk gives at most, and one more, by which a page knows that there is another. */
const MAX_WALK = 2_000
const MOST_OF_LANE = MAX_WALK + 1

/**
 * The newest of each lane behind a letter, down to a time, and of these the newest: `$n` of them, and up to `$n - 1` of each. SQLite
 * gives as many of each. A lane is a range of its index: where equalities say the same PostgreSQL may sort all of the lane, or take
 * another index with an order by time and walk past the letters of all other lanes.
 *
 * `hidden`: how many are wanted is kept from PostgreSQL. In sight it has a plan made for every call, which took as long as to read. Hidden, a
 * tenth of what can be is expected: of a lane's letters, so that sixty lanes of a million letters looked dear enough to compile their plan
 * (JIT), unless no more than `MOST_OF_LANE` can be.
 */
const newestOfLanes = (
  name: string,
  index: string,
  { key, columns, hidden }: { key: readonly string[]; columns: string; hidden: boolean },
): Statement => {
  const n = key.length
  const limit = (value: number) => (hidden ? `(SELECT $${value}::bigint)` : `$${value}`)
  const lists = key.map((_, i) => `$${i + 1}::int[]`)
  const [keys, lane] = [key.join(', '), key.map((column) => `given.${column}`).join(', ')]
  return sql(
    name,
    `SELECT sighted.* FROM unnest(${lists.join(', ')}) AS given (${keys}) CROSS JOIN LATERAL (
       ${hidden ? 'SELECT * FROM (' : ''}SELECT id, last_failure_at AS at, ${columns} FROM bartleby.letters INDEXED BY ${index}
       WHERE (${keys}, last_failure_at, id) < (${lane}, $${n + 1}, $${n + 2}) AND (${keys}, last_failure_at) >= (${lane}, $${n + 3})
       ORDER BY ${key.map((column) => `${column} DESC, `).join('')}last_failure_at DESC, id DESC
       ${hidden ? `LIMIT ${MOST_OF_LANE}) AS lane ` : ''}LIMIT ${limit(n + 4)}) AS sighted
     ORDER BY sighted.at DESC, sighted.id DESC LIMIT ${limit(n + 5)}`,
    { bigints: true },
  )
}

/** Of what the index has alone. */
const newestOf = newestOfLanes('letters.newest', 'letters_newest', {
  key: ['status'],
  columns: 'status',
  hidden: true,
})
const newestInDrawers = newestOfLanes('letters.newestInDrawers', 'letters_in_drawer', {
  key: ['drawer', 'status'],
  columns: 'status, drawer',
  hidden: true,
})
/** With what the index has not: of a tenth of a million letters PostgreSQL would rather sort all in another index that has it. */
const newestAndDrawers = newestOfLanes('letters.newestAndDrawers', 'letters_newest', {
  key: ['status'],
  columns: 'status, drawer',
  hidden: false,
})

/** The newest with one value in an indexed column: a range of its index, in its order. */
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

/** The letter of a queue that has no correlation or instance but its source id; one row of letters_by_source. */
const ofSource = sql(
  'letters.ofQueueItem',
  `SELECT id, last_failure_at AS at, status, drawer, instance_id, correlation_id,
     coalesce(instance_id, source_id) AS instance
   FROM bartleby.letters WHERE engine = '${PLAIN_ENGINE}' AND source_id = $1`,
  { bigints: true },
)

/** Rows that one look reads, when there is more to check about them. */
const LOOK = 500
/** Looks of one page. A page that found too little by then is short, and the next goes on where it ended. */
const MAX_LOOKS = 40

/** More lanes than this are worth a look at the newest letters first: with many lanes it mostly fills the page. */
const MANY_LANES = 200

/** Rows that a walk along the lanes reads at most, all lanes together. */
const LANE_ROWS = 20_000

/** All letters of statuses, of some drawers or of any; in no order. */
const ALL = `SELECT id, last_failure_at AS at FROM bartleby.letters
  WHERE status = ANY($1::int[]) AND (last_failure_at, id) < ($2, $3) AND last_failure_at >= $4`
const readAll = sql('letters.all', ALL, { bigints: true })
const readAllInDrawers = sql('letters.allInDrawers', `${ALL} AND drawer = ANY($5::int[])`, { bigints: true })

/**
 * All letters of a choice in bounded portions, in no order: one reading of them, whatever PostgreSQL takes for the best way. Null where
 * an index of their own finds them.
 */
export function allLetters(session: Snapshot, choice: Choice): AsyncIterable<readonly LetterId[]> | null {
  const { statuses, drawers, span, facts } = choice
  if (choice.correlationId !== null || choice.instanceId !== null || isOfUnconfirmed(choice)) return null
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
    const found = facts === null ? stretch : await fitting(session, stretch, facts)
    yield found.positions.map(({ id }) => id)
  }
}

/** How many letters a walk may be asked for at once, so that it stays as cheap as a page. */
export function walkLimit(choice: Choice): number {
  const lanes = (choice.drawers?.length ?? 1) * choice.statuses.length
  return Math.max(100, Math.min(MAX_WALK, Math.floor(LANE_ROWS / lanes)))
}

/**
 * The next letters of the span, as many as are wanted, whatever their attempts and outcomes are, unless an index knows them; fewer when it
 * ends, or when too many had to be passed over.
 */
export async function scanLetters(
  session: Session,
  choice: Choice,
  span: Span,
  wanted: number,
): Promise<Stretch> {
  const limit = Math.min(wanted, MOST_OF_LANE)
  if (choice.correlationId !== null || choice.instanceId !== null) {
    return scanNarrow(session, choice, span, limit)
  }
  if (isOfUnconfirmed(choice)) return scanUnconfirmed(session, choice, span, limit)
  const { drawers, statuses } = choice
  const ofStatuses = statuses.map((status) => ({ status }))
  if (drawers === null)
    return limitedStretch(await readLanes(session, newestOf, ofStatuses, span, limit, limit), limit)
  if (drawers.length * statuses.length <= MANY_LANES) {
    return scanDrawers(session, drawers, statuses, span, limit)
  }
  const inDrawer = new Set(drawers)
  const looked = await readLanes(session, newestAndDrawers, ofStatuses, span, LOOK, LOOK)
  const newest = {
    ...limitedStretch(looked, LOOK),
    positions: looked.filter(({ drawer }) => inDrawer.has(drawer)),
  }
  if (newest.end === null || newest.positions.length >= limit) return mergeStretches([newest], limit)
  const rest = await scanDrawers(session, drawers, statuses, { ...span, below: newest.end }, limit)
  return mergeStretches([{ positions: [...newest.positions, ...rest.positions], end: rest.end }], limit)
}

/** A letter's position, and the lane that it lies in; the drawer is 0 where the statement does not tell it. */
interface InLane extends Position {
  readonly drawer: number
  readonly status: number
}

/** The newest `most` of the lanes, up to `each` of one lane. */
async function readLanes(
  session: Session,
  statement: Statement,
  lanes: readonly GivenRow[],
  { below, from }: Span,
  each: number,
  most: number,
): Promise<readonly InLane[]> {
  const given = filledUp(session, lanes)
  type Row = PositionRow & Pick<Sighted, 'status'> & Partial<Pick<Sighted, 'drawer'>>
  const rows = await rowsGiven<Row>(session, statement, given, below.at, below.id, from, each, most)
  return rows
    .map((row) => ({ ...toPosition(row), drawer: Number(row.drawer ?? 0), status: Number(row.status) }))
    .sort(inOrder)
    .slice(0, most)
}

/** More lanes than this are looked into first. */
const FEW_LANES = 10

async function scanDrawers(
  session: Session,
  drawers: readonly number[],
  statuses: readonly number[],
  span: Span,
  limit: number,
): Promise<Stretch> {
  const lanes = drawers.flatMap((drawer) => statuses.map((status) => ({ drawer, status })))
  const read = (those: readonly GivenRow[], within: Span, each: number) =>
    readLanes(session, newestInDrawers, those, within, each, limit)
  if (lanes.length <= FEW_LANES) return limitedStretch(await read(lanes, span, limit), limit)
  // The first letters are no older than as many others, and lie in their lanes: a step into the index for every other lane.
  const seen = await read(lanes, span, Math.ceil(limit / lanes.length))
  const from = seen[limit - 1]?.at ?? span.from
  const first = new Map(seen.map(({ drawer, status }) => [`${drawer} ${status}`, { drawer, status }]))
  return limitedStretch(await read([...first.values()], { ...span, from }, limit), limit)
}

/** Letters of a correlation, of an instance, or of both. */
async function scanNarrow(session: Session, choice: Choice, span: Span, limit: number): Promise<Stretch> {
  const { statuses, drawers, instanceId, correlationId } = choice
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

/** On letters_unconfirmed, which no other order can stand in for. */
const newestUnconfirmed = sql(
  'letters.unconfirmed',
  `SELECT id, last_failure_at AS at, drawer, dequeue_count FROM bartleby.letters INDEXED BY letters_unconfirmed
               WHERE resolution = 'retry' AND confirmed_at IS NULL AND (last_failure_at, id) < ($1, $2) AND last_failure_at >= $3
               ORDER BY last_failure_at DESC, id DESC LIMIT $4`,
  { bigints: true },
)

type UnconfirmedRow = PositionRow & Readonly<Record<'drawer' | 'dequeue_count', Integer>>

/** Looks of one page: there are few such letters, unless nobody ever says what became of them. */
const MAX_UNCONFIRMED_LOOKS = 20

/** The next `limit` of the choice; fewer when the span ends, or when too many had to be passed over. */
async function scanUnconfirmed(
  session: Session,
  { drawers, facts }: Choice,
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

/** Letters by primary key. */
const readFacts = sql(
  'letters.facts',
  `SELECT ${FACTS.columns} FROM bartleby.letters WHERE id = ANY($1::bigint[])`,
  { bigints: true },
)

/** Letters of the first look, which is often enough, and of each after it; and looks of one page. */
const FIRST_FACTS_LOOK = 200
const FACTS_LOOK = 1_000
const MAX_FACTS_LOOKS = 6

/** Those of the stretch that the facts are true of. */
export async function fitting(session: Session, stretch: Stretch, facts: Facts): Promise<Stretch> {
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
  const found = await lookOn(span, limit, MAX_FACTS_LOOKS, async (part) => {
    const look = Math.min(most, part.below === span.below ? FIRST_FACTS_LOOK : FACTS_LOOK)
    return fitting(session, await scanLetters(session, choice, part, look), facts)
  })
  return mergeStretches([found], limit)
}
