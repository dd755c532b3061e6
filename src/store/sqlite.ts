/** SQLite through `node:sqlite`: one connection, one caller at a time. Calls are synchronous, so transactions are short. */
import { createHash } from 'node:crypto'
import { accessSync, constants, mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync, type StatementSync } from 'node:sqlite'
import {
  BATCH_ROWS,
  type Database,
  parameterFor,
  type Session,
  type Snapshot,
  type SnapshotOptions,
  type Statement,
  type StoreCall,
  StoreUnavailable,
  type Transaction,
  type Value,
} from './database.ts'
import { isPlaceGone } from './missing-value.ts'
import { StoreCalls, withAttempts } from './store-calls.ts'

const SQLITE_BUSY = 5
const SQLITE_LOCKED = 6
const SQLITE_READONLY = 8
const SQLITE_IOERR = 10
const SQLITE_FULL = 13
const SQLITE_CANTOPEN = 14

/** FULL: every commit waits for the disk. Waiting for another program's lock blocks the event loop, so it is short; transactions are retried. */
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

/** The file is in WAL mode already. Large sorts go to a file. */
const READER_SETTINGS = `
  PRAGMA busy_timeout = 100;
  PRAGMA cache_size = -32768;
`

/** BEGIN alone fixes no moment: the first read does. */
const BEGIN_READING = 'BEGIN; SELECT count(*) FROM sqlite_schema'

/** Idle readers kept; each may hold a page cache. */
const MOST_IDLE_READERS = 2

/** Rows are gathered no longer: nothing else runs meanwhile. */
const STEP_MS = 10
/** Reading the clock costs as much as a row. */
const ROWS_BETWEEN_LOOKS = 50

const toParameter = (value: Value) => parameterFor('sqlite', value)

/** Session, snapshot and transaction in one; `#alone` keeps callers apart. */
class SqliteSession implements Transaction, Snapshot {
  readonly dialect = 'sqlite'
  isRerun = false
  readonly #connection: DatabaseSync
  readonly #prepared = new Map<string, StatementSync>()
  readonly #rows = new Map<StatementSync, (list: unknown) => unknown>()
  #iterating = 0

  constructor(connection: DatabaseSync) {
    this.#connection = connection
  }

  /** Rows still to come keep their moment of the store. */
  get isIterating(): boolean {
    return this.#iterating > 0
  }

  async rows<Row>(statement: Statement, ...values: readonly Value[]): Promise<Row[]> {
    const prepared = this.#prepare(statement, statement.bigints)
    let toRow = this.#rows.get(prepared)
    if (toRow === undefined) {
      toRow = rowOf(prepared)
      this.#rows.set(prepared, toRow)
    }
    // The statement decides what rows are.
    return prepared.all(...values.map(toParameter)).map(toRow) as Row[]
  }

  async run(statement: Statement, ...values: readonly Value[]): Promise<number> {
    // The table exists on PostgreSQL only.
    if (statement.sqlite === '') return 0
    return Number(this.#prepareRun(statement).run(...values.map(toParameter)).changes)
  }

  async runEach(statement: Statement, rows: Iterable<readonly Value[]>): Promise<number> {
    // The table exists on PostgreSQL only.
    if (statement.sqlite === '') return 0
    const prepared = this.#prepareRun(statement)
    let changed = 0
    for (const values of rows) changed += Number(prepared.run(...values.map(toParameter)).changes)
    return changed
  }

  async *batches<Row>(statement: Statement, ...values: readonly Value[]): AsyncGenerator<readonly Row[]> {
    // Prepared anew: the same statement may be read twice at once.
    const prepared = this.#connection.prepare(statement.sqlite)
    prepared.setReadBigInts(statement.bigints)
    prepared.setReturnArrays(true)
    const toRow = rowOf(prepared)
    let batch: Row[] = []
    let until = performance.now() + STEP_MS
    this.#iterating++
    try {
      for (const row of prepared.iterate(...values.map(toParameter))) {
        batch.push(toRow(row) as Row)
        const isDue = batch.length % ROWS_BETWEEN_LOOKS === 0 && performance.now() >= until
        if (batch.length < BATCH_ROWS && !isDue) continue
        yield batch
        batch = []
        until = performance.now() + STEP_MS
      }
    } finally {
      this.#iterating--
    }
    if (batch.length > 0) yield batch
  }

  atCommit(statement: Statement, ...values: readonly Value[]): void {
    this.#prepareRun(statement).run(...values.map(toParameter))
  }

  /** Always with bigints: a run returns the connection's last row id, and the text index makes some beyond 2^53, which fail as numbers. */
  #prepareRun(statement: Statement): StatementSync {
    return this.#prepare(statement, true)
  }

