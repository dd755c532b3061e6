/** What settings say of topics and services, and which names are allowed: records are hostile, so whatever of them becomes part of a name passes here. */
import type { kafkaSettings } from './options.ts'
import { type KafkaService, kafkaService } from './schema.ts'

const SERVICE = /^[A-Za-z0-9][A-Za-z0-9._-]{0,242}$/
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i
const UUID_V4 = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/i

/** Paths below `/kafka/` that are calls of their own. */
const RESERVED: readonly string[] = ['health', 'summary', 'docs', 'openapi.json', 'rpc']

export const isServiceName = (text: string): boolean =>
  SERVICE.test(text) && !RESERVED.includes(text) && !isUuid(text)

/** Whether it is a UUID of any version, in the usual form. */
export const isUuid = (text: string): boolean => UUID.test(text)

export const isUuidV4 = (text: string): boolean => UUID_V4.test(text)

/** A name, or with a star at its end all names that begin so. */
export const fits = (pattern: string, name: string): boolean =>
  pattern.endsWith('*') ? name.startsWith(pattern.slice(0, -1)) : pattern === name

/** Whether a list of such patterns allows the name; an empty list allows all. */
export const isAllowed = (patterns: readonly string[], name: string): boolean =>
  patterns.length === 0 || patterns.some((pattern) => fits(pattern, name))

/** The section `kafka` of a configuration, checked, in the words of the code. */
export type KafkaSettings = Readonly<NonNullable<ReturnType<typeof kafkaSettings>>>

/** One processor and the events that it is for. */
export type ProcessorSettings = KafkaSettings['processors'][number]

export const dlqTopicsOf = ({ services, dlqTopics }: KafkaSettings): readonly string[] => [
  ...new Set([...[...services.values()].map(({ dlqTopic }) => dlqTopic), ...dlqTopics]),
]

/** Whether events may not claim to come from this topic: it is one of those that dead events go through. */
export function isPassageTopic(settings: KafkaSettings, topic: string): boolean {
  if (topic.startsWith('retry-')) return true
  if (settings.dlqTopics.includes(topic)) return true
  for (const { dlqTopic, retryTopic } of settings.services.values()) {
    if (topic === dlqTopic || topic === retryTopic) return true
  }
  return false
}

export function serviceNamed(settings: KafkaSettings, name: string): KafkaService | null {
  const listed = settings.services.get(name)
  if (listed !== undefined) return listed
  if (!settings.acceptUnlistedServices || !isServiceName(name)) return null
  const retryTopic = `retry-${name}`
  // Whoever reads a retry topic takes everything on it for its own: the name came with a record, and must not lead to another's.
  for (const other of settings.services.values()) if (other.retryTopic === retryTopic) return null
  return kafkaService(name, { dlq_topic: '', retry_topic: retryTopic })
}

export function listedService(settings: KafkaSettings, nameOrAlias: string): KafkaService | null {
  const named = settings.services.get(nameOrAlias)
  if (named !== undefined) return named
  for (const service of settings.services.values()) {
    if (service.aliases.includes(nameOrAlias)) return service
  }
  return null
}
