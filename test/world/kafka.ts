/**
 * Kafka for tests: a real broker, one for the whole test run, started when the first test file asks. `KAFKA_BOOTSTRAP` names another
 * one to use. Where none can be started the tests are skipped; a build (`CI=true`) fails instead.
 */
import { beforeAll, describe, inject, it } from 'vitest'
import type { KafkaService } from '../../src/sources/kafka/settings/schema.ts'
import type { KafkaSettings } from '../../src/sources/kafka/settings/settings.ts'
import type { Ability } from '../kafka/desk.ts'
import { newName, type Topics, topicsAt } from '../kafka/topics.ts'

export { type BrokerOptions, type KafkaBroker, startBroker } from '../kafka/broker.ts'
export { type SecureBroker, startSecureBroker } from '../kafka/secure.ts'
export { newName, type Place, type TestRecord, type Topics, topicsAt } from '../kafka/topics.ts'

const given = process.env.KAFKA_BOOTSTRAP
const START_TIMEOUT_MS = 60_000

const ask = async <T>(what: string): Promise<T> => {
  const answer = await fetch(`${inject('kafkaDesk')}/${what}`)
  if (!answer.ok) throw new Error(await answer.text())
  // From `test/kafka/desk.ts`.
  return (await answer.json()) as T
}

const ability = await ask<Ability>('ability')
const why = ability.able ? '' : ability.why

/** Tests on the broker of the run. */
export function describeKafka(name: string, body: () => void): void {
  describeWhere(given !== undefined || ability.able, name, () => {
    beforeAll(async () => {
      await kafkaBroker()
    }, START_TIMEOUT_MS)
    body()
  })
}

/** Tests that start brokers of their own, with `startBroker` or `startSecureBroker`. */
export function describeOwnBroker(name: string, body: () => void): void {
  describeWhere(ability.able, name, body)
}

function describeWhere(isAble: boolean, name: string, body: () => void): void {
  if (isAble) {
    describe(name, body)
  } else if (process.env.CI === 'true') {
    it(name, () => {
      throw new Error(why)
    })
  } else {
    describe.skip(name, body)
  }
}

/** The broker of the run, and what can be done with it. */
export async function kafkaBroker(): Promise<Topics> {
  const { bootstrap } =
    given === undefined ? await ask<{ bootstrap: string }>('broker') : { bootstrap: given }
  return topicsAt(bootstrap)
}

/** A service with what a listed one has when only its topics are given. */
export const serviceOf = (service: Partial<KafkaService> & Pick<KafkaService, 'name'>): KafkaService => ({
  dlqTopic: `${service.name}-dlq`,
  retryTopic: `retry-${service.name}`,
  profile: 'hexkit',
  aliases: [],
  originalTopics: [],
  types: [],
  stripHeaders: [],
  keyFormat: 'plain',
  ...service,
})

/** Settings as a configuration gives them, with a group of their own and times that suit tests. */
export const settingsFor = (
  bootstrap: string,
  {
    services = [],
    ...others
  }: Omit<Partial<KafkaSettings>, 'services'> & { readonly services?: readonly KafkaService[] } = {},
): KafkaSettings => ({
  connection: {
    servers: [bootstrap],
    clientId: 'bartleby',
    protocol: 'PLAINTEXT',
    tls: null,
    sasl: null,
  },
  groupId: newName('group'),
  tokenHashes: [],
  previewLimit: 100,
  previewMaxBytes: 5_242_880,
  services: new Map(services.map((service) => [service.name, service])),
  dlqTopics: [],
  acceptUnlistedServices: false,
  processors: [],
  processorTimeoutMs: 5_000,
  publishTimeoutMs: 5_000,
  busyWaitMs: 10_000,
  onUncertain: 'hold',
  onLaterSameKey: 'warn',
  maxMessageBytes: 1_048_576,
  compression: 'none',
  fetchMaxBytes: 52_428_800,
  topicRefreshMs: 300,
  generateCorrelationId: true,
  sessionTimeoutMs: 2_000,
  ...others,
})
