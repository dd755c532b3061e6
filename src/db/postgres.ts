/**
 * PostgreSQL through node-postgres. Connections are pipelined, so that BEGIN travels with the first statement.
 * Nothing is set: sessions are as the server makes them, and the planner chooses.
 */
import pg from 'pg'
import { BartlebyError } from '../core/errors.ts'
import { type Log, silentLog } from '../core/log.ts'
import { withAttempts } from './attempts.ts'
import {
  BATCH_ROWS,
  CommittedAnyway,
  type Database,
  parameterFor,
  type Session,
  type Snapshot,
  type SnapshotOptions,
  type Statement,
  type StoreCall,
  StoreUnavailable,
  type Transaction,
  type TransactionOptions,
  type Value,
} from './database.ts'
import { GatheringSocket } from './gathering-socket.ts'
import { isPlaceGone } from './missing-value.ts'
import { isPooled } from './pooler.ts'

const BEGIN = 'BEGIN'
/** The moment of a snapshot is that of the first query behind BEGIN. */
const BEGIN_READING = 'BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SELECT 1'

/**
 * The longest that a connection keeps a plan. PostgreSQL plans by the true size of a table, but a plan that was made while the
 * table was empty reads it from end to end, and stays when a million rows have arrived.
 */
const PLANS_KEPT_MS = 2_000
const GIVE_UP_PLANS = 'DISCARD PLANS'

const SERIALISATION_FAILURE = '40001'
const DEADLOCK = '40P01'
/** Two made the same row at once: run again, the loser finds the other's. Inserts that expect a twin say ON CONFLICT. */
const TWIN = '23505'
const IN_FAILED_TRANSACTION = '25P02'
const LOST_RACES: readonly string[] = [SERIALISATION_FAILURE, DEADLOCK, TWIN]

/**
 * A server that does not answer for this long counts as gone, as when a machine vanishes without closing its
 * connections: TCP alone would wait for a quarter of an hour. `query_timeout` in the URL overrides it.
 */
const ANSWER_TIMEOUT_MS = 20_000
/** Migrations may take their time, and wait for another server's. */
const LONG_PATIENCE = { query_timeout: 3_600_000 }
/** Idle connections are probed, so that a lost one is not met by the next who needs it. */
const PROBES = { keepAlive: true, keepAliveInitialDelayMillis: 10_000 }
const CONNECT_TIMEOUT_MS = 5_000

export interface PostgresOptions {
  readonly poolSize: number
  /** Where notifications are heard when the store is reached through a pooler; left out, where the store is. */
  readonly listenUrl?: string
  readonly log?: Log
}

/** A client of ours: pipelined, and on a socket that can be closed whatever it waits for. */
class DroppableClient extends pg.Client {
  readonly #socket: GatheringSocket

  constructor(config?: pg.ClientConfig) {
    const socket = new GatheringSocket()
    super({ ...config, pipeline: true, stream: () => socket })
    this.#socket = socket
  }

  /** Closes the connection at once. What it was asked fails; `end` would wait for the answers. */
  drop(): void {
    this.#socket.destroy()
  }
}

/** A connection to use for a while. */
interface Connection {
  readonly client: pg.ClientBase
  /** Whether a pooler lends it by the transaction: nothing that a session keeps is there for the next. */
  readonly isPooled: boolean
}

interface LentConnection extends Connection {
  /** Closes it at once, whatever it waits for, and keeps others from getting it. */
  drop(): void
}

const toParameter = (value: Value) => parameterFor('postgres', value)

/** Statements of a transaction that is open. */
class PostgresSession implements Session {
  readonly dialect = 'postgres'
  readonly #client: pg.ClientBase
  readonly #isPooled: boolean
  protected isOver = false
  protected firstFailure: unknown

