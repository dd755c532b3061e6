/** Which redrives the line shows: those under way, and those that ended while this tab looked on. Pure. */
import { isActive, type Redrive } from '../api/redrive-types.ts'

/** How long an ended one stays unless it is dismissed; one whose letters are not all heard of stays longer. */
const NEWS_MS = 2 * 60_000
const UNHEARD_MS = 10 * 60_000

/** `before` with those that are seen now, these first; no more than `most`. The same list where it has them all. */
export function watchedOf(
  before: readonly string[],
  seen: readonly string[],
  most: number,
): readonly string[] {
  const now = [...new Set(seen)].slice(0, most)
  if (now.every((id) => before.includes(id))) return before
  return [...now, ...before.filter((id) => !now.includes(id))].slice(0, most)
}

/** Whether it still is news at `now`. */
export function isNews(redrive: Redrive, now: number): boolean {
  const { state, endedAtUtc, counts } = redrive
  if (isActive(redrive)) return true
  if (state === 'planned' || endedAtUtc === null) return false
  return now - new Date(endedAtUtc).getTime() < (counts.unconfirmed > 0 ? UNHEARD_MS : NEWS_MS)
}
