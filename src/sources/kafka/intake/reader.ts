/**
 * Intake: every record of every DLQ topic goes into the store; its offset is committed once it is durable. Sessions follow each other for
 * ever, with growing pauses while brokers fail. A session is one membership in the group; only offsets outlive it.
 *
 *   join ──► arrange readers ──► round: one loop per broker ──► arrange …
 *    ▲                                      │
 *    └────── the group gathers anew ◄───────┘
 */

import type { ConnectionPool } from '@platformatic/kafka'
import { type BackoffPolicy, backoffDelayMs } from '../../../core/backoff.ts'
import type { Clock } from '../../../core/clock.ts'
import type { Log } from '../../../core/log.ts'
import { aborted, atMost, rest, untilAborted } from '../../../core/waiting.ts'
import { areOthers, BrokerLink, breakConnections, lookUpTopics } from '../../../outgoing/kafka/brokers.ts'
import type { TopicsFound } from '../../../outgoing/kafka/connection.ts'
import { troubleOf } from '../../../outgoing/kafka/library.ts'
import { dlqTopicsOf, type KafkaSettings } from '../settings/settings.ts'
import { Board, type IntakeStatus } from './intake-status.ts'
import { Commits, Group, type TopicPartitions } from './reader-group.ts'
import { nameOf, PartitionReaders } from './reader-partitions.ts'
import { type RoundParts, readFrom } from './reader-round.ts'
import type { RecordStore } from './store.ts'

interface ReaderParts {
  readonly settings: KafkaSettings
  readonly store: RecordStore
  readonly clock: Clock
  readonly log: Log
}

const BACKOFF: BackoffPolicy = { baseMs: 500, factor: 2, maxMs: 15_000, jitter: 0.3 }
/** A deleted topic is shown for a moment longer. */
const CHANGED_PAUSE_MS = 200

export class Reader {
  readonly #parts: ReaderParts
  readonly #board: Board
  readonly #wanted: readonly string[]
  /** As of the last session. */
  readonly #topicIds = new Map<string, string>()
  #stopping = new AbortController()
  #session: ReadingSession | null = null
  #work: Promise<void> | null = null

  constructor(parts: ReaderParts) {
    this.#parts = parts
    this.#board = new Board(parts.clock, parts.log)
    this.#wanted = dlqTopicsOf(parts.settings)
  }