  #prepare(statement: Statement, bigints: boolean): StatementSync {
    const key = bigints ? `${statement.name} with bigints` : statement.name
    let prepared = this.#prepared.get(key)
    if (prepared === undefined) {
      prepared = this.#connection.prepare(statement.sqlite)
      prepared.setReadBigInts(bigints)
      prepared.setReturnArrays(true)
      this.#prepared.set(key, prepared)
    }
    return prepared
  }
}

export class SqliteDatabase implements Database {
  readonly dialect = 'sqlite'
  readonly #path: string
  readonly #connection: DatabaseSync
  readonly #session: SqliteSession
  readonly #idleReaders: Reader[] = []
  readonly #calls = new StoreCalls()
  #last: Promise<unknown> = Promise.resolve()
  #closed = false

  /** A file, created with its folder if missing, or ':memory:'. */
  constructor(path: string) {
    this.#path = path
    let connection: DatabaseSync | undefined
    try {
      if (path !== ':memory:') mkdirSync(dirname(path), { recursive: true })
      connection = new DatabaseSync(path)
      connection.exec(SETTINGS)
      addFunctions(connection)
      // SQLite opens a read-only file and would fail at the first write.
      if (path !== ':memory:') accessSync(path, constants.W_OK)
      this.#connection = connection
    } catch (error) {
      connection?.close()
      throw new StoreUnavailable(`cannot open SQLite store '${path}': ${messageOf(error)}`, { cause: error })
    }
    this.#session = new SqliteSession(this.#connection)
  }

  transaction<T>(verb: string, work: (tx: Transaction) => Promise<T>): Promise<T> {
    const attempt = (isRerun: boolean) => {
      this.#session.isRerun = isRerun
      return this.#commit(work)
    }
    return this.#alone(verb, () => withAttempts(attempt, lostRace), true)
  }

  statement<T>(verb: string, work: (tx: Transaction) => Promise<T>): Promise<T> {
    return this.transaction(verb, work)
  }

  session<T>(verb: string, work: (session: Session) => Promise<T>): Promise<T> {
    return this.#alone(verb, () => work(this.#session))
  }

