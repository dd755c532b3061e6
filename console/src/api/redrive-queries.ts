/** What screens read about redrives, each with its key. Events change what is kept of those under way (`live/told-redrives.ts`). */
import { keepPreviousData, queryOptions } from '@tanstack/react-query'
import { call, pathTo } from './call.ts'
import { PAGE_SIZE } from './queries.ts'
import {
  ACTIVE_STATES,
  PAST_STATES,
  type Redrive,
  type RedriveDetail,
  type RedriveLetter,
  type RedriveOutcome,
} from './redrive-types.ts'
import type { Page } from './types.ts'

/** More are never under way at once. */
const MOST_ACTIVE = 100
const PAST_ON_A_PAGE = 20

/** Those under way, whoever started them, the newest first. */
export const activeRedrivesQuery = queryOptions({
  queryKey: ['redrives', 'active'],
  queryFn: ({ signal }) =>
    call<Page<Redrive>>('GET', '/api/redrives', {
      query: { state: ACTIVE_STATES.join(','), limit: MOST_ACTIVE },
      signal,
    }),
})

/** Those that are over, page by page. */
export const pastRedrivesQuery = (token: string | null) =>
  queryOptions({
    queryKey: ['redrives', 'past', token],
    queryFn: ({ signal }) =>
      call<Page<Redrive>>('GET', '/api/redrives', {
        query: { state: PAST_STATES.join(','), limit: PAST_ON_A_PAGE, continuationToken: token },
        signal,
        keepsDigits: true,
      }),
    placeholderData: keepPreviousData,
  })

export const redriveQuery = (id: string) =>
  queryOptions({
    queryKey: ['redrive', id],
    queryFn: ({ signal }) =>
      call<RedriveDetail>('GET', pathTo('/api/redrives', id), { signal, keepsDigits: true }),
  })

/** What became of its letters, page by page; `outcome` null: of all. */
export const redriveLettersQuery = (id: string, outcome: RedriveOutcome | null, token: string | null) =>
  queryOptions({
    queryKey: ['redrive-letters', id, outcome, token],
    queryFn: ({ signal }) =>
      call<Page<RedriveLetter>>('GET', `${pathTo('/api/redrives', id)}/letters`, {
        query: { outcome, limit: PAGE_SIZE, continuationToken: token },
        signal,
      }),
    placeholderData: keepPreviousData,
  })
