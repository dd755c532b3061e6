/** What a benchmark stands on: a folder, a PostgreSQL when one is asked for, and an empty store for every measurement. */
import { rmSync } from 'node:fs'
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Dialect } from './letters/sql.ts'
import { machineFacts } from './machine.ts'
import { type PostgresServer, type ServerFlags, startPostgres } from './servers/postgres.ts'

/** The stores as people call them. */
export const storeTitles: Readonly<Record<Dialect, string>> = { postgres: 'PostgreSQL', sqlite: 'SQLite' }

export class Grounds {
  /** What it is measured on, as label and text. */
  readonly facts: readonly [string, string][]
  readonly #folder: string
  readonly #postgres: PostgresServer | null
  #files = 0

  private constructor(folder: string, facts: readonly [string, string][], postgres: PostgresServer | null) {
    this.#folder = folder
    this.facts = facts
    this.#postgres = postgres
  }

  static async open(stores: readonly Dialect[], server: ServerFlags): Promise<Grounds> {
    const folder = await mkdtemp(join(tmpdir(), 'bartleby-bench-'))
    // The database server runs as another user when this one is root.
    await chmod(folder, 0o755)
    process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
    const facts = machineFacts(folder)
    const postgres = stores.includes('postgres') ? await startPostgres(folder, server) : null
    if (postgres !== null) facts.push(['PostgreSQL', `${postgres.version}; ${postgres.settings}`])
    return new Grounds(folder, facts, postgres)
  }

  /** Runs `work` with an empty store, which is gone afterwards. `store` is what `Office.open` takes. */
  onStore<T>(dialect: Dialect, work: (store: string) => Promise<T>): Promise<T> {
    if (dialect === 'postgres') {
      if (this.#postgres === null) throw new Error('PostgreSQL is not running')
      return this.#postgres.withDatabase(work)
    }
    const file = join(this.#folder, `bench-${++this.#files}.db`)
    return work(`sqlite:${file}`).finally(() =>
      Promise.all(['', '-wal', '-shm'].map((ending) => rm(file + ending, { force: true }))),
    )
  }

  async close(): Promise<void> {
    await this.#postgres?.stop()
  }
}
