/** What events tell about redrives under way, put into what was read of them. Pure. */
import type { Redrive, ToldRedrive } from '../api/redrive-types.ts'
import type { Page } from '../api/types.ts'

export interface Updated {
  /** undefined: nothing was read yet. */
  readonly page: Page<Redrive> | undefined
  /** Others are under way than those that were read: they must be read anew. */
  readonly isIncomplete: boolean
}

/** Takes over what is told of those that are known; those that are told no more are over, and gone from the list. */
export function withTold(page: Page<Redrive> | undefined, told: readonly ToldRedrive[]): Updated {
  if (page === undefined) {
    return told.length > 0
      ? { page, isIncomplete: true }
      : { page: { items: [], continuationToken: null }, isIncomplete: false }
  }
  const news = new Map(told.map((each) => [each.id, each]))
  const items = page.items.flatMap((known) => {
    const each = news.get(known.id)
    return each === undefined ? [] : [{ ...known, ...each }]
  })
  return { page: { ...page, items }, isIncomplete: items.length < told.length }
}
