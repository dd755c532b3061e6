/**
 * Membership in the consumer group, and its committed offsets. The library's consumer fails as a whole when one topic is missing, and
 * rejoins on its own in the middle of commits. One version of each request, which brokers from 2.7 to 4.x understand.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Broker, Connection, ConnectionPool } from '@platformatic/kafka'
import type { Clock } from '../../../core/clock.ts'
import type { Log } from '../../../core/log.ts'
import { Rounds } from '../../../core/rounds.ts'
import { SystemClock } from '../../../core/system-clock.ts'
import { type BrokerLink, COORDINATOR_AWAY } from '../../../outgoing/kafka/brokers.ts'
import { isTrouble, troubleOf } from '../../../outgoing/kafka/library.ts'
import { partitionKey } from '../event.ts'

interface GroupOptions {
  readonly groupId: string
  readonly topics: readonly string[]
  readonly sessionTimeoutMs: number
  partitionCounts(topics: readonly string[]): Promise<ReadonlyMap<string, number>>
}

export interface Offset {
  readonly topic: string
  readonly partition: number
  readonly offset: bigint
}

interface OffsetAnswer extends Offset {
  /** '' when all is well. */
  readonly code: string
}

const PROTOCOL = { type: 'consumer', name: 'roundrobin' } as const
/** Beyond the time that brokers wait for members. */
const GATHERING_MARGIN_MS = 10_000
const MOST_TRIES = 50
const PAUSE_MS = 200

const MOVED: readonly string[] = COORDINATOR_AWAY
const FORGOTTEN = ['UNKNOWN_MEMBER_ID', 'FENCED_INSTANCE_ID']
const GATHERING = ['REBALANCE_IN_PROGRESS', 'ILLEGAL_GENERATION']

export class Group {
  readonly #link: BrokerLink
  readonly #options: GroupOptions
  /** Its own: it waits while the group gathers. */
  readonly #pool: ConnectionPool
  #coordinator: Broker | null = null
  #memberId = ''
  #generation = -1

  constructor(link: BrokerLink, options: GroupOptions) {
    this.#link = link
    this.#pool = link.newPool(options.sessionTimeoutMs + GATHERING_MARGIN_MS)
    this.#options = options
  }

