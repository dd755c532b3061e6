/** Lists of a server, page by page. */
import { type Page, walkPages } from '../client/envelope.ts'
import type { CallServer } from './office-call.ts'

const LARGEST_PAGE = 100

/** What the list at `path` has for that query, at most `most` of it. Further pages are asked for when they are needed. */
export async function* walkList<Item>(
  call: CallServer,
  path: string,
  query: Readonly<Record<string, string | undefined>>,
  most = Number.POSITIVE_INFINITY,
): AsyncGenerator<Item, void, undefined> {
  if (most <= 0) return
  let given = 0
  const list = ({ limit, continuationToken }: { limit?: number; continuationToken?: string | undefined }) =>
    call<Page<Item>>('GET', `${path}${queryText({ ...query, limit: String(limit), continuationToken })}`)
  for await (const item of walkPages(Math.min(LARGEST_PAGE, most), list)) {
    yield item
    given += 1
    if (given >= most) return
  }
}

/** The same as a list of its own; for what is not many. */
export async function listAll<Item>(
  call: CallServer,
  path: string,
  query: Readonly<Record<string, string | undefined>>,
  most?: number,
): Promise<readonly Item[]> {
  const items: Item[] = []
  for await (const item of walkList<Item>(call, path, query, most)) items.push(item)
  return items
}

/** `?name=value…` of what is given; nothing when nothing is. */
export function queryText(query: Readonly<Record<string, string | undefined>>): string {
  const given = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) if (value !== undefined) given.set(name, value)
  return given.size === 0 ? '' : `?${given}`
}
