/** An application with a database of its own and transactions on connections of their own, on either kind of store. */
import { once } from 'node:events'
import { DatabaseSync } from 'node:sqlite'
import pg from 'pg'
import type { Adapter, AdapterRow } from '../../src/sources/outbox/adapters/adapter.ts'
import { sqliteAdapter } from '../../src/sources/outbox/adapters/libraries.ts'
import { pgAdapter } from '../../src/sources/outbox/adapters/pg.ts'
import type { FreshStore, StoreKind } from './stores.ts'

/** A transaction that was begun. */
export interface AppTransaction {
  run(sql: string, parameters: readonly unknown[]): Promise<readonly AdapterRow[]>
  commit(): Promise<void>
  rollback(): Promise<void>
}

/** Runs on transactions of the application, through the real adapter of its database. */
export const adapterFor = (kind: StoreKind): Adapter<AppTransaction> => ({
  dialect: kind.name,
  run: (tx, sql, parameters) => tx.run(sql, parameters),
})

export class Application {
  readonly kind: StoreKind
  readonly url: string
  readonly #store: FreshStore
  readonly #pool: pg.Pool | undefined
  readonly #ended: Promise<unknown>[] = []

  private constructor(kind: StoreKind, store: FreshStore) {
    this.kind = kind
    this.url = store.url
    this.#store = store
    if (kind.name === 'sqlite') return
    this.#pool = new pg.Pool({ connectionString: store.url, max: 20 })
    this.#pool.on('error', () => {})
    this.#pool.on('connect', (client) => this.#ended.push(once(client, 'end')))
  }

  /** With a fresh database, in which the script was run. */
  static async open(kind: StoreKind, script: string): Promise<Application> {
    const application = new Application(kind, await kind.fresh())
    await application.script(script)
    return application
  }

  async script(script: string): Promise<void> {
    if (this.#pool !== undefined) await this.#pool.query(script)
    else this.#onFile((file) => file.exec(`PRAGMA journal_mode = WAL; ${script}`))
  }

  /** Rows as they are committed; `$1`, `$2` … are parameters. */
  async rows(sql: string, ...parameters: unknown[]): Promise<readonly AdapterRow[]> {
    if (this.#pool !== undefined) return (await this.#pool.query(sql, parameters)).rows
    // What tests pass is what SQLite takes.
    return this.#onFile((file) =>
      file.prepare(sql.replace(/\$(\d+)/g, '?$1')).all(...(parameters as string[])),
    )
  }

  /** Begins a transaction on a connection of its own; on SQLite it waits until there is no other. */
  async begin(how = ''): Promise<AppTransaction> {
    return this.#pool === undefined ? beginOnFile(this.#file) : beginOnPool(this.#pool, how)
  }

  /** Commits what `work` does, or rolls it back when that throws. */
  async transaction<T>(work: (tx: AppTransaction) => Promise<T>): Promise<T> {
    const tx = await this.begin()
    try {
      const result = await work(tx)
      await tx.commit()
      return result
    } catch (error) {
      await tx.rollback()
      throw error
    }
  }

  async close(): Promise<void> {
    await this.#pool?.end()
    // A pool says that it has ended a little before its connections have.
    await Promise.all(this.#ended)
    await this.#store.dispose()
  }

  get #file(): string {
    return this.url.slice('sqlite:'.length)
  }

  #onFile<T>(work: (file: DatabaseSync) => T): T {
    const file = new DatabaseSync(this.#file, { timeout: 2_000 })
    try {
      return work(file)
    } finally {
      file.close()
    }
  }
}

async function beginOnPool(pool: pg.Pool, how: string): Promise<AppTransaction> {
  const adapter = pgAdapter()
  const client = await pool.connect()
  await client.query(`BEGIN ${how}`)
  const end = async (command: string) => {
    try {
      await client.query(command)
    } finally {
      client.release()
    }
  }
  return {
    run: (sql, parameters) => adapter.run(client, sql, parameters),
    commit: () => end('COMMIT'),
    rollback: () => end('ROLLBACK'),
  }
}

async function beginOnFile(path: string): Promise<AppTransaction> {
  const adapter = sqliteAdapter()
  const file = new DatabaseSync(path)
  file.exec('PRAGMA synchronous = OFF')
  await beginImmediate(file)
  const end = async (command: string) => {
    file.exec(command)
    file.close()
  }
  return {
    run: (sql, parameters) => adapter.run(file, sql, parameters),
    commit: () => end('COMMIT'),
    rollback: () => end('ROLLBACK'),
  }
}

/** Waits for the lock without blocking: whoever holds it lives on the same event loop. */
async function beginImmediate(file: DatabaseSync): Promise<void> {
  file.exec('PRAGMA busy_timeout = 0')
  for (let attempt = 1; ; attempt++) {
    try {
      return file.exec('BEGIN IMMEDIATE')
    } catch (error) {
      if (attempt === 5_000) throw error
      await new Promise((resolve) => setTimeout(resolve, 1))
    }
  }
}
