/**
 * Positions in lists, newest first: by last failure, then number. Lists are read in stretches that say how far they looked; stretches
 * of several kinds are merged without sorting a table.
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

export const TOP: Position = { at: instant(HIGHEST), id: letterId(HIGHEST) }

export const ANY_TIME: Instant = instant(LOWEST)

/** Above all letters that failed before `at`. */
export const justBefore = (at: Instant): Position => ({ at, id: letterId(LOWEST) })

/** Positions behind `below`, down to failures at `from`. */
export interface Span {
  readonly below: Position
  readonly from: Instant
}

/** Everything found from the start of a span to `end`, newest first; null: to the end of the span. */
export interface Stretch {
  readonly positions: readonly Position[]
  readonly end: Position | null
}

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

/** A statement that returned all `limit` rows looked no further. */
export const limitedStretch = (positions: readonly Position[], limit: number): Stretch => ({
  positions,
  end: positions.length < limit ? null : (positions.at(-1) ?? null),
})

/** Ends where the first stretch ends, or at its `limit`th position. */
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

/** Repeats `look` until `wanted` are found, the span ends, or `maxLooks` are used up. */
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
    // A look at SQLite blocks the whole server.
    await othersTurn()
  }
  return { positions, end: below }
}
