/**
 * Search for letters that contain a text, ignoring case. In this order, until the page is full:
 *
 *   1. the newest letters are compared: a common text fills the page at once;
 *   2. a rare text has few hits in the index, to which letters not yet filed are added;
 *   3. a text that is common elsewhere is searched by walking on, a bounded way per page.
 *
 * Every hit is compared with the letter as it is, so all ways agree. Nothing reads a whole table.
 */
import { refuse } from '../../core/errors.ts'
import { type Integer, type Session, sql } from '../../store/database.ts'
import { type LetterId, letterId } from '../letter.ts'
import type { FilterPlan } from './filter.ts'
import {
  ANY_TIME,
  limitedStretch,
  lookOn,
  mergeStretches,
  type PositionRow,
  type Span,
  type Stretch,
  toPosition,
} from './positions.ts'
import { scanLetters, walkLimit } from './scan.ts'
import { fold, indexable, readWords } from './texts.ts'

const MIN_CHARACTERS = 3
const MAX_CHARACTERS = 200

const FIRST_LOOK = 500
/** With more hits, walking the list is quicker. */
const MAX_HITS = 20_000
/** With more unfiled letters, they are walked like any others. */
const MAX_UNFILED = 10_000
/** A text of common trigrams has long lists of them. */
const INDEX_TIMEOUT_MS = 250
const COMPARED = 500
const MAX_LOOKS = 10

/** The text as it is compared. Refuses what the index cannot look for. */
export function needleOf(q: string): string {
  const needle = fold(q.toWellFormed())
  const characters = [...needle].length
  if (characters < MIN_CHARACTERS || [...q].length > MAX_CHARACTERS) {
    throw refuse('q', `it needs ${MIN_CHARACTERS} to ${MAX_CHARACTERS} characters`)
  }
  return needle
}

export async function containing(session: Session, stretch: Stretch, needle: string): Promise<Stretch> {
  if (stretch.positions.length === 0) return stretch
  const texts = await readWords(
    session,
    stretch.positions.map(({ id }) => id),
  )
  const found = new Set(texts.filter(({ words }) => words.includes(needle)).map(({ id }) => id))
  return { ...stretch, positions: stretch.positions.filter(({ id }) => found.has(id)) }
}

/** The next `limit` letters that contain the text; fewer at the end of the span, or after too many others. */
export async function searchLetters(
  session: Session,
  plan: FilterPlan,
  span: Span,
  needle: string,
  limit: number,
): Promise<Stretch> {
  const steps = walkLimit(plan)
  const look = async (part: Span, letters: number) =>
    containing(session, await scanLetters(session, plan, part, letters), needle)
  const newest = await look(span, Math.min(FIRST_LOOK, steps))
  if (newest.end === null || newest.positions.length >= limit) return mergeStretches([newest], limit)
  const rest = { ...span, below: newest.end }
  const wanted = limit - newest.positions.length
  const possible = await readPossible(session, needle)
  const found =
    possible === null
      ? await lookOn(rest, wanted, MAX_LOOKS, (part) => look(part, steps))
      : await lookOn(rest, wanted, MAX_LOOKS, (part) => compare(session, plan, part, possible, needle))
  return mergeStretches([{ positions: [...newest.positions, ...found.positions], end: found.end }], limit)
}

/** By primary key, then filtered. Sorts at most the given ids. */
const readAmong = sql(
  'search.among',
  `SELECT id, last_failure_at AS at FROM (
     SELECT id, last_failure_at, status, drawer, instance_id, correlation_id, source_id FROM bartleby.letters NOT INDEXED
     WHERE id = ANY($1::bigint[]) LIMIT $10) AS candidates
   WHERE (last_failure_at, id) < ($2, $3) AND last_failure_at >= $4
     AND status = ANY($5::int[]) AND ($6::int[] IS NULL OR drawer = ANY($6))
     AND ($7::text IS NULL OR coalesce(instance_id, source_id) = $7)
     AND ($8::text IS NULL OR coalesce(correlation_id, source_id) = $8)
   ORDER BY last_failure_at DESC, id DESC LIMIT $9`,
  { bigints: true },
)

