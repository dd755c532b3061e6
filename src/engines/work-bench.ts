/** For tests of engines: a store with queues, a clock that stands still until it is moved, and readers of the outcome. */
import { vi } from 'vitest'
import { PATIENCE_MS } from '../../test/harness/limits.ts'
import type { FreshStore, StoreKind } from '../../test/harness/stores.ts'
import type { Log } from '../core/log.ts'
import { TestClock } from '../core/test-clock.ts'
import type { Database } from '../db/database.ts'
import { migrate } from '../db/migrations.ts'
import { openDatabase } from '../db/open.ts'
import type { HistoryDetail } from '../history/entry.ts'
import { History } from '../history/history.ts'
import { SeriesNumbers } from '../history/record.ts'
import { readCase } from '../letters/confirm.ts'
import { Drawers } from '../letters/drawers.ts'
import type { Letter } from '../letters/letter.ts'
import { Letters } from '../letters/letters.ts'
import { officeRuns } from '../letters/runs.ts'
import { MIGRATIONS } from '../migrations.ts'
import { recordEngineQueues } from '../queues/engine-queues.ts'
import { StoreQueues } from '../queues/queues.ts'
import { EngineDirectory, type EngineSettings } from './definitions.ts'
import { createEngine, type Engine } from './engine.ts'
import type { EngineMessage, EngineOptions } from './options.ts'
import { StoreSeenEngines } from './seen.ts'

export const SECOND = 1_000_000n
export const MINUTE = 60n * SECOND

export class WorkBench {
  readonly store: FreshStore
  readonly clock: TestClock
  readonly queues: StoreQueues
  readonly directory: EngineDirectory
  readonly history: History
  readonly office: Letters
  readonly logged: { readonly level: string; readonly details: object; readonly message: string }[] = []
  readonly #db: Database
  readonly #engines: Engine[] = []

  private constructor(store: FreshStore, db: Database, settings: EngineSettings) {
    this.store = store
    this.#db = db
    this.clock = new TestClock()
    this.clock.freeze(this.clock.now())
    this.directory = new EngineDirectory(settings, new StoreSeenEngines(db))
    const registers = { drawers: new Drawers(), series: new SeriesNumbers() }
    this.queues = new StoreQueues(db, this.clock, this.log, {
      maxPendingRequests: 100,
      dedupeWindowUs: MINUTE,
      registers,
    })
    this.history = new History(db, this.clock, this.directory)
    const names = ['engines', 'http'] as const
    this.office = new Letters(db, this.clock, {
      registers,
      runs: officeRuns(db, this.clock, this.log),
      engines: this.directory,
      sources: new Map(names.map((name) => [name, this.queues.letterSource(name)])),
    })
  }

  static async open(
    kind: StoreKind,
    settings: EngineSettings = { context: 'publisher' },
  ): Promise<WorkBench> {
    const store = await kind.fresh()
    const db = openDatabase(store.url, { poolSize: 4 })
    await migrate(db, MIGRATIONS)
    const bench = new WorkBench(store, db, settings)
    await bench.queues.start()
    return bench
  }

  get log(): Log {
    const at = (level: string) => (details: object, message: string) =>
      void this.logged.push({ level, details, message })
    return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
  }

  async close(): Promise<void> {
    await Promise.all(this.#engines.map((engine) => engine.stop({ timeoutMs: 0 })))
    await this.queues.drain()
    await this.#db.close()
    await this.store.dispose()
  }

  make(options: EngineOptions): Engine {
    const { queues, clock, directory, log } = this
    const engine = createEngine(
      {
        queues,
        clock,
        directory,
        log,
        readCase: (caseId) => this.#db.session('case', (session) => readCase(session, caseId)),
        claimQueue: (engine, queue) => recordEngineQueues(this.#db, log, [{ engine, queue }]),
      },
      options,
    )
    this.#engines.push(engine)
    return engine
  }

  async start(options: EngineOptions): Promise<Engine> {
    const engine = this.make(options)
    await engine.start()
    return engine
  }

  /** Puts messages on an engine's queue: JSON, or bytes as they are. */
  async send(engine: string, ...messages: readonly (EngineMessage | Uint8Array)[]): Promise<void> {
    await this.queues.produce({
      queueName: this.queueOf(engine),
      items: messages.map((message) => ({
        payload: message instanceof Uint8Array ? message : JSON.stringify(message),
      })),
    })
  }

  queueOf(engine: string): string {
    const { queue } = this.directory.definitionOf(engine)
    if (queue === null) throw new Error(`engine ${engine} has no queue`)
    return queue
  }

  /** Moves the clock and runs what has come due in the queues. */
  async advance(us: bigint): Promise<void> {
    this.clock.advance(us)
    await this.queues.settle()
  }

  /** Every entry of an engine, the oldest first. */
  async entries(engine: string): Promise<HistoryDetail[]> {
    const { items } = await this.history.list({ engine }, { limit: 100 })
    const entries: HistoryDetail[] = []
    for (const { rowKey } of items) entries.unshift(await this.history.get(engine, rowKey))
    return entries
  }

  async letters(engine: string): Promise<Letter[]> {
    const { items } = await this.office.list({ engine }, { limit: 100 })
    const letters: Letter[] = []
    for (const { rowKey } of items) letters.push((await this.office.get({ engine, rowKey })).letter)
    return letters
  }

  /** How many messages lie on the engine's queue, in whatever state. */
  async left(engine: string): Promise<number> {
    const depths = await this.queues.depths()
    const depth = depths.find(({ queueName }) => queueName === this.queueOf(engine))
    return depth === undefined ? 0 : depth.ready + depth.leased + depth.scheduled + depth.held
  }

  /** Waits until history has this many entries of an engine. */
  async recorded(engine: string, count: number): Promise<HistoryDetail[]> {
    return vi.waitFor(
      async () => {
        const entries = await this.entries(engine)
        if (entries.length < count) throw new Error(`${entries.length} of ${count} entries`)
        return entries
      },
      { timeout: PATIENCE_MS, interval: 10 },
    )
  }
}

/** Something that happens while a handler runs, and can be waited for. */
export const signalled = <T = void>() => Promise.withResolvers<T>()
