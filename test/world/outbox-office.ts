/** An office with one outbox, in its own store or in another database, and a dispatcher that tests tell what to do. */
import { BartlebyError } from '../../src/core/errors.ts'
import { silentLog } from '../../src/core/log.ts'
import type { LetterStatus } from '../../src/letters/letter.ts'
import { type CaseFile, Letters } from '../../src/letters/letters.ts'
import { newRegisters } from '../../src/letters/registers.ts'
import { officeRuns } from '../../src/letters/work.ts'
import { EngineDirectory } from '../../src/queues/engines/engine-directory.ts'
import {
  createDispatcher,
  type RunningDispatcher,
} from '../../src/sources/outbox/dispatcher/create-dispatcher.ts'
import { reconcileOutbox } from '../../src/sources/outbox/letters/clerk.ts'
import { outboxLetterSource } from '../../src/sources/outbox/letters/source.ts'
import { DEFAULT_THRESHOLDS } from '../../src/sources/outbox/served/health.ts'
import { OutboxMeter } from '../../src/sources/outbox/served/meter.ts'
import type { OutboxHandle } from '../../src/sources/outbox/served/outbox-handle.ts'
import { onDatabase } from '../../src/sources/outbox/sql/table.ts'
import { readLayout } from '../../src/sources/outbox/table/layout.ts'
import type { OutboxMessage } from '../../src/sources/outbox/table/message.ts'
import type { TableOptions } from '../../src/sources/outbox/table/table-names.ts'
import { type Database, sql } from '../../src/store/database.ts'
import { openDatabase } from '../../src/store/open.ts'
import { LetterStore } from './letter-store.ts'
import { OutboxStore } from './outbox.ts'
import { type FreshStore, freshPostgres, freshSqlite, type StoreKind } from './stores.ts'

export interface OfficePlace {
  readonly name: string
  readonly office: StoreKind
  /** Where the outbox lies; null: in the office's own store. */
  readonly elsewhere: StoreKind | null
}

const sqlite: StoreKind = { name: 'sqlite', fresh: freshSqlite }
const postgres: StoreKind = { name: 'postgres', fresh: freshPostgres }

export const PLACES: readonly OfficePlace[] = [
  { name: 'in the store, SQLite', office: sqlite, elsewhere: null },
  { name: 'in the store, PostgreSQL', office: postgres, elsewhere: null },
  { name: 'in another PostgreSQL database', office: postgres, elsewhere: postgres },
  { name: 'in PostgreSQL while the store is SQLite', office: sqlite, elsewhere: postgres },
  { name: 'in an SQLite file while the store is PostgreSQL', office: postgres, elsewhere: sqlite },
]

/** What the table is called, and how often messages are tried again; not at all unless it is said. */
export interface OfficeOutboxOptions extends TableOptions {
  readonly maxRetries?: number
}

export const OUTBOX_NAME = 'orders'
const ACTOR = 'nell'
const DAY_US = 86_400_000_000n

const countLetters = sql(
  'test.countOutboxLetters',
  `SELECT count(*) AS found, coalesce(max(id), 0) AS last FROM bartleby.letters WHERE engine = 'outbox' AND id > $1`,
)

/** What an act is refused with. */
export const codeOf = (act: Promise<unknown>): Promise<string> =>
  act.then(
    () => 'done',
    (error: unknown) => (error instanceof BartlebyError ? error.code : String(error)),
  )

export class OutboxOffice {
  readonly store: LetterStore
  readonly table: OutboxStore
  readonly letters: Letters
  readonly post: OutboxHandle
  /** The outboxes that the office knows. */
  readonly posts: OutboxHandle[]
  /** What the dispatcher is told to do with messages. */
  deliver: (message: OutboxMessage) => Promise<void> = async () => {}
  /** Every message that was delivered, also in vain. */
  readonly sent: OutboxMessage[] = []
  /** How often a dispatcher was to be woken. */
  woken = 0
  /** Letters of earlier tests have numbers up to this. */
  #earlier = 0
  readonly #url: string
  /** Where the outbox lies. */
  readonly #place: FreshStore
  readonly #dispatcher: RunningDispatcher

