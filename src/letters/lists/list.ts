/**
 * Lists of letters, newest failure first. Each page is one moment of the store; all pages of a walk keep the order it began with, so
 * no letter is missed or met twice. Letters captured meanwhile are for the next walk.
 *
 * A letter reopened meanwhile jumps to the top, behind the walk. Later pages look for such letters and show them at their former
 * position, which their attempts tell. Clocks cannot tell "since": a reopening may carry an earlier instant and commit later.
 * PostgreSQL compares snapshots. SQLite commits in the order of instants; there, reopenings at the last visible instant are remembered
 * one by one.
 */
import { type Instant, instant, later } from '../../core/clock.ts'
import { decodePageToken, encodePageToken, malformed, type TokenFields } from '../../core/page-token.ts'
import { type Database, type Integer, type Session, sql } from '../../store/database.ts'
import { type LetterId, type LetterSummary, letterId } from '../letter.ts'
import { DrawerLabels } from '../numbers/find-drawers.ts'
import { readSummaries } from './detail.ts'
import { type FilterPlan, filterFields, type LetterFilter, planFilter } from './filter.ts'
import {
  ANY_TIME,
  limitedStretch,
  mergeStretches,
  type Position,
  type PositionRow,
  type Span,
  type Stretch,
  TOP,
  toPosition,
} from './positions.ts'
import { filterByFacts, scanFiltered } from './scan.ts'
import { containing, matchingAmong, needleOf, searchLetters } from './search.ts'

export interface Page {
  readonly items: readonly LetterSummary[]
  /** null: the last page. A page may be short, even empty, and have a successor. */
  readonly continuationToken: string | null
}

export interface PageRequest {
  readonly limit: number
  /** null: the first page. */
  readonly token: string | null
  readonly now: Instant
}

const LAST_PAGE: Page = { items: [], continuationToken: null }

interface Cursor {
  readonly position: Position
  readonly start: WalkStart
}

/** Refuses a token made for another filter. */
export async function listLetters(
  db: Database,
  filter: LetterFilter,
  request: PageRequest,
  labels = new DrawerLabels(),
): Promise<Page> {
  const fields = filterFields(filter)
  const needle = filter.q === undefined ? null : needleOf(filter.q)
  const cursor = request.token === null ? null : readCursor(db, fields, request.token)
  return db.snapshot('letters.list', async (session) => {
    const plan = await planFilter(session, filter)
    if (plan === null) return LAST_PAGE
    const [start, stretch] =
      cursor === null
        ? await Promise.all([
            beginWalk(session, request.now),
            readFirst(session, plan, needle, request.limit),
          ])
        : [cursor.start, await readNext(session, plan, needle, request.limit, cursor)]
    const ids = stretch.positions.map(({ id }) => id)
    const { end } = stretch
    return {
      items: await readSummaries(session, ids, labels),
      continuationToken: end === null ? null : encodePageToken(fields, writeCursor({ position: end, start })),
    }
  })
}

async function readFirst(
  session: Session,
  plan: FilterPlan,
  needle: string | null,
  limit: number,
): Promise<Stretch> {
  // One more tells whether there is a next page.
  const found = await readStretch(session, plan, plan.span.below, needle, limit + 1)
  return mergeStretches([found], limit)
}

async function readNext(
  session: Session,
  plan: FilterPlan,
  needle: string | null,
  limit: number,
  { position, start }: Cursor,
): Promise<Stretch> {
  const there = await readStretch(session, plan, position, needle, limit + 1)
  const span = { below: position, from: there.end?.at ?? plan.span.from }
  const [kept, reopened] = await Promise.all([
    withoutReopened(session, start, there),
    reopenedSince(session, start, plan, span, limit + 1),
  ])
  const found = needle === null ? reopened : await containing(session, reopened, needle)
  return mergeStretches([kept, await withFacts(session, plan, found)], limit)
}

/** The next `limit` matching letters below a position, or fewer, see `Stretch`. */
export async function readStretch(
  session: Session,
  plan: FilterPlan,
  below: Position,
  needle: string | null,
  limit: number,
): Promise<Stretch> {
  const span = { ...plan.span, below }
  return needle === null
    ? scanFiltered(session, plan, span, limit)
    : withFacts(session, plan, await searchLetters(session, plan, span, needle, limit))
}

const withFacts = async (session: Session, { facts }: FilterPlan, stretch: Stretch): Promise<Stretch> =>
  facts === null ? stretch : filterByFacts(session, stretch, facts)

const writeCursor = ({ position, start }: Cursor): TokenFields => ({
  at: position.at.toString(),
  id: position.id.toString(),
  since: start.since.toString(),
  seen: start.seen,
})

function readCursor({ dialect }: Database, fields: TokenFields, token: string): Cursor {
  const { at, id, since, seen } = decodePageToken(fields, token)
  if (seen === undefined || !isSeen(dialect, seen)) throw malformed()
  return {
    position: { at: instant(storedInteger(at)), id: letterId(storedInteger(id)) },
    start: { since: instant(storedInteger(since)), seen },
  }
}

function storedInteger(text: string | undefined): bigint {
  if (text === undefined || !/^-?\d{1,19}$/.test(text)) throw malformed()
  const value = BigInt(text)
  if (BigInt.asIntN(64, value) !== value) throw malformed()
  return value
}

interface WalkStart {
  /** Later reopenings have this instant or a later one. */
  readonly since: Instant
  /** Reopenings from `since` on that the walk began with, as the store describes them. */
  readonly seen: string
}

/** An uncommitted reopening can be dated so much earlier than now, differences of server clocks included. */
const LATENESS_US = 120_000_000n
/** Reopenings of one instant that fit into a token. */
const MAX_SEEN = 100

