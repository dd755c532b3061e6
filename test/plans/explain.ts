/** What statements read on PostgreSQL: a store with content, what the planner knows of it, and plans as it explains them. */
import pg from 'pg'
import { instant } from '../../src/core/clock.ts'
import { migrateStore } from '../../src/office.ts'
import { declaredStatements, parameterFor, type Statement, type Value } from '../../src/store/database.ts'
import { type FreshStore, freshPostgres } from '../world/stores.ts'
import { loadScript, type Sizes } from './load.ts'
import { azureScript } from './load-azure.ts'
import { kafkaScript } from './load-kafka.ts'
import { letterScript } from './load-letters.ts'
import { redriveScript } from './load-redrives.ts'
import { runScript } from './load-runs.ts'
import { webhookScript } from './load-webhooks.ts'

export const NOW = instant(1_800_000_000_000_000n)

/** PostgreSQL plans for the values of so many calls, and keeps a plan for all values then if that looks no dearer. */
const CALLS_UNTIL_KEPT = 5

/** Plans that are worse than this are not waited for. */
const LONGEST_MS = 20_000

/** `jit_above_cost` of a stock PostgreSQL. */
export const JIT_COST = 100_000

/** A table or index of more pages is large. */
const FEW_PAGES = 60

export interface PlanNode {
  readonly 'Node Type': string
  readonly 'Relation Name'?: string
  readonly 'Index Name'?: string
  readonly 'Index Cond'?: string
  readonly 'Total Cost'?: number
  readonly 'Actual Rows'?: number
  readonly 'Actual Loops'?: number
  readonly 'Rows Removed by Filter'?: number
  readonly 'Rows Removed by Index Recheck'?: number
  readonly 'Rows Removed by Join Filter'?: number
  readonly 'Shared Hit Blocks'?: number
  readonly 'Shared Read Blocks'?: number
  readonly Plans?: readonly PlanNode[]
}

export type Argument = Exclude<Value, Uint8Array>

type Values = readonly Argument[]

/** The values of a call; where they depend on how many letters the store has, or can be made only once all statements are declared. */
type CallValues = Values | ((letters: number) => Values)

/** With rows that a small store has too few of. */
interface Giving {
  readonly gives: number
  readonly values: Values
}

/** Calls by the name of their statement, and behind a comma by what is asked of it. */
export type Calls = Readonly<Record<string, CallValues | Giving>>

export const giving = (gives: number, values: Values): Giving => ({ gives, values })

export interface Call {
  /** Of the statement. */
  readonly name: string
  readonly asked: string
  readonly gives: number
  valuesFor(letters: number): Values
}

export const callsOf = (calls: Calls): readonly Call[] =>
  Object.entries(calls).map(([asked, given]) => {
    const [name = ''] = asked.split(',')
    const { gives, values } = 'gives' in given ? given : { gives: 0, values: given }
    return {
      name,
      asked,
      gives,
      valuesFor: (letters) => (typeof values === 'function' ? values(letters) : values),
    }
  })

export const HIGHEST = 9_223_372_036_854_775_807n
export const LOWEST = -9_223_372_036_854_775_808n
export const LATER = NOW + 30_000_000n

/** A list as PostgreSQL reads it. */
export const list = (values: Iterable<Argument>): string => `{${[...values].join(',')}}`

export const range = (first: number, length: number, step = 1): number[] =>
  Array.from({ length }, (_, i) => first + i * step)

export const nodesOf = (plan: PlanNode): readonly PlanNode[] => [plan, ...(plan.Plans ?? []).flatMap(nodesOf)]

/** Rows that a step of a plan has met, wanted or not. */
export const rowsMet = (node: PlanNode): number =>
  ((node['Actual Rows'] ?? 0) +
    (node['Rows Removed by Filter'] ?? 0) +
    (node['Rows Removed by Index Recheck'] ?? 0) +
    (node['Rows Removed by Join Filter'] ?? 0)) *
  (node['Actual Loops'] ?? 0)

export const pagesTouched = (plan: PlanNode): number =>
  (plan['Shared Hit Blocks'] ?? 0) + (plan['Shared Read Blocks'] ?? 0)

/** Rows that a step of a plan has written. */
const rowsWritten = ({ 'Node Type': type, Plans = [] }: PlanNode): number =>
  type === 'ModifyTable'
    ? Plans.reduce((sum, plan) => sum + (plan['Actual Rows'] ?? 0) * (plan['Actual Loops'] ?? 0), 0)
    : 0

/** What a statement did with some values. */
export interface Work {
  /** Rows that were written. */
  readonly written: number
  /** Rows that all steps of its plan met, so that what is sorted or joined counts as what is read. */
  readonly rows: number
  readonly pages: number
  /** What PostgreSQL thought that it would cost. */
  readonly cost: number
  /** The plan in a few words. */
  readonly shape: string
}

/** The same with a plan for its values, and with the plan that a session has after some calls. */
export interface Measured {
  readonly custom: Work
  readonly kept: Work
}

