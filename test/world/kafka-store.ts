/** A store with dead events in it, without a broker and an office around: for tests of single acts. Time stands still. */
import { randomUUID } from 'node:crypto'
import { expect } from 'vitest'
import { instant } from '../../src/core/clock.ts'
import { silentLog } from '../../src/core/log.ts'
import { TestClock } from '../../src/core/test-clock.ts'
import { change } from '../../src/letters/change.ts'
import type { SourceName } from '../../src/letters/kinds.ts'
import type { Letter, LetterStatus } from '../../src/letters/letter.ts'
import { Letters } from '../../src/letters/letters.ts'
import { readLetterById } from '../../src/letters/lists/detail.ts'
import { newRegisters, type Registers } from '../../src/letters/registers.ts'
import type { LetterSource } from '../../src/letters/source.ts'
import { inOffice, type OfficeRuns, officeRuns } from '../../src/letters/work.ts'
import { MIGRATIONS } from '../../src/migrations.ts'
import { EngineDirectory } from '../../src/queues/engines/engine-directory.ts'
import { readRedriveRef } from '../../src/redrive/rows/rows.ts'
import {
  type DlqId,
  type EventId,
  eventId,
  KAFKA,
  type RawRecord,
  STATE,
} from '../../src/sources/kafka/event.ts'
import type { Stored } from '../../src/sources/kafka/intake/partition-counts.ts'
import { createRecordStore, type RecordStore } from '../../src/sources/kafka/intake/store.ts'
import type { KafkaListener } from '../../src/sources/kafka/metrics.ts'
import type { KafkaSettings } from '../../src/sources/kafka/settings/settings.ts'
import { kafkaLetterSource, type LetterReturn } from '../../src/sources/kafka/source.ts'
import {
  EVENT_COLUMNS,
  QUEUE_ORDER,
  type StoredEvent,
  toEvent,
} from '../../src/sources/kafka/stored-event.ts'
import { encodeHeaders } from '../../src/sources/kafka/wire/bytes.ts'
import { type Database, type Integer, sql } from '../../src/store/database.ts'
import { migrate } from '../../src/store/migrations.ts'
import { openDatabase } from '../../src/store/open.ts'
import { DLQ_TOPIC, RECORD_TIME_MS, type RecordDraft, record } from './kafka-records.ts'
import { kafkaSettingsFor, type SettingsDraft } from './kafka-settings.ts'
import { retain } from './retain.ts'
import type { FreshStore, StoreKind } from './stores.ts'
import { violationsIn } from './verified.ts'

export { DLQ_TOPIC, header, oldRecord, RECORD_TIME_MS, type RecordDraft, record } from './kafka-records.ts'
export { kafkaSettingsFor, SERVICES, type SettingsDraft } from './kafka-settings.ts'

/** Every event with its letter, in the order of queues. */
const EVENTS = sql(
  'test.kafka.events',
  `SELECT ${EVENT_COLUMNS} FROM bartleby.kafka_events AS event JOIN bartleby.letters AS letter ON letter.id = event.letter_id
   ORDER BY ${QUEUE_ORDER}`,
  { bigints: true },
)
const HISTORY = sql(
  'test.kafka.history',
  `SELECT operation, history_series.status, letter_id, letter_version, actor, output, notes FROM bartleby.history
   JOIN bartleby.history_series ON history_series.id = history.series WHERE engine = '${KAFKA}' ORDER BY history.id`,
  { bigints: true },
)
const PARTITIONS = sql(
  'test.kafka.partitions',
  'SELECT * FROM bartleby.kafka_partitions ORDER BY topic, partition',
  { bigints: true },
)
const CLAIM = sql(
  'test.kafka.hold',
  `UPDATE bartleby.kafka_events SET state = $2, event_id = $3, claim = $4, claimed_by = $5, lease_until = $6 WHERE letter_id = $1`,
)
const LEASE = sql('test.kafka.lease', 'UPDATE bartleby.letters SET leased = $2 WHERE id = $1')
const MINT = sql(
  'test.kafka.mint',
  `INSERT INTO bartleby.kafka_sends (event_id, letter_id, made_at, settled_at, published_offset, published_partition, resends,
     outcome, reopened, value_kept, target, digest, actor, request_id, record_key, value, headers)
   VALUES ($1, $2, $3, $4, $5, $6, 0, $7, 0, 1, $8, '', 'tester', NULL, $9, NULL, $10)`,
)
const SETTLE = sql(
  'test.kafka.settle',
  `UPDATE bartleby.kafka_sends SET outcome = $2, settled_at = $3, published_partition = $4, published_offset = $5
   WHERE event_id = $1`,
)

