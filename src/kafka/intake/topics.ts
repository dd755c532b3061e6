/** Which topics the brokers have, and where their partitions are. One that is missing is an answer like any other. */
import type { Broker } from '@platformatic/kafka'
import type { BrokerLink } from '../client.ts'

export interface FoundTopic {
  readonly name: string
  /** Another one when the topic was deleted and made anew; '' on brokers that have none. */
  readonly id: string
  /** The broker that leads each partition; −1 while there is none. */
  readonly leaders: readonly number[]
  /** Whether we may do this with it; null where that was not asked, or the brokers do not say. */
  readonly mayRead: boolean | null
  readonly mayWrite: boolean | null
}

export interface TopicsFound {
  readonly found: ReadonlyMap<string, FoundTopic>
  readonly missing: readonly string[]
  /** Not to be seen by us: brokers do not say whether they exist. */
  readonly forbidden: readonly string[]
  readonly brokers: ReadonlyMap<number, Broker>
}

const METADATA_KEY = 3
const TOPIC_AUTHORIZATION_FAILED = 29

/** The bits of rights in an answer, and what it says when nobody asked for them. */
const READ = 1 << 3
const WRITE = 1 << 4
const NOT_SAID = -2_147_483_648

/** Asks the first broker that can be reached. Rights are asked for on demand only: brokers write a line of audit for each that is not granted. */
export async function lookUpTopics(
  link: BrokerLink,
  topics: readonly string[],
  { withRights = false } = {},
): Promise<TopicsFound> {
  const { library } = link
  const connection = await link.any()
  const newest = (await link.versions(connection)).get(METADATA_KEY)?.max ?? 0
  const answer =
    newest >= 12
      ? await link.answered(library.metadataV12.api.async(connection, [...topics], false, withRights))
      : await link.answered(library.metadataV9.api.async(connection, [...topics], false, false, withRights))
  const found = new Map<string, FoundTopic>()
  const missing: string[] = []
  const forbidden: string[] = []
  for (const topic of answer.topics) {
    const name = topic.name ?? ''
    if (topic.errorCode === TOPIC_AUTHORIZATION_FAILED) forbidden.push(name)
    else if (topic.errorCode !== 0 || topic.partitions.length === 0) missing.push(name)
    else {
      const leaders: number[] = []
      for (const { partitionIndex, leaderId } of topic.partitions) leaders[partitionIndex] = leaderId
      const rights = topic.topicAuthorizedOperations
      const may = (right: number) => (rights === NOT_SAID ? null : (rights & right) !== 0)
      const id = 'topicId' in topic ? String(topic.topicId) : ''
      found.set(name, { name, id, leaders, mayRead: may(READ), mayWrite: may(WRITE) })
    }
  }
  const brokers = new Map(answer.brokers.map(({ nodeId, host, port }) => [nodeId, { host, port }]))
  link.remember(brokers)
  return { found, missing, forbidden, brokers }
}

/** Whether a later look found other topics, other partitions, or a topic that was made anew. Leaders move all the time. */
export function areOthers(before: TopicsFound, after: TopicsFound): boolean {
  if (before.found.size !== after.found.size) return true
  for (const [name, { id, leaders }] of before.found) {
    const now = after.found.get(name)
    if (now === undefined || now.id !== id || now.leaders.length !== leaders.length) return true
  }
  return before.forbidden.join() !== after.forbidden.join()
}
