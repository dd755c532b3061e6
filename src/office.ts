/**
 * The composition root: opens the store, brings it up to date, wires the modules, starts and stops them.
 *
 *   open ──► drain (waiters answered, writes finished, new calls refused) ──► close
 */

import type { Clock, Instant } from './core/clock.ts'
import { parseGoDuration, usFromNs } from './core/duration.ts'
import { failure } from './core/errors.ts'
import { type Log, silentLog } from './core/log.ts'
import { SystemClock } from './core/system-clock.ts'
import { TestClock } from './core/test-clock.ts'
import { History } from './history/history.ts'
import { readCase } from './letters/confirm.ts'
import { letterCounter } from './letters/counts.ts'
import { newRegisters } from './letters/drawers.ts'
import { FilingClerk } from './letters/filing.ts'
import type { SourceName } from './letters/kinds.ts'
import { Letters } from './letters/letters.ts'
import { outcomeCounter } from './letters/outcomes.ts'
import { DEFAULT_RETENTION_DAYS, type Removed, Retention } from './letters/retention.ts'
import type { LetterSource } from './letters/source.ts'
import { type OfficeRuns, officeRuns } from './letters/work.ts'
import { MIGRATIONS } from './migrations.ts'
import { VerifyRun } from './observe/verify-run.ts'
import { recordEngineQueues } from './queues/engine-queues.ts'
import { tellOfOlderQueues } from './queues/older-queues.ts'
import type { Queues } from './queues/queue.ts'
import { StoreQueues } from './queues/queues.ts'
import { Redrives } from './redrive/redrives.ts'
import { readRedriveRef } from './redrive/rows.ts'
import { EngineDirectory, type EngineSettings } from './sources/engines/definitions.ts'
import { createEngine, type Engine } from './sources/engines/engine.ts'
import type { EngineMessage, EngineOptions } from './sources/engines/options.ts'
import { StoreSeenEngines } from './sources/engines/seen.ts'
import { EngineStatistics } from './sources/engines/statistics.ts'
import { type EngineTables, storeTables } from './sources/engines/tables.ts'
import { createEngineViews, type ViewNames } from './sources/engines/views.ts'
import type { Kafka, KafkaParts } from './sources/kafka/kafka.ts'
import { type KafkaOptions, kafkaConnection, kafkaSettings, kafkaWarnings } from './sources/kafka/options.ts'
import { kafkaLetterSource } from './sources/kafka/source.ts'
import { Outboxes, type OutboxSettings } from './sources/outbox/outboxes.ts'
import { checkOfficeOptions } from './sources/settings.ts'
import { type WebhookOptions, webhookSettings } from './sources/webhooks/settings.ts'
import { webhookCounter } from './sources/webhooks/tallies.ts'
import { Webhooks } from './sources/webhooks/webhooks.ts'
import { type Database, type StoreCall, sql } from './store/database.ts'
import { CountFolder } from './store/fold.ts'
import { type MigrationReport, migrate } from './store/migrations.ts'
import { openDatabase } from './store/open.ts'
import { outageLog, tellOfUpgrade } from './store/outage-log.ts'
import { requirePostgresItself } from './store/postgres-itself.ts'
import {
  missingParts,
  partName,
  type RepairReport,
  repairSchema,
  requireComplete,
  type SchemaPart,
  slowBecause,
} from './store/schema/parts.ts'
import { sharedSecret } from './store/secrets.ts'
import { StoreClock } from './store/store-clock.ts'
import { WriteProof } from './store/write-proof.ts'

export interface OfficeOptions {
  /** `sqlite:PATH`, `sqlite::memory:` or `postgres://…`. */
  readonly store: string
  readonly postgres?: {
    readonly poolSize: number
    /** PostgreSQL's own address, when the store is reached through a pooler: notifications are heard there. */
    readonly listenUrl?: string
  }
  /** True: a server that is like PostgreSQL but another product is taken. Default false. */
  readonly unsupportedStore?: boolean
  readonly queues?: {
    /** Requests of one queue that may wait to be picked up. Default 100. */
    readonly maxPendingRequests?: number
    /** How long a dedupe key is remembered, as a Go duration. Default 5m. */
    readonly dedupeWindow?: string
  }
  /** Which engines there are, and how long their letters and history are kept. Without a context every name may be one. */
  readonly engines?: EngineSettings & {
    readonly tables?: Partial<ViewNames> & { /** Default 90. */ readonly retentionDays?: number }
  }
  /** Outboxes whose messages this office delivers or watches over. */
  readonly outbox?: readonly OutboxSettings[]
  /** Given, this office delivers webhooks; `{}` does so with the defaults. Left out, others do. */
  readonly webhooks?: WebhookOptions
  /** With `enabled: true` this office takes dead events out of Kafka. Paths in it are relative to the working directory. */
  readonly kafka?: KafkaOptions
  /** False: redrives and other runs that are begun here are left to other offices on the store, and none is taken up. Default true. */
  readonly carriesOutRedrives?: boolean
  readonly clock?: Clock
  readonly log?: Log
}

