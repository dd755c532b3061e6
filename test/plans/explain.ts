/** Plans as PostgreSQL explains them, and a store whose statements are explained. */
import pg from 'pg'
import { instant } from '../../src/core/clock.ts'
import { declaredStatements, parameterFor, type Statement, type Value } from '../../src/db/database.ts'
import { settingsOf } from '../../src/db/postgres.ts'
import { migrateStore } from '../../src/office.ts'
import { type FreshStore, freshPostgres } from '../harness/stores.ts'
import { loadScript, type Sizes } from './load.ts'
import { kafkaScript } from './load-kafka.ts'
import { letterScript } from './load-letters.ts'
import { redriveScript } from './load-redrives.ts'
import { runScript } from './load-runs.ts'
import { webhookScript } from './load-webhooks.ts'

export const NOW = instant(1_800_000_000_000_000n)

/** The one statement that runs with settings of its own: its index can only be read as a bitmap. */
export const BITMAPS = 'search.filed'

export interface PlanNode {
  readonly 'Node Type': string
  readonly 'Relation Name'?: string
  readonly 'Index Name'?: string
  readonly 'Index Cond'?: string
  readonly 'Shared Hit Blocks'?: number
  readonly 'Shared Read Blocks'?: number
  readonly Plans?: readonly PlanNode[]
}

type Explained = { readonly 'QUERY PLAN': readonly [{ readonly Plan: PlanNode }] }

export type Argument = Exclude<Value, Uint8Array>

function* nodesOf(plan: PlanNode): Iterable<PlanNode> {
  yield plan
  for (const child of plan.Plans ?? []) yield* nodesOf(child)
}

/** The indexes that a plan reads, each with the condition that bounds it. */
export const searchesOf = (plan: PlanNode): string[] =>
  [...nodesOf(plan)].flatMap((node) =>
    node['Index Name'] === undefined ? [] : `${node['Index Name']} ${node['Index Cond'] ?? ''}`,
  )

/** What a plan has that grows with the table. */
export interface Faults {
  readonly sorts: readonly string[]
  /** Scans of a whole table or index; a condition that leaves the first column of an index open reads all of it. */
  readonly scans: readonly string[]
}

/** The statement of this name. */
export function named(name: string): Statement {
  const statement = declaredStatements().find((each) => each.name === name)
  if (statement === undefined) throw new Error(`there is no statement '${name}'`)
  return statement
}

/** A store on PostgreSQL with or without content, and a session as ours are. */
export class ExplainedStore {
  readonly #place: FreshStore
  readonly #client: pg.Client
  /** The first column of every index of ours. */
  readonly #firstColumns: ReadonlyMap<string, string>

  private constructor(place: FreshStore, client: pg.Client, firstColumns: ReadonlyMap<string, string>) {
    this.#place = place
    this.#client = client
    this.#firstColumns = firstColumns
  }

  static async open(sizes: Sizes | null): Promise<ExplainedStore> {
    const place = await freshPostgres()
    await migrateStore(place.url)
    const client = new pg.Client({ connectionString: place.url })
    await client.connect()
    // The tables get no statistics behind our back: some variants of the test are about having none.
    const tables = await client.query<{ name: string }>(
      "SELECT schemaname || '.' || tablename AS name FROM pg_tables WHERE schemaname = 'bartleby'",
    )
    for (const { name } of tables.rows) {
      await client.query(`ALTER TABLE ${name} SET (autovacuum_enabled = off)`)
    }
    const indexes = await client.query<{ name: string; first: string }>(
      `SELECT relname AS name, pg_get_indexdef(oid, 1, true) AS first FROM pg_class
       WHERE relnamespace = 'bartleby'::regnamespace AND relkind = 'i'`,
    )
    await client.query(`${settingsOf('SESSION')}; SET synchronous_commit = off`)
    if (sizes !== null) {
      await client.query(loadScript(sizes, NOW))
      await client.query(letterScript(sizes.letters, NOW))
      await client.query(webhookScript(sizes.jobs, sizes.letters, NOW))
      await client.query(kafkaScript(sizes.events, NOW))
      await client.query(redriveScript(sizes.letters, NOW))
      await client.query(runScript(sizes.jobs / 10, NOW))
      await client.query("SELECT gin_clean_pending_list('bartleby.letter_texts_words')")
    }
    return new ExplainedStore(place, client, new Map(indexes.rows.map(({ name, first }) => [name, first])))
  }

  async close(): Promise<void> {
    await this.#client.end()
    await this.#place.dispose()
  }

  async analyze(): Promise<void> {
    await this.#client.query('VACUUM ANALYZE')
  }

  /** The generic plan of a statement, as a session that runs it often has it. */
  async plan({ name, postgres }: Statement): Promise<PlanNode> {
    const text = `EXPLAIN (GENERIC_PLAN, FORMAT JSON) ${postgres}`
    return name === BITMAPS ? this.#explain(name, text) : this.#planOf(text)
  }

  faultsOf(plan: PlanNode): Faults {
    const nodes = [...nodesOf(plan)]
    return {
      sorts: nodes.map((node) => node['Node Type']).filter((type) => type.endsWith('Sort')),
      scans: nodes.flatMap((node) => this.#scanFault(node) ?? []),
    }
  }

  #scanFault(node: PlanNode): string | null {
    const {
      'Node Type': type,
      'Relation Name': relation,
      'Index Name': index,
      'Index Cond': condition,
    } = node
    if (type === 'Seq Scan' || type.startsWith('Bitmap')) return `${type} ${relation ?? index}`
    const first = this.#firstColumns.get(index ?? '')
    // Without a first column it is an index of the catalogue.
    if (!type.startsWith('Index') || first === undefined) return null
    // An expression stands in the condition as it stands in the index.
    const bounded = first.includes('(')
      ? condition?.includes(first)
      : new RegExp(`\\b${first}\\b`).test(condition ?? '')
    return bounded ? null : `${type} of all of ${index}`
  }

  /** Pages that a statement touches when it is run with these values; nothing of it stays. */
  async pages(name: string, values: readonly Argument[]): Promise<number> {
    await this.#client.query(`DEALLOCATE ALL; PREPARE measured AS ${named(name).postgres}`)
    const given = values
      .map((value) => parameterFor('postgres', value))
      .map((value) => (typeof value === 'string' ? `'${value}'` : String(value ?? 'NULL')))
    const call = given.length === 0 ? 'measured' : `measured(${given.join(', ')})`
    const plan = await this.#explain(name, `EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) EXECUTE ${call}`)
    return (plan['Shared Hit Blocks'] ?? 0) + (plan['Shared Read Blocks'] ?? 0)
  }

  async #explain(name: string, text: string): Promise<PlanNode> {
    await this.#client.query('BEGIN')
    try {
      if (name === BITMAPS) {
        await this.#client.query('SET LOCAL enable_bitmapscan = on; SET LOCAL enable_indexscan = off')
      }
      return await this.#planOf(text)
    } finally {
      await this.#client.query('ROLLBACK')
    }
  }

  async #planOf(text: string): Promise<PlanNode> {
    const { rows } = await this.#client.query<Explained>(text)
    const [row] = rows
    if (row === undefined) throw new Error('EXPLAIN gave nothing')
    return row['QUERY PLAN'][0].Plan
  }
}
