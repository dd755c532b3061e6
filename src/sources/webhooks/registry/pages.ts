/**
 * Lists of webhooks: 25 at a time, newest first, forward and back. A cursor says which row a page is next to, by time and id
 * together, so that rows of the same moment are neither skipped nor met twice. It is `<xid>|<RFC 3339>` in base64; what is no
 * cursor is ignored, as clients know it.
 */
import { type Instant, instant } from '../../../core/clock.ts'
import { formatTimestamp, parseTimestamp } from '../../../core/timestamp.ts'
import { parseXid, type Xid, xid } from '../../../core/xid.ts'
import { type Integer, type Session, type Statement, sql, type Value } from '../../../store/database.ts'
import { Refused } from '../refusal.ts'

export const PAGE_SIZE = 25

/** What the query of a list says: both null for the first page. */
export interface PageRequest {
  readonly next: string | null
  readonly previous: string | null
}

export const FIRST_PAGE: PageRequest = { next: null, previous: null }

export interface Page<T> {
  readonly items: readonly T[]
  /** The cursors of the first and the last item: what `previous` and `next` take. Null on an empty page. */
  readonly first: string | null
  readonly last: string | null
}

export const EMPTY_PAGE: Page<never> = { items: [], first: null, last: null }

/** Where a row stands in its list. */
export interface Place {
  readonly at: Instant
  readonly id: Xid
}

/** Before the newest row there can be. */
const TOP: Place = { at: instant(2n ** 63n - 1n), id: xid('vvvvvvvvvvvvvvvvvvvg') }

/** Far beyond every cursor. */
const MOST_CHARACTERS = 200

/** The cursor of a place. */
export const encodeCursor = ({ at, id }: Place): string =>
  Buffer.from(`${id}|${formatTimestamp(at)}`).toString('base64')

/** The place of a cursor; null for what is none. */
export function decodeCursor(cursor: string | null): Place | null {
  if (cursor === null || cursor.length > MOST_CHARACTERS) return null
  const bytes = Buffer.from(cursor, 'base64')
  // Decoding skips what it does not know; only what encodes to the same text again was base64.
  if (bytes.toString('base64') !== cursor) return null
  const [idText = '', time = '', ...more] = bytes.toString().split('|')
  const id = parseXid(idText)
  const parsed = parseTimestamp(time)
  return id === null || !parsed.ok || more.length > 0 ? null : { at: parsed.at, id }
}

/** The rows on one side of a place. */
export interface Span {
  readonly side: 'older' | 'newer'
  readonly place: Place
}

/** Which rows are asked for. Refuses both directions at once. */
export function spanOf({ next, previous }: PageRequest): Span {
  const after = decodeCursor(next)
  const before = decodeCursor(previous)
  if (after !== null && before !== null) throw new Refused('both_cursors')
  if (before !== null) return { side: 'newer', place: before }
  return { side: 'older', place: after ?? TOP }
}

/** The two statements of a list: the rows behind a place, and the rows before it. */
export type PageStatements = Readonly<Record<Span['side'], Statement>>

export interface ListTable {
  readonly table: string
  /** What is selected beside `id`. */
  readonly columns: string
  /** By what `where` fixes, then `at`, then `id`. */
  readonly index: string
  /** The column that the list is in the order of. */
  readonly at: string
  /** The first column of the index, where a list is of one value of it: $4. */
  readonly of?: string
  /** What else rows must meet. */
  readonly where?: string
}

/**
 * A page is one range of the index, from the place on, and at most $3 rows of the table: its cost is that of a page, wherever
 * it lies in the list. No locks.
 */
export function pageStatements(name: string, list: ListTable): PageStatements {
  const { table, columns, index, at, of, where } = list
  const statement = (side: Span['side'], comparison: string, order: string) => {
    return sql(
      `${name}.${side}`,
      `SELECT id, ${at} AS page_at, ${columns} FROM bartleby.${table} INDEXED BY ${index}
        WHERE ${of === undefined ? '' : `${of} = $4 AND `}(${at}, id) ${comparison} ($1, $2) ${where === undefined ? '' : `AND ${where}`}
        ORDER BY ${at} ${order}, id ${order} LIMIT (SELECT $3::bigint)`,
      { bigints: true },
    )
  }
  return { older: statement('older', '<', 'DESC'), newer: statement('newer', '>', 'ASC') }
}

export interface PageRow {
  readonly id: string
  readonly page_at: Integer
}

/** The rows of a span that are nearest to its place, newest first. */
export async function readSpan<Row extends PageRow>(
  session: Session,
  statements: PageStatements,
  { side, place }: Span,
  ...values: readonly Value[]
): Promise<Row[]> {
  const rows = await session.rows<Row>(statements[side], place.at, place.id, PAGE_SIZE, ...values)
  return side === 'newer' ? rows.reverse() : rows
}

/** Rows, newest first, as a page. */
export function pageOf<Row extends PageRow, T>(rows: readonly Row[], toItem: (row: Row) => T): Page<T> {
  const cursorOf = (row: Row | undefined) =>
    row === undefined ? null : encodeCursor({ at: instant(BigInt(row.page_at)), id: xid(row.id) })
  return { items: rows.map(toItem), first: cursorOf(rows[0]), last: cursorOf(rows.at(-1)) }
}
