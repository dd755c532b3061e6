/** What is read about outboxes. */
import { keepPreviousData, queryOptions } from '@tanstack/react-query'
import { call } from '../api/call.ts'

export const MESSAGE_STATUSES = ['pending', 'failed', 'processed', 'dead'] as const
export type MessageStatus = (typeof MESSAGE_STATUSES)[number]

export type OutboxHealthStatus = 'ok' | 'degraded' | 'unhealthy'

/** Counts are null while the outbox cannot be read. */
export interface OutboxMetrics {
  readonly outbox: string
  readonly backlog: number | null
  readonly failedPending: number | null
  readonly oldestAgeSeconds: number | null
  readonly dead: number | null
  readonly dispatchedTotal: number
  readonly failuresTotal: number
  readonly duplicatesTotal: number
  readonly conflictsTotal: number
  readonly windowSeconds: number
  readonly throughputPerSecond: number
  readonly failureRatio: number
  readonly dispatchSeconds: { readonly count: number; readonly sum: number }
  readonly error: string | null
}

export interface OutboxHealth {
  readonly status: OutboxHealthStatus
  readonly reasons: readonly string[]
}

export interface ListedMessage {
  readonly id: string
  readonly tenantId: string
  readonly eventType: string
  readonly createdAt: string | null
  readonly retryCount: number
  readonly processedAt: string | null
  readonly deadAt: string | null
  readonly nextAttemptAt: string | null
  readonly status: MessageStatus
  readonly idempotencyKey: string | null
  readonly orderingKey: string | null
  readonly lastErrorSnippet: string | null
}

export interface MessagePage {
  readonly outbox: string | null
  readonly items: readonly ListedMessage[]
  readonly page: number
  readonly pageSize: number
  readonly total: number
  readonly totalIsCapped: boolean
}

/** Which messages are listed; all are texts of the address. */
export type MessagesAsked = {
  readonly outbox?: string
  readonly status?: string
  readonly eventType?: string
  readonly tenantId?: string
  readonly page?: string
}

export const outboxMetricsQuery = queryOptions({
  queryKey: ['outbox', 'metrics'],
  queryFn: ({ signal }) =>
    call<{ readonly outboxes: readonly OutboxMetrics[] }>('GET', '/api/outbox/metrics', { signal }),
})

export const outboxHealthQuery = queryOptions({
  queryKey: ['outbox', 'health'],
  queryFn: ({ signal }) =>
    call<OutboxHealth & { readonly outboxes: readonly (OutboxHealth & { readonly outbox: string })[] }>(
      'GET',
      '/api/outbox/health',
      { signal },
    ),
})

export const outboxMessagesQuery = (asked: MessagesAsked) =>
  queryOptions({
    queryKey: ['outbox', 'messages', asked],
    queryFn: ({ signal }) => call<MessagePage>('GET', '/api/outbox', { query: { ...asked }, signal }),
    placeholderData: keepPreviousData,
  })
