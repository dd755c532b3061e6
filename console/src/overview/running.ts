/** What is being done to many letters right now: redrives, and runs over dead webhooks. */
import { useQuery } from '@tanstack/react-query'
import type { Redrive } from '../api/redrive-types.ts'
import { useSession } from '../kit/role.tsx'
import { useLive } from '../live/live.tsx'
import { useActiveRedrives } from '../redrives/use-redrives.ts'
import { webhookRunsQuery } from '../redrives/webhook-runs-query.ts'
import { grouped } from '../time/format.ts'

const LOOK_MS = 15_000

export interface Running {
  readonly count: number
  /** How far they are. */
  readonly note: string
}

export function useRunning(): Running {
  const { sources } = useSession()
  const { isPaused } = useLive()
  const redrives = useActiveRedrives().data?.items ?? NONE
  const { data } = useQuery({
    ...webhookRunsQuery,
    enabled: sources.webhooks,
    refetchInterval: isPaused ? false : LOOK_MS,
  })
  const ofWebhooks = data?.runs.filter(({ state }) => state === 'running').length ?? 0
  return { count: redrives.length + ofWebhooks, note: noteOn(redrives, ofWebhooks) }
}

const NONE: readonly Redrive[] = []

function noteOn(redrives: readonly Redrive[], ofWebhooks: number): string {
  if (redrives.length + ofWebhooks === 0) return 'nothing is being sent'
  const planned = redrives.reduce((sum, { counts }) => sum + counts.planned, 0)
  const remaining = redrives.reduce((sum, { counts }) => sum + counts.remaining, 0)
  const paused = redrives.filter(({ state }) => state === 'paused').length
  return [
    ...(redrives.length === 0 ? [] : [`${grouped(planned - remaining)} of ${grouped(planned)} letters`]),
    ...(paused === 0 ? [] : [`${grouped(paused)} paused`]),
    ...(ofWebhooks === 0 ? [] : [`${grouped(ofWebhooks)} of webhooks`]),
  ].join(', ')
}
