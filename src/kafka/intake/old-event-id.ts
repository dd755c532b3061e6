/** Event ids of the generations 4 and 5 of hexkit: `service,topic,partition,offset`, the place where the event was read that failed. */
import type { EventFacts } from '../event.ts'
import { isTopicName } from '../names.ts'

export interface OldEventId {
  readonly service: string
  /** null when that cannot be a place in Kafka. */
  readonly readFrom: EventFacts['readFrom']
}

const OLD = /^([^,]+),(.+),(\d{1,10}),(\d{1,19})$/s
const LARGEST_PARTITION = 2 ** 31 - 1
const LARGEST_OFFSET = 2n ** 63n - 1n

/** What such an id says; null when it is none. */
export function readOldEventId(text: string): OldEventId | null {
  const [, service, topic, partition, offset] = OLD.exec(text) ?? []
  if (service === undefined || topic === undefined || partition === undefined || offset === undefined)
    return null
  const place = { topic, partition: Number(partition), offset: String(BigInt(offset)) }
  const possible =
    isTopicName(topic) && place.partition <= LARGEST_PARTITION && BigInt(offset) <= LARGEST_OFFSET
  return { service, readFrom: possible ? place : null }
}