  constructor({ client, isPooled }: Connection) {
    this.#client = client
    this.#isPooled = isPooled
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
    const query = { text: statement.postgres, values: values.map(toParameter), ...this.patience }
    const isNamed = statement.plan !== 'anew' && !this.#isPooled
    const answer = this.#client.query(isNamed ? { ...query, name: statement.name } : query)
    answer.catch((error: unknown) => {
      this.firstFailure ??= error
    })
    return answer
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
class PostgresSnapshot extends PostgresSession implements Snapshot {
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
    const declared = ask(`DECLARE ${cursor} NO SCROLL CURSOR FOR ${statement.postgres}`, values)
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
class SingleStatements extends PostgresSession implements Transaction {
  atCommit(statement: Statement): void {
    throw new TypeError(`'${statement.name}' would not be part of the transaction`)
  }
}

class PostgresTransaction extends PostgresSession implements Transaction {
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

export class PostgresDatabase implements Database {
  readonly dialect = 'postgres'
  readonly #pool: pg.Pool
  /** How every connection is made. */
  readonly #connection: pg.ClientConfig
  readonly #listenUrl: string | undefined
  readonly #log: Log
  /** Until when each connection of the pool keeps its plans; those behind a pooler have none. */
  readonly #plansKeptUntil = new WeakMap<pg.ClientBase, number>()
  readonly #listeners: ((call: StoreCall) => void)[] = []
  readonly #heard = new Map<string, (payload: string) => void>()
  /** undefined: nobody listens yet, or nothing can be heard, through a pooler. */
  #ear: pg.Client | undefined
  #earOpened: Promise<void> | undefined
  #earRetry: NodeJS.Timeout | undefined
  #closed = false

  constructor(url: string, options: PostgresOptions) {
    this.#connection = {
      connectionString: url,
      ...PROBES,
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
      query_timeout: ANSWER_TIMEOUT_MS,
    }
    this.#listenUrl = options.listenUrl
    this.#log = options.log ?? silentLog
    this.#pool = new pg.Pool({
      ...this.#connection,
      Client: DroppableClient,
      max: options.poolSize,
      idleTimeoutMillis: 30_000,
      allowExitOnIdle: true,
      application_name: 'bartleby',
      // Waited for, although its type does not say so.
      onConnect: async (client) => {
        if (!(await isPooled(client, CONNECT_TIMEOUT_MS)))
          this.#plansKeptUntil.set(client, performance.now() + PLANS_KEPT_MS)
      },
    })
    // A broken idle connection is replaced by the pool; whoever needs the store next meets the outage itself.
    this.#pool.on('error', () => {})
  }

  async transaction<T>(
    verb: string,
    work: (tx: Transaction) => Promise<T>,
    { oneTrip = false }: TransactionOptions = {},
  ): Promise<T> {
    const attempt = (isRerun: boolean) =>
      this.#connected((connection) => {
        const tx = new PostgresTransaction(connection)
        tx.isRerun = isRerun
        return lasting(tx, () => (oneTrip ? commitInOneTrip(tx, work) : commit(tx, work)))
      })
    return this.#observed(verb, () => withAttempts(attempt, lostRace), true)
  }

  async statement<T>(verb: string, work: (tx: Transaction) => Promise<T>): Promise<T> {
    const attempt = () => this.#connected((connection) => lasting(new SingleStatements(connection), work))
    return this.#observed(verb, () => withAttempts(attempt, lostRace), true)
  }

  async session<T>(verb: string, work: (session: Session) => Promise<T>): Promise<T> {
    return this.#observed(verb, () =>
      this.#connected((connection) => lasting(new SingleStatements(connection), work)),
    )
  }

  async snapshot<T>(
    verb: string,
    work: (session: Snapshot) => Promise<T>,
    { apart = false, signal }: SnapshotOptions = {},
  ): Promise<T> {
    const read = async (connection: LentConnection): Promise<T> => {
      signal?.throwIfAborted()
      const session = new PostgresSnapshot(connection)
      signal?.addEventListener('abort', connection.drop)
      try {
        const begun = session.text(BEGIN_READING)
        // Shares the trip of the first statement, unless the moment matters to others than those who read.
        begun.catch(() => {})
        if (apart) await begun
        const result = await lasting(session, work)
        await begun
        return result
      } catch (error) {
        signal?.throwIfAborted()
        throw session.causeOf(error)
      } finally {
        signal?.removeEventListener('abort', connection.drop)
        // Nobody waits for rows that nobody wants; ROLLBACK would come behind them.
        if (session.isFetching) connection.drop()
        else {
          // Nor for its end: who gets the connection next is served behind it.
          const ended = session.text('ROLLBACK').catch(() => {})
          if (apart) await ended
        }
      }
    }
    return this.#observed(verb, () => (apart ? this.#alone(read) : this.#connected(read)))
  }

  async script(tx: Transaction, text: string): Promise<void> {
    if (!(tx instanceof PostgresTransaction)) throw new TypeError('not a transaction of this database')
    await tx.script(text)
  }

  async notify(channel: string, payload: string): Promise<void> {
    await this.#pool.query('SELECT pg_notify($1, $2)', [channel, payload])
  }

  async listen(channel: string, hear: (payload: string) => void): Promise<void> {
    this.#heard.set(channel, hear)
    if (this.#earOpened === undefined) {
      this.#earOpened = this.#openEar()
      return this.#earOpened
    }
    // Not before it is known who is there: on a connection of a pooler nobody listens.
    await this.#earOpened
    // One connection hears all channels; while it is lost this fails, and the next one listens to all of them.
    if (this.#ear !== undefined) await listenTo(this.#ear, channel).catch(() => {})
  }

  onCall(listener: (call: StoreCall) => void): void {
    this.#listeners.push(listener)
  }

  async close(): Promise<void> {
    this.#closed = true
    clearTimeout(this.#earRetry)
    await this.#ear?.end().catch(() => {})
    await this.#pool.end()
  }

  #connected<T>(work: (connection: LentConnection) => Promise<T>): Promise<T> {
    return onConnection(work, async () => {
      const client = await this.#pool.connect()
      const isPooled = !this.#plansKeptUntil.has(client)
      this.#givePlansUp(client)
      return { client, isPooled, leave: async (broken) => client.release(broken) }
    })
  }

  /** Old plans go, with whatever is sent next: it costs no trip of its own. */
  #givePlansUp(client: pg.ClientBase): void {
    const now = performance.now()
    if (now < (this.#plansKeptUntil.get(client) ?? Number.POSITIVE_INFINITY)) return
    this.#plansKeptUntil.set(client, now + PLANS_KEPT_MS)
    // A lost connection is met by the statement behind it.
    client.query(GIVE_UP_PLANS).catch(() => {})
  }

  /** On a connection that nobody else uses, before or after. */
  #alone<T>(work: (connection: LentConnection) => Promise<T>): Promise<T> {
    return onConnection(work, async () => {
      const client = new DroppableClient({ ...this.#connection, application_name: 'bartleby' })
      const leave = () => client.end().catch(() => {})
      try {
        await client.connect()
        return { client, isPooled: await isPooled(client, CONNECT_TIMEOUT_MS), leave }
      } catch (error) {
        await leave()
        throw error
      }
    })
  }

  async #observed<T>(verb: string, call: () => Promise<T>, writes = false): Promise<T> {
    const startedAt = performance.now()
    let ok = false
    let refused = false
    try {
      const result = await call()
      ok = true
      return result
    } catch (error) {
      refused = writes && !(error instanceof BartlebyError)
      throw error
    } finally {
      const seconds = (performance.now() - startedAt) / 1000
      for (const listener of this.#listeners) listener({ verb, seconds, ok, writes, refused })
    }
  }

  /** Keeps one connection listening; after a loss it comes back by itself, and polling covers the gap. */
  async #openEar(): Promise<void> {
    const at = this.#listenUrl === undefined ? {} : { connectionString: this.#listenUrl }
    const ear = new pg.Client({ ...this.#connection, ...at, application_name: 'bartleby-listen' })
    ear.on('notification', ({ channel, payload }) => this.#heard.get(channel)?.(payload ?? ''))
    // Every one of them: a server that shuts down says so and then closes, and an error that nobody hears ends the process.
    const lost = () => {
      if (this.#ear === ear) this.#reopenEar()
    }
    ear.on('error', lost)
    ear.on('end', lost)
    this.#ear = ear
    try {
      await ear.connect()
      if (await isPooled(ear, CONNECT_TIMEOUT_MS)) return await this.#goDeaf(ear)
      for (const channel of this.#heard.keys()) await listenTo(ear, channel)
    } catch {
      await ear.end().catch(() => {})
    }
  }

  /** A pooler would give the connection that listens to somebody else. */
  async #goDeaf(ear: pg.Client): Promise<void> {
    this.#ear = undefined
    const { host, database } = ear
    this.#log.warn(
      { host, database },
      'PostgreSQL is reached through a pooler: statements are not prepared, and what others do is looked for now and then; to hear of it ' +
        "at once, give PostgreSQL's own address: for the store as postgres.listenUrl, for an outbox in another database as its url",
    )
    await ear.end().catch(() => {})
  }

  #reopenEar(): void {
    if (this.#closed || this.#earRetry !== undefined) return
    this.#earRetry = setTimeout(() => {
      this.#earRetry = undefined
      this.#earOpened = this.#openEar()
    }, 1_000)
    this.#earRetry.unref()
  }
}

/** Ends a session with its work. */
async function lasting<S extends PostgresSession, T>(
  session: S,
  work: (session: S) => Promise<T>,
): Promise<T> {
  try {
    return await work(session)
  } finally {
    session.end()
  }
}

/** Runs `work` on a connection, and leaves it, broken or not. */
async function onConnection<T>(
  work: (connection: LentConnection) => Promise<T>,
  connect: () => Promise<Connection & { leave(broken: boolean): Promise<void> }>,
): Promise<T> {
  const { leave, ...connection } = await connect().catch((error: unknown) => {
    throw new StoreUnavailable(`cannot connect to PostgreSQL: ${messageOf(error)}`, { cause: error })
  })
  const { client } = connection
  let broken = false
  const onError = () => {
    broken = true
  }
  const drop = () => {
    broken = true
    if (client instanceof DroppableClient) client.drop()
  }
  client.on('error', onError)
  try {
    return await work({ ...connection, drop })
  } catch (error) {
    if (!isOutage(error)) throw error
    broken ||= !(error instanceof pg.DatabaseError)
    throw new StoreUnavailable(`PostgreSQL failed: ${messageOf(error)}`, { cause: error })
  } finally {
    await leave(broken)
    client.off('error', onError)
  }
}

const listenTo = (ear: pg.Client, channel: string): Promise<unknown> =>
  ear.query(`LISTEN ${ear.escapeIdentifier(channel)}`)

async function commit<T>(tx: PostgresTransaction, work: (tx: Transaction) => Promise<T>): Promise<T> {
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
async function commitInOneTrip<T>(
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

const messageOf = (error: unknown): string =>
  error instanceof Error ? error.message || error.name : String(error)

function lostRace(error: unknown): boolean {
  if (isPlaceGone(error)) return true
  return error instanceof pg.DatabaseError && LOST_RACES.includes(error.code ?? '')
}

/** What node-postgres says, without a code, when a connection is lost or was never made. */
const CONNECTION_LOST =
  /^(Connection terminated|Client has encountered a connection error|Client was closed|Query read timeout|timeout expired)/

/** Connection losses, also of who was silent for too long (25P03), a server that only reads (25006), shutdowns (57P), resource limits such as a full disk (53) and system errors (58). */
function isOutage(error: unknown): boolean {
  if (error instanceof pg.DatabaseError) return /^(08|25006|25P03|53|57P|58)/.test(error.code ?? '')
  if (!(error instanceof Error)) return false
  return (
    ('code' in error && typeof error.code === 'string' && /^E[A-Z]+$/.test(error.code)) ||
    CONNECTION_LOST.test(error.message)
  )
}
