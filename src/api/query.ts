/** Query parameters of the office API. Unknown, repeated or empty ones are refused by name: an ignored filter shows the wrong rows. */
import type { Instant } from '../core/clock.ts'
import { refuse } from '../core/errors.ts'
import { parseTimestamp } from '../core/timestamp.ts'

export type Query = ReadonlyMap<string, string>

const DEFAULT_LIMIT = 50
const MAX_LIMIT = 100

export function readQuery(url: string, known: readonly string[]): Query {
  const start = url.indexOf('?')
  const query = new Map<string, string>()
  if (start < 0) return query
  for (const [name, value] of new URLSearchParams(url.slice(start))) {
    if (!known.includes(name)) {
      throw refuse(
        name,
        known.length === 0 ? 'this call takes no parameters' : `it is none of ${known.join(', ')}`,
      )
    }
    if (query.has(name)) throw refuse(name, 'it is given twice')
    if (value === '') throw refuse(name, 'it is empty, give a value or leave it out')
    if (value.includes('\0')) throw refuse(name, 'it holds the null character')
    query.set(name, value)
  }
  return query
}

/** 1 to 100, default 50. */
export function limitOf(query: Query): number {
  const text = query.get('limit')
  if (text === undefined) return DEFAULT_LIMIT
  const limit = /^\d{1,9}$/.test(text) ? Number(text) : 0
  if (limit < 1 || limit > MAX_LIMIT) {
    throw refuse('limit', `'${shorten(text)}' is no whole number from 1 to ${MAX_LIMIT}`)
  }
  return limit
}

/** A date-time with a zone, or a date, which means midnight UTC. */
export function instantOf(query: Query, name: string): Instant | null {
  const text = query.get(name)
  if (text === undefined) return null
  const parsed = parseTimestamp(
    /^\d{4}-\d{2}-\d{2}$/.test(text)
      ? `${text}T00:00:00Z`
      : // A plus that was not percent-encoded arrives as a space.
        text.replace(/ (\d{2}:\d{2})$/, '+$1'),
  )
  if (!parsed.ok) throw refuse(name, `${parsed.reason}, nor a date such as 2027-01-01`)
  return parsed.at
}

/** `fromDate` ≤ … < `toDate`; null where a side is open. */
export function periodOf(query: Query): { readonly from: Instant | null; readonly to: Instant | null } {
  const from = instantOf(query, 'fromDate')
  const to = instantOf(query, 'toDate')
  if (from !== null && to !== null && from > to) throw refuse('fromDate', 'it is later than toDate')
  return { from, to }
}

/** `true` or `false`, the default. */
export function flagOf(query: Query, name: string): boolean {
  const text = query.get(name)
  if (text === undefined || text === 'false') return false
  if (text === 'true') return true
  throw refuse(name, `'${shorten(text)}' is neither true nor false`)
}

/** A caller's text in a refusal. */
export const shorten = (text: string, most = 64): string =>
  (text.length > most ? `${text.slice(0, most)}…` : text).toWellFormed()
