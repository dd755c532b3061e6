/** What is read about Kafka. */
import { queryOptions } from '@tanstack/react-query'
import { call, pathTo } from '../api/call.ts'
import type { HistoryDetail, LetterDetail, LetterItem, LetterKey, Page, RetryPreview } from '../api/types.ts'
import { oldestLetter } from './oldest-letter.ts'

export interface KafkaService {
  readonly name: string
  readonly dlqTopic: string
  readonly retryTopic: string
  readonly profile: string
  readonly aliases: readonly string[]
  readonly originalTopics: readonly string[]
  readonly types: readonly string[]
}

/** Offsets are texts: they have 64 bits. */
export interface KafkaPartition {
  readonly topic: string
  readonly partition: number
  readonly committed: string | null
  readonly end: string | null
  readonly lag: string | null
  readonly trouble: string | null
}

export interface KafkaIntake {
  readonly state: 'starting' | 'reading' | 'degraded' | 'stopped'
  readonly sinceUtc: string
  readonly troubles: readonly string[]
  readonly missingTopics: readonly string[]
  readonly partitions: readonly KafkaPartition[]
}

export type KafkaOverview =
  | { readonly enabled: false }
  | {
      readonly enabled: true
      readonly groupId: string
      readonly acceptUnlistedServices: boolean
      readonly services: readonly KafkaService[]
      readonly dlqTopics: readonly string[]
      readonly intake: KafkaIntake
    }

/** What the Kafka part knows of a dead event. */
export interface KafkaEvent {
  readonly dlqId: string
  readonly state: string
  readonly type: string
  readonly topic: string
  readonly partition: number
  readonly offset: string
  readonly key: string | null
  /** Why it must not be published as it is; with any, it is quarantined. */
  readonly reasons: readonly string[]
  readonly warnings: readonly string[]
}

export const kafkaQuery = queryOptions({
  queryKey: ['kafka'],
  queryFn: ({ signal }) => call<KafkaOverview>('GET', '/api/kafka', { signal }),
})

const LETTERS_READ = 20

/** The oldest pending letter of these queues, which is the next event of their service; null when there is none. */
export const nextLetterQuery = (service: string, queues: readonly string[]) =>
  queryOptions({
    queryKey: ['letters', 'next of kafka', service, queues],
    queryFn: async ({ signal }): Promise<LetterItem | null> => {
      const found = await Promise.all(queues.map((originalQueue) => oldestOf(originalQueue, signal)))
      return found.reduce((first, letter) => (isBefore(letter, first) ? letter : first), null)
    },
  })

const oldestOf = (originalQueue: string, signal: AbortSignal): Promise<LetterItem | null> =>
  oldestLetter((toDate, continuationToken) =>
    call<Page<LetterItem>>('GET', '/api/dlq', {
      query: {
        engine: 'kafka',
        status: 'Pending',
        originalQueue,
        toDate,
        limit: LETTERS_READ,
        continuationToken,
      },
      signal,
    }),
  )

const isBefore = (letter: LetterItem | null, other: LetterItem | null): boolean =>
  letter !== null && (other === null || letter.lastFailureAtUtc < other.lastFailureAtUtc)

/** Which operations of history name the record of a letter. */
const ARRIVALS: readonly string[] = ['kafka.received', 'kafka.reopened']

/** The event of a letter; null when its record is not on file any more. Its id stands in the history of the letter. */
export const kafkaEventQuery = ({ engine, rowKey }: LetterKey) =>
  queryOptions({
    queryKey: ['letter', engine, rowKey, 'kafka event'],
    queryFn: async ({ signal }): Promise<KafkaEvent | null> => {
      const letter = await call<LetterDetail>('GET', pathTo('/api/dlq', engine, rowKey), { signal })
      const arrival = letter.history.findLast(({ operation }) => ARRIVALS.includes(operation))
      if (arrival === undefined) return null
      const entry = await call<HistoryDetail>('GET', pathTo('/api/history', engine, arrival.rowKey), {
        signal,
      })
      const dlqId = dlqIdIn(entry.output)
      return dlqId === null ? null : call<KafkaEvent>('GET', pathTo('/api/kafka/events', dlqId), { signal })
    },
  })

function dlqIdIn(output: string | null): string | null {
  try {
    const { dlq_id: id } = JSON.parse(output ?? '{}') as { readonly dlq_id?: unknown }
    return typeof id === 'string' ? id : null
  } catch {
    return null
  }
}

/** What a retry of the letter would publish; nothing is written. */
export const dryRun = ({ engine, rowKey }: LetterKey): Promise<RetryPreview> =>
  call('POST', `${pathTo('/api/dlq', engine, rowKey)}/retry`, { query: { dryRun: true } })
