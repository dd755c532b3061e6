/**
 * Places in the order of lists, newest first: by last failure, then by number. A list is read in stretches, each
 * saying how far it has looked; stretches of several kinds of letters are merged without ever sorting a table.
 */
import { setImmediate as othersTurn } from 'node:timers/promises'
import { type Instant, instant } from '../../core/clock.ts'
import type { Integer } from '../../store/database.ts'
import { type LetterId, letterId } from '../letter.ts'

export interface Position {
  readonly at: Instant
  readonly id: LetterId
}

const LOWEST = -(2n ** 63n)
const HIGHEST = 2n ** 63n - 1n

/** Before every letter there can be. */
export const TOP: Position = { at: instant(HIGHEST), id: letterId(HIGHEST) }

/** Before all time. */
export const ANY_TIME: Instant = instant(LOWEST)

/** The position above all letters that failed before `at`. */
export const justBefore = (at: Instant): Position => ({ at, id: letterId(LOWEST) })

/** A part of the list: everything behind `below` that failed at `from` or later. */
export interface Span {
  readonly below: Position
  readonly from: Instant
}

/** All that was wanted between the beginning of a span and `end`, newest first; to the end of the span when null. */
export interface Stretch {
  readonly positions: readonly Position[]
  readonly end: Position | null
}

/** A row of a statement that selects positions. */
export interface PositionRow {
  readonly id: Integer
  readonly at: Integer
}

export const toPosition = (row: PositionRow): Position => ({
  at: instant(BigInt(row.at)),
  id: letterId(row.id),
})

/** Newest first. */
export function inOrder(a: Position, b: Position): number {
  if (a.at !== b.at) return a.at > b.at ? -1 : 1
  if (a.id === b.id) return 0
  return a.id > b.id ? -1 : 1
}

/** The stretch of a statement that was limited to `limit` rows: when it gave that many, it looked no further. */
export const limitedStretch = (positions: readonly Position[], limit: number): Stretch => ({
  positions,
  end: positions.length < limit ? null : (positions.at(-1) ?? null),
})

/** One stretch of all: it ends where the first of them ends, or with its `limit`th position. */
export function mergeStretches(stretches: readonly Stretch[], limit: number): Stretch {
  const ends = stretches.flatMap(({ end }) => end ?? []).sort(inOrder)
  const end = ends[0] ?? null
  const positions = stretches
    .flatMap((stretch) => stretch.positions)
    .filter((position) => end === null || inOrder(position, end) <= 0)
    .sort(inOrder)
  if (positions.length <= limit) return { positions, end }
  const kept = positions.slice(0, limit)
  return { positions: kept, end: kept.at(-1) ?? null }
}

/** Looks on and on, until `wanted` are found, the span is over, or it has looked `maxLooks` times. */
export async function lookOn(
  span: Span,
  wanted: number,
  maxLooks: number,
  look: (span: Span) => Promise<Stretch>,
): Promise<Stretch> {
  const positions: Position[] = []
  let below = span.below
  for (let looks = 0; looks < maxLooks && positions.length < wanted; looks++) {
    const stretch = await look({ ...span, below })
    positions.push(...stretch.positions)
    if (stretch.end === null) return { positions, end: null }
    below = stretch.end
    // A look at SQLite holds the whole server up.
    await othersTurn()
  }
  return { positions, end: below }
}