const DEFAULT_POOL_SIZE = 8
const DEFAULT_MAX_PENDING = 100
const DEFAULT_DEDUPE_WINDOW = '5m'

const DEFAULT_VIEWS: ViewNames = { dlqTableName: 'engineDlq', historyTableName: 'engineHistory' }
/** Handlers get this long to finish; the whole of a stop has ten seconds. */
const ENGINE_STOP_MS = 5_000

const probe = sql('office.ping', 'SELECT count(*) AS found FROM bartleby.migrations')

/** The parts of an office, wired together. */
interface Parts {
  readonly db: Database
  readonly clock: Clock
  readonly log: Log
  readonly queues: StoreQueues
  readonly letters: Letters
  readonly runs: OfficeRuns
  readonly redrives: Redrives
  readonly history: History
  readonly directory: EngineDirectory
  readonly engineStatistics: EngineStatistics
  readonly verifyRun: VerifyRun
  readonly outboxes: Outboxes
  readonly webhooks: Webhooks
  /** null unless it is enabled. */
  readonly kafka: Kafka | null
  readonly retention: Retention
  readonly writes: WriteProof
  readonly clerks: readonly Clerk[]
}

/** Work that nobody waits for, as long as the office is open. */
interface Clerk {
  start(): void
  stop(): Promise<void>
}

export class Office {
  readonly queues: Queues
  readonly letters: Letters
  /** Work over many rows that any server goes on with. */
  readonly runs: OfficeRuns
  /** Acts on many letters, under control. */
  readonly redrives: Redrives
  readonly history: History
  /** Letters and history as the unified tables, wherever these are kept. */
  readonly tables: EngineTables
  /** The engines that there are. */
  readonly engines: EngineDirectory
  /** How they did lately. */
  readonly engineStatistics: EngineStatistics
  /** The check of the store's promises, on this server. */
  readonly verifyRun: VerifyRun
  /** The outboxes that were given. */
  readonly outboxes: Outboxes
  /** Channels, consumers, messages and their jobs. */
  readonly webhooks: Webhooks
  /** Dead events of Kafka; null unless that is enabled. */
  readonly kafka: Kafka | null
  readonly clock: Clock
  readonly #parts: Parts
  readonly #engines = new Set<Engine>()
  #missing: readonly SchemaPart[]
  #draining: Promise<void> | undefined

  private constructor(parts: Parts, missing: readonly SchemaPart[]) {
    this.#parts = parts
    this.#missing = missing
    this.queues = parts.queues
    this.letters = parts.letters
    this.runs = parts.runs
    this.redrives = parts.redrives
    this.history = parts.history
    this.tables = storeTables(parts.letters, parts.history)
    this.engines = parts.directory
    this.engineStatistics = parts.engineStatistics
    this.verifyRun = parts.verifyRun
    this.outboxes = parts.outboxes
    this.webhooks = parts.webhooks
    this.kafka = parts.kafka
    this.clock = parts.clock
  }

  /** Opens the office on a store, creating or upgrading its tables first. Close it when done. */
  static async open(options: OfficeOptions): Promise<Office> {
    checkOfficeOptions(options)
    const { store, postgres = { poolSize: DEFAULT_POOL_SIZE }, log: given } = options
    const db = openDatabase(store, given === undefined ? postgres : { ...postgres, log: given })
    let office: Office | undefined
    try {
      if (options.unsupportedStore !== true) await requirePostgresItself(db)
      await tellOfUpgrade(options.log ?? silentLog, migrate(db, MIGRATIONS))
      const missing = await db.session('schema.parts', missingParts)
      requireComplete(missing)
      if (missing.length > 0) (options.log ?? silentLog).warn({}, slowBecause(missing))
      await createEngineViews(db, { ...DEFAULT_VIEWS, ...options.engines?.tables })
      const log = outageLog(options.log ?? silentLog, db)
      const parts = await wire(db, options, log, await storeClockOf(db, options, log))
      office = new Office(parts, missing)
      await recordEngineQueues(db, parts.log, parts.directory.queues())
      // Only where somebody reads it: it is told once.
      if (options.log !== undefined) await tellOfOlderQueues(db, options.log)
      await parts.queues.start()
      for (const clerk of parts.clerks) clerk.start()
      parts.outboxes.start()
      if (options.webhooks !== undefined) await parts.webhooks.start()
      await parts.kafka?.start()
      parts.runs.start()
      return office
    } catch (error) {
      // With what has begun already: it would go on, on a store that is closed.
      await (office ?? db).close()
      throw error
    }
  }

