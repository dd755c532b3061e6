/**
 * Lists of letters: newest failure first, page by page. Each page is one moment of the store; all pages of a walk show
 * the order that the walk began with, so that no letter is met twice or missed. What is captured meanwhile is for the
 * next walk.
 */
import { type Instant, instant } from '../core/clock.ts'
import { failure } from '../core/errors.ts'
import { decodePageToken, encodePageToken, type TokenFields } from '../core/page-token.ts'
import type { Database, Session } from '../db/database.ts'
import { type Choice, chooseLetters } from './choice.ts'
import { readSummaries } from './detail.ts'
import { filterFields, type LetterFilter } from './filter.ts'
import { fitting, scanFitting } from './fitting.ts'
import { type LetterSummary, letterId } from './letter.ts'
import { mergeStretches, type Position, type Stretch } from './positions.ts'
import { beginWalk, isSeen, reopenedSince, type WalkStart, withoutReopened } from './reopened.ts'
import { containing, needleOf, searchLetters } from './search.ts'

export interface Page {
  readonly items: readonly LetterSummary[]
  /** null: there are no more. A page can be short, even empty, and have a successor. */
  readonly continuationToken: string | null
}

export interface PageRequest {
  readonly limit: number
  /** null: the first page. */
  readonly token: string | null
  readonly now: Instant
}

const LAST_PAGE: Page = { items: [], continuationToken: null }

/** Where a walk goes on. */
interface Cursor {
  readonly position: Position
  readonly start: WalkStart
}

/** One page of the letters that match. Refuses a token that was made for another filter. */
export async function listLetters(db: Database, filter: LetterFilter, request: PageRequest): Promise<Page> {
  const fields = filterFields(filter)
  const needle = filter.q === undefined ? null : needleOf(filter.q)
  const cursor = request.token === null ? null : readCursor(db, fields, request.token)
  return db.snapshot('letters.list', async (session) => {
    const choice = await chooseLetters(session, filter)
    if (choice === null) return LAST_PAGE
    const start = cursor?.start ?? (await beginWalk(session, request.now))
    const stretch =
      cursor === null
        ? await readFirst(session, choice, needle, request.limit)
        : await readNext(session, choice, needle, request.limit, cursor)
    return {
      items: await readSummaries(
        session,
        stretch.positions.map(({ id }) => id),
      ),
      continuationToken:
        stretch.end === null ? null : encodePageToken(fields, writeCursor({ position: stretch.end, start })),
    }
  })
}

async function readFirst(
  session: Session,
  choice: Choice,
  needle: string | null,
  limit: number,
): Promise<Stretch> {
  // One more than asked for tells whether there is a next page.
  const found = await readStretch(session, choice, choice.span.below, needle, limit + 1)
  return mergeStretches([found], limit)
}

async function readNext(
  session: Session,
  choice: Choice,
  needle: string | null,
  limit: number,
  { position, start }: Cursor,
): Promise<Stretch> {
  const there = await readStretch(session, choice, position, needle, limit + 1)
  const span = { below: position, from: there.end?.at ?? choice.span.from }
  const reopened = await reopenedSince(session, start, choice, span, limit + 1)
  return mergeStretches(
    [
      await withoutReopened(session, start, there),
      await withFacts(
        session,
        choice,
        needle === null ? reopened : await containing(session, reopened, needle),
      ),
    ],
    limit,
  )
}

/** The next `limit` letters below a position that match and contain the text, when there is one; or fewer, see `Stretch`. */
export async function readStretch(
  session: Session,
  choice: Choice,
  below: Position,
  needle: string | null,
  limit: number,
): Promise<Stretch> {
  const span = { ...choice.span, below }
  return needle === null
    ? scanFitting(session, choice, span, limit)
    : withFacts(session, choice, await searchLetters(session, choice, span, needle, limit))
}

const withFacts = async (session: Session, { facts }: Choice, stretch: Stretch): Promise<Stretch> =>
  facts === null ? stretch : fitting(session, stretch, facts)

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

const malformed = () => failure('continuation_token_invalid', { reason: 'it is malformed' })
