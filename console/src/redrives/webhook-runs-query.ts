/** The runs of the server over dead jobs of webhooks, read alike by every screen that shows them. */
import { queryOptions } from '@tanstack/react-query'
import { call } from '../api/call.ts'

export interface WebhookRun {
  readonly id: string
  readonly kind: string
  readonly channelId: string
  readonly consumerId: string
  readonly expected: number
  readonly done: number
  readonly state: 'running' | 'finished'
  readonly by: string
  readonly startedAtUtc: string
  readonly finishedAtUtc: string | null
}

const REFRESH_MS = 2_000

export const webhookRunsQuery = queryOptions({
  queryKey: ['webhook-runs'],
  queryFn: ({ signal }) =>
    call<{ readonly runs: readonly WebhookRun[] }>('GET', '/api/webhooks/runs', { signal }),
  refetchInterval: ({ state }) =>
    state.data?.runs.some((run) => run.state === 'running') ? REFRESH_MS : false,
})
