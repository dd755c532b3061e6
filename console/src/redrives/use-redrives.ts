/**
 * Redrives as screens follow them. Events tell how far they are; behind these, what is under way is asked for every other second, because
 * one that begins and ends between two events is never told of. Not while live updates are paused.
 */
import { type UseQueryResult, useQueries, useQuery } from '@tanstack/react-query'
import { activeRedrivesQuery, redriveQuery } from '../api/redrive-queries.ts'
import { isActive, type Redrive, type RedriveDetail } from '../api/redrive-types.ts'
import type { Page } from '../api/types.ts'
import { useLive } from '../live/live.tsx'

const LOOK_MS = 2_000

/** Those under way, whoever started them. */
export function useActiveRedrives(): UseQueryResult<Page<Redrive>> {
  const { isPaused } = useLive()
  return useQuery({
    ...activeRedrivesQuery,
    refetchInterval: ({ state }) => (!isPaused && (state.data?.items.length ?? 0) > 0 ? LOOK_MS : false),
  })
}

/** One of them. */
export function useRedrive(id: string): UseQueryResult<RedriveDetail> {
  const { isPaused } = useLive()
  return useQuery(followed(id, isPaused))
}

/** Some of them, as far as they are known; each is read anew when it is first asked for here. */
export function useRedrivesOf(ids: readonly string[]): readonly Redrive[] {
  const { isPaused } = useLive()
  const read = useQueries({ queries: ids.map((id) => ({ ...followed(id, isPaused), staleTime: 0 })) })
  return read.flatMap(({ data }) => data ?? [])
}

const followed = (id: string, isPaused: boolean) => ({
  ...redriveQuery(id),
  refetchInterval: ({ state }: { readonly state: { readonly data: RedriveDetail | undefined } }) =>
    !isPaused && state.data !== undefined && isActive(state.data) ? LOOK_MS : (false as const),
})