  /**
   * A worker on the queue of an engine; start it to begin. The office stops it when it is drained, unless that
   * was done before.
   */
  engine<Message = EngineMessage>(options: EngineOptions<Message>): Engine {
    const { db, queues, clock, log, directory } = this.#parts
    const engine = createEngine(
      {
        queues,
        clock,
        log,
        directory,
        readCase: (id) => db.session('cases.read', (session) => readCase(session, id)),
        claimQueue: (engine, queue) => recordEngineQueues(db, log, [{ engine, queue }]),
      },
      options,
    )
    this.#engines.add(engine)
    return engine
  }

  /** Resolves when the store answers and takes writes; rejects when it does not. */
  async ping(): Promise<void> {
    await this.#parts.writes.require()
    await this.#parts.db.session('ping', (session) => session.rows(probe))
  }

  /** Indexes that the store lacks, as a restore may leave it: it works, and is slow. */
  async missingIndexes(): Promise<readonly string[]> {
    // Nobody drops them from a store that had all; only what was missing may have been made since.
    if (this.#missing.length > 0) this.#missing = await this.#parts.db.session('schema.parts', missingParts)
    return this.#missing.map(partName)
  }

  /** A random secret that all servers on the store share; made by the first that asks for one of this name. */
  secret(name: string): Promise<Uint8Array> {
    return sharedSecret(this.#parts.db, name)
  }

  /** Tells `listener` about every use of the store. */
  onStoreCall(listener: (call: StoreCall) => void): void {
    this.#parts.db.onCall(listener)
  }

  /** Tells `listener` after every step of retention on this server what it removed. */
  onRemoved(listener: (removed: Removed) => void): void {
    this.#parts.retention.onRemoved(listener)
  }

  /** Test control: stops the clock at an instant. The office must have been opened with a `TestClock`. */
  async freezeClock(at: Instant): Promise<void> {
    this.#testClock().freeze(at)
    await this.#settle()
  }

  /**
   * Test control: moves the stopped clock and runs everything that has come due. It stops at every moment at
   * which a waiting lease runs out of time, so that what came due before that still reaches it.
   */
  async advanceClock(us: bigint): Promise<void> {
    const clock = this.#testClock()
    const target = clock.now() + us
    const stops = this.queues
      .waitDeadlines()
      .filter((deadline) => deadline > clock.now() && deadline < target)
    for (const stop of [...new Set(stops)].sort((a, b) => (a < b ? -1 : 1))) {
      clock.advance(stop - clock.now())
      await this.#settle()
    }
    clock.advance(us < 0n ? us : target - clock.now())
    await this.#settle()
  }

  async #settle(): Promise<void> {
    await this.#parts.queues.settle()
    await this.#parts.redrives.settle()
  }

  /** Answers waiting leases and finishes accepted writes; calls made from now on are refused. */
  drain(): Promise<void> {
    this.#draining ??= this.#stopAll()
    return this.#draining
  }

  async #stopAll(): Promise<void> {
    const { runs, redrives, queues, outboxes, webhooks, kafka, clerks, verifyRun } = this.#parts
    // Engines first: they settle what they hold through the queues.
    await Promise.all([...this.#engines].map((engine) => engine.stop({ timeoutMs: ENGINE_STOP_MS })))
    // Runs send to all the others.
    await runs.stop()
    await redrives.stop()
    // Outboxes may deliver to queues.
    await Promise.all([outboxes.stop(), webhooks.stop(), kafka?.stop()])
    await Promise.all([queues.drain(), verifyRun.stop(), ...clerks.map((clerk) => clerk.stop())])
  }

  /** Drains and closes the store. */
  async close(): Promise<void> {
    await this.drain()
    await this.#parts.db.close()
  }

  #testClock(): TestClock {
    if (!(this.clock instanceof TestClock)) throw failure('clock_not_frozen')
    return this.clock
  }
}

/** A clock that all servers on the store agree on; null where there is one already, or nobody to agree with. */
async function storeClockOf(db: Database, options: OfficeOptions, log: Log): Promise<StoreClock | null> {
  if (options.clock !== undefined || db.dialect === 'sqlite') return null
  const storeClock = new StoreClock(db, log)
  await storeClock.follow()
  return storeClock
}

async function wire(
  db: Database,
  options: OfficeOptions,
  log: Log,
  storeClock: StoreClock | null,
): Promise<Parts> {
  const clock = options.clock ?? storeClock?.clock ?? new SystemClock()
  const registers = newRegisters()
  const directory = new EngineDirectory(options.engines, new StoreSeenEngines(db))
  const carriesOut = options.carriesOutRedrives ?? true
  const runs = officeRuns(db, clock, log, { carriesOut })
  const queues = new StoreQueues(db, clock, log, {
    registers,
    runs,
    maxPendingRequests: options.queues?.maxPendingRequests ?? DEFAULT_MAX_PENDING,
    dedupeWindowUs: windowUs(options.queues?.dedupeWindow ?? DEFAULT_DEDUPE_WINDOW),
  })
  const outboxes = new Outboxes(options.outbox ?? [], {
    store: { url: options.store, db },
    clock,
    // Their databases may be others, with outages of their own.
    log: options.log ?? silentLog,
    registers,
    queues,
    kafka: kafkaConnection(options.kafka ?? {}),
  })
  const webhooks = new Webhooks({
    db,
    clock,
    log,
    registers,
    runs,
    announcer: queues.announcer,
    settings: webhookSettings(options.webhooks ?? {}),
  })
  const sources = new Map<SourceName, LetterSource>([
    ...(['queues', 'engines', 'http'] as const).map((name) => [name, queues.letterSource(name)] as const),
    ['outbox', outboxes.source],
    ['webhooks', webhooks.source],
    // Also where Kafka is not enabled: its letters can be discarded everywhere.
    [
      'kafka',
      kafkaLetterSource({
        returnWay: () => kafka?.letterReturn ?? null,
        discarded: (service, topic) => kafka?.countDiscarded(service, topic),
      }),
    ],
  ])
  const retentionDays = options.engines?.tables?.retentionDays ?? DEFAULT_RETENTION_DAYS
  const foldMs = webhooks.settings.dlq.summaryIntervalSeconds * 1_000
  const letters = new Letters(db, clock, { registers, sources, engines: directory, runs, retentionDays })
  const kafka = await openKafka(options.kafka ?? {}, {
    db,
    clock,
    log,
    registers,
    runs,
    ledger: letters.ledger,
    redriveOf: readRedriveRef,
  })
  const retention = new Retention(runs, { retentionDays, sources: [...sources.values()], log })
  return {
    db,
    clock,
    log,
    queues,
    letters,
    runs,
    redrives: new Redrives({
      db,
      clock,
      log,
      runs,
      sources,
      engines: directory,
      retentionDays,
    }),
    history: new History(db, clock, directory),
    directory,
    engineStatistics: new EngineStatistics(db, clock),
    verifyRun: new VerifyRun({ lend: (work) => lendReader(db, options.store, work), clock, log }),
    outboxes,
    webhooks,
    kafka,
    retention,
    writes: new WriteProof(db),
    clerks: [
      ...[letterCounter, outcomeCounter, webhookCounter].map(
        (counter) => new CountFolder(counter, { db, clock, log, everyMs: foldMs }),
      ),
      new FilingClerk(db, log),
      ...(storeClock === null ? [] : [storeClock]),
    ],
  }
}

/** A long read takes none of the connections that calls wait for; SQLite opens one of its own for it. */
async function lendReader<T>(
  db: Database,
  store: string,
  work: (reader: Database) => Promise<T>,
): Promise<T> {
  if (db.dialect === 'sqlite') return work(db)
  const reader = openDatabase(store, { poolSize: 1 })
  try {
    return await work(reader)
  } finally {
    await reader.close()
  }
}

async function openKafka(options: KafkaOptions, parts: Omit<KafkaParts, 'settings'>): Promise<Kafka | null> {
  const settings = kafkaSettings(options)
  for (const warning of kafkaWarnings(options))
    parts.log.warn({ warning }, 'the configuration of kafka is worth a second look')
  if (settings === null) return null
  // Loaded when it is used: most offices have no Kafka, and it is a third of the program.
  const { Kafka } = await import('./sources/kafka/kafka.ts')
  return Kafka.open({ ...parts, settings })
}

type StoreOptions = Pick<OfficeOptions, 'unsupportedStore'>

/** Brings a store up to date without opening the office. */
export const migrateStore = (store: string, options: StoreOptions = {}): Promise<MigrationReport> =>
  onStore(store, options, (db) => migrate(db, MIGRATIONS))

/** Brings a store up to date, and makes anew what its schema lacks. */
export const repairStore = (
  store: string,
  options: StoreOptions = {},
): Promise<MigrationReport & RepairReport> =>
  onStore(store, options, async (db) => ({ ...(await migrate(db, MIGRATIONS)), ...(await repairSchema(db)) }))

async function onStore<T>(
  store: string,
  options: StoreOptions,
  work: (db: Database) => Promise<T>,
): Promise<T> {
  const db = openDatabase(store, { poolSize: 1 })
  try {
    if (options.unsupportedStore !== true) await requirePostgresItself(db)
    return await work(db)
  } finally {
    await db.close()
  }
}

function windowUs(text: string): bigint {
  const parsed = parseGoDuration(text)
  if (!parsed.ok || parsed.ns < 0n) {
    throw new TypeError(`queues.dedupeWindow: '${text}' is not a duration such as 5m or 1h`)
  }
  return usFromNs(parsed.ns)
}
