/**
 * One outbox of an office. A missing table is made; an unreachable database, or a table that is no outbox yet, is tried
 * again and again, and health says why.
 */
import { backoffDelayMs } from '../../../core/backoff.ts'
import { microseconds } from '../../../core/clock.ts'
import { BartlebyError } from '../../../core/errors.ts'
import { Rounds, type Service } from '../../../core/rounds.ts'
import type { Given } from '../../../core/settings/kinds.ts'
import { systemClock } from '../../../core/system-clock.ts'
import { type Database, type StoreCall, StoreUnavailable } from '../../../store/database.ts'
import { openDatabase } from '../../../store/open.ts'
import type { PostgresOptions } from '../../../store/postgres.ts'
import { parseStoreUrl } from '../../../store/store-url.ts'
import { Dispatcher } from '../dispatcher/dispatcher.ts'
import { dispatcherSettings, type GivenSettings } from '../dispatcher/options.ts'
import { readOptions } from '../refusal.ts'
import type { MessageTable } from '../sql/table.ts'
import { isWhole, once, readTable } from '../sql/table.ts'
import type { Layout } from '../table/layout.ts'
import { outboxSchema } from '../table/schema.ts'
import { nameTable, type TableOptions, tableOptionsOf } from '../table/table-names.ts'
import type { LocalTransport, Transport } from '../transports/transport.ts'
import { HealthSchema, type HealthThresholds } from './health.ts'
import { OutboxMeter } from './meter.ts'
import type { OutboxHandle } from './outbox-handle.ts'
import type { OutboxesContext } from './outboxes.ts'

export interface ServedSettings extends GivenSettings, TableOptions {
  readonly name: string
  /** Left out: the office's own store. */
  readonly url?: string
  readonly health?: Given<HealthThresholds>
}

export interface ServedContext extends Pick<OutboxesContext, 'store' | 'clock' | 'log'> {
  /** Null: somebody else delivers, and the outbox is only watched. */
  readonly transport: Transport | LocalTransport | null
  /** The clerk has something to compare. */
  readonly onLetterDue: () => void
}

const POOL_SIZE = 4
const AGAIN = { baseMs: 500, factor: 2, maxMs: 10_000, jitter: 0.5 }

export class ServedOutbox implements OutboxHandle, Service {
  readonly name: string
  readonly db: Database
  readonly inStore: boolean
  readonly meter: OutboxMeter
  readonly thresholds: HealthThresholds
  readonly onDead: 'hold' | 'skip'
  readonly #context: ServedContext
  readonly #table: TableOptions
  readonly #read: () => Promise<MessageTable>
  readonly #dispatcher: Dispatcher | null
  /** Until it can be served. By the system's clock: a database comes back whatever time tests make it. */
  readonly #opening: Rounds

  constructor(given: ServedSettings, context: ServedContext) {
    const { name, url = context.store.url, table, naming, columns, health, ...rest } = given
    const { clock, log, transport, onLetterDue } = context
    const settings = dispatcherSettings(rest)
    this.name = name
    this.#context = context
    this.#table = tableOptionsOf({ table, naming, columns })
    nameTable(this.#table)
    this.inStore = url === context.store.url
    this.db = this.inStore ? context.store.db : openLate(url, { poolSize: POOL_SIZE, log })
    this.meter = new OutboxMeter(clock)
    this.thresholds = readOptions(HealthSchema, health, 'health')
    this.onDead = settings.onDead
    this.#read = once(() => this.#readOrMake(), isWhole)
    const { db, meter } = this
    const parts = { name, db, store: parseStoreUrl(url), table: this.#read, settings, clock, log, meter }
    this.#dispatcher = transport === null ? null : new Dispatcher({ ...parts, transport, onLetterDue })
    this.#opening = new Rounds({
      ...{ name: `outbox.open:${name}`, clock: systemClock(), log, about: { outbox: name } },
      everyUs: (failures) => microseconds(backoffDelayMs(failures, AGAIN) / 1_000),
      act: () => this.#serve(),
      trouble: 'the outbox cannot be served yet',
      level: 'error',
      holdsProcess: true,
    })
  }

  get rounds(): readonly Rounds[] {
    return [this.#opening, ...(this.#dispatcher?.rounds ?? [])]
  }

  async layout(): Promise<Layout> {
    return (await this.#read()).layout
  }

  wake(): void {
    this.#dispatcher?.wake()
  }

  start(): void {
    this.#opening.start()
  }

  async stop(): Promise<void> {
    await this.#opening.stop()
    await this.#dispatcher?.stop()
  }

  async close(): Promise<void> {
    if (!this.inStore) await this.db.close()
  }

  async #serve(): Promise<void> {
    await this.#read()
    await this.#dispatcher?.start()
    this.#context.onLetterDue()
    // Opened: no further round.
    void this.#opening.stop()
  }

  /** A configured outbox that is missing is made; an existing one is never changed. */
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

/**
 * Opens a database on first use. PostgreSQL connects then anyway; a file of SQLite may be locked, not mounted yet or no
 * database: whoever uses it meets the outage until it can be opened.
 */
const openLate = (url: string, postgres: PostgresOptions): Database =>
  parseStoreUrl(url).kind === 'sqlite' ? lateFile(url, postgres) : openDatabase(url, postgres)

function lateFile(url: string, options: PostgresOptions): Database {
  const listeners: ((call: StoreCall) => void)[] = []
  let file: Database | undefined
  let isClosed = false
  const opened = (): Database => {
    if (file === undefined) {
      if (isClosed) throw new StoreUnavailable('the database was closed')
      file = openDatabase(url, options)
      for (const listener of listeners) file.onCall(listener)
    }
    return file
  }
  return {
    dialect: 'sqlite',
    transaction: async (verb, work) => opened().transaction(verb, work),
    statement: async (verb, work) => opened().statement(verb, work),
    session: async (verb, work) => opened().session(verb, work),
    snapshot: async (verb, work, terms) => opened().snapshot(verb, work, terms),
    script: async (tx, text) => opened().script(tx, text),
    async notify() {},
    async listen() {},
    onCall(listener) {
      listeners.push(listener)
      file?.onCall(listener)
    },
    async close() {
      isClosed = true
      await file?.close()
    },
  }
}
