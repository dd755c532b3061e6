/** Pages of a redrive's letters and their outcomes, in lane order. */
import { failure } from '../../core/errors.ts'
import { decodePageToken, encodePageToken } from '../../core/page-token.ts'
import { type LetterId, letterId } from '../../letters/letter.ts'
import { type BulkLetter, readBulkLetters } from '../../letters/lists/bulk-letters.ts'
import { readUnlabelled } from '../../letters/lists/detail.ts'
import { type Database, type Integer, type Session, sql } from '../../store/database.ts'
import { at } from '../../store/row.ts'
import type { Exception, ExceptionReason, Member, MemberOutcome, Redrive } from '../redrive.ts'
import { isSending } from '../redrive.ts'
import { isAhead, readLanes } from './lanes.ts'
import { outcomeOf } from './members.ts'

export interface MemberPage {
  readonly limit: number
  readonly token: string | null
  readonly outcome: MemberOutcome | null
}

export interface Members {
  readonly items: readonly Member[]
  /** A page can be short, even empty, and have a successor. */
  readonly continuationToken: string | null
}

/** Along the primary key. */
const readPage = sql(
  'redriveLetters.page',
  `SELECT lane, captured_at, letter FROM bartleby.redrive_letters
   WHERE redrive = $1 AND (lane, captured_at, letter) > ($2, $3, $4) ORDER BY lane, captured_at, letter LIMIT $5`,
  { bigints: true },
)

/** By primary key. */
const readExceptions = sql(
  'redriveExceptions.read',
  `SELECT letter, outcome, reason, detail FROM bartleby.redrive_exceptions
   WHERE redrive = $1 AND letter = ANY($2::bigint[])`,
)

interface Row {
  readonly lane: Integer
  readonly captured_at: Integer
  readonly letter: Integer
}

/** The last letter of a page. */
type Cursor = readonly [lane: Integer, capturedAt: Integer, letter: Integer]

const START: Cursor = [-1, 0, 0]

/** Letters per look, and looks per page: a rare outcome may take several pages. */
const LOOK = 1_000
const MAX_LOOKS = 10

export function listMembers(
  db: Database,
  redrive: Redrive,
  { limit, token, outcome }: MemberPage,
): Promise<Members> {
  const fields = { list: 'redrive letters', redrive: redrive.id, outcome: outcome ?? '' }
  const start = token === null ? START : readCursor(decodePageToken(fields, token))
  return db.session('redrive.members', async (session) => {
    const items: Member[] = []
    let cursor: Cursor = start
    for (let looks = 0; looks < MAX_LOOKS; looks++) {
      const size = outcome === null ? limit + 1 : LOOK
      const rows = await session.rows<Row>(readPage, redrive.number, ...cursor, size)
      const members = await toMembers(session, redrive, rows)
      for (const [i, member] of members.entries()) {
        if (items.length === limit)
          return { items, continuationToken: encodePageToken(fields, written(cursor)) }
        if (outcome === null || member.outcome === outcome) items.push(member)
        const row = rows[i]
        if (row !== undefined) cursor = [row.lane, row.captured_at, row.letter]
      }
      if (rows.length < size) return { items, continuationToken: null }
    }
    return { items, continuationToken: encodePageToken(fields, written(cursor)) }
  })
}

const written = ([lane, at, letter]: Cursor) => ({ lane: `${lane}`, at: `${at}`, letter: `${letter}` })

function readCursor({ lane = '', at = '', letter = '' }: Readonly<Record<string, string>>): Cursor {
  if (![lane, at, letter].every((text) => /^-?\d{1,18}$/.test(text)))
    throw failure('continuation_token_invalid', { reason: 'it is malformed' })
  return [Number(lane), BigInt(at), BigInt(letter)]
}

interface ExceptionRow {
  readonly letter: Integer
  readonly outcome: Integer
  readonly reason: ExceptionReason
  readonly detail: string | null
}

async function toMembers(session: Session, redrive: Redrive, rows: readonly Row[]): Promise<Member[]> {
  if (rows.length === 0) return []
  const ids = rows.map(({ letter }) => letterId(letter))
  const lanes = new Map((await readLanes(session, [redrive.number])).map((lane) => [lane.lane, lane]))
  const exceptions = new Map<LetterId, Exception>()
  for (const row of await session.rows<ExceptionRow>(readExceptions, redrive.number, ids)) {
    const letter = letterId(row.letter)
    exceptions.set(letter, { ...row, letter, outcome: outcomeOf(row.outcome) })
  }
  const candidates = await readBulkLetters(session, ids)
  const summaries = new Map((await readUnlabelled(session, ids)).map((letter) => [letter.id, letter]))
  return rows.map((row) => {
    const letter = letterId(row.letter)
    const lane = lanes.get(Number(row.lane))
    const place = { capturedAt: at(row.captured_at), letter }
    const summary = summaries.get(letter)
    const exception = exceptions.get(letter)
    return {
      key: summary === undefined ? null : { engine: summary.engine, rowKey: summary.rowKey },
      letter,
      destination: lane?.destination ?? '',
      outcome:
        exception?.outcome ??
        memberOutcome(redrive, lane !== undefined && isAhead(lane, place), candidates.get(letter)),
      reason: exception?.reason ?? null,
      detail: exception?.detail ?? null,
    }
  })
}

/** Outcome of a letter that is no exception. */
function memberOutcome(
  { number, action }: Redrive,
  isLeft: boolean,
  letter: BulkLetter | undefined,
): MemberOutcome {
  if (isLeft) return 'remaining'
  if (!isSending(action)) return 'confirmed'
  if (letter?.redrive !== number) return 'superseded'
  if (letter.resolution !== 'retry') return 'returned'
  return letter.isUnconfirmed ? 'unconfirmed' : 'confirmed'
}
