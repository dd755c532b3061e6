/**
 * One session of reading: a membership in the group and what it reads, until it is stopped, the topics change or brokers fail. Then the
 * reader begins another one; nothing but offsets carries over.
 *
 *   join ──► arrange readers ──► round: one loop per broker ──► arrange …
 *    ▲                                      │
 *    └────── the group gathers anew ◄───────┘
 */
import type { ConnectionPool } from '@platformatic/kafka'
import { aborted, atMost, rest, untilAborted } from '../../../core/waiting.ts'
import { areOthers, breakConnections, lookUpTopics } from '../../../outgoing/kafka/brokers.ts'
import type { TopicsFound } from '../../../outgoing/kafka/connection.ts'
import { troubleOf } from '../../../outgoing/kafka/library.ts'
import { Commits, Group, type TopicPartitions } from './reader-group.ts'
import { nameOf, PartitionReaders } from './reader-partitions.ts'
import { type RoundParts, readFrom } from './reader-round.ts'

interface SessionParts extends Pick<RoundParts, 'settings' | 'store' | 'log' | 'link' | 'board'> {
  readonly wanted: readonly string[]
  /** Topics that were made anew since they were read last. */
  readonly anew: ReadonlySet<string>
  /** Called when records can come. */
  readonly onReading: () => void
}

/** Why a session came to its end without an error. */
type SessionEnd = 'stopped' | 'changed'

const HEARTBEAT_MS = 3_000
const MOVED_PAUSE_MS = 200
const BROKER_AWAY_PAUSE_MS = 1_000
/** For each of the two steps of leaving: what is being stored, then commit and goodbye. */
const CLOSE_TIMEOUT_MS = 2_000

export class ReadingSession {
  readonly #parts: SessionParts
  readonly #group: Group
  readonly #commits: Commits
  readonly #readers: PartitionReaders
  /** Connections that wait for records. */
  readonly #fetching: ConnectionPool
  #topics: TopicsFound
  #assignment: readonly TopicPartitions[] = []
  /** Ends the loops of the present round. */
  #round = new AbortController()
  readonly #ended = Promise.withResolvers<SessionEnd>()
  readonly #ending = new AbortController()

  constructor(parts: SessionParts, topics: TopicsFound) {
    this.#parts = parts
    this.#topics = topics
    const { link, board, settings, log, anew } = parts
    this.#group = new Group(link, {
      groupId: settings.groupId,
      topics: [...topics.found.keys()],
      sessionTimeoutMs: settings.sessionTimeoutMs,
      partitionCounts: async (names) => {
        const { found } = await lookUpTopics(link, names)
        return new Map([...found].map(([name, { leaders }]) => [name, leaders.length]))
      },
    })
    this.#commits = new Commits({
      commit: (offsets) => this.#group.commit(offsets),
      onCommitted: ({ topic, partition, offset }) => {
        const reader = this.#readers.of(topic, partition)
        if (reader !== undefined) reader.committed = offset
      },
      log,
    })
    this.#fetching = link.newPool()
    this.#readers = new PartitionReaders({ link, board, group: this.#group, commits: this.#commits, anew })
    // `run` looks at it, but may not have come that far when it is rejected.
    this.#ended.promise.catch(() => {})
  }

  /** Reads until the end, which `stop` or a change brings; throws what went wrong. */
  async run(): Promise<SessionEnd> {
    let work: readonly Promise<void>[] = []
    try {
      this.#assignment = await untilAborted(this.#group.join(), this.#ending.signal)
      work = [this.#readRounds(), this.#stayMember(), this.#lookAgain()]
      for (const part of work) part.catch((error) => this.#end(error))
      return await this.#ended.promise
    } finally {
      this.#end('stopped')
      await atMost(CLOSE_TIMEOUT_MS, work[0] ?? Promise.resolve())
      await atMost(CLOSE_TIMEOUT_MS, this.#sayGoodbye())
      this.#parts.link.close()
    }
  }

  /** Asks the session to end; `run` returns when it has. */
  stop(): void {
    this.#end('stopped')
  }

  #end(why: SessionEnd | Error): void {
    if (this.#ending.signal.aborted) return
    if (why instanceof Error) this.#ended.reject(why)
    else this.#ended.resolve(why)
    this.#ending.abort()
    this.#round.abort()
    breakConnections(this.#fetching)
  }

  async #sayGoodbye(): Promise<void> {
    try {
      await this.#commits.close()
      await this.#group.leave()
    } catch (error) {
      this.#parts.log.info(troubleOf(error), 'left the Kafka group without saying so')
    }
  }

  async #stayMember(): Promise<void> {
    const { sessionTimeoutMs, groupId } = this.#parts.settings
    const intervalMs = Math.min(HEARTBEAT_MS, Math.ceil(sessionTimeoutMs / 4))
    for (let failures = 0; await this.#rest(intervalMs); ) {
      try {
        if ((await this.#group.heartbeat()) === 'rejoin') {
          this.#parts.log.info({ group: groupId }, 'the Kafka group gathers anew')
          this.#assignment = await this.#group.join()
          this.#round.abort()
        }
        failures = 0
      } catch (error) {
        failures += 1
        if (failures * intervalMs > sessionTimeoutMs) throw error
      }
    }
  }

  /** Topics come, go and grow; and what could not be read may be readable now. */
  async #lookAgain(): Promise<void> {
    while (await this.#rest(this.#parts.settings.topicRefreshMs)) {
      await this.#refresh()
      if (this.#readers.wake()) this.#round.abort()
    }
  }

  async #refresh(): Promise<void> {
    const { link, wanted, board } = this.#parts
    const topics = await lookUpTopics(link, wanted)
    board.topics(topics)
    if (areOthers(this.#topics, topics)) this.#end('changed')
    this.#topics = topics
  }

  async #readRounds(): Promise<void> {
    while (!this.#ending.signal.aborted) {
      this.#round = new AbortController()
      const { signal } = this.#round
      await this.#readers.arrange(this.#assignment, this.#topics)
      this.#parts.onReading()
      const leaders = new Set(this.#readers.all().map(({ leader }) => leader))
      await Promise.all([...leaders].map((leader) => this.#readFrom(leader, signal)))
      await aborted(signal)
    }
  }

  async #readFrom(leader: number, signal: AbortSignal): Promise<void> {
    const readers = this.#readers.all().filter((reader) => reader.leader === leader)
    try {
      if (leader < 0) throw new Error('it has no leader')
      const onMoved = () => this.#askAgain(MOVED_PAUSE_MS)
      const onGone = () => this.#end('changed')
      await readFrom(
        {
          ...this.#parts,
          pool: this.#fetching,
          readers: this.#readers,
          commits: this.#commits,
          onMoved,
          onGone,
        },
        leader,
        readers,
        signal,
      )
    } catch (error) {
      if (signal.aborted) return
      const { message } = troubleOf(error)
      for (const reader of readers)
        this.#parts.board.partitionTrouble(reader, `${nameOf(reader)} cannot be read: ${message}.`)
      await this.#askAgain(BROKER_AWAY_PAUSE_MS)
    }
  }

  /** Asks where partitions are now, and begins another round. */
  async #askAgain(pauseMs: number): Promise<void> {
    if (!(await this.#rest(pauseMs))) return
    await this.#refresh()
    this.#round.abort()
  }

  /** False when the session ended meanwhile. */
  #rest(ms: number): Promise<boolean> {
    return rest(ms, this.#ending.signal)
  }
}
