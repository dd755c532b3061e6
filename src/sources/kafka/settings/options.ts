/** The section `kafka` of a configuration as it is given, and the settings that it makes. Embedders give the same to an office. */
import { resolve } from 'node:path'
import { isLoopback } from '../../../core/address-ranges.ts'
import { compare } from '../../../core/settings/compare.ts'
import { ConfigError } from '../../../core/settings/config-error.ts'
import { withoutNothing } from '../../../core/settings/given.ts'
import { hostOf } from '../../../outgoing/kafka/brokers.ts'
import { absoluteFiles, type ConnectionSettings, connectionOf } from '../../../outgoing/kafka/connection.ts'
import { UNKNOWN } from '../event.ts'
import { problemsOfKafka } from './rules.ts'
import { KafkaSchema, type KafkaSection, type KafkaService, servicesOf } from './schema.ts'

/** The section as it is given: keys in snake_case, all of them optional. */
export type KafkaOptions = KafkaSection

/**
 * The settings of a section; null when it is not enabled. Paths in it are relative to `folder`, that of the configuration file. Throws
 * one ConfigError with everything that is wrong.
 */
export function kafkaSettings(options: KafkaOptions, folder: string = process.cwd()) {
  const given = checked(options)
  if (given.enabled !== true) return null
  const connection = connectionOf(given, folder, 'kafka.')
  if (connection === null) throw new ConfigError(['kafka.servers: is missing'])
  const services: ReadonlyMap<string, KafkaService> = new Map(
    servicesOf(given).map((service) => [service.name, service]),
  )
  return {
    connection,
    groupId: given.group_id ?? 'bartleby',
    /** Lower-case hex SHA-256. */
    tokenHashes: (given.token_hashes ?? []).map((hash) => hash.toLowerCase()),
    previewLimit: given.preview_limit ?? given.preview_max ?? 100,
    previewMaxBytes: given.preview_max_bytes ?? 5_242_880,
    services,
    /** DLQ topics that no listed service owns. */
    dlqTopics: given.dlq_topics ?? [],
    acceptUnlistedServices: given.accept_unlisted_services ?? false,
    processors: processorsOf(given, folder),
    processorTimeoutMs: given.processor_timeout_ms ?? 5_000,
    publishTimeoutMs: given.publish_timeout_ms ?? 30_000,
    busyWaitMs: given.busy_wait_ms ?? 10_000,
    onUncertain: given.on_uncertain ?? 'hold',
    onLaterSameKey: given.on_later_same_key ?? 'warn',
    maxMessageBytes: given.max_message_bytes ?? 1_048_576,
    compression: given.compression ?? 'none',
    fetchMaxBytes: given.fetch_max_bytes ?? 52_428_800,
    topicRefreshMs: given.topic_refresh_ms ?? 30_000,
    generateCorrelationId: given.generate_correlation_id ?? true,
    /** How long the group waits for a consumer that vanished; not in the contract, for tests. */
    sessionTimeoutMs: given.session_timeout_ms ?? 10_000,
  }
}

/** How the section reaches brokers, also when it is not enabled; null when it names none. Outboxes use it too. */
export const kafkaConnection = (
  options: KafkaOptions,
  folder: string = process.cwd(),
): ConnectionSettings | null => connectionOf(checked(options), folder, 'kafka.')

/** What is allowed and yet worth a line in the log at the start. */
export function kafkaWarnings(options: KafkaOptions): readonly string[] {
  const given = checked(options)
  if (given.enabled !== true) return []
  const { servers = [], security_protocol: protocol, services = {}, dlq_topics: dlqTopics = [] } = given
  const warnings: string[] = []
  if (protocol === 'SASL_PLAINTEXT' && !servers.every((server) => isLoopback(hostOf(server)))) {
    warnings.push(
      "kafka.security_protocol: 'SASL_PLAINTEXT' sends passwords and events unencrypted over the network; use 'SASL_SSL'",
    )
  }
  if (Object.keys(services).length === 0 && dlqTopics.length === 0) {
    warnings.push('kafka.dlq_topics: is empty, and no service is listed: there is no topic to read')
  }
  if (given.accept_unlisted_services === true) return warnings
  for (const [index, { match }] of (given.processors ?? []).entries()) {
    for (const name of listOf(match?.service) ?? []) {
      if (Object.hasOwn(services, name) || name === UNKNOWN) continue
      warnings.push(
        `kafka.processors[${index}].match.service: '${name}' is no listed service, so it never fits`,
      )
    }
  }
  return warnings
}

/** The section without what is given as nothing, with paths that mean the same wherever the server was started. */
export function withAbsolutePaths(options: KafkaOptions, folder: string): KafkaOptions {
  const given = withoutNothing(options) as KafkaOptions
  const { processors } = given
  return {
    ...absoluteFiles(given, folder),
    ...(processors === undefined
      ? {}
      : { processors: processors.map((entry) => ({ ...entry, module: resolve(folder, entry.module) })) }),
  }
}

/** The section without what is given as nothing; throws with all its problems. */
function checked(options: KafkaOptions): KafkaSection {
  const given = withoutNothing(options)
  const problems: string[] = []
  compare(KafkaSchema, given, 'kafka', (key, problem) => problems.push(`${key}: ${problem}`))
  if (problems.length > 0) throw new ConfigError(problems)
  // It is what the schema allows.
  const section = given as KafkaSection
  const broken = problemsOfKafka(section)
  if (broken.length > 0) throw new ConfigError(broken)
  return section
}

/** Each processor and the events that it is for; null: any. */
const processorsOf = ({ processors = [] }: KafkaSection, folder: string) =>
  processors.map(({ match = {}, module, export: exported = 'default' }) => ({
    match: { service: listOf(match.service), topic: listOf(match.topic), type: listOf(match.type) },
    module: resolve(folder, module),
    export: exported,
  }))

const listOf = (given: string | readonly string[] | undefined): readonly string[] | null => {
  if (given === undefined) return null
  return typeof given === 'string' ? [given] : given
}