function readMatching(
  session: Session,
  { statuses, drawers, instanceId, correlationId }: FilterPlan,
  { below, from }: Span,
  ids: readonly LetterId[],
  limit: number,
): Promise<PositionRow[]> {
  const chosen = [statuses, drawers, instanceId, correlationId] as const
  return session.rows<PositionRow>(readAmong, ids, below.at, below.id, from, ...chosen, limit, ids.length)
}

/** Matching letters among these, wherever they are in the list. */
export async function matchingAmong(
  session: Session,
  plan: FilterPlan,
  ids: readonly LetterId[],
): Promise<ReadonlySet<LetterId>> {
  if (ids.length === 0) return new Set()
  const span = { below: plan.span.below, from: ANY_TIME }
  const rows = await readMatching(session, plan, span, ids, ids.length)
  return new Set(rows.map(({ id }) => letterId(id)))
}

async function compare(
  session: Session,
  plan: FilterPlan,
  span: Span,
  possible: readonly LetterId[],
  needle: string,
): Promise<Stretch> {
  const rows = await readMatching(session, plan, span, possible, COMPARED)
  return containing(session, limitedStretch(rows.map(toPosition), COMPARED), needle)
}

/** Letters with all trigrams of $1, on the trigram index. Planned anew: the number depends on the text. */
const readFiled = sql(
  'search.filed',
  {
    postgres: `SELECT letter_id AS id FROM bartleby.letter_texts WHERE words LIKE '%' || $1 || '%' LIMIT $2`,
    sqlite: `SELECT rowid AS id FROM letter_texts WHERE letter_texts MATCH '"' || $1 || '"' LIMIT $2`,
  },
  { plan: 'anew' },
)

/** By primary key; stops at $1. */
const readUnfiled = sql('search.unfiled', {
  postgres: `SELECT letters.id FROM bartleby.letters_to_file AS batch CROSS JOIN LATERAL (
               SELECT id FROM bartleby.letters WHERE id >= batch.first_letter AND id <= batch.last_letter LIMIT $1
             ) AS letters LIMIT $1`,
  sqlite: `SELECT letters.id FROM letters_to_file AS batch
           CROSS JOIN letters ON letters.id >= batch.first_letter AND letters.id <= batch.last_letter LIMIT $1`,
})

/** Letters that may contain the text; null: too many. */
async function readPossible(session: Session, needle: string): Promise<LetterId[] | null> {
  const unfiled = await session.rows<{ id: Integer }>(readUnfiled, MAX_UNFILED + 1)
  if (unfiled.length > MAX_UNFILED) return null
  const filed = await readHits(session, indexable(needle))
  if (filed === null || filed.length > MAX_HITS) return null
  return [...new Set([...unfiled, ...filed].map(({ id }) => letterId(id)))]
}

const savepoint = sql('search.savepoint', { postgres: 'SAVEPOINT search' })
const rollback = sql('search.rollback', { postgres: 'ROLLBACK TO SAVEPOINT search' })
const limitTime = sql('search.limitTime', { postgres: `SELECT set_config('statement_timeout', $1, true)` })

async function readHits(session: Session, coded: string): Promise<{ id: Integer }[] | null> {
  if (session.dialect === 'sqlite') return session.rows(readFiled, coded, MAX_HITS + 1)
  await session.run(savepoint)
  try {
    await session.run(limitTime, String(INDEX_TIMEOUT_MS))
    return await session.rows(readFiled, coded, MAX_HITS + 1)
  } catch (error) {
    if (isTimeout(error)) return null
    throw error
  } finally {
    // Resets the limit too.
    await session.run(rollback)
  }
}

const QUERY_CANCELLED = '57014'

const isTimeout = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && error.code === QUERY_CANCELLED
