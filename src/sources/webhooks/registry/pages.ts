/**
 * Lists: 25 at a time, newest first, forward and back. A cursor is time and id of a row, so that rows of the same moment are neither
 * skipped nor met twice: `<xid>|<RFC 3339>` in base64. What is no cursor is ignored, as clients know it.
 */
import { type Instant, instant } from '../../../core/clock.ts'
import { formatTimestamp, parseTimestamp } from '../../../core/timestamp.ts'
import { parseXid, type Xid, xid } from '../../../core/xid.ts'
import { type Integer, type Session, type Statement, sql, type Value } from '../../../store/database.ts'
import { Refused } from '../refusal.ts'

export const PAGE_SIZE = 25

/** Both null for the first page. */
export interface PageRequest {
  readonly next: string | null
  readonly previous: string | null
}

export const FIRST_PAGE: PageRequest = { next: null, previous: null }

export interface Page<T> {
  readonly items: readonly T[]
  /** Cursors of the first and the last item, for `previous` and `next`. Null on an empty page. */
  readonly first: string | null
  readonly last: string | null
}

export const EMPTY_PAGE: Page<never> = { items: [], first: null, last: null }

export interface Place {
  readonly at: Instant
  readonly id: Xid
}

/** Before the newest row there can be. */
const TOP: Place = { at: instant(2n ** 63n - 1n), id: xid('vvvvvvvvvvvvvvvvvvvg') }

/** Far beyond every cursor. */
const MOST_CHARACTERS = 200

export const encodeCursor = ({ at, id }: Place): string =>
  Buffer.from(`${id}|${formatTimestamp(at)}`).toString('base64')

export function decodeCursor(cursor: string | null): Place | null {
  if (cursor === null || cursor.length > MOST_CHARACTERS) return null
  const bytes = Buffer.from(cursor, 'base64')
  // Decoding skips what it does not know: encode again to see whether it was base64.
  if (bytes.toString('base64') !== cursor) return null
  const [idText = '', time = '', ...more] = bytes.toString().split('|')
  const id = parseXid(idText)
  const parsed = parseTimestamp(time)
  return id === null || !parsed.ok || more.length > 0 ? null : { at: parsed.at, id }
}

export interface Span {
  readonly side: 'older' | 'newer'
  readonly place: Place
}

/** Refuses both directions at once. */
export function spanOf({ next, previous }: PageRequest): Span {
  const after = decodeCursor(next)
  const before = decodeCursor(previous)
  if (after !== null && before !== null) throw new Refused('both_cursors')
  if (before !== null) return { side: 'newer', place: before }
  return { side: 'older', place: after ?? TOP }
}

type PageStatements = Readonly<Record<Span['side'], Statement>>

interface ListTable {
  readonly table: string
  /** Beside `id`. */
  readonly columns: string
  /** By what `where` fixes, then `at`, then `id`. */
  readonly index: string
  /** The order of the list. */
  readonly at: string
  /** The first column of the index, when the list is of one value of it: $4. */
  readonly of?: string
  readonly where?: string
}

/** One range of the index and at most $3 rows: a page costs the same wherever it lies. No locks. */
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

/** Those nearest to the place, newest first. */
export async function readSpan<Row extends PageRow>(
  session: Session,
  statements: PageStatements,
  { side, place }: Span,
  ...values: readonly Value[]
): Promise<Row[]> {
  const rows = await session.rows<Row>(statements[side], place.at, place.id, PAGE_SIZE, ...values)
  return side === 'newer' ? rows.reverse() : rows
}

export function pageOf<Row extends PageRow, T>(rows: readonly Row[], toItem: (row: Row) => T): Page<T> {
  const cursorOf = (row: Row | undefined) =>
    row === undefined ? null : encodeCursor({ at: instant(BigInt(row.page_at)), id: xid(row.id) })
  return { items: rows.map(toItem), first: cursorOf(rows[0]), last: cursorOf(rows.at(-1)) }
}
