/** The section `kafka` of a configuration as it is given, and the settings that it makes. Embedders give the same to an office. */
import { resolve } from 'node:path'
import { isLoopback } from '../../../core/address-ranges.ts'
import { ConfigError } from '../../../core/settings/config-error.ts'
import { readSettings } from '../../../core/settings/read.ts'
import { hostOf } from '../../../outgoing/kafka/brokers.ts'
import { type ConnectionSettings, connectionOf } from '../../../outgoing/kafka/connection.ts'
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
  if (!given.enabled) return null
  const connection = connectionOf(given, folder, 'kafka.')
  if (connection === null) throw new ConfigError(['kafka.servers: is missing'])
  const services: ReadonlyMap<string, KafkaService> = new Map(
    servicesOf(given).map((service) => [service.name, service]),
  )
  return {
    connection,
    groupId: given.group_id,
    /** Lower-case hex SHA-256. */
    tokenHashes: given.token_hashes.map((hash) => hash.toLowerCase()),
    previewLimit: given.preview_limit ?? given.preview_max ?? 100,
    previewMaxBytes: given.preview_max_bytes,
    services,
    /** DLQ topics that no listed service owns. */
    dlqTopics: given.dlq_topics,
    acceptUnlistedServices: given.accept_unlisted_services,
    processors: processorsOf(given, folder),
    processorTimeoutMs: given.processor_timeout_ms,
    publishTimeoutMs: given.publish_timeout_ms,
    busyWaitMs: given.busy_wait_ms,
    onUncertain: given.on_uncertain,
    onLaterSameKey: given.on_later_same_key,
    maxMessageBytes: given.max_message_bytes,
    compression: given.compression,
    fetchMaxBytes: given.fetch_max_bytes,
    topicRefreshMs: given.topic_refresh_ms,
    generateCorrelationId: given.generate_correlation_id,
    sessionTimeoutMs: given.session_timeout_ms,
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
  if (!given.enabled) return []
  const { servers = [], security_protocol: protocol, services, dlq_topics: dlqTopics } = given
  const warnings: string[] = []
  if (protocol === 'SASL_PLAINTEXT' && !servers.every((server) => isLoopback(hostOf(server)))) {
    warnings.push(
      "kafka.security_protocol: 'SASL_PLAINTEXT' sends passwords and events unencrypted over the network; use 'SASL_SSL'",
    )
  }
  if (Object.keys(services).length === 0 && dlqTopics.length === 0) {
    warnings.push('kafka.dlq_topics: is empty, and no service is listed: there is no topic to read')
  }
  if (given.accept_unlisted_services) return warnings
  for (const [index, { match }] of given.processors.entries()) {
    for (const name of listOf(match?.service) ?? []) {
      if (Object.hasOwn(services, name) || name === UNKNOWN) continue
      warnings.push(
        `kafka.processors[${index}].match.service: '${name}' is no listed service, so it never fits`,
      )
    }
  }
  return warnings
}

const checked = (options: KafkaOptions) => readSettings(KafkaSchema, options, 'kafka', problemsOfKafka)

/** Each processor and the events that it is for; null: any. */
const processorsOf = ({ processors }: ReturnType<typeof checked>, folder: string) =>
  processors.map(({ match = {}, module, export: exported = 'default' }) => ({
    match: { service: listOf(match.service), topic: listOf(match.topic), type: listOf(match.type) },
    module: resolve(folder, module),
    export: exported,
  }))

const listOf = (given: string | readonly string[] | undefined): readonly string[] | null => {
  if (given === undefined) return null
  return typeof given === 'string' ? [given] : given
}