  /** Joins, or joins again, and waits for all members. Returns this member's partitions. */
  async join(): Promise<readonly TopicPartitions[]> {
    for (let tries = 1; ; tries++) {
      try {
        return await this.#joinOnce()
      } catch (error) {
        if (isTrouble(error, 'MEMBER_ID_REQUIRED')) {
          this.#memberId = memberIdOf(error)
          continue
        }
        if (tries === MOST_TRIES || !this.#isPassing(error)) throw error
        await sleep(PAUSE_MS, undefined, { ref: false })
      }
    }
  }

  async heartbeat(): Promise<'fine' | 'rejoin'> {
    try {
      const { api } = this.#link.library.heartbeatV4
      await api.async(await this.#connect(), this.#options.groupId, this.#generation, this.#memberId, null)
      return 'fine'
    } catch (error) {
      const mustJoin = isTrouble(error, ...GATHERING, ...FORGOTTEN)
      if (!this.#isPassing(error)) throw error
      return mustJoin ? 'rejoin' : 'fine'
    }
  }

  async commit(offsets: readonly Offset[]): Promise<readonly OffsetAnswer[]> {
    const topics = [...Map.groupBy(offsets, ({ topic }) => topic)].map(([name, of]) => ({
      name,
      partitions: of.map(({ partition, offset }) => ({
        ...{ partitionIndex: partition, committedOffset: offset, committedLeaderEpoch: -1 },
      })),
    }))
    const { api } = this.#link.library.offsetCommitV8
    const answer = await this.#link.answered(
      api.async(await this.#connect(), this.#options.groupId, this.#generation, this.#memberId, null, topics),
    )
    const codes = new Map(
      answer.topics.flatMap(({ name, partitions }) =>
        partitions.map(({ partitionIndex, errorCode }) => [
          partitionKey({ topic: name, partition: partitionIndex }),
          this.#link.code(errorCode),
        ]),
      ),
    )
    const answers = offsets.map((offset) => ({
      ...offset,
      code: codes.get(partitionKey(offset)) ?? '',
    }))
    if (answers.some(({ code }) => MOVED.includes(code))) this.#coordinator = null
    return answers
  }

  /** −1 where the group has committed nothing. */
  async committed(wanted: readonly TopicPartitions[]): Promise<readonly OffsetAnswer[]> {
    const topics = wanted.map(({ topic, partitions }) => ({ name: topic, partitionIndexes: [...partitions] }))
    const { api } = this.#link.library.offsetFetchV7
    const answer = await this.#link.answered(
      api.async(await this.#connect(), [{ groupId: this.#options.groupId, topics }], false),
    )
    if (answer.errorCode !== 0) throw new this.#link.library.ProtocolError(answer.errorCode)
    return answer.topics.flatMap(({ name, partitions }) =>
      partitions.map(({ partitionIndex, committedOffset, errorCode }) => ({
        topic: name,
        partition: partitionIndex,
        offset: committedOffset,
        code: this.#link.code(errorCode),
      })),
    )
  }

  /** Leaves at once, so that the others need not wait until this member is missed. */
  async leave(): Promise<void> {
    if (this.#memberId === '') return
    const { api } = this.#link.library.leaveGroupV4
    // The usual connection may be waiting for the group.
    const connection = await this.#connect(this.#link.asking)
    await api.async(connection, this.#options.groupId, [{ memberId: this.#memberId }])
    this.#memberId = ''
  }

  async #joinOnce(): Promise<readonly TopicPartitions[]> {
    const { library } = this.#link
    const { groupId, topics, sessionTimeoutMs } = this.#options
    const connection = await this.#connect()
    const metadata = library.encodeConsumerProtocolSubscription({ version: 0, topics: [...topics] })
    const joined = await library.joinGroupV7.api.async(
      connection,
      groupId,
      sessionTimeoutMs,
      sessionTimeoutMs,
      this.#memberId,
      null,
      PROTOCOL.type,
      [{ name: PROTOCOL.name, metadata }],
      '',
    )
    this.#memberId = joined.memberId
    this.#generation = joined.generationId
    const isLeader = joined.leader === joined.memberId
    const { assignment } = await library.syncGroupV5.api.async(
      connection,
      groupId,
      joined.generationId,
      joined.memberId,
      null,
      PROTOCOL.type,
      PROTOCOL.name,
      isLeader ? await this.#assignments(joined.members) : [],
    )
    return library.decodeConsumerProtocolAssignment(assignment).assignedPartitions
  }

  async #assignments(members: readonly { readonly memberId: string; readonly metadata: Buffer }[]) {
    const { library } = this.#link
    const memberships: readonly Membership[] = members.map(({ memberId, metadata }) => ({
      memberId,
      topics: library.decodeConsumerProtocolSubscription(metadata).topics,
    }))
    const topics = [...new Set(memberships.flatMap((membership) => membership.topics))]
    const shares = assign(memberships, await this.#options.partitionCounts(topics))
    return [...shares].map(([memberId, share]) => ({
      memberId,
      assignment: library.encodeConsumerProtocolAssignment({
        version: 0,
        assignedPartitions: share.map(({ topic, partitions }) => ({ topic, partitions: [...partitions] })),
      }),
    }))
  }

  async #connect(pool = this.#pool): Promise<Connection> {
    this.#coordinator ??= await this.#link.coordinatorOf(this.#options.groupId)
    return pool.get(this.#coordinator)
  }

  /** Whether trying again may help. Forgets what the error disproves. */
  #isPassing(error: unknown): boolean {
    const hasMoved = isTrouble(error, ...MOVED, 'PLT_KFK_NETWORK', 'PLT_KFK_TIMEOUT')
    const isForgotten = isTrouble(error, ...FORGOTTEN)
    if (hasMoved) this.#coordinator = null
    if (isForgotten) this.#memberId = ''
    return isTrouble(error, ...MOVED, ...GATHERING) || isForgotten
  }
}

/** Brokers refuse the first try and name the member. */
const memberIdOf = (error: unknown): string => {
  // Set by the library on errors inside an answer.
  const { response } = error as { readonly response?: { readonly memberId?: string } }
  return response?.memberId ?? ''
}

interface Membership {
  readonly memberId: string
  readonly topics: readonly string[]
}

export interface TopicPartitions {
  readonly topic: string
  readonly partitions: readonly number[]
}

/**
 * Deals each topic's partitions to the members that want it; the group's leader decides for all. One count over all topics: many topics of
 * one partition must not all go to the first member.
 */
export function assign(
  members: readonly Membership[],
  partitionCounts: ReadonlyMap<string, number>,
): ReadonlyMap<string, readonly TopicPartitions[]> {
  const sorted = [...members].sort((a, b) => (a.memberId < b.memberId ? -1 : 1))
  const shares = new Map(sorted.map(({ memberId }) => [memberId, new Map<string, number[]>()]))
  const topics = [...new Set(sorted.flatMap(({ topics }) => topics))].sort()
  let turn = 0
  for (const topic of topics) {
    const readers = sorted.filter((member) => member.topics.includes(topic))
    for (let partition = 0; partition < (partitionCounts.get(topic) ?? 0); partition++) {
      const share = shares.get(readers[turn++ % readers.length]?.memberId ?? '')
      const partitions = share?.get(topic)
      if (partitions === undefined) share?.set(topic, [partition])
      else partitions.push(partition)
    }
  }
  return new Map(
    [...shares].map(([memberId, share]) => [
      memberId,
      [...share].map(([topic, partitions]) => ({ topic, partitions })),
    ]),
  )
}

interface CommitsOptions {
  readonly commit: (offsets: readonly Offset[]) => Promise<readonly OffsetAnswer[]>
  readonly onCommitted: (offset: Offset) => void
  readonly clock: Clock
  readonly log: Log
}

const PAUSE_AFTER_FAILURE_US = 1_000_000n

/**
 * Commits offsets of durable records, one request at a time. A refusal is tried again; until then records are read twice at worst, and the
 * store knows them.
 */
export class Commits {
  readonly #options: CommitsOptions
  readonly #waiting = new Map<string, Offset>()
  readonly #rounds: Rounds

  constructor(options: CommitsOptions) {
    this.#options = options
    const { clock, log } = options
    this.#rounds = new Rounds({
      ...{ name: 'kafka.commits', clock, outageClock: new SystemClock(), log, isFirstLater: true },
      everyUs: (failures) => (failures === 0 ? null : PAUSE_AFTER_FAILURE_US),
      act: async () => {
        while (this.#waiting.size > 0) await this.#commitOnce()
      },
      trouble: 'offsets could not be committed to Kafka; will try again',
    })
    this.#rounds.start()
  }

  note(offset: Offset): void {
    this.#waiting.set(partitionKey(offset), offset)
    // After a failure it goes with the next try.
    if (!this.#rounds.state().isFailing) void this.#rounds.now()
  }

  forget(partition: Pick<Offset, 'topic' | 'partition'>): void {
    this.#waiting.delete(partitionKey(partition))
  }

  /** Tries once more, then ends. */
  async close(): Promise<void> {
    await this.#rounds.now()
    await this.#rounds.stop()
  }

  async #commitOnce(): Promise<void> {
    const answers = await this.#options.commit([...this.#waiting.values()]).catch((error: unknown) => {
      const { code, message } = troubleOf(error)
      throw new Error(`${code}: ${message}`)
    })
    const refused = new Set<string>()
    for (const { code, ...offset } of answers) {
      if (code !== '') refused.add(code)
      else this.#done(offset)
    }
    if (refused.size > 0) throw new Error(`Kafka refused it: ${[...refused].join(', ')}`)
  }

  #done(offset: Offset): void {
    const key = partitionKey(offset)
    // A later one may have come meanwhile.
    if (this.#waiting.get(key)?.offset === offset.offset) this.#waiting.delete(key)
    this.#options.onCommitted(offset)
  }
}
