/**
 * One outbox of an office: its table is looked at, made when it is missing, and served from the moment it can be. A
 * database that is away, or a table that is no outbox yet, is looked at again and again; meanwhile health says why.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { parseStoreUrl } from '../config/store-url.ts'
import { backoffDelayMs } from '../core/backoff.ts'
import type { Clock } from '../core/clock.ts'
import { BartlebyError } from '../core/errors.ts'
import type { Log } from '../core/log.ts'
import type { Database } from '../db/database.ts'
import type { CommitWatch } from './commit-watch.ts'
import { announceCommits, isWhole, once, readTable } from './create-dispatcher.ts'
import { Dispatcher } from './dispatcher.ts'
import { DEFAULT_THRESHOLDS, type HealthThresholds } from './health.ts'
import { openLate } from './late-database.ts'
import type { Layout } from './layout.ts'
import { OutboxMeter } from './meter.ts'
import { type DispatcherSettings, readSettings } from './options.ts'
import type { OutboxPost } from './post.ts'
import { outboxSchema } from './schema.ts'
import type { MessageTable } from './sql/table.ts'
import { nameTable, type TableOptions, tableOptionsOf } from './table-names.ts'
import type { LocalTransport, Transport } from './transport.ts'
import { Upkeep } from './upkeep.ts'

/** An outbox as an office is told of it. */
export interface StationSettings extends Partial<Omit<DispatcherSettings, 'retention'>>, TableOptions {
  readonly name: string
  /** Where its table lies; left out: in the office's own store. */
  readonly url?: string
  readonly retention?: Partial<DispatcherSettings['retention']>
  readonly health?: { readonly [Number in keyof HealthThresholds]?: Partial<HealthThresholds[Number]> }
}

/** What a station has from its office. */
export interface StationContext {
  readonly store: { readonly url: string; readonly db: Database }
  readonly clock: Clock
  readonly log: Log
  /** Null: the messages are delivered by somebody else, and only watched over from here. */
  readonly transport: Transport | LocalTransport | null
  /** Told when the office has to know of rows that died, or arrived after they had. */
  readonly onLetterDue: () => void
}

const POOL_SIZE = 4
const AGAIN = { baseMs: 500, factor: 2, maxMs: 10_000, jitter: 0.5 }

export class OutboxStation implements OutboxPost {
  readonly name: string
  readonly db: Database
  readonly inStore: boolean
  readonly dispatches: boolean
  readonly meter: OutboxMeter
  readonly thresholds: HealthThresholds
  readonly onDead: 'hold' | 'skip'
  readonly #context: StationContext
  readonly #url: string
  readonly #table: TableOptions
  readonly #read: () => Promise<MessageTable>
  readonly #dispatcher: Dispatcher | null
  readonly #upkeep: Upkeep
  readonly #stopped = new AbortController()
  #serving: Promise<void> | undefined
  #watch: CommitWatch | undefined

  constructor(given: StationSettings, context: StationContext) {
    const { name, url, table, naming, columns, health, ...rest } = given
    const { clock, log, transport } = context
    const settings = readSettings(rest)
    this.name = name
    this.#context = context
    this.#url = url ?? context.store.url
    this.#table = tableOptionsOf({ table, naming, columns })
    nameTable(this.#table)
    this.inStore = url === undefined || url === context.store.url
    this.db = this.inStore ? context.store.db : openLate(this.#url, { poolSize: POOL_SIZE })
    this.dispatches = transport !== null
    this.meter = new OutboxMeter(clock)
    this.thresholds = thresholdsOf(health)
    this.onDead = settings.onDead
    this.#read = once(() => this.#readOrMake(), isWhole)
    const parts = { name, db: this.db, table: this.#read, settings, clock, log }
    const { onLetterDue } = context
    this.#dispatcher =
      transport === null ? null : new Dispatcher({ ...parts, transport, meter: this.meter, onLetterDue })
    this.#upkeep = new Upkeep({ ...parts, onReleased: () => this.wake() })
  }

  async layout(): Promise<Layout> {
    return (await this.#read()).layout
  }

  /** Something may be there to deliver. */
  wake(): void {
    this.#dispatcher?.wake()
  }

  /** Serves the outbox from the moment at which it can be served. */
  start(): void {
    this.#serving ??= this.#serve()
  }

  /** Ends deliveries; the table can still be read. */
  async stop(): Promise<void> {
    this.#stopped.abort()
    await this.#serving
    this.#watch?.stop()
    await Promise.all([this.#dispatcher?.stop(), this.#upkeep.stop()])
  }

  /** Closes its own connections, when it has some. */
  async close(): Promise<void> {
    if (!this.inStore) await this.db.close()
  }

  async #serve(): Promise<void> {
    const { log } = this.#context
    const { signal } = this.#stopped
    let told = ''
    for (let failures = 1; !signal.aborted; failures++) {
      try {
        await this.#begin()
        return
      } catch (error) {
        const reason = error instanceof Error ? error.message : String(error)
        if (reason !== told) log.error({ err: error, outbox: this.name }, 'the outbox cannot be served yet')
        told = reason
        await pause(backoffDelayMs(failures, AGAIN), undefined, { signal }).catch(() => {})
      }
    }
  }

  async #begin(): Promise<void> {
    await this.#read()
    await this.#dispatcher?.start()
    const wake = () => this.wake()
    const { channel } = nameTable(this.#table)
    if (this.#dispatcher !== null)
      this.#watch = await announceCommits(this.db, parseStoreUrl(this.#url), channel, wake)
    if (this.#dispatcher !== null) this.#upkeep.start()
    this.#context.onLetterDue()
  }

  /** An outbox that is configured and not there is made; one that others made is never changed. */
  async #readOrMake(): Promise<MessageTable> {
    try {
      return await readTable(this.db, this.#table)
    } catch (error) {
      if (!(error instanceof BartlebyError) || error.code !== 'outbox_table_missing') throw error
      await this.db.transaction('outbox.create', (tx) =>
        this.db.script(tx, outboxSchema(this.db.dialect, this.#table)),
      )
      this.#context.log.info({ outbox: this.name, table: error.details.table }, 'outbox table created')
      return readTable(this.db, this.#table)
    }
  }
}

function thresholdsOf(given: StationSettings['health'] = {}): HealthThresholds {
  return {
    backlog: { ...DEFAULT_THRESHOLDS.backlog, ...given.backlog },
    oldestAgeSeconds: { ...DEFAULT_THRESHOLDS.oldestAgeSeconds, ...given.oldestAgeSeconds },
    failureRatio: { ...DEFAULT_THRESHOLDS.failureRatio, ...given.failureRatio },
  }
}
