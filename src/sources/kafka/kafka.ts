/** The Kafka part of an office: intake, return path and reads, wired together. */
import { randomUUID } from 'node:crypto'
import type { Log } from '../../core/log.ts'
import type { Rounds, Service } from '../../core/rounds.ts'
import type { LetterNumbers } from '../../letters/numbers/letter-numbers.ts'
import type { OfficeRuns } from '../../letters/work.ts'
import { requireKafkaLibrary } from '../../outgoing/kafka/library.ts'
import { type Publisher, TopicProducer } from '../../outgoing/kafka/producer.ts'
import type { Caller } from './event.ts'
import type { IntakeStatus } from './intake/intake-status.ts'
import { Reader } from './intake/reader.ts'
import { createRecordStore, type RecordStoreOptions } from './intake/store.ts'
import { KafkaCounters, metricsText } from './metrics.ts'
import { Processors } from './processors/processors.ts'
import { QueueReader } from './queue-reader.ts'
import { type Assignment, defineReassignment, reassign } from './reassign.ts'
import { ReturnPath } from './return/return-path.ts'
import type { KafkaCalls } from './routes/call.ts'
import type { LetterReturn } from './source.ts'
import type { StoredEvent } from './stored-event.ts'

interface KafkaParts extends Omit<RecordStoreOptions, 'listener'> {
  readonly log: Log
  readonly runs: OfficeRuns
  readonly numbers: Pick<LetterNumbers, 'counts'>
}

/** Time to end what is under way; after that it is for recovery. */
const STOP_MS = 5_000

export class Kafka implements Service {
  readonly name = 'kafka'
  readonly calls: KafkaCalls
  readonly letterReturn: LetterReturn
  readonly #parts: KafkaParts
  readonly #counters: KafkaCounters
  readonly #processors: Processors
  readonly #publisher: Publisher
  readonly #reader: Reader
  readonly #path: ReturnPath

  private constructor(parts: KafkaParts, processors: Processors) {
    const { db, log, settings } = parts
    const listener = new KafkaCounters()
    this.#counters = listener
    this.#parts = parts
    this.#processors = processors
    this.#publisher = new TopicProducer(settings, log)
    const instance = randomUUID()
    this.#path = new ReturnPath({ ...parts, publisher: this.#publisher, processors, listener, instance })
    this.#reader = new Reader({ ...parts, store: createRecordStore({ ...parts, listener }) })
    this.calls = { settings, returnPath: this.#path, reader: new QueueReader(db, parts.numbers) }
    this.letterReturn = { db, path: this.#path }
    defineReassignment(parts.runs, parts)
  }

  /** Throws when a processor cannot be loaded, or the client library is missing. */
  static async open(parts: KafkaParts): Promise<Kafka> {
    requireKafkaLibrary()
    return new Kafka(parts, await Processors.load(parts.settings, parts.log))
  }

  /** Recovers first, then reads. Waits for brokers that are away. */
  async start(): Promise<void> {
    await this.#path.start()
    this.#reader.start()
  }

  async stop(): Promise<void> {
    const { promise: late, resolve } = Promise.withResolvers<void>()
    const timer = setTimeout(resolve, STOP_MS)
    try {
      await Promise.race([Promise.all([this.#reader.stop(), this.#path.stop()]), late])
      await Promise.race([Promise.all([this.#publisher.close(), this.#processors.close()]), late])
    } finally {
      clearTimeout(timer)
    }
  }

  countDiscarded(service: string, topic: string): void {
    this.#counters.resolved(service, topic, 'discarded_operator')
  }

  metrics(): string {
    return metricsText(this.#counters, this.status())
  }

  get rounds(): readonly Rounds[] {
    return this.#path.rounds
  }

  status(): IntakeStatus {
    return this.#reader.status()
  }

  /** Returns the event as it is then. */
  reassign(dlqId: string, assignment: Assignment, caller: Caller): Promise<StoredEvent> {
    return reassign(this.#parts, dlqId, assignment, caller)
  }
}
