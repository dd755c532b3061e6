/** What a plan is about, read once when it is opened: nothing in it moves while it is being decided. */
import { type QueryClient, queryOptions } from '@tanstack/react-query'
import { call } from '../api/call.ts'
import { letterQuery } from '../api/queries.ts'
import type { LetterFilter, LetterItem, LetterKey, Page, Total } from '../api/types.ts'
import { eachAtOnce } from './outcomes.ts'
import type { PlanRequest } from './plan-context.ts'
import { upTo, walksOf } from './plan-walks.ts'
import type { Act } from './run.ts'

/** As many letters are shown before anything happens. */
const SHOWN = 20

export interface PlanNumbers {
  readonly planned: number
  /** There are more than these: they are the newest. */
  readonly isCapped: boolean
  /** The lists as they can be asked for, for links and commands. */
  readonly lists: readonly { readonly filter: LetterFilter; readonly total: number }[]
  /** The same lists, each ended with its newest letter. */
  readonly walks: readonly LetterFilter[]
  readonly first: readonly LetterItem[]
}

/** Reads the numbers of a plan; kept apart from everything that live updates refresh. */
export const planQuery = (request: PlanRequest, id: number, client: QueryClient) =>
  queryOptions({
    queryKey: ['plan', id],
    queryFn: ({ signal }) =>
      request.keys === undefined ? ofFilter(request, signal) : ofKeys(request.act, request.keys, client),
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
  })

async function ofFilter({ act, filter }: PlanRequest, signal: AbortSignal): Promise<PlanNumbers> {
  const lists = await Promise.all(
    walksOf(act, filter).map(async (walk) => {
      const page = await call<Page<LetterItem>>('GET', '/api/dlq', {
        query: { ...walk, limit: SHOWN },
        signal,
      })
      const total = await call<Total>('GET', '/api/dlq/total', { query: walk, signal })
      const [newest] = page.items
      return {
        filter: walk,
        ...total,
        items: page.items,
        walk: newest === undefined ? walk : upTo(walk, newest),
      }
    }),
  )
  return {
    planned: lists.reduce((sum, { total }) => sum + total, 0),
    isCapped: lists.some(({ exact }) => !exact),
    lists,
    walks: lists.map(({ walk }) => walk),
    first: lists.flatMap(({ items }) => items).slice(0, SHOWN),
  }
}

async function ofKeys(act: Act, keys: readonly LetterKey[], client: QueryClient): Promise<PlanNumbers> {
  const shown = keys.slice(0, SHOWN)
  const first = new Array<LetterItem | undefined>(shown.length)
  await eachAtOnce(shown, async (key, index) => {
    // Dry runs tell what is possible now; otherwise the status does, and what a list shows may be old.
    const known = act === 'retry' ? fromLists(client, key) : undefined
    first[index] = known ?? (await client.fetchQuery({ ...letterQuery(key), staleTime: 0 }))
  })
  return {
    planned: keys.length,
    isCapped: false,
    lists: [],
    walks: [],
    first: first.filter((letter) => letter !== undefined),
  }
}

/** Selected letters were just shown in a list. */
function fromLists(client: QueryClient, key: LetterKey): LetterItem | undefined {
  for (const [, page] of client.getQueriesData<Page<LetterItem>>({ queryKey: ['letters'] })) {
    const found = page?.items.find((item) => item.engine === key.engine && item.rowKey === key.rowKey)
    if (found !== undefined) return found
  }
  return undefined
}
