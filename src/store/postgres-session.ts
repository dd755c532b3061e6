/** Sessions on a PostgreSQL connection: single statements, snapshots with cursors, transactions. */
import pg from 'pg'
import {
  BATCH_ROWS,
  CommittedAnyway,
  parameterFor,
  type Session,
  type Snapshot,
  type Statement,
  type Transaction,
  type Value,
} from './database.ts'
import { type Connection, messageOf } from './postgres-connection.ts'

const BEGIN = 'BEGIN'
/** The first query after BEGIN fixes the moment of a snapshot. */
export const BEGIN_READING = 'BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SELECT 1'

const IN_FAILED_TRANSACTION = '25P02'
/** Migrations may take long, and wait for another server's. */
const LONG_PATIENCE = { query_timeout: 3_600_000 }

const toParameter = (value: Value) => parameterFor('postgres', value)

class PostgresSession implements Session {
  readonly dialect = 'postgres'
  readonly #client: pg.ClientBase
  readonly #isPooled: boolean
  readonly #isOlder: boolean
  protected isOver = false
  protected firstFailure: unknown

  constructor({ client, isPooled, isOlder }: Connection) {
    this.#client = client
    this.#isPooled = isPooled
    this.#isOlder = isOlder
  }

  async rows<Row>(statement: Statement, ...values: readonly Value[]): Promise<Row[]> {
    return (await this.query(statement, values)).rows
  }

  async run(statement: Statement, ...values: readonly Value[]): Promise<number> {
    return (await this.query(statement, values)).rowCount ?? 0
  }

  async runEach(statement: Statement, rows: Iterable<readonly Value[]>): Promise<number> {
    let changed = 0
    for (const values of rows) changed += await this.run(statement, ...values)
    return changed
  }

  protected query(statement: Statement, values: readonly Value[]): Promise<pg.QueryResult> {
    // Of several at once, one may fail and end the session before the others.
    if (this.isOver) return Promise.reject(new Error(`'${statement.name}' came after the end of its session`))
    const query = { text: this.textOf(statement), values: values.map(toParameter), ...this.patience }
    const isNamed = statement.plan !== 'anew' && !this.#isPooled
    const answer = this.#client.query(isNamed ? { ...query, name: statement.name } : query)
    answer.catch((error: unknown) => {
      this.firstFailure ??= error
    })
    return answer
  }

  protected textOf({ postgres, olderPostgres = postgres }: Statement): string {
    return this.#isOlder ? olderPostgres : postgres
  }

  /** The first failure. Later statements of the same round trip only report an aborted transaction, perhaps earlier. */
  causeOf(error: unknown): unknown {
    const isAfterwards = error instanceof pg.DatabaseError && error.code === IN_FAILED_TRANSACTION
    return isAfterwards ? (this.firstFailure ?? error) : error
  }

  /** Overrides the usual timeout. */
  protected get patience(): { readonly query_timeout?: number } {
    return {}
  }

  /** The connection belongs to others from here on. */
  end(): void {
    this.isOver = true
  }

  /** Unprepared, for transaction control. */
  text(text: string): Promise<pg.QueryResult> {
    return this.#client.query(text)
  }

  script(text: string, values?: readonly Value[]): Promise<pg.QueryResult> {
    const query = { text, ...LONG_PATIENCE }
    return this.#client.query(values === undefined ? query : { ...query, values: values.map(toParameter) })
  }
}

/** Cursors live in the transaction and are planned for their values. */
export class PostgresSnapshot extends PostgresSession implements Snapshot {
  #cursors = 0
  #underWay = 0

  /** Rows were asked for and not yet received: they may take long. */
  get isFetching(): boolean {
    return this.#underWay > 0
  }

  /** Later questions wait for these rows. */
  protected override get patience() {
    return this.isFetching ? LONG_PATIENCE : {}
  }

