/** Where the reader of a list was: kept for the tab, so that the way back from a letter, or a reload, leads to the same place. */
import type { LetterItem } from '../api/types.ts'
import { keep, kept } from '../kit/kept.ts'

export interface ListPlace {
  /** The query it is a place of. */
  readonly text: string
  /** What ages in the query count from. */
  readonly nowMs: number
  /** Of each page up to the present one; the first has none. */
  readonly tokens: readonly (string | null)[]
  readonly selected: readonly LetterItem[]
  /** The row that keys act on. */
  readonly current: string | null
}

const KEPT_AS = 'bartleby.letters'

/** The place in the list of this query; null when the last one was another. */
export function keptPlace(text: string): ListPlace | null {
  try {
    // Written by `keepPlace`.
    const place = JSON.parse(kept('tab', KEPT_AS) ?? 'null') as ListPlace | null
    return place?.text === text ? place : null
  } catch {
    return null
  }
}

/** Takes over what is given and keeps the rest, if it is about the same query. */
export function keepPlace(place: Partial<ListPlace> & Pick<ListPlace, 'text'>): void {
  const before = keptPlace(place.text) ?? { nowMs: Date.now(), tokens: [null], selected: [], current: null }
  // Where there is no room, the list begins at its beginning.
  keep('tab', KEPT_AS, JSON.stringify({ ...before, ...place }))
}
