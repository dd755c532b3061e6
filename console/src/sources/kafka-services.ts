/** Services of Kafka with their pending letters: those that are configured, and whatever else letters are filed under. */
import type { LetterCounts } from '../api/types.ts'
import type { KafkaService } from './kafka-queries.ts'

export interface ServiceTopic {
  /** `service/topic`: what the queue of its letters is called. */
  readonly queue: string
  readonly topic: string
  readonly pending: number
}

export interface ServiceRow {
  readonly name: string
  /** null: the configuration does not list it. */
  readonly settings: KafkaService | null
  /** Those with pending letters. */
  readonly topics: readonly ServiceTopic[]
  readonly pending: number
}

/** Puts counts by queue under their services; those that are not listed come last. */
export function servicesWith(listed: readonly KafkaService[], counts: LetterCounts): readonly ServiceRow[] {
  const topics = counts.items.flatMap(({ originalQueue, count }) =>
    originalQueue === null || originalQueue === undefined
      ? []
      : [{ ...partsOf(originalQueue), pending: count }],
  )
  const byService = Map.groupBy(topics, ({ service }) => service)
  const names = [...new Set([...listed.map(({ name }) => name), ...[...byService.keys()].sort()])]
  return names.map((name) => {
    const found = byService.get(name) ?? []
    return {
      name,
      settings: listed.find((service) => service.name === name) ?? null,
      topics: found.map(({ queue, topic, pending }) => ({ queue, topic, pending })),
      pending: found.reduce((sum, { pending }) => sum + pending, 0),
    }
  })
}

/** Names of services have no slash. */
function partsOf(queue: string) {
  const end = queue.indexOf('/')
  return { queue, service: end < 0 ? queue : queue.slice(0, end), topic: end < 0 ? '' : queue.slice(end + 1) }
}
