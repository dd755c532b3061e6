/**
 * SQLite through Node's own `node:sqlite`. One connection, used by one caller at a time: calls are
 * synchronous, so a transaction is short and what gathers meanwhile shares the next one.
 */
import { accessSync, constants, mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync, type StatementSync } from 'node:sqlite'
import { withAttempts } from './attempts.ts'
import {
  type Database,
  type Session,
  type Statement,
  type StoreCall,
  StoreUnavailable,
  type Transaction,
  type Value,
} from './database.ts'

const SQLITE_BUSY = 5
const SQLITE_LOCKED = 6
const SQLITE_READONLY = 8
const SQLITE_IOERR = 10
const SQLITE_FULL = 13
const SQLITE_CANTOPEN = 14

/**
 * FULL makes every commit wait for the disk: nothing is acknowledged that a power cut could take back. Waiting for
 * another program's lock blocks the event loop, so that wait is short; transactions are tried again after a pause.
 */
const SETTINGS = `
  PRAGMA journal_mode = WAL;
  PRAGMA synchronous = FULL;
  PRAGMA busy_timeout = 100;
  PRAGMA foreign_keys = OFF;
  PRAGMA wal_autocheckpoint = 4000;
  PRAGMA temp_store = MEMORY;
  PRAGMA cache_size = -32768;
  PRAGMA journal_size_limit = 67108864;
`

/** Serves as session and transaction alike: there is one connection, and `#alone` keeps callers apart. */
class SqliteSession implements Transaction {
  readonly dialect = 'sqlite'
  readonly #prepare: (statement: Statement) => StatementSync

  constructor(prepare: (statement: Statement) => StatementSync) {
    this.#prepare = prepare
  }

  async rows<Row>(statement: Statement, ...values: readonly Value[]): Promise<Row[]> {
    // node:sqlite types rows as records of SQL values; what they are is the statement's business.
    return this.#prepare(statement).all(...values) as Row[]
  }

  async run(statement: Statement, ...values: readonly Value[]): Promise<number> {
    return Number(this.#prepare(statement).run(...values).changes)
  }

  async runEach(statement: Statement, rows: Iterable<readonly Value[]>): Promise<void> {
    const prepared = this.#prepare(statement)
    for (const values of rows) prepared.run(...values)
  }

  atCommit(statement: Statement, ...values: readonly Value[]): void {
    this.#prepare(statement).run(...values)
  }
}

export class SqliteDatabase implements Database {
  readonly dialect = 'sqlite'
  readonly #connection: DatabaseSync
  readonly #session: SqliteSession
  readonly #prepared = new Map<string, StatementSync>()
  readonly #listeners: ((call: StoreCall) => void)[] = []
  #last: Promise<unknown> = Promise.resolve()

  /** `path` is a file, created with its folder when missing, or ':memory:'. */
  constructor(path: string) {
    try {
      if (path !== ':memory:') mkdirSync(dirname(path), { recursive: true })
      this.#connection = new DatabaseSync(path)
      this.#connection.exec(SETTINGS)
      // SQLite opens what it may only read and would fail at the first write.
      if (path !== ':memory:') accessSync(path, constants.W_OK)
    } catch (error) {
      throw new StoreUnavailable(`cannot open SQLite store '${path}': ${messageOf(error)}`, { cause: error })
    }
    this.#session = new SqliteSession((statement) => this.#prepare(statement))
  }

  transaction<T>(verb: string, work: (tx: Transaction) => Promise<T>): Promise<T> {
    return this.#alone(verb, () => withAttempts(() => this.#commit(work), lostRace))
  }

  statement<T>(verb: string, work: (tx: Transaction) => Promise<T>): Promise<T> {
    return this.transaction(verb, work)
  }

  session<T>(verb: string, work: (session: Session) => Promise<T>): Promise<T> {
    return this.#alone(verb, () => work(this.#session))
  }

  async script(_tx: Transaction, text: string): Promise<void> {
    this.#connection.exec(text)
  }

  async notify(): Promise<void> {}

  async listen(): Promise<void> {}

  onCall(listener: (call: StoreCall) => void): void {
    this.#listeners.push(listener)
  }

  async close(): Promise<void> {
    await this.#last.catch(() => {})
    this.#prepared.clear()
    this.#connection.close()
  }

  async #commit<T>(work: (tx: Transaction) => Promise<T>): Promise<T> {
    this.#connection.exec('BEGIN IMMEDIATE')
    try {
      const result = await work(this.#session)
      this.#connection.exec('COMMIT')
      return result
    } catch (error) {
      // Some failures (a full disk) have rolled back by themselves.
      if (this.#connection.isTransaction) this.#connection.exec('ROLLBACK')
      throw error
    }
  }

  /** Waits for its turn: one connection must never see two callers' statements interleaved. */
  #alone<T>(verb: string, call: () => Promise<T>): Promise<T> {
    const turn = this.#last.then(async () => {
      const startedAt = performance.now()
      let ok = false
      try {
        const result = await call()
        ok = true
        return result
      } catch (error) {
        throw isOutage(error)
          ? new StoreUnavailable(`SQLite failed: ${messageOf(error)}`, { cause: error })
          : error
      } finally {
        const seconds = (performance.now() - startedAt) / 1000
        for (const listener of this.#listeners) listener({ verb, seconds, ok })
      }
    })
    this.#last = turn.catch(() => {})
    return turn
  }

  #prepare(statement: Statement): StatementSync {
    let prepared = this.#prepared.get(statement.name)
    if (prepared === undefined) {
      prepared = this.#connection.prepare(statement.sqlite)
      prepared.setReadBigInts(statement.bigints)
      this.#prepared.set(statement.name, prepared)
    }
    return prepared
  }
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

/** SQLite's primary result code: the low byte of the extended one. */
function resultCode(error: unknown): number | undefined {
  if (!(error instanceof Error) || !('errcode' in error) || typeof error.errcode !== 'number')
    return undefined
  return error.errcode & 0xff
}

const lostRace = (error: unknown): boolean => {
  const code = resultCode(error)
  return code === SQLITE_BUSY || code === SQLITE_LOCKED
}

const OUTAGES: readonly number[] = [
  SQLITE_BUSY,
  SQLITE_LOCKED,
  SQLITE_READONLY,
  SQLITE_IOERR,
  SQLITE_FULL,
  SQLITE_CANTOPEN,
]

const isOutage = (error: unknown): boolean => {
  const code = resultCode(error)
  return code !== undefined && OUTAGES.includes(code)
}
