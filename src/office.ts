/**
 * The composition root: opens and upgrades the store, wires the modules, starts and stops them.
 *
 *   open ──► drain (waiters answered, writes finished, new calls refused) ──► close
 */
import type { Clock, Instant } from './core/clock.ts'
import { failure } from './core/errors.ts'
import { type Log, silentLog } from './core/log.ts'
import type { RoundState, Service } from './core/rounds.ts'
import { ConfigError } from './core/settings/config-error.ts'
import { SystemClock } from './core/system-clock.ts'
import { TestClock } from './core/test-clock.ts'
import { History } from './history/history.ts'
import { declareKind, type SourceName } from './letters/kinds.ts'
import { Letters } from './letters/letters.ts'
import { filing } from './letters/lists/texts.ts'
import { letterCounter, outcomeCounter } from './letters/numbers/counts.ts'
import { newRegisters } from './letters/registers.ts'
import { DEFAULT_RETENTION_DAYS, type Removed, Retention } from './letters/retention/retention.ts'
import type { LetterSource } from './letters/source.ts'
import { type OfficeRuns, officeRuns } from './letters/work.ts'
import { MIGRATIONS } from './migrations.ts'
import { EngineDirectory, SeenEngines } from './queues/engines/engine-directory.ts'
import { queueLimits } from './queues/limits.ts'
import type { Queues } from './queues/queues.ts'
import { StoreQueues } from './queues/queues.ts'
import { Redrives } from './redrive/redrives.ts'
import { readRedriveRef } from './redrive/rows/rows.ts'
import { SOURCES, type SourceFaces, type SourceOptions } from './sources/index.ts'
import { checkOfficeOptions } from './sources/settings.ts'
import type { NamedSource, OfficeParts, SourceModule } from './sources/source-module.ts'
import { type Database, type StoreCall, sql } from './store/database.ts'
import { CountFolder } from './store/fold.ts'
import { type MigrationReport, migrate } from './store/migrations.ts'
import { openDatabase, withDatabase } from './store/open.ts'
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
import { VerifyRun } from './verify/verify-run.ts'

/** Options of an office. Sections of sources have the keys of a configuration; Kafka's paths are relative to the working directory. */
export interface OfficeOptions extends SourceOptions {
  /** `sqlite:PATH`, `sqlite::memory:` or `postgres://…`. */
  readonly store: string
  readonly postgres?: {
    readonly poolSize: number
    /** PostgreSQL's own address behind a pooler, for notifications. */
    readonly listenUrl?: string
  }
  /** True: accepts products that are like PostgreSQL. Default false. */
  readonly unsupportedStore?: boolean
  /** Sources of your own, beside Bartleby's. */
  readonly sources?: readonly SourceModule[]
  /** False: this office carries out no runs; those begun here are left to others. Default true. */
  readonly carriesOutRedrives?: boolean
  readonly clock?: Clock
  readonly log?: Log
}

const DEFAULT_POOL_SIZE = 8

const probe = sql('office.ping', 'SELECT count(*) AS found FROM bartleby.migrations')

interface Parts extends OfficeParts {
  readonly redrives: Redrives
  readonly verifyRun: VerifyRun
  readonly sources: readonly NamedSource[]
  readonly retention: Retention
  readonly writes: WriteProof
  /** Forgets the kinds of sources that only this office has. */
  readonly forget: readonly (() => void)[]
  /** In starting order; rows stop in the opposite order, each at once. */
  readonly services: readonly (readonly Service[])[]
}

export type Office = OpenOffice & SourceFaces

class OpenOffice {
  readonly queues: Queues
  readonly letters: Letters
  /** Work over many rows that any server can take up. */
  readonly runs: OfficeRuns
  /** Acts on many letters, under control. */
  readonly redrives: Redrives
  readonly history: History
  readonly verifyRun: VerifyRun
  readonly sources: readonly NamedSource[]
  readonly clock: Clock
  readonly #parts: Parts
  #missing: readonly SchemaPart[]
  #draining: Promise<void> | undefined

  constructor(parts: Parts, missing: readonly SchemaPart[]) {
    this.#parts = parts
    this.#missing = missing
    this.queues = parts.queues
    this.letters = parts.letters
    this.runs = parts.runs
    this.redrives = parts.redrives
    this.history = parts.history
    this.verifyRun = parts.verifyRun
    this.sources = parts.sources
    this.clock = parts.clock
    Object.assign(this, ...parts.sources.map(({ face }) => face))
  }

