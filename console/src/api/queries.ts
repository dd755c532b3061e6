/**
 * What screens read, each with the key under which it is kept. The first part of a key is the topic; live updates make all of a
 * topic stale (`live/live.tsx`).
 */
import { infiniteQueryOptions, keepPreviousData, queryOptions } from '@tanstack/react-query'
import { call, pathTo } from './call.ts'
import type {
  Activity,
  AzureOverview,
  EngineOverviews,
  HistoryDetail,
  HistoryItem,
  LetterCounts,
  LetterDetail,
  LetterFilter,
  LetterItem,
  LetterKey,
  Overview,
  Page,
  QueueOverview,
  Range,
  Session,
  Settings,
  SignatureGroup,
  Total,
  Verification,
} from './types.ts'

/** A list never holds more than this many rows of a page. */
export const PAGE_SIZE = 50

export const sessionQuery = queryOptions({
  queryKey: ['session'],
  queryFn: ({ signal }) => call<Session>('GET', '/api/session', { signal }),
  staleTime: 60_000,
})

export const overviewQuery = queryOptions({
  queryKey: ['overview'],
  queryFn: ({ signal }) => call<Overview>('GET', '/api/overview', { signal }),
})

export const activityQuery = (range: Range, filter: LetterFilter = {}) =>
  queryOptions({
    queryKey: ['activity', range, filter],
    queryFn: ({ signal }) => call<Activity>('GET', '/api/activity', { query: { range, ...filter }, signal }),
    placeholderData: keepPreviousData,
  })

export const azureQuery = queryOptions({
  queryKey: ['azure'],
  queryFn: ({ signal }) => call<AzureOverview>('GET', '/api/azure', { signal }),
})

export const countsQuery = (by: string, filter: LetterFilter = {}) =>
  queryOptions({
    queryKey: ['counts', by, filter],
    queryFn: ({ signal }) => call<LetterCounts>('GET', '/api/counts', { query: { by, ...filter }, signal }),
    placeholderData: keepPreviousData,
  })

/** Groups, page by page. */
export const signaturesQuery = (filter: LetterFilter = {}, limit = PAGE_SIZE) =>
  infiniteQueryOptions({
    queryKey: ['signatures', filter, limit],
    queryFn: ({ pageParam, signal }) =>
      call<Page<SignatureGroup>>('GET', '/api/signatures', {
        query: { ...filter, limit, continuationToken: pageParam },
        signal,
      }),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.continuationToken,
    placeholderData: keepPreviousData,
  })

export const signatureQuery = (signature: string) =>
  queryOptions({
    queryKey: ['signature', signature],
    queryFn: ({ signal }) => call<SignatureGroup>('GET', pathTo('/api/signatures', signature), { signal }),
  })

/** One page of letters. `token` is the page before's; each page is a read of its own, so no more than one is ever held. */
export const letterPageQuery = (filter: LetterFilter, token: string | null, limit = PAGE_SIZE) =>
  queryOptions({
    queryKey: ['letters', filter, limit, token],
    queryFn: ({ signal }) =>
      call<Page<LetterItem>>('GET', '/api/dlq', {
        query: { ...filter, limit, continuationToken: token },
        signal,
      }),
    placeholderData: keepPreviousData,
  })

export const totalQuery = (filter: LetterFilter) =>
  queryOptions({
    queryKey: ['total', filter],
    queryFn: ({ signal }) => call<Total>('GET', '/api/dlq/total', { query: filter, signal }),
    placeholderData: keepPreviousData,
  })

export const letterQuery = ({ engine, rowKey }: LetterKey) =>
  queryOptions({
    queryKey: ['letter', engine, rowKey],
    queryFn: ({ signal }) => call<LetterDetail>('GET', pathTo('/api/dlq', engine, rowKey), { signal }),
  })

export const historyPageQuery = (filter: Readonly<Record<string, string>>, token: string | null) =>
  queryOptions({
    queryKey: ['history', filter, token],
    queryFn: ({ signal }) =>
      call<Page<HistoryItem>>('GET', '/api/history', {
        query: { ...filter, limit: PAGE_SIZE, continuationToken: token },
        signal,
      }),
    placeholderData: keepPreviousData,
  })

export const historyEntryQuery = (engine: string, rowKey: string) =>
  queryOptions({
    queryKey: ['history-entry', engine, rowKey],
    queryFn: ({ signal }) => call<HistoryDetail>('GET', pathTo('/api/history', engine, rowKey), { signal }),
    staleTime: Number.POSITIVE_INFINITY,
  })

export const queuesQuery = (token: string | null = null) =>
  queryOptions({
    queryKey: ['queues', token],
    queryFn: ({ signal }) =>
      call<Page<QueueOverview>>('GET', '/api/queues', { query: { continuationToken: token }, signal }),
    placeholderData: keepPreviousData,
  })

export const enginesQuery = queryOptions({
  queryKey: ['engines'],
  queryFn: ({ signal }) =>
    call<EngineOverviews>('GET', '/api/engines', {
      signal,
    }),
})

export const settingsQuery = queryOptions({
  queryKey: ['settings'],
  queryFn: ({ signal }) => call<Settings>('GET', '/api/settings', { signal }),
})

export const verifyQuery = queryOptions({
  queryKey: ['verify'],
  queryFn: ({ signal }) => call<Verification>('GET', '/api/verify', { signal }),
  refetchInterval: (query) => (query.state.data?.state === 'running' ? 1_000 : false),
})