const EDIT = sql(
  'test.kafka.edit',
  'UPDATE bartleby.letters SET edited = 1, edited_payload = $2 WHERE id = $1',
)
const HELD = sql(
  'test.kafka.held',
  `SELECT claim, claimed_by, leased FROM bartleby.kafka_events JOIN bartleby.letters ON letters.id = letter_id
   WHERE letter_id = $1`,
)
const CHAIN_VALUES = sql(
  'test.kafka.chainValues',
  'SELECT value, value_null FROM bartleby.kafka_chain ORDER BY letter_id, number',
)

const count = (table: string) =>
  sql(`test.kafka.count.${table}`, `SELECT count(*) AS found FROM bartleby.${table}`)
const COUNTS = {
  kafka_chain: count('kafka_chain'),
  kafka_records: count('kafka_records'),
  kafka_sends: count('kafka_sends'),
}

/** A row of the history of Kafka's letters. */
export interface KafkaHistoryRow {
  readonly operation: string
  readonly failed: boolean
  readonly letterId: bigint | null
  readonly version: number | null
  readonly actor: string | null
  readonly notes: string | null
  /** What its output says, when it is JSON. */
  readonly output: unknown
}

/** How far a partition was read, and what came of it. */
export interface PartitionRow {
  readonly topic: string
  readonly partition: number
  readonly orderTs: bigint
  readonly nextOffset: bigint
  readonly received: number
  readonly duplicates: number
  readonly created: number
  readonly reopened: number
  readonly gaps: number
}

interface StoredPartition {
  readonly topic: string
  readonly partition: Integer
  readonly order_ts: Integer
  readonly next_offset: Integer
  readonly received: Integer
  readonly duplicates: Integer
  readonly created: Integer
  readonly reopened: Integer
  readonly gaps: Integer
}

export interface KafkaStoreOptions {
  readonly settings?: SettingsDraft
  readonly listener?: KafkaListener
  /** How letters go back; left out, they do not. */
  readonly returnWay?: () => LetterReturn | null
  readonly poolSize?: number
}

export class KafkaStore {
  readonly db: Database
  readonly clock = new TestClock()
  readonly registers: Registers = newRegisters()
  readonly settings: KafkaSettings
  readonly records: RecordStore
  readonly source: LetterSource
  /** The office's view of them. */
  readonly letters: Letters
  readonly #runs: OfficeRuns
  readonly #place: FreshStore
  readonly #databases: Database[]
  readonly #listener: KafkaListener | undefined
  readonly #offsets = new Map<string, bigint>()

  private constructor(place: FreshStore, { settings, listener, returnWay, poolSize = 8 }: KafkaStoreOptions) {
    this.#place = place
    this.db = openDatabase(place.url, { poolSize })
    this.#databases = [this.db]
    this.clock.freeze(instant(RECORD_TIME_MS * 1000n))
    this.settings = kafkaSettingsFor(settings)
    this.#listener = listener
    this.records = this.#recordStore(this.db, this.registers)
    this.source = kafkaLetterSource({ returnWay: returnWay ?? (() => null) })
    this.#runs = officeRuns(this.db, this.clock, silentLog)
    this.letters = new Letters(this.db, this.clock, {
      registers: this.registers,
      runs: this.#runs,
      sources: new Map<SourceName, LetterSource>([[KAFKA, this.source]]),
      engines: new EngineDirectory({ context: 'publisher' }),
    })
  }

  static async open(kind: StoreKind, options: KafkaStoreOptions = {}): Promise<KafkaStore> {
    const store = new KafkaStore(await kind.fresh(), options)
    await migrate(store.db, MIGRATIONS)
    return store
  }

