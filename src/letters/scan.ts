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
import { type Integer, type Session, type Statement, sql, type Value } from '../db/database.ts'
import { type Choice, type Facts, isOfUnconfirmed } from './filter.ts'
import { type Act, isUnconfirmed, type LetterId, letterId, STATUSES } from './letter.ts'
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

const LANE = `status = lane.status AND (last_failure_at, id) < ($2, $3) AND last_failure_at >= $4
  ORDER BY status DESC, last_failure_at DESC, id DESC`

/** The newest of each status, merged, on letters_newest: $5 rows of each. */
const newestOf = sql(
  'letters.newest',
  {
    postgres: `
      SELECT sighted.id, sighted.at, sighted.status, sighted.drawer FROM unnest($1::int[]) AS lane (status)
      CROSS JOIN LATERAL (
        SELECT id, last_failure_at AS at, status, drawer FROM bartleby.letters WHERE ${LANE} LIMIT $5) AS sighted
      ORDER BY sighted.at DESC, sighted.id DESC LIMIT $5`,
    sqlite: `
      SELECT id, last_failure_at AS at, status, drawer FROM letters INDEXED BY letters_newest
      WHERE status = $1 AND (last_failure_at, id) < ($2, $3) AND last_failure_at >= $4
      ORDER BY last_failure_at DESC, id DESC LIMIT $5`,
  },
  { bigints: true },
)

/** A range: under equalities PostgreSQL takes any order by time as good, and may walk letters_newest past all other drawers. */
const DRAWER_LANE = `(drawer, status, last_failure_at, id) < (lane.drawer, lane.status, $3, $4)
  AND (drawer, status, last_failure_at) >= (lane.drawer, lane.status, $5)
  ORDER BY drawer DESC, status DESC, last_failure_at DESC, id DESC`

/**
 * The newest of many lanes, merged, on letters_in_drawer. The first $6 lie in the $6 lanes with the newest heads: one
 * step into the index for every lane, then $6 rows of at most $6 of them, whatever the lanes hold.
 */
const newestInDrawers = sql(
  'letters.newestInDrawers',
  {
    postgres: `
      WITH heads AS MATERIALIZED (
        SELECT lane.drawer, lane.status FROM unnest($1::int[], $2::int[]) AS lane (drawer, status)
        CROSS JOIN LATERAL (
          SELECT last_failure_at AS at, id FROM bartleby.letters WHERE ${DRAWER_LANE} LIMIT 1) AS head
        ORDER BY head.at DESC, head.id DESC LIMIT $6
      )
      SELECT sighted.id, sighted.at FROM heads AS lane CROSS JOIN LATERAL (
        SELECT id, last_failure_at AS at FROM bartleby.letters WHERE ${DRAWER_LANE} LIMIT $6) AS sighted
      ORDER BY sighted.at DESC, sighted.id DESC LIMIT $6`,
    sqlite: `
      SELECT id, last_failure_at AS at FROM letters INDEXED BY letters_in_drawer
      WHERE drawer = $1 AND status = $2 AND (last_failure_at, id) < ($3, $4) AND last_failure_at >= $5
      ORDER BY last_failure_at DESC, id DESC LIMIT $6`,
  },
  { bigints: true },
)

/** The newest with one value in an indexed column, in the order of its index. */
const newestWith = (name: string, column: string, index: string): Statement => {
  const select = (from: string) => `
    SELECT id, last_failure_at AS at, status, drawer, coalesce(instance_id, source_id) AS instance FROM ${from}
    WHERE ${column} = $1 AND (last_failure_at, id) < ($2, $3) AND last_failure_at >= $4
    ORDER BY ${column} DESC, last_failure_at DESC, id DESC LIMIT $5`
  return sql(
    name,
    { postgres: select('bartleby.letters'), sqlite: select(`letters INDEXED BY ${index}`) },
    { bigints: true },
  )
}

const ofCorrelation = newestWith('letters.ofCorrelation', 'correlation_id', 'letters_by_correlation')
const ofInstance = newestWith('letters.ofInstance', 'instance_id', 'letters_by_instance')

/** The letter of a queue that has no correlation or instance but its source id; one row of letters_by_source. */
const ofSource = sql(
  'letters.ofQueueItem',
  `SELECT id, last_failure_at AS at, status, drawer, instance_id, correlation_id,
     coalesce(instance_id, source_id) AS instance
   FROM bartleby.letters WHERE engine = 'queues' AND source_id = $1`,
  { bigints: true },
)

/** Rows that one look at an instance or a correlation reads, when there is more to check about them. */
const LOOK = 500
/** Looks of one page. A page that found too little by then is short, and the next goes on where it ended. */
const MAX_LOOKS = 40

/** More lanes than this are worth a look at the newest letters first: with many lanes it mostly fills the page. */
const MANY_LANES = 200

/** Rows that a walk along the lanes reads at most, all lanes together. */
const LANE_ROWS = 20_000
/** Letters that a walk gives at most. */
const MAX_WALK = 2_000

/** How many letters a walk may be asked for at once, so that it stays as cheap as a page. */
export function walkLimit(choice: Choice): number {
  const lanes = (choice.drawers?.length ?? 1) * choice.statuses.length
  return Math.max(100, Math.min(MAX_WALK, Math.floor(LANE_ROWS / lanes)))
}

/**
 * The next `limit` letters of the span, whatever their attempts and outcomes are, unless an index knows them; fewer when it
 * ends, or when too many had to be passed over.
 */