const readMoment = sql('walk.moment', { postgres: 'SELECT pg_current_snapshot()::text AS seen' })

/** On letter_attempts_superseded. */
const readLatest = sql(
  'walk.latest',
  {
    sqlite: `SELECT superseded_at AS at, letter_id || '.' || number AS seen
             FROM letter_attempts INDEXED BY letter_attempts_superseded WHERE superseded_at IS NOT NULL
             ORDER BY superseded_at DESC LIMIT $1`,
  },
  { bigints: true },
)

async function beginWalk(session: Session, now: Instant): Promise<WalkStart> {
  if (session.dialect === 'postgres') {
    const [row] = await session.rows<{ seen: string }>(readMoment)
    return { since: later(now, -LATENESS_US), seen: row?.seen ?? '' }
  }
  const rows = await session.rows<{ at: bigint; seen: string }>(readLatest, MAX_SEEN)
  const last = rows[0]
  if (last === undefined) return { since: ANY_TIME, seen: '[]' }
  // A clock that was set back dates later reopenings earlier.
  const since = last.at < now ? instant(last.at) : now
  const seen = rows.filter(({ at }) => at >= since).map((row) => row.seen)
  return { since, seen: JSON.stringify(seen) }
}

/** Whether a token's `seen` could come from `beginWalk`. */
function isSeen(dialect: Session['dialect'], seen: string): boolean {
  if (dialect === 'sqlite') return /^\[("\d+\.\d+"(,"\d+\.\d+")*)?\]$/.test(seen)
  if (!/^[1-9]\d{0,17}:[1-9]\d{0,17}:(\d{1,18}(,\d{1,18})*)?$/.test(seen)) return false
  const [xmin = '', xmax = '', running = ''] = seen.split(':')
  const order = [xmin, ...running.split(',').filter((xid) => xid !== ''), xmax].map(BigInt)
  return (
    order.every((xid, i) => i === 0 || xid >= (order[i - 1] ?? 0n)) &&
    (running === '' || order.at(-2) !== order.at(-1))
  )
}

/** The full number of the transaction that wrote a row, which keeps only the lower half. */
const writer = (row: string): string => `(pg_snapshot_xmax($2::pg_snapshot)::text::bigint
  + mod(mod(${row}.xmin::text::bigint - pg_snapshot_xmax($2::pg_snapshot)::text::bigint + 2147483648, 4294967296)
    + 4294967296, 4294967296) - 2147483648)::text::xid8`

const since = {
  postgres: (row: string) =>
    `${row}.superseded_at >= $1 AND NOT pg_visible_in_snapshot(${writer(row)}, $2::pg_snapshot)`,
  sqlite: (row: string) => `${row}.superseded_at >= $1 AND ${row}.letter_id || '.' || ${row}.number
    NOT IN (SELECT value FROM json_each($2))`,
}

/** The attempt that stood on the letter when the walk began. */
const isFirst = (condition: (row: string) => string): string => `(
  SELECT 1 FROM bartleby.letter_attempts AS earlier WHERE earlier.letter_id = attempt.letter_id
    AND earlier.number < attempt.number AND ${condition('earlier')} LIMIT 1
  ) IS NULL`

/**
 * Letters reopened since, at their former positions, newest first. Reads all reopenings of the walk, on letter_attempts_superseded, and
 * sorts the first $7. $6 is the end of time: PostgreSQL believes a range with two ends to be short.
 */
const reopened = (isSince: (row: string) => string): string => `
  SELECT attempt.letter_id AS id, attempt.failed_at AS at
  FROM bartleby.letter_attempts AS attempt INDEXED BY letter_attempts_superseded
  WHERE ${isSince('attempt')} AND attempt.superseded_at <= $6
    AND (attempt.failed_at, attempt.letter_id) < ($3, $4) AND attempt.failed_at >= $5 AND ${isFirst(isSince)}
  ORDER BY attempt.failed_at DESC, attempt.letter_id DESC LIMIT $7`
const readReopened = sql(
  'walk.reopened',
  { postgres: reopened(since.postgres), sqlite: reopened(since.sqlite) },
  { bigints: true },
)

/** Matching letters reopened since the walk began, at their former positions. */
async function reopenedSince(
  session: Session,
  start: WalkStart,
  plan: FilterPlan,
  { below, from }: Span,
  limit: number,
): Promise<Stretch> {
  const where = [start.since, start.seen, below.at, below.id, from, TOP.at, limit]
  const rows = await session.rows<PositionRow>(readReopened, ...where)
  const { positions, end } = limitedStretch(rows.map(toPosition), limit)
  const ids = positions.map(({ id }) => id)
  const chosen = await matchingAmong(session, plan, ids)
  return { positions: positions.filter(({ id }) => chosen.has(id)), end }
}

/** By the primary key of attempts. */
const among = (isSince: (row: string) => string): string =>
  `SELECT attempt.letter_id AS id FROM bartleby.letter_attempts AS attempt
   WHERE attempt.letter_id = ANY($3::bigint[]) AND ${isSince('attempt')}`
const readAmong = sql('walk.reopenedAmong', {
  postgres: among(since.postgres),
  sqlite: among(since.sqlite),
})

/** Without letters reopened since: their positions are new. */
async function withoutReopened(session: Session, start: WalkStart, stretch: Stretch): Promise<Stretch> {
  if (stretch.positions.length === 0) return stretch
  const ids = stretch.positions.map(({ id }) => id)
  const rows = await session.rows<{ id: Integer }>(readAmong, start.since, start.seen, ids)
  const reopened = new Set<LetterId>(rows.map(({ id }) => letterId(id)))
  return { ...stretch, positions: stretch.positions.filter(({ id }) => !reopened.has(id)) }
}
