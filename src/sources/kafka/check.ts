/**
 * Tries brokers, topics, group and rights of a configuration. It writes no record, joins no group and commits nothing, so it can run beside
 * a server.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { BrokerLink, COORDINATOR_AWAY, lookUpTopics } from '../../outgoing/kafka/brokers.ts'
import type { TopicsFound } from '../../outgoing/kafka/connection.ts'
import { isTrouble, troubleOf } from '../../outgoing/kafka/library.ts'
import { ORIGINAL } from './settings/schema.ts'
import { dlqTopicsOf, type KafkaSettings } from './settings/settings.ts'

export interface KafkaCheck {
  readonly subject: string
  /** `unknown`: nothing speaks against it. */
  readonly verdict: 'fine' | 'missing' | 'unknown'
  /** One sentence, with the right to grant. */
  readonly message: string
}

export async function checkKafka(settings: KafkaSettings): Promise<readonly KafkaCheck[]> {
  const brokers = await Promise.all(
    settings.connection.servers.map((server) => checkServer(settings, server)),
  )
  if (brokers.every(({ verdict }) => verdict === 'missing')) return brokers
  const link = await BrokerLink.open(settings.connection)
  try {
    return [
      ...brokers,
      ...(await attempt('dlq topics', () => checkDlqTopics(link, settings))),
      ...(await attempt(`group ${settings.groupId}`, () => checkGroup(link, settings.groupId))),
      ...(await attempt('retry topics', () => checkRetryTopics(link, settings))),
    ]
  } finally {
    link.close()
  }
}

const fine = (subject: string, message: string): KafkaCheck => ({ subject, verdict: 'fine', message })
const missing = (subject: string, message: string): KafkaCheck => ({ subject, verdict: 'missing', message })
const unknown = (subject: string, message: string): KafkaCheck => ({ subject, verdict: 'unknown', message })

async function attempt(
  subject: string,
  check: () => Promise<readonly KafkaCheck[]>,
): Promise<readonly KafkaCheck[]> {
  try {
    return await check()
  } catch (error) {
    const { code, message } = troubleOf(error)
    return [missing(subject, `cannot be looked at: ${code}: ${message}`)]
  }
}

/** One server alone, with TLS and SASL as configured. */
async function checkServer({ connection }: KafkaSettings, server: string): Promise<KafkaCheck> {
  const subject = `broker ${server}`
  const link = await BrokerLink.open({ ...connection, servers: [server] })
  try {
    await link.versions(await link.any())
    const how = [connection.protocol, ...(connection.sasl === null ? [] : [connection.sasl.mechanism])]
    return fine(subject, `answers (${how.join(', ')})`)
  } catch (error) {
    const { code, message } = troubleOf(error)
    return missing(subject, `cannot be used: ${code}: ${message}`)
  } finally {
    link.close()
  }
}

async function checkDlqTopics(link: BrokerLink, settings: KafkaSettings): Promise<readonly KafkaCheck[]> {
  const names = dlqTopicsOf(settings)
  const topics = await lookUpTopics(link, names, { withRights: true })
  return names.map((name) => {
    const subject = `dlq topic ${name}`
    const found = topics.found.get(name)
    if (found === undefined) return absent(subject, name, topics, 'Read and Describe')
    if (found.mayRead === false) return missing(subject, `may not be read; grant Read on topic ${name}`)
    return fine(subject, `can be read (${partitions(found.leaders.length)})`)
  })
}

/** A stranger's heartbeat: whoever may not join is refused first. */
async function checkGroup(link: BrokerLink, group: string): Promise<readonly KafkaCheck[]> {
  const subject = `group ${group}`
  const { library } = link
  const right = `may not be joined; grant Read on group ${group}`
  try {
    await patiently(async () => {
      const connection = await link.asking.get(await link.coordinatorOf(group))
      await library.heartbeatV4.api.async(connection, group, -1, 'bartleby-kafka-check', null)
    })
  } catch (error) {
    const { code, message } = troubleOf(error)
    if (code === 'GROUP_AUTHORIZATION_FAILED') return [missing(subject, right)]
    if (!STRANGER.includes(code)) return [missing(subject, `cannot be joined: ${code}: ${message}`)]
  }
  return [fine(subject, 'can be joined')]
}