/** Both plans are taken as endless when one was. */
const ENDLESS: Work = {
  written: 0,
  rows: Number.POSITIVE_INFINITY,
  pages: Number.POSITIVE_INFINITY,
  cost: 0,
  shape: 'endless',
}

const shapeOf = (plan: PlanNode): string =>
  nodesOf(plan)
    .filter(({ 'Node Type': type }) => / Scan$|Sort$|Join$/.test(type))
    .map((node) =>
      [node['Node Type'], node['Index Name'] ?? node['Relation Name']].filter(Boolean).join(' of '),
    )
    .join(', ')

const workOf = (plan: PlanNode): Work => ({
  rows: Math.round(nodesOf(plan).reduce((sum, node) => sum + rowsMet(node), 0)),
  written: Math.round(nodesOf(plan).reduce((sum, node) => sum + rowsWritten(node), 0)),
  pages: pagesTouched(plan),
  cost: plan['Total Cost'] ?? 0,
  shape: shapeOf(plan),
})

/** The statement of this name. */
export function named(name: string): Statement {
  const statement = declaredStatements().find((each) => each.name === name)
  if (statement === undefined) throw new Error(`there is no statement '${name}'`)
  return statement
}

interface Explained {
  readonly rows: readonly { readonly 'QUERY PLAN'?: readonly [{ readonly Plan: PlanNode }] }[]
}

/** A store on PostgreSQL with content, and a session as ours are. */
export class ExplainedStore {
  readonly #place: FreshStore
  readonly #client: pg.Client
  /** The first column of every index of ours. */
  readonly #firstColumns: ReadonlyMap<string, string>
  /** Tables and indexes that are large. */
  readonly #large: ReadonlySet<string>

  private constructor(
    place: FreshStore,
    client: pg.Client,
    indexes: ReadonlyMap<string, string>,
    large: ReadonlySet<string>,
  ) {
    this.#place = place
    this.#client = client
    this.#firstColumns = indexes
    this.#large = large
  }

  static async open(sizes: Sizes): Promise<ExplainedStore> {
    const place = await freshPostgres()
    await migrateStore(place.url)
    const client = new pg.Client({ connectionString: place.url })
    await client.connect()
    // The tables get no statistics behind our back: what the planner knows is said below.
    const tables = await client.query<{ name: string }>(
      "SELECT schemaname || '.' || tablename AS name FROM pg_tables WHERE schemaname = 'bartleby'",
    )
    for (const { name } of tables.rows) {
      await client.query(`ALTER TABLE ${name} SET (autovacuum_enabled = off)`)
    }
    await client.query(`SET synchronous_commit = off; SET statement_timeout = 0`)
    await client.query(loadScript(sizes, NOW))
    await client.query(letterScript(sizes.letters, NOW))
    await client.query(webhookScript(sizes.jobs, sizes.letters, NOW))
    await client.query(kafkaScript(sizes.events, NOW))
    await client.query(azureScript(sizes.events, NOW))
    await client.query(redriveScript(sizes.letters, NOW))
    await client.query(runScript(sizes.jobs / 10, NOW))
    await client.query("SELECT gin_clean_pending_list('bartleby.letter_texts_words')")
    const { rows } = await client.query<{ name: string; first: string; large: boolean }>(
      `SELECT relname AS name, CASE WHEN relkind = 'i' THEN pg_get_indexdef(oid, 1, true) END AS first,
         pg_relation_size(oid) > ${FEW_PAGES} * current_setting('block_size')::int AS large
       FROM pg_class WHERE relnamespace = 'bartleby'::regnamespace AND relkind IN ('r', 'i')`,
    )
    const indexes = rows.filter(({ first }) => first !== null)
    return new ExplainedStore(
      place,
      client,
      new Map(indexes.map(({ name, first }) => [name, first])),
      new Set(rows.filter(({ large }) => large).map(({ name }) => name)),
    )
  }

  async close(): Promise<void> {
    await this.#client.end()
    await this.#place.dispose()
  }

  get url(): string {
    return this.#place.url
  }

  async analyze(): Promise<void> {
    await this.#client.query('VACUUM ANALYZE')
  }

