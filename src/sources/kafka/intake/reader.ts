/**
 * Intake: reads all DLQ topics and puts every record into the store; an offset is committed after its record is durable. Whatever
 * happens, it goes on: when brokers fail, sessions follow each other with growing pauses, for ever.
 */
import { type BackoffPolicy, backoffDelayMs } from '../../../core/backoff.ts'
import type { Clock } from '../../../core/clock.ts'
import type { Log } from '../../../core/log.ts'
import { rest, untilAborted } from '../../../core/waiting.ts'
import { BrokerLink, lookUpTopics } from '../../../outgoing/kafka/brokers.ts'
import type { TopicsFound } from '../../../outgoing/kafka/connection.ts'
import { troubleOf } from '../../../outgoing/kafka/library.ts'
import { dlqTopicsOf, type KafkaSettings } from '../settings/settings.ts'
import { ReadingSession } from './reader-session.ts'
import { Board, type IntakeStanding } from './standing.ts'
import type { RecordStore } from './store.ts'

interface ReaderParts {
  readonly settings: KafkaSettings
  readonly store: RecordStore
  readonly clock: Clock
  readonly log: Log
}

const BACKOFF: BackoffPolicy = { baseMs: 500, factor: 2, maxMs: 15_000, jitter: 0.3 }
/** A topic that was just deleted is still shown for a moment. */
const CHANGED_PAUSE_MS = 200

export class Reader {
  readonly #parts: ReaderParts
  readonly #board: Board
  readonly #wanted: readonly string[]
  /** As they were when they were read last. */
  readonly #topicIds = new Map<string, string>()
  #stopping = new AbortController()
  #session: ReadingSession | null = null
  #work: Promise<void> | null = null

  constructor(parts: ReaderParts) {
    this.#parts = parts
    this.#board = new Board(parts.clock, parts.log)
    this.#wanted = dlqTopicsOf(parts.settings)
  }

  /** Begins to read. Nothing is thrown, now or later: see `standing`. */
  start(): void {
    if (this.#work !== null) return
    this.#stopping = new AbortController()
    this.#board.phase('starting')
    this.#work = this.#readOn()
  }

  /** Commits what is durable and leaves the group, within some seconds whatever brokers do. */
  async stop(): Promise<void> {
    this.#stopping.abort()
    this.#session?.stop()
    await this.#work
    this.#work = null
    this.#board.phase('stopped')
  }

  standing(): IntakeStanding {
    return this.#board.standing()
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

  /** One session, when there is anything to read; gives how long to rest after it. */
  async #readOnce(onReading: () => void): Promise<number> {
    const { settings } = this.#parts
    const link = await BrokerLink.open(settings.connection)
    const looking = untilAborted(lookUpTopics(link, this.#wanted), this.#stopping.signal)
    const topics = await looking.catch((error: unknown) => {
      link.close()
      throw error
    })
    this.#board.topics(topics)
    if (topics.found.size === 0) {
      link.close()
      this.#board.readers(new Map())
      this.#board.trouble('brokers', null)
      return settings.topicRefreshMs
    }
    const session = new ReadingSession(
      {
        ...this.#parts,
        link,
        board: this.#board,
        wanted: this.#wanted,
        anew: this.#recogniseNew(topics),
        onReading,
      },
      topics,
    )
    this.#session = session
    try {
      await session.run()
    } finally {
      this.#session = null
    }
    return CHANGED_PAUSE_MS
  }

  /** The topics that have another id than when they were read last. */
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
