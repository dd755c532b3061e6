/** What is read to inspect a queue. The queue API leaves out what is zero, false or empty. */
import { keepPreviousData, queryOptions } from '@tanstack/react-query'
import { callQueues } from '../api/call.ts'

export interface QueueSettings {
  readonly queue_name: string
  readonly created_at: string
  readonly updated_at: string
  readonly dead_queue?: string
  readonly reference?: string
  readonly lease_timeout: string
  readonly expire_timeout: string
  readonly max_attempts?: number
  readonly requested_partitions: number
}

export interface PartitionStats {
  readonly partition?: number
  readonly total?: number
  readonly total_leased?: number
  readonly scheduled?: number
  /** Durations as Go writes them. */
  readonly average_age?: string
  readonly average_leased_age?: string
}

/** Requests that this server has at hand, and what lies in each partition. */
export interface QueueStats {
  readonly logicalQueues?: readonly {
    readonly produce_waiting?: number
    readonly lease_waiting?: number
    readonly complete_waiting?: number
    readonly partitions?: readonly PartitionStats[]
  }[]
}

export interface QueueItem {
  readonly id: string
  readonly is_leased?: boolean
  readonly lease_deadline?: string
  readonly expire_deadline?: string
  readonly created_at: string
  readonly enqueue_at?: string
  readonly attempts?: number
  readonly max_attempts?: number
  readonly reference?: string
  readonly encoding?: string
  readonly kind?: string
  /** In base64. */
  readonly payload?: string
  readonly death?: { readonly queue_name?: string; readonly reason?: string; readonly died_at?: string }
}

export const ITEMS_SHOWN = 10

export const queueSettingsQuery = (queue: string) =>
  queryOptions({
    queryKey: ['queue-settings', queue],
    queryFn: ({ signal }) => callQueues<QueueSettings>('queues.info', { queue_name: queue }, signal),
  })

export const queueStatsQuery = (queue: string) =>
  queryOptions({
    queryKey: ['queue-stats', queue],
    queryFn: ({ signal }) => callQueues<QueueStats>('queue.stats', { queue_name: queue }, signal),
  })

/** The next items of a partition, or the first that wait for their time. */
export const queueItemsQuery = (queue: string, partition: number, which: 'next' | 'scheduled') =>
  queryOptions({
    queryKey: ['queue-items', queue, partition, which],
    queryFn: async ({ signal }) => {
      const verb = which === 'next' ? 'queue.peek' : 'storage/scheduled.list'
      const request = { queue_name: queue, partition, limit: ITEMS_SHOWN }
      const { items = [] } = await callQueues<{ readonly items?: readonly QueueItem[] }>(
        verb,
        request,
        signal,
      )
      return items
    },
    placeholderData: keepPreviousData,
  })
