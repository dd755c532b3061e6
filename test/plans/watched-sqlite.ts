/** A database whose statements are looked at: SQLite says how it goes about each of them before it is run. */
import { DatabaseSync } from 'node:sqlite'
import type { Adapter } from '../../src/sources/outbox/adapters/adapter.ts'
import { sqliteAdapter } from '../../src/sources/outbox/adapters/libraries.ts'
import type { Database, Statement } from '../../src/store/database.ts'
import { openDatabase } from '../../src/store/open.ts'
import { addFunctions } from '../../src/store/sqlite.ts'
import { intercepted } from '../world/intercepted-database.ts'

/** How SQLite goes about a statement, step by step. */
export interface SqliteSighting {
  readonly name: string
  readonly steps: readonly string[]
}

export class WatchedSqlite {
  /** What a dispatcher and the office have. */
  readonly db: Database
  /** Where the plans are asked for, and what the application has. */
  readonly file: DatabaseSync
  #sightings: SqliteSighting[] = []

  constructor(url: string) {
    this.file = new DatabaseSync(url.slice('sqlite:'.length))
    addFunctions(this.file)
    this.file.exec('PRAGMA busy_timeout = 5000; PRAGMA synchronous = OFF')
    this.db = intercepted(openDatabase(url, { poolSize: 1 }), ({ statement }) => {
      if (statement !== undefined)
        this.#sightings.push(this.#stepsOf(statement.name.split('.')[1] ?? '', statement.sqlite))
    })
  }

  async close(): Promise<void> {
    this.file.close()
    await this.db.close()
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

  #stepsOf(name: string, text: string): SqliteSighting {
    const steps = this.file.prepare(`EXPLAIN QUERY PLAN ${text}`).all()
    return { name, steps: steps.map(({ detail }) => String(detail)) }
  }
}
