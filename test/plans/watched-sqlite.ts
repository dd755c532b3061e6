/** A database whose statements are looked at: SQLite says how it goes about each of them before it is run. */
import { DatabaseSync } from 'node:sqlite'
import type { Adapter } from '../../src/sources/outbox/adapters/adapter.ts'
import { sqliteAdapter } from '../../src/sources/outbox/adapters/libraries.ts'
import type { Database, Session, Snapshot, Statement, Transaction, Value } from '../../src/store/database.ts'
import { openDatabase } from '../../src/store/open.ts'
import { addFunctions } from '../../src/store/sqlite.ts'
import { asSnapshot } from '../world/as-snapshot.ts'

/** How SQLite goes about a statement, step by step. */
export interface SqliteSighting {
  readonly name: string
  readonly steps: readonly string[]
}

export class WatchedSqlite implements Database {
  readonly dialect = 'sqlite'
  /** Where the plans are asked for, and what the application has. */
  readonly file: DatabaseSync
  readonly #db: Database
  #sightings: SqliteSighting[] = []

  private constructor(file: DatabaseSync, db: Database) {
    this.file = file
    this.#db = db
  }

  static open(url: string): WatchedSqlite {
    const file = new DatabaseSync(url.slice('sqlite:'.length))
    addFunctions(file)
    file.exec('PRAGMA busy_timeout = 5000; PRAGMA synchronous = OFF')
    return new WatchedSqlite(file, openDatabase(url, { poolSize: 1 }))
  }

  async close(): Promise<void> {
    this.file.close()
    await this.#db.close()
  }

  /** Runs `work` and gives what was seen of it. What dispatchers do stays; what the application did is taken back. */
  async watch(work: () => Promise<void>): Promise<readonly SqliteSighting[]> {
    this.#sightings = []
    await work()
    if (this.file.isTransaction) this.file.exec('ROLLBACK')
    return this.#sightings
  }

  explain({ name, sqlite }: Statement): SqliteSighting {
    return this.#stepsOf(name, sqlite)
  }

  transaction<T>(verb: string, work: (tx: Transaction) => Promise<T>): Promise<T> {
    return this.#db.transaction(verb, (tx) => work({ ...this.#watched(tx), atCommit: tx.atCommit.bind(tx) }))
  }

  statement<T>(verb: string, work: (tx: Transaction) => Promise<T>): Promise<T> {
    return this.transaction(verb, work)
  }

  session<T>(verb: string, work: (session: Session) => Promise<T>): Promise<T> {
    return this.#db.session(verb, (session) => work(this.#watched(session)))
  }

  snapshot<T>(verb: string, work: (session: Snapshot) => Promise<T>): Promise<T> {
    return this.#db.snapshot(verb, (session) => work(asSnapshot(this.#watched(session))))
  }

  async script(): Promise<void> {}
  async notify(): Promise<void> {}
  async listen(): Promise<void> {}
  onCall(): void {}

  /** What an application has: a connection of its own, and a transaction on it. */
  application = (called: string): Adapter<null> => {
    const adapter = sqliteAdapter()
    return {
      dialect: 'sqlite',
      run: async (_tx, text, parameters) => {
        if (!text.includes('pragma_')) this.#sightings.push(this.#stepsOf(called, text))
        if (!this.file.isTransaction) this.file.exec('BEGIN')
        return adapter.run(this.file, text, parameters)
      },
    }
  }

  #watched(session: Session): Session {
    const look = (statement: Statement) =>
      this.#sightings.push(this.#stepsOf(statement.name.split('.')[1] ?? '', statement.sqlite))
    return {
      dialect: 'sqlite',
      rows: (statement, ...values) => {
        look(statement)
        return session.rows(statement, ...values)
      },
      run: (statement, ...values) => {
        look(statement)
        return session.run(statement, ...values)
      },
      runEach: (statement, rows: Iterable<readonly Value[]>) => {
        look(statement)
        return session.runEach(statement, rows)
      },
    }
  }

  #stepsOf(name: string, text: string): SqliteSighting {
    const steps = this.file.prepare(`EXPLAIN QUERY PLAN ${text}`).all()
    return { name, steps: steps.map(({ detail }) => String(detail)) }
  }
}
