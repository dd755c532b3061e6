/** A store with dead events in it, without a broker and an office around: for tests of single acts. Time stands still. */
import { randomUUID } from 'node:crypto'
import { change } from '../../../src/letters/change.ts'
import type { SourceName } from '../../../src/letters/kinds.ts'
import type { Letter, LetterStatus } from '../../../src/letters/letter.ts'
import { Letters } from '../../../src/letters/letters.ts'
import { readLetterById } from '../../../src/letters/lists/detail.ts'
import { newRegisters, type Registers } from '../../../src/letters/registers.ts'
import type { LetterSource } from '../../../src/letters/source.ts'
import { inOffice } from '../../../src/letters/work.ts'
import { EngineDirectory } from '../../../src/queues/engines/engine-directory.ts'
import { readRedriveRef } from '../../../src/redrive/rows/rows.ts'
import {
  type DlqId,
  type EventId,
  eventId,
  KAFKA,
  type RawRecord,
  STATE,
} from '../../../src/sources/kafka/event.ts'
import type { Stored } from '../../../src/sources/kafka/intake/partition-counts.ts'
import { createRecordStore, type RecordStore } from '../../../src/sources/kafka/intake/store.ts'
import type { KafkaListener } from '../../../src/sources/kafka/metrics.ts'
import type { KafkaSettings } from '../../../src/sources/kafka/settings/settings.ts'
import { kafkaLetterSource, type LetterReturn } from '../../../src/sources/kafka/source.ts'
import {
  EVENT_COLUMNS,
  QUEUE_ORDER,
  type StoredEvent,
  toEvent,
} from '../../../src/sources/kafka/stored-event.ts'
import { encodeHeaders } from '../../../src/sources/kafka/wire/bytes.ts'
import { type Database, type Integer, sql } from '../../../src/store/database.ts'
import { retain } from '../retain.ts'
import { migrated, StoreWorld } from '../store-world.ts'
import type { FreshStore, StoreKind } from '../stores.ts'
import { DLQ_TOPIC, type RecordDraft, record } from './records.ts'
import { kafkaSettingsFor, type SettingsDraft } from './settings.ts'

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

type Numbers = Readonly<
  Record<'partition' | 'received' | 'duplicates' | 'created' | 'reopened' | 'gaps', number>
>

/** How far a partition was read, and what came of it. */
export interface PartitionRow extends Numbers {
  readonly topic: string
  readonly orderTs: bigint
  readonly nextOffset: bigint
}

export interface KafkaWorldOptions {
  readonly settings?: SettingsDraft
  readonly listener?: KafkaListener
  /** How letters go back; left out, they do not. */
  readonly returnWay?: () => LetterReturn | null
}

export class KafkaWorld extends StoreWorld {
  readonly settings: KafkaSettings
  readonly records: RecordStore
  readonly source: LetterSource
  /** The office's view of them. */
  readonly letters: Letters
  readonly #listener: KafkaListener | undefined
  readonly #offsets = new Map<string, bigint>()

  constructor(place: FreshStore, { settings, listener, returnWay = () => null }: KafkaWorldOptions = {}) {
    super(place)
    const { db, clock, registers } = this
    this.settings = kafkaSettingsFor(settings)
    this.#listener = listener
    this.records = this.#recordStore(db, registers)
    this.source = kafkaLetterSource({ returnWay })
    this.letters = new Letters(db, clock, {
      registers,
      runs: this.runs(),
      sources: new Map<SourceName, LetterSource>([[KAFKA, this.source]]),
      engines: new EngineDirectory({ context: 'publisher' }),
    })
  }

  static async open(kind: StoreKind, options: KafkaWorldOptions = {}): Promise<KafkaWorld> {
    return migrated(new KafkaWorld(await kind.fresh(), options))
  }

  /** The intake of another server. */
  anotherIntake(): RecordStore {
    return this.#recordStore(this.another(), newRegisters())
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
    const rows = await this.read<object>(EVENTS)
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
    const rows = await this.read<{
      operation: string
      status: Integer
      letter_id: Integer | null
      letter_version: Integer | null
      actor: string | null
      notes: string | null
      output: Uint8Array | null
    }>(HISTORY)
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
    const rows = await this.read<Record<string, Integer> & { readonly topic: string }>(PARTITIONS)
    const numbers = ['partition', 'received', 'duplicates', 'created', 'reopened', 'gaps'] as const
    return rows.map(({ topic, order_ts = 0, next_offset = 0, ...row }) => ({
      topic,
      orderTs: BigInt(order_ts),
      nextOffset: BigInt(next_offset),
      // Every row has these columns.
      ...(Object.fromEntries(numbers.map((name) => [name, Number(row[name])])) as Numbers),
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

  /** The office discards a letter (`Resolved`), lets it expire, or makes it pending again. */
  async change(event: Pick<StoredEvent, 'letterId'>, status: LetterStatus): Promise<void> {
    const { rowKey } = await this.letter(event)
    await this.letters.change({ engine: KAFKA, rowKey }, { status, notes: 'for a test', actor: 'tester' })
  }

  /** Who holds an event. */
  async hold({ letterId }: Pick<StoredEvent, 'letterId'>) {
    const [row] = await this.read<{ claim: string | null; claimed_by: string | null; leased: Integer }>(
      HELD,
      letterId,
    )
    return { claim: row?.claim, claimedBy: row?.claimed_by, leased: Number(row?.leased) === 1 }
  }

  /** The values that chains keep, in the order of their letters. */
  async chainValues(): Promise<{ value: Uint8Array | null; isNull: boolean }[]> {
    const rows = await this.read<{ value: Uint8Array | null; value_null: Integer }>(CHAIN_VALUES)
    return rows.map(({ value, value_null }) => ({ value, isNull: Number(value_null) === 1 }))
  }

  /** How many rows a table has. */
  async rowsOf(table: 'kafka_chain' | 'kafka_records' | 'kafka_sends'): Promise<number> {
    const [row] = await this.read<{ found: Integer }>(count(table))
    return Number(row?.found)
  }

  /** Two days later, retention removes what is resolved. */
  async removeResolved(): Promise<void> {
    this.clock.advance(2n * 86_400_000_000n)
    await retain(this, { retentionDays: 1, sources: [this.source] })
  }
}

/** The names of dead events, for short expectations. */
export const dlqIds = (events: readonly StoredEvent[]): DlqId[] => events.map(({ dlqId }) => dlqId)
