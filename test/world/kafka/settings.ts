/** Settings of the Kafka part, for tests that read no configuration. */

import type { KafkaService } from '../../../src/sources/kafka/settings/schema.ts'
import type { KafkaSettings } from '../../../src/sources/kafka/settings/settings.ts'
import { newName } from './topics.ts'

/** What a test says of a service; the rest is as in a configuration. */
export type ServiceDraft = Partial<Omit<KafkaService, 'name'>>

export interface SettingsDraft extends Partial<Omit<KafkaSettings, 'services'>> {
  readonly services?: Readonly<Record<string, ServiceDraft>>
}

/** Two services with a topic each, two that share one, and one that is not of hexkit. */
export const SERVICES: Readonly<Record<string, ServiceDraft>> = {
  wps: { dlqTopic: 'wps_dlq', retryTopic: 'wps_retry' },
  ucs: { dlqTopic: 'ucs_dlq', retryTopic: 'ucs_retry' },
  dcs: { dlqTopic: 'dlq' },
  irs: { dlqTopic: 'dlq', aliases: ['irs-eu'] },
  billing: {
    dlqTopic: 'orders-dlt',
    profile: 'generic',
    retryTopic: '$original',
    originalTopics: ['orders'],
  },
}

/** Settings with these services and the defaults of a configuration. */
export function kafkaSettingsFor(draft: SettingsDraft = {}): KafkaSettings {
  const { services = SERVICES, ...rest } = draft
  return {
    connection: {
      servers: ['127.0.0.1:9092'],
      clientId: 'bartleby',
      protocol: 'PLAINTEXT',
      tls: null,
      sasl: null,
    },
    groupId: 'bartleby',
    tokenHashes: [],
    previewLimit: 100,
    previewMaxBytes: 5_242_880,
    services: new Map(Object.entries(services).map(([name, service]) => [name, serviceOf(name, service)])),
    dlqTopics: [],
    acceptUnlistedServices: false,
    processors: [],
    processorTimeoutMs: 5_000,
    publishTimeoutMs: 30_000,
    busyWaitMs: 10_000,
    onUncertain: 'hold',
    onLaterSameKey: 'warn',
    maxMessageBytes: 1_048_576,
    compression: 'none',
    fetchMaxBytes: 52_428_800,
    topicRefreshMs: 30_000,
    generateCorrelationId: true,
    sessionTimeoutMs: 10_000,
    ...rest,
  }
}

/** Settings for a broker, with a group of their own and times that suit tests. */
export const settingsAt = (bootstrap: string, draft: SettingsDraft = {}): KafkaSettings => {
  const { connection, ...rest } = kafkaSettingsFor({ services: {}, ...draft })
  return {
    ...rest,
    connection: { ...connection, servers: [bootstrap] },
    groupId: newName('group'),
    publishTimeoutMs: 5_000,
    topicRefreshMs: 300,
    sessionTimeoutMs: 2_000,
    ...draft,
    services: rest.services,
  }
}

const serviceOf = (name: string, draft: ServiceDraft): KafkaService => ({
  name,
  dlqTopic: `${name}_dlq`,
  retryTopic: `retry-${name}`,
  profile: 'hexkit',
  aliases: [],
  originalTopics: [],
  types: [],
  stripHeaders: [],
  keyFormat: 'plain',
  ...draft,
})
