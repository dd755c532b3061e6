/** How intake stands: what is behind, what is wrong, and whether somebody should look. */
import type { Clock, Instant } from '../../../core/clock.ts'
import type { Log } from '../../../core/log.ts'

/** What is told of a partition. */
export type PartitionStanding = Readonly<
  Pick<PartitionReader, 'topic' | 'partition' | 'committed' | 'end' | 'trouble'>
>

export const INTAKE_STATES = ['starting', 'reading', 'degraded', 'stopped'] as const

export interface IntakeStanding {
  readonly state: (typeof INTAKE_STATES)[number]
  /** What is wrong, one sentence each; empty when nothing is. */
  readonly troubles: readonly string[]
  /** Topics of the configuration that the brokers do not have. */
  readonly missingTopics: readonly string[]
  readonly partitions: readonly PartitionStanding[]
  readonly since: Instant
}

/** How many records of a partition are not taken in yet; null when that is not known. Markers of transactions count too. */
export const lagOf = ({ committed, end }: Pick<PartitionStanding, 'committed' | 'end'>): bigint | null =>
  committed === null || end === null ? null : end > committed ? end - committed : 0n

/**
 * What is wrong, for everybody to read: without names of topics, brokers and services, and without what brokers say, which are the
 * business of those with a token. Empty when all is well.
 */
export function publicTroubles({
  state,
  troubles,
  missingTopics,
  partitions,
}: IntakeStanding): readonly string[] {
  const stopped = partitions.filter(({ trouble }) => trouble !== null).length
  const found = [
    ...(missingTopics.length > 0
      ? [counted(missingTopics.length, 'topic', 'does not exist', 'do not exist')]
      : []),
    ...(stopped > 0 ? [counted(stopped, 'partition', 'has trouble', 'have trouble')] : []),
  ]
  if (found.length > 0) return found
  return state === 'degraded' || troubles.length > 0 ? ['dead events are not taken in as they should'] : []
}

const counted = (count: number, what: string, one: string, many: string): string =>
  count === 1 ? `1 ${what} ${one}` : `${count} ${what}s ${many}`

/** A partition that this member reads. */
export interface PartitionReader {
  readonly topic: string
  readonly partition: number
  readonly topicId: string
  leader: number
  /** The next offset to ask for. */
  fetchAt: bigint
  /** The next offset that is not durable. */
  doneAt: bigint
  /** The offset behind the last one that was committed; null when none is known. */
  committed: bigint | null
  /** The offset behind the last record there is; null when it is not known. */
  end: bigint | null
  trouble: string | null
  /** It is left alone until brokers are asked again where topics are. */
  isResting: boolean
}

/** Troubles are written here when they come and go, and logged once. */
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
      partitions: [...this.#readers.values()].map(({ topic, partition, committed, end, trouble }) => ({
        ...{ topic, partition, committed, end, trouble },
      })),
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
  topics({ missing, forbidden }: Record<'missing' | 'forbidden', readonly string[]>): void {
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
    this.#logChange(before, sentence)
  }

  /** Something is wrong with one partition, or no longer (null). */
  partitionTrouble(reader: PartitionReader, sentence: string | null): void {
    const before = reader.trouble
    if (before === sentence) return
    reader.trouble = sentence
    this.#logChange(before, sentence)
  }

  #logChange(before: string | null, sentence: string | null): void {
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
