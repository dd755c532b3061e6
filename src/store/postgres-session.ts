/** Sessions on a connection to PostgreSQL: single statements, snapshots with cursors, and transactions with their COMMIT. */
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
/** The moment of a snapshot is that of the first query behind BEGIN. */
export const BEGIN_READING = 'BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SELECT 1'

const IN_FAILED_TRANSACTION = '25P02'
/** Migrations may take their time, and wait for another server's. */
const LONG_PATIENCE = { query_timeout: 3_600_000 }

const toParameter = (value: Value) => parameterFor('postgres', value)

/** Statements of a transaction that is open. */
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
    // Of several that go on at once, one may fail and end the session before the others are done.
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

  /** What failed. Statements behind it in one flight only say that the transaction is aborted, and that may be heard first. */
  causeOf(error: unknown): unknown {
    const isAfterwards = error instanceof pg.DatabaseError && error.code === IN_FAILED_TRANSACTION
    return isAfterwards ? (this.firstFailure ?? error) : error
  }

  /** How long an answer may take, where that is not as usual. */
  protected get patience(): { readonly query_timeout?: number } {
    return {}
  }

  /** The connection is somebody else's from here on. */
  end(): void {
    this.isOver = true
  }

  /** Unprepared text, for transaction control. */
  text(text: string): Promise<pg.QueryResult> {
    return this.#client.query(text)
  }

  /** What may take long. */
  script(text: string, values?: readonly Value[]): Promise<pg.QueryResult> {
    const query = { text, ...LONG_PATIENCE }
    return this.#client.query(values === undefined ? query : { ...query, values: values.map(toParameter) })
  }
}

/** Cursors are of the transaction, and planned for the values at hand. */
export class PostgresSnapshot extends PostgresSession implements Snapshot {
  #cursors = 0
  #underWay = 0

  /** Whether rows were asked for that nobody has got yet: they may take long. */
  get isFetching(): boolean {
    return this.#underWay > 0
  }

  /** What is asked behind such rows waits for them. */
  protected override get patience() {
    return this.isFetching ? LONG_PATIENCE : {}
  }

  async *batches<Row>(statement: Statement, ...values: readonly Value[]): AsyncGenerator<readonly Row[]> {
    const cursor = `batches_${++this.#cursors}`
    const ask = (text: string, given?: readonly Value[]) => {
      this.#underWay++
      const answer = this.script(text, given).finally(() => this.#underWay--)
      // Whoever waits for it hears of it.
      answer.catch(() => {})
      return answer
    }
    const declared = ask(`DECLARE ${cursor} NO SCROLL CURSOR FOR ${this.textOf(statement)}`, values)
    // Asked for ahead: the database works while the rows at hand are looked at.
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
      // Not waited for: what was asked for ahead comes first.
      this.script(`CLOSE ${cursor}`).catch(() => {})
    }
  }
}

/** Statements that each are a transaction of their own; nothing can be left for later. */
export class SingleStatements extends PostgresSession implements Transaction {
  atCommit(statement: Statement): void {
    throw new TypeError(`'${statement.name}' would not be part of the transaction`)
  }
}

export class PostgresTransaction extends PostgresSession implements Transaction {
  isRerun = false
  readonly #atCommit: [Statement, readonly Value[]][] = []
  #isEmpty = true

  /** Whether nothing was asked for. */
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

  /** Sends what was left for the end and the COMMIT behind it in one flight, and waits for all of it. */
  async commit(): Promise<void> {
    const flight: Promise<unknown>[] = this.#atCommit.map(([statement, values]) =>
      this.run(statement, ...values),
    )
    const committed = this.text('COMMIT')
    this.end()
    await allOf(...flight, committed)
    // Behind a failure that the work kept to itself it rolls back, and only its tag says so.
    if ((await committed).command !== 'COMMIT')
      throw this.firstFailure ?? new Error('PostgreSQL rolled the transaction back')
  }
}

/**
 * The answers to one flight, once all are there: the connection is free only then. The first failure is the one that
 * counts: a COMMIT behind a failed statement reports no error of its own, it rolls back.
 */
async function allOf<const Flight extends readonly Promise<unknown>[]>(
  ...flight: Flight
): Promise<{ -readonly [Place in keyof Flight]: Awaited<Flight[Place]> }> {
  await Promise.allSettled(flight)
  return Promise.all(flight)
}

/** Ends a session with its work. */
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
  // Not awaited before the work starts: it shares the first statement's round trip.
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

/** A failed statement makes a ROLLBACK of the COMMIT behind it. Whatever else fails in the work comes too late for that. */
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
