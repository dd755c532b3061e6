/** What is being done to many letters right now: runs of this tab, and webhook runs of the server. */
import { useQuery } from '@tanstack/react-query'
import { isActive } from '../acts/run.ts'
import { useRuns } from '../acts/runs-context.ts'
import { useSession } from '../kit/role.tsx'
import { useLive } from '../live/live.tsx'
import { webhookRunsQuery } from '../redrives/webhook-runs-query.ts'
import { grouped } from '../time/format.ts'

const LOOK_MS = 15_000

export interface Running {
  readonly count: number
  /** Where they run, and how far they are. */
  readonly note: string
}

export function useRunning(): Running {
  const { sources } = useSession()
  const { isPaused } = useLive()
  const own = useRuns().runs.filter(isActive)
  const { data } = useQuery({
    ...webhookRunsQuery,
    enabled: sources.webhooks,
    refetchInterval: isPaused ? false : LOOK_MS,
  })
  const ofWebhooks = data?.runs.filter(({ state }) => state === 'running').length ?? 0
  return { count: own.length + ofWebhooks, note: noteOn(own, ofWebhooks) }
}

function noteOn(own: ReturnType<typeof useRuns>['runs'], ofWebhooks: number): string {
  if (own.length + ofWebhooks === 0) return 'nothing is being sent'
  const done = own.reduce((sum, run) => sum + run.done + run.skipped + run.failed, 0)
  const planned = own.reduce((sum, run) => sum + run.planned, 0)
  return [
    ...(own.length === 0 ? [] : [`${grouped(done)} of ${grouped(planned)} here`]),
    ...(ofWebhooks === 0 ? [] : [`${grouped(ofWebhooks)} of webhooks`]),
  ].join(', ')
}