  async close(): Promise<void> {
    await this.#runs.stop()
    for (const db of this.#databases) await db.close()
    await this.#place.dispose()
  }

  refuseWrites(): Promise<void> {
    return this.#place.refuseWrites()
  }

  acceptWrites(): Promise<void> {
    return this.#place.acceptWrites()
  }

  /** The same store as another server opens it. */
  another(): { readonly db: Database; readonly records: RecordStore } {
    const db = openDatabase(this.#place.url, { poolSize: 8 })
    this.#databases.push(db)
    return {
      db,
      records: this.#recordStore(db, newRegisters()),
    }
  }

  #recordStore(db: Database, registers: Registers): RecordStore {
    const { clock, settings } = this
    return createRecordStore({
      db,
      clock,
      registers,
      settings,
      redriveOf: readRedriveRef,
      ...(this.#listener === undefined ? {} : { listener: this.#listener }),
    })
  }

  /** A record at the next offset of its partition, at the present, unless the draft says something else. */
  record(draft: RecordDraft = {}): RawRecord {
    const place = `${draft.topic ?? DLQ_TOPIC} ${draft.partition ?? 0}`
    const offset = BigInt(draft.offset ?? this.#offsets.get(place) ?? 0n)
    this.#offsets.set(place, offset + 1n)
    return record({ timestampMs: this.clock.now() / 1000n, ...draft, offset })
  }

  /** Stores records, in one transaction. */
  take(...records: readonly RawRecord[]): Promise<Stored> {
    return this.records.prepare(records)()
  }

  /** Stores one record and gives its event. */
  async dead(draft: RecordDraft = {}): Promise<StoredEvent> {
    const made = this.record(draft)
    await this.take(made)
    return this.eventAt(made)
  }

  /** Every event, whatever its state, in the order of queues. */
  async events(): Promise<StoredEvent[]> {
    const rows = await this.db.session('test', (session) => session.rows<object>(EVENTS))
    return rows.map(toEvent)
  }

  /** The event that stands for a record now. */
  async eventAt({
    topic,
    partition,
    offset,
  }: Pick<RawRecord, 'topic' | 'partition' | 'offset'>): Promise<StoredEvent> {
    const found = (await this.events()).findLast(
      ({ order }) => order.topic === topic && order.partition === partition && order.offset === offset,
    )
    if (found === undefined) throw new Error(`no event is from ${topic}, ${partition}, ${offset}`)
    return found
  }

  /** The event as it is now. */
  async again({ letterId }: Pick<StoredEvent, 'letterId'>): Promise<StoredEvent> {
    const found = (await this.events()).find((event) => event.letterId === letterId)
    if (found === undefined) throw new Error(`letter ${letterId} has no event`)
    return found
  }

  /** The letter as the office has it. */
  async letter({ letterId }: Pick<StoredEvent, 'letterId'>): Promise<Letter> {
    const letter = await this.db.session('test', (session) => readLetterById(session, letterId))
    if (letter === null) throw new Error(`there is no letter ${letterId}`)
    return letter
  }

  /** The history of Kafka's letters, as it was written. */
  async history(): Promise<KafkaHistoryRow[]> {
    const rows = await this.db.session('test', (session) =>
      session.rows<{
        operation: string
        status: Integer
        letter_id: Integer | null
        letter_version: Integer | null
        actor: string | null
        notes: string | null
        output: Uint8Array | null
      }>(HISTORY),
    )
    return rows.map((row) => ({
      operation: row.operation,
      failed: Number(row.status) === 1,
      letterId: row.letter_id === null ? null : BigInt(row.letter_id),
      version: row.letter_version === null ? null : Number(row.letter_version),
      actor: row.actor,
      notes: row.notes,
      output: row.output === null ? null : JSON.parse(Buffer.from(row.output).toString()),
    }))
  }

  /** The operations of history, in the order in which they were written. */
  async operations(): Promise<string[]> {
    return (await this.history()).map(({ operation }) => operation)
  }

  async partitions(): Promise<PartitionRow[]> {
    const rows = await this.db.session('test', (session) => session.rows<StoredPartition>(PARTITIONS))
    return rows.map((row) => ({
      topic: row.topic,
      partition: Number(row.partition),
      orderTs: BigInt(row.order_ts),
      nextOffset: BigInt(row.next_offset),
      received: Number(row.received),
      duplicates: Number(row.duplicates),
      created: Number(row.created),
      reopened: Number(row.reopened),
      gaps: Number(row.gaps),
    }))
  }

  /** Brings an event into flight, as a publisher does before the first byte is sent; gives the id that was minted. */
  async publishing(event: StoredEvent, target = 'wps_retry'): Promise<EventId> {
    const minted = eventId(randomUUID())
    await this.db.transaction('test', async (tx) => {
      const { letterId, key, headers } = event
      const now = this.clock.now()
      await tx.run(MINT, minted, letterId, now, null, null, null, 0, target, key, encodeHeaders(headers))
      await tx.run(CLAIM, letterId, STATE.publishing, minted, randomUUID(), 'tester', now + 60_000_000n)
      await tx.run(LEASE, letterId, 1)
    })
    return minted
  }

  /** Nobody knows what became of an event in flight. */
  async uncertain(event: StoredEvent, minted: EventId): Promise<void> {
    await this.db.transaction('test', async (tx) => {
      await tx.run(SETTLE, minted, 1, null, null, null)
      await tx.run(CLAIM, event.letterId, STATE.uncertain, minted, null, null, null)
      await tx.run(LEASE, event.letterId, 0)
    })
  }

  /** The broker took an event in flight. */
  async published(
    event: StoredEvent,
    minted: EventId,
    at: { readonly partition: number; readonly offset: bigint } = { partition: 0, offset: 0n },
    target = 'wps_retry',
  ): Promise<void> {
    const letter = await this.letter(event)
    await inOffice(this.db, this.clock, 'test', async (work) => {
      const { tx, now } = work
      await tx.run(SETTLE, minted, 2, now, at.partition, at.offset)
      await tx.run(CLAIM, event.letterId, STATE.published, minted, null, null, null)
      await tx.run(LEASE, event.letterId, 0)
      const sent = { id: letter.id, engine: letter.engine, sentAs: minted, sentTo: target }
      await change(work, 'retry', [sent], { actor: 'tester', notes: null })
    })
  }

  /** The whole of it: from pending to published. */
  async publish(
    event: StoredEvent,
    at: { readonly partition: number; readonly offset: bigint } = { partition: 0, offset: 0n },
  ): Promise<EventId> {
    const minted = await this.publishing(event)
    await this.published(event, minted, at)
    return minted
  }

  /** An operator changes the payload of a letter, and does not send it. */
  async edit({ letterId }: Pick<StoredEvent, 'letterId'>, payload: string): Promise<void> {
    await this.db.transaction('test', (tx) => tx.run(EDIT, letterId, Buffer.from(payload)))
  }

  /** The office discards a letter. */
  async discard(event: Pick<StoredEvent, 'letterId'>): Promise<void> {
    await this.#change(event, 'Resolved')
  }

  /** The office makes a letter pending again. */
  async restore(event: Pick<StoredEvent, 'letterId'>): Promise<void> {
    await this.#change(event, 'Pending')
  }

  /** The office lets a letter expire. */
  async expire(event: Pick<StoredEvent, 'letterId'>): Promise<void> {
    await this.#change(event, 'Expired')
  }

  async #change(event: Pick<StoredEvent, 'letterId'>, status: LetterStatus): Promise<void> {
    const { rowKey } = await this.letter(event)
    await this.letters.change({ engine: KAFKA, rowKey }, { status, notes: 'for a test', actor: 'tester' })
  }

  /** Who holds an event. */
  async hold({ letterId }: Pick<StoredEvent, 'letterId'>) {
    const [row] = await this.db.session('test', (session) =>
      session.rows<{ claim: string | null; claimed_by: string | null; leased: Integer }>(HELD, letterId),
    )
    return { claim: row?.claim, claimedBy: row?.claimed_by, leased: Number(row?.leased) === 1 }
  }

  /** The values that chains keep, in the order of their letters. */
  async chainValues(): Promise<{ value: Uint8Array | null; isNull: boolean }[]> {
    const rows = await this.db.session('test', (session) =>
      session.rows<{ value: Uint8Array | null; value_null: Integer }>(CHAIN_VALUES),
    )
    return rows.map(({ value, value_null }) => ({ value, isNull: Number(value_null) === 1 }))
  }

  /** How many rows a table has. */
  async rowsOf(table: keyof typeof COUNTS): Promise<number> {
    const [row] = await this.db.session('test', (session) => session.rows<{ found: Integer }>(COUNTS[table]))
    return Number(row?.found)
  }

  /** Two days later, retention removes what is resolved. */
  async removeResolved(): Promise<void> {
    this.clock.advance(2n * 86_400_000_000n)
    await retain(this, { retentionDays: 1, sources: [this.source] })
  }

  /** Every promise of the store holds; call it when a test is done. */
  async check(): Promise<void> {
    expect(await violationsIn(this.db, { clock: this.clock })).toEqual([])
  }
}

/** The names of dead events, for short expectations. */
export const dlqIds = (events: readonly StoredEvent[]): DlqId[] => events.map(({ dlqId }) => dlqId)
