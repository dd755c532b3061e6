/** How intake stands: lag, trouble, and whether somebody should look. */
import type { Clock, Instant } from '../../../core/clock.ts'
import type { Log } from '../../../core/log.ts'

export type PartitionStatus = Readonly<
  Pick<PartitionReader, 'topic' | 'partition' | 'committed' | 'end' | 'trouble'>
>

export const INTAKE_STATES = ['starting', 'reading', 'degraded', 'stopped'] as const

export interface IntakeStatus {
  readonly state: (typeof INTAKE_STATES)[number]
  /** One sentence each. */
  readonly troubles: readonly string[]
  /** Configured topics that the brokers do not have. */
  readonly missingTopics: readonly string[]
  readonly partitions: readonly PartitionStatus[]
  readonly since: Instant
}

/** Offsets not taken in yet, transaction markers among them; null if unknown. */
export const lagOf = ({ committed, end }: Pick<PartitionStatus, 'committed' | 'end'>): bigint | null =>
  committed === null || end === null ? null : end > committed ? end - committed : 0n

/** Troubles for everybody: without names of topics, brokers and services, which need a token. */
export function publicTroubles({
  state,
  troubles,
  missingTopics,
  partitions,
}: IntakeStatus): readonly string[] {
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

export interface PartitionReader {
  readonly topic: string
  readonly partition: number
  readonly topicId: string
  leader: number
  /** The next offset to ask for. */
  fetchAt: bigint
  /** The next offset that is not durable. */
  doneAt: bigint
  /** Null if unknown. */
  committed: bigint | null
  /** The end of the log; null if unknown. */
  end: bigint | null
  trouble: string | null
  /** Left alone until topics are looked up again. */
  isResting: boolean
}

/** Troubles come and go here, each logged once. */
export class Board {
  readonly #clock: Clock
  readonly #log: Log
  /** Beyond single partitions, by subject. */
  readonly #troubles = new Map<string, string>()
  #readers: ReadonlyMap<string, PartitionReader> = new Map()
  #missing: readonly string[] = []
  #forbidden: readonly string[] = []
  #phase: 'stopped' | 'starting' | 'reading' = 'stopped'
  #state: IntakeStatus['state'] = 'stopped'
  #since: Instant

  constructor(clock: Clock, log: Log) {
    this.#clock = clock
    this.#log = log
    this.#since = clock.now()
  }

  status(): IntakeStatus {
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

  topics({ missing, forbidden }: Record<'missing' | 'forbidden', readonly string[]>): void {
    const known = [...this.#missing, ...this.#forbidden]
    const unread = [...missing, ...forbidden].filter((topic) => !known.includes(topic))
    if (unread.length > 0) this.#log.warn({ topics: unread }, 'Kafka shows no such topics; will look again')
    this.#missing = missing
    this.#forbidden = forbidden
    this.#update()
  }

  /** Null: no longer. */
  trouble(about: string, sentence: string | null): void {
    const before = this.#troubles.get(about) ?? null
    if (before === sentence) return
    if (sentence === null) this.#troubles.delete(about)
    else this.#troubles.set(about, sentence)
    this.#logChange(before, sentence)
  }

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