  async *batches<Row>(statement: Statement, ...values: readonly Value[]): AsyncGenerator<readonly Row[]> {
    const cursor = `batches_${++this.#cursors}`
    const ask = (text: string, given?: readonly Value[]) => {
      this.#underWay++
      const answer = this.script(text, given).finally(() => this.#underWay--)
      // The caller hears of it.
      answer.catch(() => {})
      return answer
    }
    const declared = ask(`DECLARE ${cursor} NO SCROLL CURSOR FOR ${this.textOf(statement)}`, values)
    // Fetched ahead: the database works while rows are checked.
    const fetch = () => ask(`FETCH ${BATCH_ROWS} FROM ${cursor}`)
    let next = fetch()
    await declared
    try {
      for (;;) {
        const { rows } = await next
        const isLast = rows.length < BATCH_ROWS
        if (!isLast) next = fetch()
        if (rows.length > 0) yield rows
        if (isLast) return
      }
    } finally {
      // Not awaited: rows fetched ahead come first.
      this.script(`CLOSE ${cursor}`).catch(() => {})
    }
  }
}

/** Each statement is its own transaction; nothing can be left for later. */
export class SingleStatements extends PostgresSession implements Transaction {
  atCommit(statement: Statement): void {
    throw new TypeError(`'${statement.name}' would not be part of the transaction`)
  }
}

export class PostgresTransaction extends PostgresSession implements Transaction {
  isRerun = false
  readonly #atCommit: [Statement, readonly Value[]][] = []
  #isEmpty = true

  get isEmpty(): boolean {
    return this.#isEmpty
  }

  protected override query(statement: Statement, values: readonly Value[]): Promise<pg.QueryResult> {
    this.#isEmpty = false
    return super.query(statement, values)
  }

  atCommit(statement: Statement, ...values: readonly Value[]): void {
    if (this.isOver) throw new TypeError(`'${statement.name}' came after the end of its session`)
    this.#atCommit.push([statement, values])
  }

  /** Sends deferred statements and the COMMIT in one round trip. */
  async commit(): Promise<void> {
    const flight: Promise<unknown>[] = this.#atCommit.map(([statement, values]) =>
      this.run(statement, ...values),
    )
    const committed = this.text('COMMIT')
    this.end()
    await allOf(...flight, committed)
    // After a swallowed failure PostgreSQL rolls back, and only the tag tells.
    if ((await committed).command !== 'COMMIT')
      throw this.firstFailure ?? new Error('PostgreSQL rolled the transaction back')
  }
}

/** All answers of one round trip, which frees the connection. The first failure counts; a COMMIT behind it rolls back silently. */
async function allOf<const Flight extends readonly Promise<unknown>[]>(
  ...flight: Flight
): Promise<{ -readonly [Place in keyof Flight]: Awaited<Flight[Place]> }> {
  await Promise.allSettled(flight)
  return Promise.all(flight)
}

export async function lasting<S extends PostgresSession, T>(
  session: S,
  work: (session: S) => Promise<T>,
): Promise<T> {
  try {
    return await work(session)
  } finally {
    session.end()
  }
}

export async function commit<T>(tx: PostgresTransaction, work: (tx: Transaction) => Promise<T>): Promise<T> {
  const begun = tx.text(BEGIN)
  // Not awaited: it shares the first statement's round trip.
  begun.catch(() => {})
  try {
    const result = await work(tx)
    await begun
    await tx.commit()
    return result
  } catch (error) {
    await tx.text('ROLLBACK').catch(() => {})
    throw tx.causeOf(error)
  }
}

/** A failed statement turns the COMMIT behind it into a ROLLBACK. Any other failure comes too late for that. */
export async function commitInOneTrip<T>(
  tx: PostgresTransaction,
  work: (tx: Transaction) => Promise<T>,
): Promise<T> {
  const begun = tx.text(BEGIN)
  const working = (async () => work(tx))()
  const committing = tx.commit()
  try {
    const [result] = await allOf(working, begun, committing)
    return result
  } catch (error) {
    const [{ status }] = await Promise.allSettled([committing])
    if (status === 'rejected' || tx.isEmpty) throw tx.causeOf(error)
    throw new CommittedAnyway(`committed, although its work failed: ${messageOf(error)}`, { cause: error })
  }
}
