/** What is read about webhooks, and what is done with a consumer. */
import { infiniteQueryOptions } from '@tanstack/react-query'
import { queueOfConsumer } from '../../../src/sources/webhooks/webhook.ts'
import { call, pathTo } from '../api/call.ts'
import type { LetterFilter, Page } from '../api/types.ts'

export interface Consumer {
  readonly id: string
  readonly channelId: string
  readonly channelName: string
  readonly consumerId: string
  readonly consumerName: string
  readonly type: 'push' | 'pull'
  readonly callbackUrl: string
  readonly queued: number
  readonly inFlight: number
  readonly delivered: number
  readonly dead: number
  readonly oldestDeadAtUtc: string | null
  readonly state: 'delivering' | 'paused' | 'probing'
  readonly pausedSinceUtc: string | null
  readonly pausedUntilUtc: string | null
  readonly pauseReason: string | null
  readonly mostAtOnce: number | null
  readonly mostPerSecond: number | null
  readonly signed: boolean
}

const CONSUMERS_READ = 100

/** By channel and consumer, a hundred at a time. */
export const consumersQuery = infiniteQueryOptions({
  queryKey: ['webhooks', 'consumers'],
  queryFn: ({ pageParam, signal }) =>
    call<Page<Consumer>>('GET', '/api/webhooks/consumers', {
      query: { limit: CONSUMERS_READ, continuationToken: pageParam },
      signal,
    }),
  initialPageParam: null as string | null,
  getNextPageParam: (page) => page.continuationToken,
})

export type ConsumerAct = 'resume' | 'requeue' | 'purge'
type Named = Pick<Consumer, 'channelId' | 'consumerId'>

/** Does something with a consumer. */
export const actOn = <Answer>({ channelId, consumerId }: Named, act: ConsumerAct): Promise<Answer> =>
  call('POST', `${pathTo('/api/webhooks/channels', channelId)}/${pathTo('consumers', consumerId, act)}`)

/** The letters of its dead jobs. */
export const deadLettersOf = ({ channelId, consumerId }: Named): LetterFilter => ({
  engine: 'webhooks',
  originalQueue: queueOfConsumer(channelId, consumerId),
  status: 'Pending',
})
