/** PostgreSQL through node-postgres. Connections are pipelined: BEGIN travels with the first statement. No setting of the server is changed. */
import pg from 'pg'
import { type Log, silentLog } from '../core/log.ts'
import type {
  Database,
  Session,
  Snapshot,
  SnapshotOptions,
  StoreCall,
  Transaction,
  TransactionOptions,
} from './database.ts'
import { isPlaceGone } from './missing-value.ts'
import {
  CONNECT_TIMEOUT_MS,
  DroppableClient,
  type LentConnection,
  lookBehind,
  onConnection,
} from './postgres-connection.ts'
import { Ear } from './postgres-ear.ts'
import {
  BEGIN_READING,
  commit,
  commitInOneTrip,
  lasting,
  PostgresSnapshot,
  PostgresTransaction,
  SingleStatements,
} from './postgres-session.ts'
import { StoreCalls, withAttempts } from './store-calls.ts'

/** The longest life of a plan: one made while a table was empty reads it from end to end, also with a million rows. */
const PLANS_KEPT_MS = 2_000
const GIVE_UP_PLANS = 'DISCARD PLANS'

const SERIALISATION_FAILURE = '40001'
const DEADLOCK = '40P01'
/** Two made the same row: run again, the loser finds it. Inserts that expect this say ON CONFLICT. */
const TWIN = '23505'
const LOST_RACES: readonly string[] = [SERIALISATION_FAILURE, DEADLOCK, TWIN]

/** A server silent for so long counts as gone; TCP would wait a quarter of an hour. `query_timeout` in the URL overrides it. */
const ANSWER_TIMEOUT_MS = 20_000
/** Probes find lost idle connections before they are needed. */
const PROBES = { keepAlive: true, keepAliveInitialDelayMillis: 10_000 }

export interface PostgresOptions {
  readonly poolSize: number
  /** Where notifications are heard when the store is behind a pooler. */
  readonly listenUrl?: string
  readonly log?: Log
}

export class PostgresDatabase implements Database {
  readonly dialect = 'postgres'
  readonly #pool: pg.Pool
  readonly #connection: pg.ClientConfig
  readonly #ear: Ear
  /** When plans of a connection are discarded; poolers keep none. */
  readonly #plansKeptUntil = new WeakMap<pg.ClientBase, number>()
  /** As the newest connection found it. */
  #isOlder = false
  readonly #calls = new StoreCalls()

  constructor(url: string, options: PostgresOptions) {
    this.#connection = {
      connectionString: url,
      ...PROBES,
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
      query_timeout: ANSWER_TIMEOUT_MS,
    }
    const { listenUrl = url, log = silentLog } = options
    this.#ear = new Ear({ ...this.#connection, connectionString: listenUrl }, log)
    this.#pool = new pg.Pool({
      ...this.#connection,
      Client: DroppableClient,
      max: options.poolSize,
      idleTimeoutMillis: 30_000,
      allowExitOnIdle: true,
      application_name: 'bartleby',
      // Awaited, although its type does not say so.
      onConnect: async (client) => {
        const { isPooled, isOlder } = await lookBehind(client, CONNECT_TIMEOUT_MS)
        this.#isOlder = isOlder
        if (!isPooled) this.#plansKeptUntil.set(client, performance.now() + PLANS_KEPT_MS)
      },
    })
    // The pool replaces a broken idle connection; the next user meets the outage itself.
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
    return this.#calls.observe(verb, () => withAttempts(attempt, lostRace), true)
  }

  async statement<T>(verb: string, work: (tx: Transaction) => Promise<T>): Promise<T> {
    const attempt = () => this.#connected((connection) => lasting(new SingleStatements(connection), work))
    return this.#calls.observe(verb, () => withAttempts(attempt, lostRace), true)
  }

  async session<T>(verb: string, work: (session: Session) => Promise<T>): Promise<T> {
    return this.#calls.observe(verb, () =>
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
        // Shares the trip of the first statement, unless others depend on the moment.
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
        // ROLLBACK would wait for rows that nobody wants.
        if (session.isFetching) connection.drop()
        else {
          // Nor is its end awaited: the next user of the connection is served after it.
          const ended = session.text('ROLLBACK').catch(() => {})
          if (apart) await ended
        }
      }
    }
    return this.#calls.observe(verb, () => (apart ? this.#alone(read) : this.#connected(read)))
  }

  async script(tx: Transaction, text: string): Promise<void> {
    if (!(tx instanceof PostgresTransaction)) throw new TypeError('not a transaction of this database')
    await tx.script(text)
  }

  async notify(channel: string, payload: string): Promise<void> {
    await this.#pool.query('SELECT pg_notify($1, $2)', [channel, payload])
  }

  listen(channel: string, hear: (payload: string) => void): Promise<void> {
    return this.#ear.listen(channel, hear)
  }

  onCall(listener: (call: StoreCall) => void): void {
    this.#calls.listen(listener)
  }

  async close(): Promise<void> {
    await this.#ear.close()
    await this.#pool.end()
  }

  #connected<T>(work: (connection: LentConnection) => Promise<T>): Promise<T> {
    return onConnection(work, async () => {
      const client = await this.#pool.connect()
      const isPooled = !this.#plansKeptUntil.has(client)
      this.#givePlansUp(client)
      return { client, isPooled, isOlder: this.#isOlder, leave: async (broken) => client.release(broken) }
    })
  }

  /** Travels with the next statement, without a trip of its own. */
  #givePlansUp(client: pg.ClientBase): void {
    const now = performance.now()
    if (now < (this.#plansKeptUntil.get(client) ?? Number.POSITIVE_INFINITY)) return
    this.#plansKeptUntil.set(client, now + PLANS_KEPT_MS)
    // The next statement meets a lost connection.
    client.query(GIVE_UP_PLANS).catch(() => {})
  }

  /** On a connection of its own. */
  #alone<T>(work: (connection: LentConnection) => Promise<T>): Promise<T> {
    return onConnection(work, async () => {
      const client = new DroppableClient({ ...this.#connection, application_name: 'bartleby' })
      const leave = () => client.end().catch(() => {})
      try {
        await client.connect()
        return { client, ...(await lookBehind(client, CONNECT_TIMEOUT_MS)), leave }
      } catch (error) {
        await leave()
        throw error
      }
    })
  }
}

function lostRace(error: unknown): boolean {
  if (isPlaceGone(error)) return true
  return error instanceof pg.DatabaseError && LOST_RACES.includes(error.code ?? '')
}
