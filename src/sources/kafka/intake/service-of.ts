/** Whose dead event a record is. What it says itself is hostile, and becomes part of a topic name: it counts only as far as the settings allow. */

import { isTopicName } from '../../../outgoing/kafka/record.ts'
import type { EventFacts } from '../event.ts'
import { type KafkaService, type KafkaSettings, listedService, serviceNamed } from '../settings/settings.ts'

/** What a record says of where it failed. */
export interface Claims {
  /** The DLQ topic it was read from. */
  readonly topic: string
  readonly service: string | null
  /** The service in an event id of the generations 4 and 5. */
  readonly serviceInEventId: string | null
  /** A consumer group that another tool put down. */
  readonly consumerGroup: string | null
}

interface Found {
  readonly service: KafkaService | null
  /** Whether it was not named by the record. */
  readonly guessed: boolean
  /** All listed services with this DLQ topic. */
  readonly owners: readonly KafkaService[]
}

/** The service of a record; null when nobody's claim holds. A record that names a service is never given to another one. */
export function serviceOf(claims: Claims, settings: KafkaSettings): Found {
  const owners: KafkaService[] = []
  for (const service of settings.services.values()) {
    if (service.dlqTopic === claims.topic) owners.push(service)
  }
  const named = claims.service ?? claims.serviceInEventId
  if (named !== null) return { service: allowed(named, claims.topic, settings), guessed: false, owners }
  const [only, another] = owners
  if (only !== undefined && another === undefined) return { service: only, guessed: true, owners }
  const group = claims.consumerGroup
  const ofGroup = owners.find(
    ({ name, aliases }) => group === name || (group !== null && aliases.includes(group)),
  )
  return { service: ofGroup ?? null, guessed: ofGroup !== undefined, owners }
}

/** A listed service has its own DLQ topic, and no other one speaks for it. */
function allowed(name: string, topic: string, settings: KafkaSettings): KafkaService | null {
  const listed = listedService(settings, name)
  if (listed === null) return serviceNamed(settings, name)
  return listed.dlqTopic === topic ? listed : null
}

/** Event ids of the generations 4 and 5 of hexkit: `service,topic,partition,offset`, the place where the event was read that failed. */
interface OldEventId {
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
