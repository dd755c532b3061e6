/**
 * Search: the letters of a list that contain a text, whatever its case. In this order, until the page is full:
 *
 *   1. the newest letters of the list are read and compared: a common text fills the page at once;
 *   2. a rare text has few candidates: those of the index, and the letters that the index does not know yet;
 *   3. a text that is common, but not among these letters, is searched by walking on, a bounded way per page.
 *
 * Every hit is compared with the letter as it is now, so all ways give the same answer. Nothing reads a whole table.
 */
import { refuse } from '../../core/errors.ts'
import { type Integer, type Session, sql } from '../../store/database.ts'
import { type LetterId, letterId } from '../letter.ts'
import type { Choice } from './filter.ts'
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

/** Letters that are compared before the index is asked. */
const FIRST_LOOK = 500
/** More hits of the index than this, and walking the list finds some of them sooner. */
const MAX_CANDIDATES = 20_000
/** More letters than this outside the index are walked like any others. */
const MAX_UNFILED = 10_000
/** How long PostgreSQL may look for candidates: a text of common trigrams can have long lists of them. */
const CANDIDATES_TIMEOUT_MS = 250
/** Candidates compared at once. */
const COMPARED = 500
/** Looks of one page; a page that found too little by then is short. */
const MAX_LOOKS = 10

/** The text to look for, in the form in which texts are compared. Refuses what the index cannot look for. */
export function needleOf(q: string): string {
  const needle = fold(q.toWellFormed())
  const characters = [...needle].length
  if (characters < MIN_CHARACTERS || [...q].length > MAX_CHARACTERS) {
    throw refuse('q', `it needs ${MIN_CHARACTERS} to ${MAX_CHARACTERS} characters`)
  }
  return needle
}

/** Those of the stretch that contain the text. */
export async function containing(session: Session, stretch: Stretch, needle: string): Promise<Stretch> {
  if (stretch.positions.length === 0) return stretch
  const texts = await readWords(
    session,
    stretch.positions.map(({ id }) => id),
  )
  const found = new Set(texts.filter(({ words }) => words.includes(needle)).map(({ id }) => id))
  return { ...stretch, positions: stretch.positions.filter(({ id }) => found.has(id)) }
}

/** The next letters of the span that contain the text: `limit`, or fewer when it ends or too many were compared. */
export async function searchLetters(
  session: Session,
  choice: Choice,
  span: Span,
  needle: string,
  limit: number,
): Promise<Stretch> {
  const steps = walkLimit(choice)
  const look = async (part: Span, letters: number) =>
    containing(session, await scanLetters(session, choice, part, letters), needle)
  const newest = await look(span, Math.min(FIRST_LOOK, steps))
  if (newest.end === null || newest.positions.length >= limit) return mergeStretches([newest], limit)
  const rest = { ...span, below: newest.end }
  const wanted = limit - newest.positions.length
  const candidates = await readCandidates(session, needle)
  const found =
    candidates === null
      ? await lookOn(rest, wanted, MAX_LOOKS, (part) => look(part, steps))
      : await lookOn(rest, wanted, MAX_LOOKS, (part) => compare(session, choice, part, candidates, needle))
  return mergeStretches([{ positions: [...newest.positions, ...found.positions], end: found.end }], limit)
}

/** Letters by primary key, no more than there are candidates; of those the ones that match. Sorts at most the candidates. */
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

/** The newest of these letters within the span that match. */
function readChosen(
  session: Session,
  { statuses, drawers, instanceId, correlationId }: Choice,
  { below, from }: Span,
  ids: readonly LetterId[],
  limit: number,
): Promise<PositionRow[]> {
  const chosen = [statuses, drawers, instanceId, correlationId] as const
  return session.rows<PositionRow>(readAmong, ids, below.at, below.id, from, ...chosen, limit, ids.length)
}

/** Those of these letters that match, wherever they are in the list. */
export async function chosenAmong(
  session: Session,
  choice: Choice,
  ids: readonly LetterId[],
): Promise<ReadonlySet<LetterId>> {
  if (ids.length === 0) return new Set()
  const span = { below: choice.span.below, from: ANY_TIME }
  const rows = await readChosen(session, choice, span, ids, ids.length)
  return new Set(rows.map(({ id }) => letterId(id)))
}

async function compare(
  session: Session,
  choice: Choice,
  span: Span,
  candidates: readonly LetterId[],
  needle: string,
): Promise<Stretch> {
  const rows = await readChosen(session, choice, span, candidates, COMPARED)
  return containing(session, limitedStretch(rows.map(toPosition), COMPARED), needle)
}

/** Letters whose filed text has all trigrams of $1, on the index of trigrams. Planned anew: how many have it depends on the text. */
const readFiled = sql(
  'search.filed',
  {
    postgres: `SELECT letter_id AS id FROM bartleby.letter_texts WHERE words LIKE '%' || $1 || '%' LIMIT $2`,
    sqlite: `SELECT rowid AS id FROM letter_texts WHERE letter_texts MATCH '"' || $1 || '"' LIMIT $2`,
  },
  { plan: 'anew' },
)

/** Letters that wait to be filed, by primary key; stops at $1. */
const readUnfiled = sql('search.unfiled', {
  postgres: `SELECT letters.id FROM bartleby.letters_to_file AS batch CROSS JOIN LATERAL (
               SELECT id FROM bartleby.letters WHERE id >= batch.first_letter AND id <= batch.last_letter LIMIT $1
             ) AS letters LIMIT $1`,
  sqlite: `SELECT letters.id FROM letters_to_file AS batch
           CROSS JOIN letters ON letters.id >= batch.first_letter AND letters.id <= batch.last_letter LIMIT $1`,
})

/** All letters that can contain the text; null when there are too many to look at. */
async function readCandidates(session: Session, needle: string): Promise<LetterId[] | null> {
  const unfiled = await session.rows<{ id: Integer }>(readUnfiled, MAX_UNFILED + 1)
  if (unfiled.length > MAX_UNFILED) return null
  const filed = await readFiledCandidates(session, indexable(needle))
  if (filed === null || filed.length > MAX_CANDIDATES) return null
  return [...new Set([...unfiled, ...filed].map(({ id }) => letterId(id)))]
}

const savepoint = sql('search.savepoint', { postgres: 'SAVEPOINT search' })
const rollback = sql('search.rollback', { postgres: 'ROLLBACK TO SAVEPOINT search' })
const limitTime = sql('search.limitTime', { postgres: `SELECT set_config('statement_timeout', $1, true)` })

async function readFiledCandidates(session: Session, coded: string): Promise<{ id: Integer }[] | null> {
  if (session.dialect === 'sqlite') return session.rows(readFiled, coded, MAX_CANDIDATES + 1)
  await session.run(savepoint)
  try {
    await session.run(limitTime, String(CANDIDATES_TIMEOUT_MS))
    return await session.rows(readFiled, coded, MAX_CANDIDATES + 1)
  } catch (error) {
    if (isTimeout(error)) return null
    throw error
  } finally {
    // Also takes the limit back.
    await session.run(rollback)
  }
}

const QUERY_CANCELLED = '57014'

const isTimeout = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && error.code === QUERY_CANCELLED
