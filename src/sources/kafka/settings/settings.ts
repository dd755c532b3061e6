/**
 * How the Kafka part behaves: the section `kafka` of a configuration, checked, in the words of the code. And which names are allowed:
 * records are hostile, so whatever of them becomes part of a name passes here.
 */
import type { ConnectionSettings } from '../../../outgoing/kafka/connection.ts'
import type { Compression } from '../../../outgoing/kafka/record.ts'

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

/** The value of `retry_topic` that stands for the topic a record came from originally. */
export const ORIGINAL = '$original'

export const PROFILES = ['hexkit', 'generic'] as const

/** A service whose dead events are taken in and sent back. */
export interface KafkaService {
  readonly name: string
  readonly dlqTopic: string
  /** Or `$original`. */
  readonly retryTopic: string
  readonly profile: (typeof PROFILES)[number]
  readonly aliases: readonly string[]
  readonly originalTopics: readonly string[]
  readonly types: readonly string[]
  readonly stripHeaders: readonly string[]
  readonly keyFormat: 'plain' | 'uber'
}

/** One processor and the events that it is for. */
export interface ProcessorSettings {
  /** null: any. */
  readonly match: {
    readonly service: readonly string[] | null
    readonly topic: readonly string[] | null
    readonly type: readonly string[] | null
  }
  /** An absolute path. */
  readonly module: string
  readonly export: string
}

export interface KafkaSettings {
  readonly connection: ConnectionSettings
  readonly groupId: string
  /** Lower-case hex SHA-256. */
  readonly tokenHashes: readonly string[]
  readonly previewLimit: number
  readonly previewMaxBytes: number
  readonly services: ReadonlyMap<string, KafkaService>
  /** DLQ topics that no listed service owns. */
  readonly dlqTopics: readonly string[]
  readonly acceptUnlistedServices: boolean
  readonly processors: readonly ProcessorSettings[]
  readonly processorTimeoutMs: number
  readonly publishTimeoutMs: number
  readonly busyWaitMs: number
  readonly onUncertain: 'hold' | 'resend'
  readonly onLaterSameKey: 'warn' | 'refuse'
  readonly maxMessageBytes: number
  readonly compression: Compression
  readonly fetchMaxBytes: number
  readonly topicRefreshMs: number
  readonly generateCorrelationId: boolean
  /** How long the group waits for a consumer that vanished; not in the contract, for tests. */
  readonly sessionTimeoutMs: number
}

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
  return {
    name,
    dlqTopic: '',
    retryTopic,
    profile: 'hexkit',
    aliases: [],
    originalTopics: [],
    types: [],
    stripHeaders: [],
    keyFormat: 'plain',
  }
}

export function listedService(settings: KafkaSettings, nameOrAlias: string): KafkaService | null {
  const named = settings.services.get(nameOrAlias)
  if (named !== undefined) return named
  for (const service of settings.services.values()) {
    if (service.aliases.includes(nameOrAlias)) return service
  }
  return null
}
