/**
 * A database whose statements are looked at: PostgreSQL explains each with the values that it is called with, runs it, and
 * takes that back; then it is run. All in one transaction, which nobody commits.
 *
 * Each is looked at twice: planned for its values, and with the plan that a session has after some calls.
 */
import pg from 'pg'
import type { Adapter } from '../../src/sources/outbox/adapters/adapter.ts'
import {
  type Database,
  parameterFor,
  type Session,
  type Snapshot,
  type Statement,
  type Transaction,
  type Value,
} from '../../src/store/database.ts'
import { asSnapshot } from '../world/as-snapshot.ts'
import { explainTwice, nodesOf, type PlanNode, pagesTouched, rowsMet } from './explain.ts'

/** What a statement did. */
export interface Sighting {
  readonly name: string
  /** The most rows that one sort had. */
  readonly sorted: number
  /** Rows that were met in tables and indexes, wanted or not, and rows that were given. */
  readonly rows: number
  /** Pages that were touched, in reading and in writing. */
  readonly pages: number
  /** What PostgreSQL thought that it would cost. */
  readonly cost: number
}

export class WatchedPostgres implements Database {
  readonly dialect = 'postgres'
  readonly client: pg.Client
  #last: Promise<unknown> = Promise.resolve()
  #sightings: Sighting[] = []

  private constructor(client: pg.Client) {
    this.client = client
  }

  static async open(url: string): Promise<WatchedPostgres> {
    const client = new pg.Client({ connectionString: url })
    await client.connect()
    await client.query('SET synchronous_commit = off')
    return new WatchedPostgres(client)
  }

  close(): Promise<void> {
    return this.client.end()
  }

  /** Runs `work` and gives what was seen of it. Nothing of it stays. */
  async watch(work: () => Promise<void>): Promise<readonly Sighting[]> {
    this.#sightings = []
    await this.client.query('BEGIN')
    try {
      await work()
      return this.#sightings
    } finally {
      await this.client.query('ROLLBACK')
    }
  }

  transaction<T>(_verb: string, work: (tx: Transaction) => Promise<T>): Promise<T> {
    return work(this.#session)
  }

  statement<T>(_verb: string, work: (tx: Transaction) => Promise<T>): Promise<T> {
    return work(this.#session)
  }

  session<T>(_verb: string, work: (session: Session) => Promise<T>): Promise<T> {
    return work(this.#session)
  }

  snapshot<T>(_verb: string, work: (session: Snapshot) => Promise<T>): Promise<T> {
    return work(asSnapshot(this.#session))
  }

  async script(): Promise<void> {}
  async notify(): Promise<void> {}
  async listen(): Promise<void> {}
  onCall(): void {}

  /** What an application has: a session with settings of its own. */
  application = (called: string): Adapter<null> => ({
    dialect: 'postgres',
    run: async (_tx, text, parameters) => {
      // What the writer passes are texts, bytes and nulls.
      const values = parameters as readonly Value[]
      await this.#look(called, text, values)
      return (await this.client.query(text, [...values])).rows
    },
  })

  readonly #session: Transaction = {
    dialect: 'postgres',
    rows: async (statement, ...values) => (await this.#inTurn(statement, values)).rows,
    run: async (statement, ...values) => (await this.#inTurn(statement, values)).rowCount ?? 0,
    runEach: async (statement, rows) => {
      let changed = 0
      for (const values of rows) changed += (await this.#inTurn(statement, values)).rowCount ?? 0
      return changed
    },
    atCommit: () => {
      throw new TypeError('nothing is committed')
    },
  }

  /** Statements may be issued without awaiting the one before. */
  #inTurn(statement: Statement, values: readonly Value[]): Promise<pg.QueryResult> {
    const turn = this.#last.then(() => this.#run(statement, values))
    this.#last = turn.catch(() => {})
    return turn
  }

  async #run({ name, postgres }: Statement, values: readonly Value[]) {
    await this.#look(name.split('.')[1] ?? name, postgres, values)
    return this.client.query(
      postgres,
      values.map((value) => parameterFor('postgres', value)),
    )
  }

  async #look(name: string, text: string, values: readonly Value[]): Promise<void> {
    // The writer asks the catalogue what the table is like.
    if (text.includes('pg_attribute')) return
    const { custom, kept } = await explainTwice(this.client, text, values.map(literal))
    for (const plan of [custom, kept]) this.#sightings.push(sightingOf(name, plan))
  }
}

function literal(value: Value): string {
  if (value === null) return 'NULL'
  if (value instanceof Uint8Array) return `'\\x${Buffer.from(value).toString('hex')}'`
  return pg.escapeLiteral(String(parameterFor('postgres', value)))
}

function sightingOf(name: string, plan: PlanNode): Sighting {
  const nodes = nodesOf(plan)
  const scans = nodes.filter(
    (node) => node['Relation Name'] !== undefined && / Scan$/.test(node['Node Type']),
  )
  return {
    name,
    sorted: Math.max(0, ...nodes.filter((node) => node['Node Type'].endsWith('Sort')).map(rowsMet)),
    rows: Math.round([plan, ...scans].reduce((sum, node) => sum + rowsMet(node), 0)),
    pages: pagesTouched(plan),
    cost: plan['Total Cost'] ?? 0,
  }
}
