/** Services of the section `kafka` as they are given, in either form, made whole. */
import type { KafkaService } from '../kafka/settings.ts'
import type { KafkaSection, ServiceEntry } from './kafka-schema.ts'

type ShortForm = Extract<ServiceEntry, readonly unknown[]>

/** Whether a service is given as `[dlq_topic, retry_topic]`. */
export const isShort = (entry: ServiceEntry): entry is ShortForm => Array.isArray(entry)

/** The listed services, in the order of the section. */
export const servicesOf = ({ services }: KafkaSection): readonly KafkaService[] =>
  Object.entries(services ?? {}).map(([name, entry]) => serviceOf(name, entry))

function serviceOf(name: string, entry: ServiceEntry): KafkaService {
  const given = isShort(entry) ? { dlq_topic: entry[0], retry_topic: entry[1] } : entry
  const {
    dlq_topic: dlqTopic,
    // hexkit 5 and later read from there; 4.x has to be told.
    retry_topic: retryTopic = `retry-${name}`,
    profile = 'hexkit',
    aliases = [],
    original_topics: originalTopics = [],
    types = [],
    strip_headers: stripHeaders = [],
    key_format: keyFormat = 'plain',
  }: Exclude<ServiceEntry, ShortForm> = given
  return { name, dlqTopic, retryTopic, profile, aliases, originalTopics, types, stripHeaders, keyFormat }
}