  /** What the planner would know had all tables been analysed while they were empty. */
  async knowEmpty(): Promise<void> {
    await this.#client.query(
      `SELECT pg_clear_attribute_stats('bartleby', tablename, attname, inherited) FROM pg_stats WHERE schemaname = 'bartleby'`,
    )
    await this.#client.query(
      `SELECT pg_restore_relation_stats('schemaname', 'bartleby', 'relname', relname::text, 'relpages', CASE WHEN relkind = 'i' THEN 1 ELSE 0 END,
         'reltuples', 0::real, 'relallvisible', 0)
       FROM pg_class WHERE relnamespace = 'bartleby'::regnamespace AND relkind IN ('r', 'i')`,
    )
  }

  /** What the planner would know had all tables been analysed while they were those of another store. */
  async knowThoseOf(other: ExplainedStore): Promise<void> {
    const sizes = await other.#client.query(
      `SELECT relname, relpages, reltuples, relallvisible FROM pg_class
       WHERE relnamespace = 'bartleby'::regnamespace AND relkind IN ('r', 'i')`,
    )
    await this.#client.query(
      `SELECT pg_restore_relation_stats('schemaname', 'bartleby', 'relname', relname, 'relpages', relpages, 'reltuples', reltuples,
         'relallvisible', relallvisible)
       FROM json_to_recordset($1) AS known (relname text, relpages int, reltuples real, relallvisible int)`,
      [JSON.stringify(sizes.rows)],
    )
    const columns = await other.#client.query(
      `SELECT tablename, attname, null_frac, avg_width, n_distinct, most_common_vals::text, most_common_freqs::text,
         histogram_bounds::text, correlation
       FROM pg_stats WHERE schemaname = 'bartleby' AND tablename IN (SELECT tablename FROM pg_tables WHERE schemaname = 'bartleby')`,
    )
    await this.#client.query(
      `SELECT pg_restore_attribute_stats('schemaname', 'bartleby', 'relname', tablename, 'attname', attname, 'inherited', false,
         'null_frac', null_frac, 'avg_width', avg_width, 'n_distinct', n_distinct, 'most_common_vals', most_common_vals,
         'most_common_freqs', most_common_freqs::real[], 'histogram_bounds', histogram_bounds, 'correlation', correlation)
       FROM json_to_recordset($1) AS known (tablename text, attname text, null_frac real, avg_width int, n_distinct real,
         most_common_vals text, most_common_freqs text, histogram_bounds text, correlation real)`,
      [JSON.stringify(columns.rows)],
    )
  }

  /** What is wrong with the generic plan of a statement, which is not run. */
  async faultsOfGeneric({ postgres }: Statement): Promise<readonly string[]> {
    const [plan] = await plansOf(this.#client, `EXPLAIN (GENERIC_PLAN, FORMAT JSON) ${postgres}`)
    if (plan === undefined) throw new Error('EXPLAIN gave nothing')
    const cost = plan['Total Cost'] ?? 0
    return [
      ...(cost >= JIT_COST ? [`costs ${cost}`] : []),
      ...nodesOf(plan).flatMap((node) => this.#faultOf(node) ?? []),
    ]
  }

  #faultOf(node: PlanNode): string | null {
    const type = node['Node Type']
    const index = node['Index Name']
    if (type.endsWith('Sort')) return type
    if (type === 'Seq Scan' && this.#large.has(node['Relation Name'] ?? ''))
      return `reads all of ${node['Relation Name']}`
    if (index === undefined || !this.#large.has(index)) return null
    const first = this.#firstColumns.get(index) ?? ''
    const condition = node['Index Cond'] ?? ''
    // An expression stands in the condition as it stands in the index.
    const isBounded = first.includes('(')
      ? condition.includes(first)
      : new RegExp(`\\b${first}\\b`).test(condition)
    return isBounded ? null : `reads all of ${index}`
  }

  /** What a statement does when it is run with these values; nothing of it stays. */
  async measure(name: string, values: readonly Argument[]): Promise<Measured> {
    const given = values
      .map((value) => parameterFor('postgres', value))
      .map((value) => (typeof value === 'string' ? `'${value}'` : String(value ?? 'NULL')))
    try {
      await this.#client.query(`BEGIN; SET LOCAL statement_timeout = ${LONGEST_MS}; DEALLOCATE ALL`)
      const { custom, kept } = await explainTwice(this.#client, named(name).postgres, given)
      return { custom: workOf(custom), kept: workOf(kept) }
    } catch (error) {
      if (error instanceof pg.DatabaseError && error.code === '57014')
        return { custom: ENDLESS, kept: ENDLESS }
      throw new Error(`${name}: ${error instanceof Error ? error.message : error}`)
    } finally {
      await this.#client.query('ROLLBACK')
    }
  }
}

/** Runs a statement with the plan for its values, given as literals, and with the one that a session has after some calls. Nothing of it stays. */
export async function explainTwice(
  client: pg.Client,
  text: string,
  values: readonly string[],
): Promise<{ readonly custom: PlanNode; readonly kept: PlanNode }> {
  const call = values.length === 0 ? 'explained' : `explained(${values.join(', ')})`
  const run = `SAVEPOINT run; EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) EXECUTE ${call}; ROLLBACK TO SAVEPOINT run;`
  const plans = await plansOf(
    client,
    `PREPARE explained AS ${text}; ${run}
     ${`EXPLAIN (FORMAT JSON) EXECUTE ${call};`.repeat(CALLS_UNTIL_KEPT - 1)} ${run} DEALLOCATE explained`,
  )
  const [custom, kept] = [plans[0], plans.at(-1)]
  if (custom === undefined || kept === undefined) throw new Error('EXPLAIN gave nothing')
  return { custom, kept }
}

async function plansOf(client: pg.Client, text: string): Promise<PlanNode[]> {
  const answer: unknown = await client.query(text)
  // Several statements give several results.
  const results = (Array.isArray(answer) ? answer : [answer]) as readonly Explained[]
  return results.flatMap(({ rows }) => rows[0]?.['QUERY PLAN']?.[0].Plan ?? [])
}