  async start(): Promise<void> {
    for (const service of this.#parts.services.flat()) await service.start?.()
  }

  /** Everything done every so often: its last run and its last error. */
  rounds(): readonly RoundState[] {
    const rounds = this.#parts.services.flat().flatMap((service) => service.rounds ?? [])
    return rounds.map((each) => each.state())
  }

  /** Resolves when the store answers and takes writes. */
  async ping(): Promise<void> {
    await this.#parts.writes.require()
    await this.#parts.store.db.session('ping', (session) => session.rows(probe))
  }

  /** Indexes that the store lacks, as after a restore: it works, and is slow. */
  async missingIndexes(): Promise<readonly string[]> {
    // A complete store stays complete; missing ones may have been made since.
    if (this.#missing.length > 0)
      this.#missing = await this.#parts.store.db.session('schema.parts', missingParts)
    return this.#missing.map(partName)
  }

  /** A random secret shared by all servers on the store, made on first use. */
  secret(name: string): Promise<Uint8Array> {
    return sharedSecret(this.#parts.store.db, name)
  }

  /** Called for every use of the store. */
  onStoreCall(listener: (call: StoreCall) => void): void {
    this.#parts.store.db.onCall(listener)
  }

  /** Called after every step of retention on this server. */
  onRemoved(listener: (removed: Removed) => void): void {
    this.#parts.retention.onRemoved(listener)
  }

  /** Test control: stops the clock. Needs an office with a `TestClock`. */
  async freezeClock(at: Instant): Promise<void> {
    this.#testClock().freeze(at)
    await this.#settle()
  }

  /** Test control: moves the stopped clock and runs what has come due, stopping where a waiting lease times out. */
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

  /** Answers waiting leases and finishes accepted writes; later calls are refused. */
  drain(): Promise<void> {
    this.#draining ??= stopAll(this.#parts.services)
    return this.#draining
  }

  async close(): Promise<void> {
    try {
      await this.drain()
    } finally {
      await this.#parts.store.db.close()
      for (const each of this.#parts.forget) each()
    }
  }

  #testClock(): TestClock {
    if (!(this.clock instanceof TestClock)) throw failure('clock_not_frozen')
    return this.clock
  }
}

/** Stops all, even if some fail; the first failure is thrown in the end. */
async function stopAll(services: Parts['services']): Promise<void> {
  const failed: PromiseRejectedResult[] = []
  for (const row of services.toReversed()) {
    const stopped = await Promise.allSettled(row.map(async (service) => service.stop()))
    failed.push(...stopped.filter((each) => each.status === 'rejected'))
  }
  for (const { reason } of failed) throw reason
}

export const Office = {
  /** Opens the office on a store, creating or upgrading its tables first. Close it when done. */
  async open(options: OfficeOptions): Promise<Office> {
    checkOfficeOptions(options)
    const { store, postgres = { poolSize: DEFAULT_POOL_SIZE }, log: given, log = silentLog } = options
    const { sources: own = [] } = options
    const modules = [...SOURCES, ...own]
    requireOwnNames(modules)
    const db = openDatabase(store, given === undefined ? postgres : { ...postgres, log: given })
    const forget = own.map(({ name, kind }) => declareKind({ ...kind, name }))
    let office: OpenOffice | undefined
    try {
      if (options.unsupportedStore !== true) await requirePostgresItself(db)
      await tellOfUpgrade(log, migrate(db, migrationsOf(modules)))
      const missing = await db.session('schema.parts', missingParts)
      requireComplete(missing)
      if (missing.length > 0) log.warn({}, slowBecause(missing))
      office = new OpenOffice({ ...(await wire(db, options, modules)), forget }, missing)
      await office.start()
      // The cast holds: the constructor has added the faces of its sources.
      return office as Office
    } catch (error) {
      // With what has begun already, which would go on with a closed store. The first error is the reason.
      await (office ?? db)
        .close()
        .catch((err: unknown) =>
          log.error({ err }, 'an office that could not be opened was not closed either'),
        )
      for (const each of forget) each()
      throw error
    }
  },
}

/** Letters are known by the name of their source. */
function requireOwnNames(modules: readonly SourceModule[]): void {
  const names = modules.map(({ name }) => name)
  const twice = names.find((name, place) => names.indexOf(name) < place)
  if (twice !== undefined)
    throw new ConfigError([`sources: '${twice}' is the name of another source; give yours a name of its own`])
}

/** Of the office, and of sources beyond the list. */
const migrationsOf = (modules: readonly SourceModule[]) => [
  ...MIGRATIONS,
  ...modules.slice(SOURCES.length).flatMap(({ migrations = [] }) => migrations),
]

/** A clock that all servers on the store agree on; null where one is given, or there are no other servers. */
async function storeClockOf(db: Database, options: OfficeOptions, log: Log): Promise<StoreClock | null> {
  if (options.clock !== undefined || db.dialect === 'sqlite') return null
  const storeClock = new StoreClock(db, log)
  await storeClock.follow()
  return storeClock
}

async function wire(
  db: Database,
  options: OfficeOptions,
  modules: readonly SourceModule[],
): Promise<Omit<Parts, 'forget'>> {
  const plainLog = options.log ?? silentLog
  const log = outageLog(plainLog, db)
  const storeClock = await storeClockOf(db, options, log)
  const clock = options.clock ?? storeClock?.clock ?? new SystemClock()
  const registers = newRegisters()
  const engines = new EngineDirectory(options.engines, new SeenEngines(db))
  const retentionDays = options.engines?.tables?.retentionDays ?? DEFAULT_RETENTION_DAYS
  const runs = officeRuns(db, clock, log, { carriesOut: options.carriesOutRedrives ?? true })
  const queues = new StoreQueues(db, clock, log, { registers, runs, ...queueLimits(options.queues) })
  // Filled below: sources are opened with the letters.
  const ways = new Map<SourceName, LetterSource>()
  const letters = new Letters(db, clock, { registers, sources: ways, engines, runs, retentionDays })
  const history = new History(db, clock, engines)
  // Each source reads its own section.
  const given: Readonly<Record<string, unknown>> = { ...options }
  const offers = Object.assign({}, ...modules.map((module) => module.offers?.(given[module.name])))
  const store = { url: options.store, db }
  const core = { store, clock, log, plainLog, registers, runs, queues, letters, history, engines }
  const parts: OfficeParts = { ...core, redriveOf: readRedriveRef, offers }
  const sources: NamedSource[] = []
  try {
    for (const module of modules) {
      const source = await module.open(parts, given[module.name])
      ways.set(module.name, source.letters)
      sources.push(Object.assign(source, { name: module.name, title: module.title }))
    }
  } catch (error) {
    // They may hold connections of their own.
    await Promise.allSettled(sources.flatMap(({ services }) => services.map(async (each) => each.stop())))
    throw error
  }
  const redrives = new Redrives({ db, clock, log, runs, sources: ways, engines, retentionDays })
  const verifyRun = new VerifyRun({ lend: (work) => lendReader(db, options.store, work), clock, log })
  const folders = [letterCounter, outcomeCounter].map(
    (counter) => new CountFolder(counter, { db, clock, log }),
  )
  const clerks = [...folders, filing(db, clock, log), ...(storeClock === null ? [] : [storeClock])]
  return {
    ...parts,
    ...{ redrives, verifyRun, sources },
    retention: new Retention(runs, { retentionDays, sources: [...ways.values()], log }),
    writes: new WriteProof(db),
    services: [
      [queues, verifyRun, ...clerks],
      // They settle through the queues, or deliver to them.
      sources.flatMap(({ services }) => services),
      [{ name: 'redrives', stop: () => redrives.stop() }],
      // They send to all the others.
      [runs],
    ],
  }
}

/** A long read must not take connections that calls wait for; SQLite opens one of its own. */
const lendReader = <T>(db: Database, store: string, work: (reader: Database) => Promise<T>): Promise<T> =>
  db.dialect === 'sqlite' ? work(db) : withDatabase(store, work)

type StoreOptions = Pick<OfficeOptions, 'unsupportedStore'>

/** Upgrades a store without opening the office. */
export const migrateStore = (store: string, options: StoreOptions = {}): Promise<MigrationReport> =>
  onStore(store, options, (db) => migrate(db, MIGRATIONS))

/** Upgrades a store and recreates what its schema lacks. */
export const repairStore = (
  store: string,
  options: StoreOptions = {},
): Promise<MigrationReport & RepairReport> =>
  onStore(store, options, async (db) => ({ ...(await migrate(db, MIGRATIONS)), ...(await repairSchema(db)) }))

const onStore = <T>(store: string, options: StoreOptions, work: (db: Database) => Promise<T>): Promise<T> =>
  withDatabase(store, async (db) => {
    if (options.unsupportedStore !== true) await requirePostgresItself(db)
    return work(db)
  })
