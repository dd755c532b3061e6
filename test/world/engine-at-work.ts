/** For tests of engines: a store with queues, a clock that stands still until it is moved, and readers of the outcome. */
import { vi } from 'vitest'
import type { Log } from '../../src/core/log.ts'
import { TestClock } from '../../src/core/test-clock.ts'
import type { HistoryDetail } from '../../src/history/entry.ts'
import type { Letter } from '../../src/letters/letter.ts'
import { Office } from '../../src/office.ts'
import type { EngineSettings } from '../../src/queues/engines/settings.ts'
import type { Engine } from '../../src/sources/engines/engine.ts'
import type { EngineMessage, EngineOptions } from '../../src/sources/engines/options.ts'
import { PATIENCE_MS } from './limits.ts'
import type { FreshStore, StoreKind } from './stores.ts'

export const SECOND = 1_000_000n
export const MINUTE = 60n * SECOND

type Line = { readonly level: string; readonly details: object; readonly message: string }

export class WorkBench {
  readonly store: FreshStore
  readonly clock: TestClock
  readonly office: Office
  readonly logged: readonly Line[]
  readonly #engines: Engine[] = []

  private constructor(store: FreshStore, clock: TestClock, office: Office, logged: readonly Line[]) {
    this.store = store
    this.clock = clock
    this.office = office
    this.logged = logged
  }

  static async open(kind: StoreKind, engines: EngineSettings = { context: 'publisher' }): Promise<WorkBench> {
    const store = await kind.fresh()
    const clock = new TestClock()
    clock.freeze(clock.now())
    const logged: Line[] = []
    const at = (level: string) => (details: object, message: string) =>
      void logged.push({ level, details, message })
    const log: Log = { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
    const office = await Office.open({ store: store.url, clock, engines, log, postgres: { poolSize: 4 } })
    return new WorkBench(store, clock, office, logged)
  }

  async close(): Promise<void> {
    await Promise.all(this.#engines.map((engine) => engine.stop({ timeoutMs: 0 })))
    await this.office.close()
    await this.store.dispose()
  }

  make(options: EngineOptions): Engine {
    const engine = this.office.engine(options)
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
    await this.office.queues.produce({
      queueName: this.queueOf(engine),
      items: messages.map((message) => ({
        payload: message instanceof Uint8Array ? message : JSON.stringify(message),
      })),
    })
  }

  queueOf(engine: string): string {
    const { queue } = this.office.engines.definitionOf(engine)
    if (queue === null) throw new Error(`engine ${engine} has no queue`)
    return queue
  }

  /** Moves the clock and runs what has come due in the queues. */
  async advance(us: bigint): Promise<void> {
    this.clock.advance(us)
    await this.office.queues.settle()
  }

  /** Every entry of an engine, the oldest first. */
  async entries(engine: string): Promise<HistoryDetail[]> {
    const { items } = await this.office.history.list({ engine }, { limit: 100 })
    const entries: HistoryDetail[] = []
    for (const { rowKey } of items) entries.unshift(await this.office.history.get(engine, rowKey))
    return entries
  }

  async letters(engine: string): Promise<Letter[]> {
    const { items } = await this.office.letters.list({ engine }, { limit: 100 })
    const letters: Letter[] = []
    for (const { rowKey } of items) letters.push((await this.office.letters.get({ engine, rowKey })).letter)
    return letters
  }

  /** How many messages lie on the engine's queue, in whatever state. */
  async left(engine: string): Promise<number> {
    const depths = await this.office.queues.depths()
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
