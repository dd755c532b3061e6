/** The section `kafka` of a server or office that is measured: everything else has its default. */
import { hash } from 'node:crypto'
import type { KafkaOptions } from '../../src/sources/kafka/settings/options.ts'
import { SERVICE } from './events.ts'

export const TOKEN = 'bench-token'

export const kafkaOptions = (
  bootstrap: string,
  topic: string,
  retry: string,
  group: string,
): KafkaOptions => ({
  enabled: true,
  servers: [bootstrap],
  group_id: group,
  token_hashes: [hash('sha256', TOKEN, 'hex')],
  services: { [SERVICE]: { dlq_topic: topic, retry_topic: retry } },
})
