/**
 * A database that need not be there when its server starts. PostgreSQL is connected to on first use anyway; a file of
 * SQLite may be locked by another program, lie on a disk that is not mounted yet, or be no database: it is opened when it is
 * first used, and whoever uses it meets the outage until it can be.
 */
import { parseStoreUrl } from '../config/store-url.ts'
import {
  type Database,
  type Session,
  type StoreCall,
  StoreUnavailable,
  type Transaction,
} from '../db/database.ts'
import { openDatabase } from '../db/open.ts'
import type { PostgresOptions } from '../db/postgres.ts'

/** Opens the database that a URL names, at the latest when it is used. */
export const openLate = (url: string, postgres: PostgresOptions): Database =>
  parseStoreUrl(url).kind === 'sqlite' ? new LateFile(url, postgres) : openDatabase(url, postgres)

class LateFile implements Database {
  readonly dialect = 'sqlite'
  readonly #url: string
  readonly #options: PostgresOptions
  readonly #listeners: ((call: StoreCall) => void)[] = []
  #file: Database | undefined
  #closed = false

  constructor(url: string, options: PostgresOptions) {
    this.#url = url
    this.#options = options
  }

  async transaction<T>(verb: string, work: (tx: Transaction) => Promise<T>): Promise<T> {
    return this.#opened().transaction(verb, work)
  }

  async statement<T>(verb: string, work: (tx: Transaction) => Promise<T>): Promise<T> {
    return this.#opened().statement(verb, work)
  }

  async session<T>(verb: string, work: (session: Session) => Promise<T>): Promise<T> {
    return this.#opened().session(verb, work)
  }

  async snapshot<T>(verb: string, work: (session: Session) => Promise<T>): Promise<T> {
    return this.#opened().snapshot(verb, work)
  }

  async script(tx: Transaction, text: string): Promise<void> {
    return this.#opened().script(tx, text)
  }

  async notify(): Promise<void> {}

  async listen(): Promise<void> {}

  onCall(listener: (call: StoreCall) => void): void {
    this.#listeners.push(listener)
    this.#file?.onCall(listener)
  }

  async close(): Promise<void> {
    this.#closed = true
    await this.#file?.close()
  }

  #opened(): Database {
    if (this.#file === undefined) {
      if (this.#closed) throw new StoreUnavailable('the database was closed')
      this.#file = openDatabase(this.#url, this.#options)
      for (const listener of this.#listeners) this.#file.onCall(listener)
    }
    return this.#file
  }
}
