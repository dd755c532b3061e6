/**
 * Finds the oldest letter of a list that begins with the newest. Time is halved until what is left fits a page, so that a list of any
 * length takes a few dozen small reads at most.
 */
import type { LetterItem, Page } from '../api/types.ts'

/** Reads a page of the letters that failed before a moment, or of all; a token leads to the page after. */
export type ReadBefore = (before: string | null, token: string | null) => Promise<Page<LetterItem>>

/** The oldest; null when there is none. */
export async function oldestLetter(read: ReadBefore): Promise<LetterItem | null> {
  let page = await read(null, null)
  let last = page.items.at(-1)
  let earliestMs = 0
  while (last !== undefined && page.continuationToken !== null) {
    const latestMs = Date.parse(last.lastFailureAtUtc)
    const middleMs = Math.floor((earliestMs + latestMs) / 2)
    // All that are left failed within a millisecond.
    if (middleMs <= earliestMs || middleMs >= latestMs) return lastOfAll(read, page, last)
    const older = await read(new Date(middleMs).toISOString(), null)
    const oldest = older.items.at(-1)
    if (oldest === undefined && older.continuationToken === null) earliestMs = middleMs
    else if (oldest === undefined) return lastOfAll(read, page, last)
    else {
      page = older
      last = oldest
    }
  }
  return last ?? null
}

/** Page after page to the end. */
async function lastOfAll(
  read: ReadBefore,
  { continuationToken }: Page<LetterItem>,
  last: LetterItem,
): Promise<LetterItem> {
  let found = last
  for (let token = continuationToken; token !== null; ) {
    const page = await read(null, token)
    found = page.items.at(-1) ?? found
    token = page.continuationToken
  }
  return found
}
