/**
 * A database whose statements are looked at: PostgreSQL explains each with the values that it is called with, runs it, and
 * takes that back; then it is run. All in one transaction, which nobody commits.
 *
 * Ours are looked at twice: with the plan that a session has which ran them before, and with that of a new one.
 */
import pg from 'pg'
import type { Database, Session, Statement, Transaction, Value } from '../../src/db/database.ts'
import { settingsOf } from '../../src/db/postgres.ts'
import type { Adapter } from '../../src/outbox/adapters/adapter.ts'
import { shortHash } from '../../src/outbox/table-names.ts'
import type { PlanNode } from './explain.ts'

interface MeasuredNode extends PlanNode {
  readonly 'Actual Rows'?: number
  readonly 'Actual Loops'?: number
  readonly 'Rows Removed by Filter'?: number
  readonly 'Rows Removed by Index Recheck'?: number
  readonly Plans?: readonly MeasuredNode[]
}

/** A table or an index that was read, and what bounded it. */
export interface Scan {
  readonly type: string
  readonly relation: string
  readonly index: string | null
  readonly condition: string
}

/** What a statement did. */
export interface Sighting {
  readonly name: string
  readonly scans: readonly Scan[]
  /** The most rows that one sort had. */
  readonly sorted: number
  /** Rows that were met in tables and indexes, wanted or not, and rows that were given. */
  readonly rows: number
  /** Pages that were touched, in reading and in writing. */
  readonly pages: number
}

/** An application plans as it likes: for the values at hand, or once for all. */
const APPLICATION = (mode: 'custom' | 'generic') => `
  SET LOCAL enable_seqscan = on; SET LOCAL enable_bitmapscan = on; SET LOCAL enable_sort = on;
  SET LOCAL plan_cache_mode = force_${mode}_plan;`

export class WatchedPostgres implements Database {
  readonly dialect = 'postgres'
  readonly client: pg.Client
  readonly #kept = new Set<string>()
  #last: Promise<unknown> = Promise.resolve()
  #sightings: Sighting[] = []

  private constructor(client: pg.Client) {
    this.client = client
  }

  static async open(url: string): Promise<WatchedPostgres> {
    const client = new pg.Client({ connectionString: url })
    await client.connect()
    await client.query(`${settingsOf('SESSION')}; SET synchronous_commit = off`)
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

  /** The plan of a statement that is not run. */
  async explain({ name, postgres }: Statement): Promise<Sighting> {
    const { rows } = await this.client.query(`EXPLAIN (GENERIC_PLAN, FORMAT JSON) ${postgres}`)
    return sightingOf(name, rows[0]['QUERY PLAN'][0].Plan)
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

  snapshot<T>(_verb: string, work: (session: Session) => Promise<T>): Promise<T> {
    return work(this.#session)
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
      for (const mode of ['custom', 'generic'] as const)
        await this.#look(`${called} (${mode})`, text, values, APPLICATION(mode))
      return (await this.client.query(text, [...values])).rows
    },
  })

  readonly #session: Transaction = {
    dialect: 'postgres',
    rows: async (statement, ...values) => (await this.#inTurn(statement, values)).rows,
    run: async (statement, ...values) => (await this.#inTurn(statement, values)).rowCount ?? 0,
    runEach: async (statement, rows) => {
      for (const values of rows) await this.#inTurn(statement, values)
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
    const verb = name.split('.')[1] ?? name
    const kept = `kept_${shortHash(postgres)}`
    if (!this.#kept.has(kept)) await this.client.query(`PREPARE ${kept} AS ${postgres}`)
    this.#kept.add(kept)
    await this.#explainRun(verb, kept, values)
    await this.#look(verb, postgres, values, '')
    return this.client.query(postgres, [...values])
  }

  async #look(name: string, text: string, values: readonly Value[], settings: string): Promise<void> {
    // The writer asks the catalogue what the table is like.
    if (text.includes('pg_attribute')) return
    await this.client.query(`PREPARE looked AS ${text}`)
    await this.#explainRun(name, 'looked', values, settings)
    await this.client.query('DEALLOCATE looked')
  }

  async #explainRun(name: string, prepared: string, values: readonly Value[], settings = ''): Promise<void> {
    const given = values.length === 0 ? '' : `(${values.map(literal).join(', ')})`
    const results: unknown = await this.client.query(`SAVEPOINT look; ${settings}
      EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) EXECUTE ${prepared}${given};
      ROLLBACK TO SAVEPOINT look`)
    // Several statements give several results.
    for (const { rows } of results as pg.QueryResult[])
      if (rows[0]?.['QUERY PLAN'] !== undefined)
        this.#sightings.push(sightingOf(name, rows[0]['QUERY PLAN'][0].Plan))
  }
}

function literal(value: Value): string {
  if (value === null) return 'NULL'
  if (value instanceof Uint8Array) return `'\\x${Buffer.from(value).toString('hex')}'`
  return pg.escapeLiteral(String(value))
}

const nodesOf = (plan: MeasuredNode): readonly MeasuredNode[] => [
  plan,
  ...(plan.Plans ?? []).flatMap(nodesOf),
]

function sightingOf(name: string, plan: MeasuredNode): Sighting {
  const nodes = nodesOf(plan)
  const rowsOf = (node: MeasuredNode) =>
    ((node['Actual Rows'] ?? 0) +
      (node['Rows Removed by Filter'] ?? 0) +
      (node['Rows Removed by Index Recheck'] ?? 0)) *
    (node['Actual Loops'] ?? 0)
  const scans = nodes.filter(
    (node) => node['Relation Name'] !== undefined && / Scan$/.test(node['Node Type']),
  )
  return {
    name,
    scans: scans.map((node) => ({
      type: node['Node Type'],
      relation: node['Relation Name'] ?? '',
      index: node['Index Name'] ?? null,
      condition: node['Index Cond'] ?? '',
    })),
    sorted: Math.max(0, ...nodes.filter((node) => node['Node Type'].endsWith('Sort')).map(rowsOf)),
    rows: Math.round([plan, ...scans].reduce((sum, node) => sum + rowsOf(node), 0)),
    pages: (plan['Shared Hit Blocks'] ?? 0) + (plan['Shared Read Blocks'] ?? 0),
  }
}
