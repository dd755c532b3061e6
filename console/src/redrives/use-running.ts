/** How many runs over letters are at work, and how many wait for somebody to resume them. */
import { useQuery } from '@tanstack/react-query'
import { useSession } from '../kit/role.tsx'
import { useLive } from '../live/live.tsx'
import { useActiveRedrives } from './use-redrives.ts'
import { webhookRunsQuery } from './webhook-runs-query.ts'

const LOOK_MS = 15_000

export function useRunning(): { readonly running: number; readonly paused: number } {
  const { sources } = useSession()
  const { isPaused } = useLive()
  const redrives = useActiveRedrives().data?.items ?? []
  const { data } = useQuery({
    ...webhookRunsQuery,
    enabled: sources.webhooks === true,
    refetchInterval: isPaused ? false : LOOK_MS,
  })
  const paused = redrives.filter(({ state }) => state === 'paused').length
  const ofWebhooks = data?.runs.filter(({ state }) => state === 'running').length ?? 0
  return { running: redrives.length - paused + ofWebhooks, paused }
}