const PAUSE_MS = 200
const MOST_TRIES = 50

/** An unused cluster makes what groups need when it is first asked. */
async function patiently<T>(ask: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await ask()
    } catch (error) {
      if (tries === MOST_TRIES || !isTrouble(error, ...COORDINATOR_AWAY)) throw error
      await sleep(PAUSE_MS)
    }
  }
}

/** What brokers tell an unknown member. */
const STRANGER = ['UNKNOWN_MEMBER_ID', 'ILLEGAL_GENERATION', 'REBALANCE_IN_PROGRESS', 'GROUP_ID_NOT_FOUND']

async function checkRetryTopics(link: BrokerLink, settings: KafkaSettings): Promise<readonly KafkaCheck[]> {
  const names = retryTopicsOf(settings)
  if (names.length === 0) return []
  const topics = await lookUpTopics(link, names, { withRights: true })
  const limits = await messageLimits(link, [...topics.found.keys()])
  const canWrite = [...topics.found.values()].some(({ mayWrite }) => mayWrite !== false)
  const checks = names.flatMap((name) => {
    const subject = `retry topic ${name}`
    const found = topics.found.get(name)
    if (found === undefined) return [absent(subject, name, topics, 'Write and Describe')]
    if (found.mayWrite === false)
      return [missing(subject, `may not be written to; grant Write on topic ${name}`)]
    return [
      fine(subject, `can be written to (${partitions(found.leaders.length)})`),
      checkLimit(subject, settings.maxMessageBytes, limits.get(name)),
    ]
  })
  return canWrite ? [...checks, ...(await checkIdentity(link))] : checks
}

/** Brokers from 2.8 on need no right beyond writing to some topic. */
async function checkIdentity(link: BrokerLink): Promise<readonly KafkaCheck[]> {
  try {
    const { api } = link.library.initProducerIdV3
    await patiently(async () => api.async(await link.any(), null, 0, -1n, -1))
    return []
  } catch (error) {
    const { code, message } = troubleOf(error)
    const right = code === 'CLUSTER_AUTHORIZATION_FAILED' ? '; grant IdempotentWrite on the cluster' : ''
    return [missing('producer', `cannot be told from others: ${code}: ${message}${right}`)]
  }
}

/** `$original` has as many targets as topics; patterns name none. */
const retryTopicsOf = ({ services }: KafkaSettings): readonly string[] => [
  ...new Set(
    [...services.values()].flatMap(({ retryTopic, originalTopics }) =>
      retryTopic === ORIGINAL ? originalTopics.filter((topic) => !topic.endsWith('*')) : [retryTopic],
    ),
  ),
]

function checkLimit(subject: string, ours: number, theirs: number | undefined): KafkaCheck {
  if (theirs === undefined) {
    return unknown(
      subject,
      'does not show its max.message.bytes; DescribeConfigs is not granted, and not needed',
    )
  }
  return theirs < ours
    ? missing(
        subject,
        `takes ${theirs} bytes at most (max.message.bytes), less than max_message_bytes ${ours}`,
      )
    : fine(subject, `takes ${theirs} bytes (max.message.bytes)`)
}

async function messageLimits(
  link: BrokerLink,
  topics: readonly string[],
): Promise<ReadonlyMap<string, number>> {
  const limits = new Map<string, number>()
  if (topics.length === 0) return limits
  const { library } = link
  const answer = await link.answered(
    library.describeConfigsV4.api.async(
      await link.any(),
      topics.map((resourceName) => ({
        resourceType: library.ConfigResourceTypes.TOPIC,
        resourceName,
        configurationKeys: ['max.message.bytes'],
      })),
      false,
      false,
    ),
  )
  for (const { resourceName, configs } of answer.results) {
    const limit = Number(configs[0]?.value ?? Number.NaN)
    if (Number.isInteger(limit)) limits.set(resourceName, limit)
  }
  return limits
}

const absent = (subject: string, name: string, { forbidden }: TopicsFound, rights: string): KafkaCheck =>
  forbidden.includes(name)
    ? missing(subject, `cannot be seen; grant ${rights} on topic ${name}`)
    : missing(subject, 'does not exist; Bartleby makes no topics')

const partitions = (count: number): string => (count === 1 ? '1 partition' : `${count} partitions`)
