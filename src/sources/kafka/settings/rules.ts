/**
 * What only several keys of the section `kafka` together can tell. Most of it would otherwise show as an event that went to the wrong
 * service, or round in a circle. Each problem begins with its key.
 */

import { shown } from '../../../core/settings/config-error.ts'
import { problemsOfConnection } from '../../../outgoing/kafka/connection.ts'
import { isShort, type KafkaSection, type KafkaService, ORIGINAL, servicesOf } from './schema.ts'
import { fits, isServiceName } from './settings.ts'

/** The problems of a section whose keys are right one by one. Nothing in it is null. */
export function problemsOfKafka(given: KafkaSection): readonly string[] {
  const services = servicesOf(given)
  const keyOf = (name: string, key: string): string => {
    const entry = given.services?.[name]
    return entry !== undefined && isShort(entry) ? `services.${name}` : `services.${name}.${key}`
  }
  const rules: Rules = {
    given,
    services,
    dlqKey: ({ name }) => keyOf(name, 'dlq_topic'),
    retryKey: ({ name }) => keyOf(name, 'retry_topic'),
  }
  return [
    ...whatIsMissing(given),
    ...problemsOfPreview(given),
    ...problemsOfConnection(given),
    ...services.flatMap((service) => problemsOfService(rules, service)),
    ...problemsOfNames(services),
    ...problemsOfRetryTopics(rules),
    ...problemsOfCircles(rules),
  ].map((problem) => `kafka.${problem}`)
}

interface Rules {
  readonly given: KafkaSection
  readonly services: readonly KafkaService[]
  /** Where a service has its topics: at keys of their own, or in the short form. */
  readonly dlqKey: (service: KafkaService) => string
  readonly retryKey: (service: KafkaService) => string
}

/** A section that is not enabled needs nothing. */
function whatIsMissing(given: KafkaSection): readonly string[] {
  if (given.enabled !== true) return []
  const problems: string[] = []
  if (isEmpty(given.servers))
    problems.push("servers: is missing; allowed: a list of 'HOST:PORT', at least one")
  if (isEmpty(given.token_hashes)) {
    problems.push(
      'token_hashes: is missing; allowed: the SHA-256 of at least one token, in hexadecimal digits',
    )
  }
  if (Object.keys(given.services ?? {}).length === 0 && given.accept_unlisted_services !== true) {
    problems.push('services: is missing; list at least one, or set accept_unlisted_services')
  }
  return problems
}

function problemsOfPreview({ preview_limit: limit, preview_max: alias }: KafkaSection): readonly string[] {
  if (limit === undefined || alias === undefined || limit === alias) return []
  return [`preview_max: is ${alias}, but preview_limit is ${limit}; give one of them`]
}

function problemsOfService({ retryKey }: Rules, service: KafkaService): readonly string[] {
  const { name, retryTopic, profile, originalTopics, stripHeaders } = service
  const problems: string[] = []
  if (!isServiceName(name)) {
    problems.push(
      `services.${name}: is not allowed as a name; allowed: 1 to 243 letters, digits, '.', '_' or '-', the first one a letter or ` +
        "digit, but no UUID and none of 'health', 'summary', 'docs', 'openapi.json', 'rpc'",
    )
  }
  if (retryTopic === ORIGINAL && profile !== 'generic') {
    problems.push(
      `${retryKey(service)}: '${ORIGINAL}' is not allowed; a service of profile 'hexkit' has a retry topic`,
    )
  } else if (retryTopic === ORIGINAL && originalTopics.length === 0) {
    problems.push(
      `services.${name}.original_topics: is missing; with retry_topic '${ORIGINAL}' it says which topics are written to`,
    )
  }
  if (stripHeaders.length > 0 && profile !== 'generic') {
    problems.push(
      `services.${name}.strip_headers: is not allowed; retry records of profile 'hexkit' have four headers and no others`,
    )
  }
  return problems
}

/** Names and aliases say whose an event is: each is somebody's alone. */
function problemsOfNames(services: readonly KafkaService[]): readonly string[] {
  const owners = new Map(services.map(({ name }) => [name, `the service ${shown(name)}`]))
  return services.flatMap(({ name, aliases }) =>
    aliases.flatMap((alias, index) => {
      const owner = owners.get(alias)
      if (owner === undefined) owners.set(alias, `an alias of the service ${shown(name)}`)
      return owner === undefined
        ? []
        : [`services.${name}.aliases[${index}]: ${shown(alias)} is not allowed; it is ${owner} already`]
    }),
  )
}

/** Whoever reads a retry topic takes everything on it for its own. */
function problemsOfRetryTopics({ services, retryKey }: Rules): readonly string[] {
  const owners = new Map<string, string>()
  const problems: string[] = []
  for (const service of services) {
    const { name, retryTopic } = service
    if (retryTopic === ORIGINAL) continue
    const owner = owners.get(retryTopic)
    if (owner === undefined) owners.set(retryTopic, name)
    else problems.push(`${retryKey(service)}: ${shown(retryTopic)} is the retry topic of ${shown(owner)} too`)
  }
  for (const { name, retryTopic, originalTopics } of services) {
    if (retryTopic !== ORIGINAL) continue
    for (const [index, topic] of originalTopics.entries()) {
      const owner = owners.get(topic)
      if (owner === undefined) continue
      problems.push(
        `services.${name}.original_topics[${index}]: ${shown(topic)} is the retry topic of ${shown(owner)}`,
      )
    }
  }
  return problems
}

/** What is sent to a topic that is read as a DLQ topic comes back as a dead event, again and again. */
function problemsOfCircles({ given, services, dlqKey, retryKey }: Rules): readonly string[] {
  const listed = (given.dlq_topics ?? []).map((topic, index) => ({ topic, key: `dlq_topics[${index}]` }))
  const owned = services.map((service) => ({ topic: service.dlqTopic, key: dlqKey(service) }))
  const dlqTopics = [...owned, ...listed]
  const problems = services.flatMap((service) => {
    const { name, retryTopic, originalTopics } = service
    if (retryTopic !== ORIGINAL) {
      const met = dlqTopics.find(({ topic }) => topic === retryTopic)
      if (met === undefined) return []
      return [`${retryKey(service)}: ${shown(retryTopic)} is not allowed; it is a DLQ topic (${met.key})`]
    }
    return originalTopics.flatMap((pattern, index) => {
      const met = dlqTopics.find(({ topic }) => fits(pattern, topic))
      if (met === undefined) return []
      const key = `services.${name}.original_topics[${index}]`
      return [
        `${key}: ${shown(pattern)} is not allowed; the DLQ topic ${shown(met.topic)} (${met.key}) is among them`,
      ]
    })
  })
  if (given.accept_unlisted_services !== true) return problems
  for (const { topic, key } of dlqTopics) {
    if (!topic.startsWith('retry-')) continue
    problems.push(
      `${key}: ${shown(topic)} is not allowed as a DLQ topic; with accept_unlisted_services it may be the retry topic of a service`,
    )
  }
  return problems
}

const isEmpty = (list: readonly unknown[] | undefined): boolean => list === undefined || list.length === 0
