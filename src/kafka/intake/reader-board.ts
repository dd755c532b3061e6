/** How intake stands: what is wrong, and how far each partition is. Everything is written here when it happens, and logged once. */
import type { Clock, Instant } from '../../core/clock.ts'
import type { Log } from '../../core/log.ts'
import type { IntakeStanding, PartitionStanding } from '../ports.ts'
import type { TopicsFound } from './topics.ts'

export interface PartitionReader {
  readonly topic: string
  readonly partition: number
  readonly topicId: string
  leader: number
  /** The next offset to ask for. */
  fetchAt: bigint
  /** The next offset that is not durable. */
  doneAt: bigint
  committed: bigint | null
  end: bigint | null
  trouble: string | null
  /** It is left alone until brokers are asked again where topics are. */
  isResting: boolean
}

export const partitionKey = (topic: string, partition: number): string => `${topic}:${partition}`

export class Board {
  readonly #clock: Clock
  readonly #log: Log
  /** What concerns more than one partition, by what it is about. */
  readonly #troubles = new Map<string, string>()
  #readers: ReadonlyMap<string, PartitionReader> = new Map()
  #missing: readonly string[] = []
  #forbidden: readonly string[] = []
  #phase: 'stopped' | 'starting' | 'reading' = 'stopped'
  #state: IntakeStanding['state'] = 'stopped'
  #since: Instant

  constructor(clock: Clock, log: Log) {
    this.#clock = clock
    this.#log = log
    this.#since = clock.now()
  }

  standing(): IntakeStanding {
    return {
      state: this.#state,
      troubles: this.#allTroubles(),
      missingTopics: this.#missing,
      partitions: [...this.#readers.values()].map(
        ({ topic, partition, committed, end, trouble }): PartitionStanding => ({
          topic,
          partition,
          committed,
          end,
          trouble,
        }),
      ),
      since: this.#since,
    }
  }

  phase(phase: 'stopped' | 'starting' | 'reading'): void {
    this.#phase = phase
    this.#update()
  }

  readers(readers: ReadonlyMap<string, PartitionReader>): void {
    this.#readers = readers
    this.#update()
  }

  /** Which topics cannot be read at all. */
  topics({ missing, forbidden }: Pick<TopicsFound, 'missing' | 'forbidden'>): void {
    const known = [...this.#missing, ...this.#forbidden]
    const unread = [...missing, ...forbidden].filter((topic) => !known.includes(topic))
    if (unread.length > 0) this.#log.warn({ topics: unread }, 'Kafka shows no such topics; will look again')
    this.#missing = missing
    this.#forbidden = forbidden
    this.#update()
  }

  /** Something is wrong, or no longer (null). */
  trouble(about: string, sentence: string | null): void {
    const before = this.#troubles.get(about) ?? null
    if (before === sentence) return
    if (sentence === null) this.#troubles.delete(about)
    else this.#troubles.set(about, sentence)
    this.#tell(before, sentence)
  }

  /** Something is wrong with one partition, or no longer (null). */
  partitionTrouble(reader: PartitionReader, sentence: string | null): void {
    const before = reader.trouble
    if (before === sentence) return
    reader.trouble = sentence
    this.#tell(before, sentence)
  }

  #tell(before: string | null, sentence: string | null): void {
    if (sentence !== null) this.#log.warn({ trouble: sentence }, 'intake from Kafka is in trouble')
    else this.#log.info({ trouble: before }, 'a trouble of intake from Kafka is over')
    this.#update()
  }

  #allTroubles(): readonly string[] {
    return [
      ...this.#troubles.values(),
      ...this.#missing.map((topic) => `Topic ${topic} does not exist.`),
      ...this.#forbidden.map((topic) => `Topic ${topic} cannot be seen; grant Read and Describe on it.`),
      ...[...this.#readers.values()].flatMap(({ trouble }) => (trouble === null ? [] : [trouble])),
    ]
  }

  #update(): void {
    const isWrong = this.#allTroubles().length > 0
    const state = this.#phase === 'stopped' ? 'stopped' : isWrong ? 'degraded' : this.#phase
    if (state === this.#state) return
    this.#state = state
    this.#since = this.#clock.now()
  }
}