  async snapshot<T>(
    verb: string,
    work: (session: Snapshot) => Promise<T>,
    { apart = false }: SnapshotOptions = {},
  ): Promise<T> {
    if (this.#path !== ':memory:')
      return this.#observed(verb, () =>
        apart ? readOnce(openReader(this.#path), work) : this.#onReader(work),
      )
    // In memory there is no second connection: writers wait, or a copy is read.
    if (!apart) return this.#alone(verb, () => this.#readOnly(work))
    const copy = await this.#alone(verb, async () => copyOf(this.#connection))
    return this.#observed(verb, () => readOnce(copy, work))
  }

  async script(_tx: Transaction, text: string): Promise<void> {
    this.#connection.exec(text)
  }

  async notify(): Promise<void> {}

  async listen(): Promise<void> {}

  onCall(listener: (call: StoreCall) => void): void {
    this.#calls.listen(listener)
  }

  async close(): Promise<void> {
    await this.#last.catch(() => {})
    // Readers first: the last connection to close must be a writer, which checkpoints into one file.
    for (const reader of this.#idleReaders.splice(0)) reader.close()
    this.#closed = true
    this.#connection.close()
  }

  async #commit<T>(work: (tx: Transaction) => Promise<T>): Promise<T> {
    this.#connection.exec('BEGIN IMMEDIATE')
    try {
      const result = await work(this.#session)
      this.#connection.exec('COMMIT')
      return result
    } catch (error) {
      // Some failures, such as a full disk, have rolled back already.
      if (this.#connection.isTransaction) this.#connection.exec('ROLLBACK')
      throw error
    }
  }

  async #readOnly<T>(work: (session: Snapshot) => Promise<T>): Promise<T> {
    this.#connection.exec(`PRAGMA query_only = ON; ${BEGIN_READING}`)
    try {
      return await work(this.#session)
    } finally {
      this.#connection.exec('ROLLBACK; PRAGMA query_only = OFF')
    }
  }

  /** Readers are kept: opening one and preparing its statements takes longer than reading a page. */
  async #onReader<T>(work: (session: Snapshot) => Promise<T>): Promise<T> {
    const reader = this.#idleReaders.pop() ?? openReader(this.#path)
    try {
      return await reader.read(work)
    } finally {
      if (reader.isClean && !this.#closed && this.#idleReaders.length < MOST_IDLE_READERS)
        this.#idleReaders.push(reader)
      else reader.close()
    }
  }

  /** One caller at a time: statements of two must never interleave. */
  #alone<T>(verb: string, call: () => Promise<T>, writes = false): Promise<T> {
    const turn = this.#last.then(() => this.#observed(verb, call, writes))
    this.#last = turn.catch(() => {})
    return turn
  }

  async #observed<T>(verb: string, call: () => Promise<T>, writes = false): Promise<T> {
    try {
      return await this.#calls.observe(verb, call, writes)
    } catch (error) {
      throw isOutage(error)
        ? new StoreUnavailable(`SQLite failed: ${messageOf(error)}`, { cause: error })
        : error
    }
  }
}

/** Rows from lists, in half the time that node:sqlite takes for objects. */
function rowOf(prepared: StatementSync): (list: unknown) => unknown {
  const names = prepared.columns().map(({ name }) => name)
  return (list) => {
    // node:sqlite types everything as records.
    const values = list as readonly unknown[]
    const row: Record<string, unknown> = {}
    for (let i = 0; i < names.length; i++) row[names[i] ?? ''] = values[i]
    return row
  }
}

/** PostgreSQL has these built in. */
export function addFunctions(connection: DatabaseSync): void {
  connection.function('sha256', { deterministic: true }, (value) =>
    createHash('sha256')
      .update(value instanceof Uint8Array ? value : String(value))
      .digest(),
  )
}

/** Read only: in WAL mode it and the writer do not wait for each other. */
class Reader {
  readonly #connection: DatabaseSync
  readonly #session: SqliteSession

  constructor(connection: DatabaseSync) {
    this.#connection = connection
    this.#session = new SqliteSession(connection)
  }

  async read<T>(work: (session: Snapshot) => Promise<T>): Promise<T> {
    this.#connection.exec(BEGIN_READING)
    try {
      return await work(this.#session)
    } finally {
      this.#connection.exec('ROLLBACK')
    }
  }

  get isClean(): boolean {
    return !this.#connection.isTransaction && !this.#session.isIterating
  }

  close(): void {
    this.#connection.close()
  }
}

function openReader(path: string): Reader {
  const connection = new DatabaseSync(path, { readOnly: true })
  connection.exec(READER_SETTINGS)
  return new Reader(connection)
}

function copyOf(store: DatabaseSync): Reader {
  const copy = new DatabaseSync(':memory:')
  copy.deserialize(store.serialize())
  copy.exec('PRAGMA query_only = ON')
  return new Reader(copy)
}

async function readOnce<T>(reader: Reader, work: (session: Snapshot) => Promise<T>): Promise<T> {
  try {
    return await reader.read(work)
  } finally {
    reader.close()
  }
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

/** The low byte of the extended code. */
function resultCode(error: unknown): number | undefined {
  if (!(error instanceof Error) || !('errcode' in error) || typeof error.errcode !== 'number')
    return undefined
  return error.errcode & 0xff
}

const lostRace = (error: unknown): boolean => {
  const code = resultCode(error)
  return code === SQLITE_BUSY || code === SQLITE_LOCKED || isPlaceGone(error)
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