  private constructor(
    store: LetterStore,
    url: string,
    table: OutboxStore,
    place: FreshStore,
    post: OutboxHandle,
    options: OfficeOutboxOptions,
  ) {
    this.store = store
    this.#url = url
    this.table = table
    this.#place = place
    this.post = post
    this.posts = [post]
    const handles = () => this.posts
    const dispatch = () => void this.woken++
    const source = outboxLetterSource(handles, { dispatch, reconcile: () => {} })
    this.letters = new Letters(store.db, store.clock, {
      registers: store.registers,
      runs: officeRuns(store.db, store.clock, silentLog),
      sources: new Map([['outbox', source]]),
      engines: new EngineDirectory({ context: 'publisher' }),
    })
    this.#dispatcher = createDispatcher({
      url: table.url,
      name: post.name,
      clock: store.clock,
      maxRetries: 0,
      ...options,
      transport: async (message) => {
        this.sent.push(message)
        await this.deliver(message)
      },
    })
  }

  /** `prepare` makes another table than the one that applications make by default, which `options` name. */
  static async open(
    { office, elsewhere }: OfficePlace,
    options: OfficeOutboxOptions = {},
    prepare: (table: OutboxStore) => Promise<void> = async () => {},
  ): Promise<OutboxOffice> {
    const made: FreshStore[] = []
    const remembered = (kind: StoreKind): StoreKind => ({
      name: kind.name,
      async fresh() {
        const place = await kind.fresh()
        made.push(place)
        return place
      },
    })
    const store = await LetterStore.open(remembered(office))
    const [own] = made
    if (own === undefined) throw new Error('no store was made')
    const shared: StoreKind = { name: office.name, fresh: async () => ({ ...own, dispose: async () => {} }) }
    const table = await OutboxStore.open(elsewhere === null ? shared : remembered(elsewhere))
    await prepare(table)
    const db = elsewhere === null ? store.db : openDatabase(table.url, { poolSize: 4 })
    return new OutboxOffice(
      store,
      own.url,
      table,
      made.at(-1) ?? own,
      postOf(store, db, elsewhere === null, options),
      options,
    )
  }

  async close(): Promise<void> {
    await this.#dispatcher.stop()
    if (!this.post.inStore) await this.post.db.close()
    await this.table.close()
    await this.store.close()
  }

  /** Makes letters agree with rows; gives how many rows there were. */
  async reconcile(): Promise<number> {
    const { db, clock, registers } = this.store
    const parts = { db, clock, registers, log: silentLog, dispatch: () => void this.woken++ }
    const counts = this.posts.map((post) => reconcileOutbox(parts, post, new AbortController().signal))
    return (await Promise.all(counts)).reduce((sum, count) => sum + count, 0)
  }

  /** The same as another server of the office does it. */
  async secondClerk<T>(work: (reconcile: () => Promise<number>) => Promise<T>): Promise<T> {
    // Two connections of one process to an SQLite file would block each other.
    const isAlone = this.store.db.dialect === 'sqlite'
    const db = isAlone ? this.store.db : openDatabase(this.#url, { poolSize: 4 })
    const { clock } = this.store
    const parts = { db, clock, registers: newRegisters(), log: silentLog, dispatch: () => {} }
    const post = this.post.inStore ? { ...this.post, db } : this.post
    try {
      return await work(() => reconcileOutbox(parts, post, new AbortController().signal))
    } finally {
      if (!isAlone) await db.close()
    }
  }

  /** Begins a test: the outbox is empty, and earlier letters are nobody's business any more. */
  async begin(): Promise<void> {
    this.posts.splice(0, 1, this.post)
    this.store.clock.advance(2n * DAY_US)
    await this.letters.expireOlder({ olderThanDays: 1, engine: null, actor: ACTOR })
    await this.table.query('DELETE FROM outbox_messages')
    this.#earlier = (await this.#count()).last
    await this.reconcile()
    this.deliver = async () => {}
    this.sent.length = 0
    this.woken = 0
  }

  /** From now on the outbox takes no writes. */
  async refuseWrites(): Promise<void> {
    if (this.table.dialect === 'sqlite') await this.table.query('BEGIN IMMEDIATE')
    else await this.#place.refuseWrites()
  }

  async acceptWrites(): Promise<void> {
    if (this.table.dialect === 'sqlite') await this.table.query('ROLLBACK')
    else await this.#place.acceptWrites()
  }

  /** Delivers what is due, and tells the office. */
  async dispatch(): Promise<void> {
    await this.#dispatcher.drain()
    await this.reconcile()
  }

  /** Delivers what is due, and tells nobody. */
  async deliverOnly(): Promise<void> {
    await this.#dispatcher.drain()
  }

  /** All messages that are due die of this. */
  async die(error: Error = new Error('connection refused')): Promise<void> {
    this.deliver = async () => {
      throw error
    }
    await this.dispatch()
    this.deliver = async () => {}
  }

  /** The letters, the newest failure first. */
  async list() {
    const { items } = await this.letters.list({ engine: 'outbox' }, { limit: 100 })
    return items.filter(({ id }) => id > this.#earlier)
  }

  /** The only letter. */
  async letter(): Promise<CaseFile> {
    const items = await this.list()
    const [letter] = items
    if (letter === undefined || items.length > 1) throw new Error(`there are ${items.length} letters`)
    return this.letters.get(letter)
  }

  async retry(edit: string | Uint8Array | null = null) {
    const { letter } = await this.letter()
    const payload = typeof edit === 'string' ? Buffer.from(edit) : edit
    return this.letters.retry(letter, {
      edit: payload === null ? null : { payload },
      notes: null,
      actor: ACTOR,
    })
  }

  async change(status: LetterStatus) {
    const { letter } = await this.letter()
    return this.letters.change(letter, { status, notes: 'because', actor: ACTOR })
  }

  /** What history says of the only letter, the oldest first. */
  async acts(): Promise<string[]> {
    return (await this.letter()).history.map(({ operation }) => operation).reverse()
  }

  async countLetters(): Promise<number> {
    return (await this.#count()).found
  }

  async #count(): Promise<{ readonly found: number; readonly last: number }> {
    const [row] = await this.store.db.session('test', (session) =>
      session.rows<{ found: number; last: number }>(countLetters, this.#earlier),
    )
    return { found: Number(row?.found), last: Number(row?.last) }
  }

  /** What history has of all letters together. */
  async historyOfAll(): Promise<string[]> {
    const rows = await this.store.history()
    return rows.filter((row) => Number(row.letter_id) > this.#earlier).map(({ operation }) => operation)
  }

  /** The office forgets that it was told: the mark was not taken off before a crash. */
  async markAgain(letterIdToo = false): Promise<void> {
    await this.table.query(
      `UPDATE outbox_messages SET letter_due = true ${letterIdToo ? ', letter_id = NULL' : ''} WHERE letter_id IS NOT NULL`,
    )
  }
}

function postOf(store: LetterStore, db: Database, inStore: boolean, options: TableOptions): OutboxHandle {
  return {
    name: OUTBOX_NAME,
    db,
    inStore,
    meter: new OutboxMeter(store.clock),
    thresholds: DEFAULT_THRESHOLDS,
    onDead: 'hold',
    layout: () => readLayout(db.dialect, options, onDatabase(db)),
  }
}