export async function scanLetters(
  session: Session,
  choice: Choice,
  span: Span,
  limit: number,
): Promise<Stretch> {
  if (choice.correlationId !== null || choice.instanceId !== null) {
    return scanNarrow(session, choice, span, limit)
  }
  if (isOfUnconfirmed(choice)) return scanUnconfirmed(session, choice, span, limit)
  const { drawers, statuses } = choice
  if (drawers === null) return scanNewest(session, statuses, span, limit)
  if (drawers.length * statuses.length <= MANY_LANES) {
    return scanDrawers(session, drawers, statuses, span, limit)
  }
  const inDrawer = new Set(drawers)
  const newest = await scanNewest(session, statuses, span, LOOK, (row) => inDrawer.has(Number(row.drawer)))
  if (newest.end === null || newest.positions.length >= limit) return mergeStretches([newest], limit)
  const rest = await scanDrawers(session, drawers, statuses, { ...span, below: newest.end }, limit)
  return mergeStretches([{ positions: [...newest.positions, ...rest.positions], end: rest.end }], limit)
}

async function scanNewest(
  session: Session,
  statuses: readonly number[],
  { below, from }: Span,
  limit: number,
  fits: (row: Sighted) => boolean = () => true,
): Promise<Stretch> {
  const values = [below.at, below.id, from, limit]
  const lanes = session.dialect === 'postgres' ? [statuses] : statuses
  const stretches: Stretch[] = []
  for (const lane of lanes) {
    const rows = await session.rows<Sighted>(newestOf, lane, ...values)
    const { end } = limitedStretch(rows.map(toPosition), limit)
    stretches.push({ positions: rows.filter(fits).map(toPosition), end })
  }
  return mergeStretches(stretches, limit)
}

async function scanDrawers(
  session: Session,
  drawers: readonly number[],
  statuses: readonly number[],
  { below, from }: Span,
  limit: number,
): Promise<Stretch> {
  const lanes = drawers.flatMap((drawer) => statuses.map((status) => [drawer, status] as const))
  const read = async (first: Value, second: Value, limit: number) => {
    const values = [first, second, below.at, below.id, from, limit]
    return (await session.rows<PositionRow>(newestInDrawers, ...values)).map(toPosition)
  }
  if (session.dialect === 'postgres') {
    const list = (values: readonly number[]) => values
    const positions = await read(
      list(lanes.map(([drawer]) => drawer)),
      list(lanes.map(([, status]) => status)),
      limit,
    )
    return limitedStretch(positions, limit)
  }
  const heads: { lane: readonly [number, number]; head: Position }[] = []
  for (const lane of lanes) {
    const [head] = await read(...lane, 1)
    if (head !== undefined) heads.push({ lane, head })
  }
  heads.sort((a, b) => inOrder(a.head, b.head))
  const stretches: Stretch[] = []
  for (const { lane } of heads.slice(0, limit)) {
    stretches.push(limitedStretch(await read(...lane, limit), limit))
  }
  const merged = mergeStretches(stretches, limit)
  // Lanes that were not read have letters too.
  return heads.length > limit ? limitedStretch(merged.positions, limit) : merged
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
    const rows = await session.rows<Sighted & { instance: string }>(
      statement,
      value,
      below.at,
      below.id,
      from,
      rowLimit,
    )
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

interface UnconfirmedRow extends PositionRow {
  readonly drawer: Integer
  readonly dequeue_count: Integer
}

/** Rows of one look, and looks of one page: there are few such letters, unless nobody ever says what became of them. */
const UNCONFIRMED_LOOK = 500
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
  const look = isChecked ? UNCONFIRMED_LOOK : limit
  return lookOn(span, limit, MAX_UNCONFIRMED_LOOKS, async ({ below, from }) => {
    const rows = await session.rows<UnconfirmedRow>(newestUnconfirmed, below.at, below.id, from, look)
    const { end } = limitedStretch(rows.map(toPosition), look)
    return { positions: rows.filter(fits).map(toPosition), end }
  })
}

/** Letters by primary key. */
const readFacts = sql(
  'letters.facts',
  `SELECT id, dequeue_count, resolution, confirmed_at FROM bartleby.letters WHERE id = ANY($1::bigint[])`,
  { bigints: true },
)

interface FactsRow {
  readonly id: Integer
  readonly dequeue_count: Integer
  readonly resolution: Act | null
  readonly confirmed_at: Integer | null
}

/** Letters of the first look, which is often enough, and of each after it; and looks of one page. */
const FIRST_FACTS_LOOK = 200
const FACTS_LOOK = 1_000
const MAX_FACTS_LOOKS = 6

/** Those of the stretch that the facts are true of. */
export async function fitting(session: Session, stretch: Stretch, facts: Facts): Promise<Stretch> {
  if (stretch.positions.length === 0) return stretch
  const rows = await session.rows<FactsRow>(
    readFacts,
    stretch.positions.map(({ id }) => id),
  )
  const found = new Set<LetterId>(rows.filter((row) => isTrue(facts, row)).map(({ id }) => letterId(id)))
  return { ...stretch, positions: stretch.positions.filter(({ id }) => found.has(id)) }
}

function isTrue({ minAttempts, outcome }: Facts, row: FactsRow): boolean {
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
  const found = await lookOn(span, limit, MAX_FACTS_LOOKS, async (part) => {
    const look = Math.min(most, part.below === span.below ? FIRST_FACTS_LOOK : FACTS_LOOK)
    return fitting(session, await scanLetters(session, choice, part, look), facts)
  })
  return mergeStretches([found], limit)
}
