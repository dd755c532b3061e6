/** The Kafka part of an office: puts intake, return path and reads together, starts and stops them. */
import { randomUUID } from 'node:crypto'
import type { Clock } from '../../core/clock.ts'
import type { Log } from '../../core/log.ts'
import type { Registers } from '../../letters/drawers.ts'
import type { Ledger } from '../../letters/ledger.ts'
import type { OfficeRuns } from '../../letters/work.ts'
import { requireKafkaLibrary } from '../../outgoing/kafka/library.ts'
import { type Publisher, TopicProducer } from '../../outgoing/kafka/producer.ts'
import type { Database } from '../../store/database.ts'
import type { Caller, StoredEvent } from './event.ts'
import { Reader } from './intake/reader.ts'
import type { IntakeStanding } from './intake/standing.ts'
import { createRecordStore } from './intake/store.ts'
import type { RedriveOf } from './intake/store-renew.ts'
import { KafkaCounters, KafkaMetrics } from './metrics.ts'
import { Processors } from './processors/processors.ts'
import { QueueReader } from './queue-reader.ts'
import { type Assignment, defineReassignment, reassign } from './reassign.ts'
import { ReturnPath } from './return/return-path.ts'
import type { KafkaCalls, ServedKafka } from './routes/call.ts'
import type { KafkaSettings } from './settings.ts'
import type { LetterReturn } from './source.ts'

export interface KafkaParts {
  readonly db: Database
  readonly clock: Clock
  readonly log: Log
  readonly registers: Registers
  readonly runs: OfficeRuns
  readonly ledger: Pick<Ledger, 'counts'>
  /** Redrives by their numbers. */
  readonly redriveOf: RedriveOf
  readonly settings: KafkaSettings
}

/** What is under way when the server stops has this long to end; after that it is for recovery. */
const STOP_MS = 5_000

export class Kafka implements ServedKafka {
  readonly calls: KafkaCalls
  readonly metrics: KafkaMetrics
  /** How letters go back, as the office asks for it. */
  readonly letterReturn: LetterReturn
  readonly #parts: KafkaParts
  readonly #counters: KafkaCounters
  readonly #processors: Processors
  readonly #publisher: Publisher
  readonly #reader: Reader
  readonly #path: ReturnPath

  private constructor(parts: KafkaParts, processors: Processors) {
    const { db, clock, log, registers, ledger, redriveOf, settings } = parts
    const counters = new KafkaCounters()
    this.#counters = counters
    this.#parts = parts
    this.#processors = processors
    this.#publisher = new TopicProducer(settings, log)
    this.#path = new ReturnPath({
      db,
      clock,
      log,
      settings,
      publisher: this.#publisher,
      processors,
      listener: counters,
      instance: randomUUID(),
    })
    const store = createRecordStore({ db, clock, registers, settings, redriveOf, listener: counters })
    this.#reader = new Reader({ settings, store, clock, log })
    this.calls = { settings, returnPath: this.#path, reader: new QueueReader(db, ledger) }
    this.metrics = new KafkaMetrics({ counters, standing: () => this.standing() })
    this.letterReturn = { db, path: this.#path }
    defineReassignment(parts.runs, parts)
  }

  /** Loads the processors; nothing is read yet. Throws where one cannot be loaded, or the client library is missing. */
  static async open(parts: KafkaParts): Promise<Kafka> {
    requireKafkaLibrary()
    return new Kafka(parts, await Processors.load(parts.settings, parts.log))
  }

  /** Lets go of what nobody holds any more, then begins to read. Brokers may be away: they are waited for. */
  async start(): Promise<void> {
    await this.#path.start()
    this.#reader.start()
  }

  /** Ends reading, and waits for publishes that are under way, for a while. */
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

  /** Counts an event that the office discarded or let expire. */
  countDiscarded(service: string, topic: string): void {
    this.#counters.resolved(service, topic, 'discarded_operator')
  }

  standing(): IntakeStanding {
    return this.#reader.standing()
  }

  reassign(dlqId: string, assignment: Assignment, caller: Caller): Promise<StoredEvent> {
    return reassign(this.#parts, dlqId, assignment, caller)
  }
}
