/** An outbox of its own for a test: the table as applications make it, rows put into it and read from it by plain SQL. */
import { once } from 'node:events'
import { DatabaseSync } from 'node:sqlite'
import pg from 'pg'
import { outboxSchema } from '../../src/sources/outbox/table/schema.ts'
import type { FreshStore, StoreKind } from './stores.ts'

/** A row as the database gives it. */
export type Row = Readonly<Record<string, unknown>>

/** What a producer of any language would write. */
export interface GivenRow {
  readonly tenant?: string
  readonly type?: string
  readonly payload?: string | Uint8Array
  readonly line?: string
  readonly key?: string
}

/** Runs a statement, with `$1`, `$2` … as parameters. */
export type Query = (text: string, ...parameters: unknown[]) => Promise<Row[]>

export class OutboxStore {
  readonly url: string
  readonly dialect: 'postgres' | 'sqlite'
  readonly query: Query
  readonly #store: FreshStore
  readonly #close: () => Promise<void>

  private constructor(
    store: FreshStore,
    dialect: 'postgres' | 'sqlite',
    query: Query,
    close: () => Promise<void>,
  ) {
    this.#store = store
    this.url = store.url
    this.dialect = dialect
    this.query = query
    this.#close = close
  }

  /** A fresh store of this kind with an empty `outbox_messages`. */
  static async open(kind: StoreKind): Promise<OutboxStore> {
    const store = await kind.fresh()
    const schema = outboxSchema(kind.name)
    if (kind.name === 'postgres') {
      const pool = new pg.Pool({ connectionString: store.url, max: 4 })
      // A pool has ended before its connections have: the database must not be dropped under them.
      pool.on('error', () => {})
      const ended: Promise<unknown>[] = []
      pool.on('connect', (client) => ended.push(once(client, 'end').catch(() => {})))
      await pool.query(schema)
      const query: Query = async (text, ...parameters) => (await pool.query(text, parameters)).rows
      return new OutboxStore(store, 'postgres', query, async () => {
        await pool.end()
        await Promise.all(ended)
      })
    }
    const file = new DatabaseSync(store.url.slice('sqlite:'.length))
    file.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF; PRAGMA busy_timeout = 5000; ${schema}`)
    const query: Query = async (text, ...parameters) => {
      const statement = file.prepare(text.replace(/\$(\d+)/g, '?$1'))
      // What tests pass is what SQLite takes.
      return statement.all(...(parameters as string[])) as Row[]
    }
    return new OutboxStore(store, 'sqlite', query, async () => file.close())
  }

  /** Adds a row in a transaction of its own; gives its id. */
  async insert({
    tenant = 't',
    type = 'created',
    payload = '{}',
    line,
    key,
  }: GivenRow = {}): Promise<string> {
    const bytes = typeof payload === 'string' ? Buffer.from(payload) : payload
    const columns = [
      'tenant_id',
      'event_type',
      'payload',
      'ordering_key',
      ...(key === undefined ? [] : ['idempotency_key']),
    ]
    const values = [tenant, type, bytes, line ?? null, ...(key === undefined ? [] : [key])]
    const [row] = await this.query(
      `INSERT INTO outbox_messages (${columns.join(', ')}) VALUES (${values.map((_, i) => `$${i + 1}`).join(', ')}) RETURNING id`,
      ...values,
    )
    return String(row?.id)
  }

  /** All rows, the first one first. */
  rows(): Promise<Row[]> {
    return this.query('SELECT * FROM outbox_messages ORDER BY id')
  }

  async row(id: string): Promise<Row> {
    const [row] = await this.query('SELECT * FROM outbox_messages WHERE id = $1', Number(id))
    if (row === undefined) throw new Error(`there is no row ${id}`)
    return row
  }

  async close(): Promise<void> {
    await this.#close()
    await this.#store.dispose()
  }
}