  /** Never throws, now or later: see `status`. */
  start(): void {
    if (this.#work !== null) return
    this.#stopping = new AbortController()
    this.#board.phase('starting')
    this.#work = this.#readOn()
  }

  /** Commits what is durable and leaves the group, within seconds whatever brokers do. */
  async stop(): Promise<void> {
    this.#stopping.abort()
    this.#session?.end()
    await this.#work
    this.#work = null
    this.#board.phase('stopped')
  }

  status(): IntakeStatus {
    return this.#board.status()
  }

  async #readOn(): Promise<void> {
    if (this.#wanted.length === 0) return this.#board.phase('reading')
    let failures = 0
    const onReading = () => {
      failures = 0
      this.#board.trouble('brokers', null)
      this.#board.phase('reading')
    }
    while (!this.#stopping.signal.aborted) {
      try {
        await rest(await this.#readOnce(onReading), this.#stopping.signal)
      } catch (error) {
        if (this.#stopping.signal.aborted) return
        failures += 1
        this.#board.trouble('brokers', this.#sentence(error))
        await rest(backoffDelayMs(failures, BACKOFF), this.#stopping.signal)
      }
    }
  }

  /** Returns how long to rest after the session. */
  async #readOnce(onReading: () => void): Promise<number> {
    const { settings } = this.#parts
    const link = await BrokerLink.open(settings.connection)
    try {
      const looking = lookUpTopics(link, this.#wanted)
      const topics = await untilAborted(looking, this.#stopping.signal)
      this.#board.topics(topics)
      if (topics.found.size === 0) {
        this.#board.readers(new Map())
        this.#board.trouble('brokers', null)
        return settings.topicRefreshMs
      }
      const own = { link, board: this.#board, wanted: this.#wanted, anew: this.#recogniseNew(topics) }
      this.#session = new ReadingSession({ ...this.#parts, ...own, onReading }, topics)
      await this.#session.run()
      return CHANGED_PAUSE_MS
    } finally {
      this.#session = null
      link.close()
    }
  }

  /** Topics with another id than in the last session. */
  #recogniseNew({ found }: TopicsFound): ReadonlySet<string> {
    const anew = new Set<string>()
    for (const [name, { id }] of found) {
      const before = this.#topicIds.get(name)
      if (before !== undefined && before !== id) anew.add(name)
      this.#topicIds.set(name, id)
    }
    return anew
  }

  #sentence(error: unknown): string {
    const { code, message } = troubleOf(error)
    const { groupId } = this.#parts.settings
    const right = code === 'GROUP_AUTHORIZATION_FAILED' ? `; grant Read on group ${groupId}` : ''
    return `Kafka cannot be read: ${code}: ${message}${right}`
  }
}

interface SessionParts extends ReaderParts, Pick<RoundParts, 'link' | 'board'> {
  readonly wanted: readonly string[]
  readonly anew: ReadonlySet<string>
  /** Called when records can come. */
  readonly onReading: () => void
}

const HEARTBEAT_MS = 3_000
const MOVED_PAUSE_MS = 200
const BROKER_AWAY_PAUSE_MS = 1_000
/** For each of two steps: what is being stored, then commit and goodbye. */
const CLOSE_TIMEOUT_MS = 2_000

class ReadingSession {
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
  readonly #ended = Promise.withResolvers<void>()
  readonly #ending = new AbortController()

  constructor(parts: SessionParts, topics: TopicsFound) {
    this.#parts = parts
    this.#topics = topics
    const { link, board, settings, clock, log, anew } = parts
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
      clock,
      log,
    })
    this.#fetching = link.newPool()
    this.#readers = new PartitionReaders({ link, board, group: this.#group, commits: this.#commits, anew })
    // `run` may not wait for it yet when it is rejected.
    this.#ended.promise.catch(() => {})
  }

  /** Throws what went wrong. */
  async run(): Promise<void> {
    let work: readonly Promise<void>[] = []
    try {
      this.#assignment = await untilAborted(this.#group.join(), this.#ending.signal)
      work = [this.#readRounds(), this.#stayMember(), this.#lookAgain()]
      for (const part of work) part.catch((error) => this.end(error))
      await this.#ended.promise
    } finally {
      this.end()
      await atMost(CLOSE_TIMEOUT_MS, work[0] ?? Promise.resolve())
      await atMost(CLOSE_TIMEOUT_MS, this.#sayGoodbye())
    }
  }

  /** Asks the session to end; `run` returns when it has. */
  end(error?: Error): void {
    if (this.#ending.signal.aborted) return
    if (error === undefined) this.#ended.resolve()
    else this.#ended.reject(error)
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

  /** Topics come, go and grow; resting partitions may be readable now. */
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
    if (areOthers(this.#topics, topics)) this.end()
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
      const parts: RoundParts = {
        ...this.#parts,
        ...{ pool: this.#fetching, readers: this.#readers, commits: this.#commits },
        onMoved: () => this.#askAgain(MOVED_PAUSE_MS),
        onGone: () => this.end(),
      }
      await readFrom(parts, leader, readers, signal)
    } catch (error) {
      if (signal.aborted) return
      const { message } = troubleOf(error)
      for (const reader of readers)
        this.#parts.board.partitionTrouble(reader, `${nameOf(reader)} cannot be read: ${message}.`)
      await this.#askAgain(BROKER_AWAY_PAUSE_MS)
    }
  }

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
