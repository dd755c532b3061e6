/**
 * The plans of all statements of the queues on PostgreSQL, at a million items: no Sort and no Seq Scan, with fresh
 * statistics and with none, and a lease that reads as little of a million items as of a thousand.
 */
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { instant } from '../../src/core/clock.ts'
import { declaredStatements, type Statement } from '../../src/db/database.ts'
import { PLANNER_SETTINGS } from '../../src/db/postgres.ts'
import { migrateStore } from '../../src/office.ts'
import { type FreshStore, freshPostgres } from '../harness/stores.ts'
import { LEASED, loadScript, PART, type Sizes } from './load.ts'

const NOW = instant(1_800_000_000_000_000n)
const LARGE: Sizes = { ready: 1_000_000, scheduled: 100_000, others: 50_000 }
const SMALL: Sizes = { ready: 1_000, scheduled: 100, others: 50 }

/** Statements that may read something from end to end, and why that stays small. */
const EXCEPTIONS: Readonly<Record<string, string>> = {
  'office.ping': 'counts the migrations, of which there is a handful',
  'migrations.version': 'reads the migrations, of which there is a handful',
  'due.held': 'its partial index holds nothing but the items it looks for',
  'purge.read': 'its table holds nothing but the partitions of queues that were just deleted',
  'purge.batches': 'runs in the background, for the partitions of a deleted queue',
}

interface PlanNode {
  readonly 'Node Type': string
  readonly 'Relation Name'?: string
  readonly 'Index Name'?: string
  readonly 'Index Cond'?: string
  readonly 'Shared Hit Blocks'?: number
  readonly 'Shared Read Blocks'?: number
  readonly Plans?: readonly PlanNode[]
}

type Explained = { readonly 'QUERY PLAN': readonly [{ readonly Plan: PlanNode }] }

function* nodesOf(plan: PlanNode): Iterable<PlanNode> {
  yield plan
  for (const child of plan.Plans ?? []) yield* nodesOf(child)
}

/** What a plan has that grows with the table: sorts, scans of a whole table, scans of a whole index. */
function faults(plan: PlanNode): string[] {
  return [...nodesOf(plan)].flatMap((node) => {
    const { 'Node Type': type, 'Relation Name': relation = '', 'Index Name': index = '' } = node
    if (type === 'Sort' || type === 'Incremental Sort') return [type]
    if (type === 'Seq Scan' || type.startsWith('Bitmap')) return [`${type} ${relation}`]
    return type.startsWith('Index') && index !== '' && node['Index Cond'] === undefined
      ? [`${type} of all of ${index}`]
      : []
  })
}

class Loaded {
  readonly #place: FreshStore
  readonly #client: pg.Client

  private constructor(place: FreshStore, client: pg.Client) {
    this.#place = place
    this.#client = client
  }

  static async open(sizes: Sizes): Promise<Loaded> {
    const place = await freshPostgres()
    await migrateStore(place.url)
    const client = new pg.Client({ connectionString: place.url })
    await client.connect()
    // The tables get no statistics behind our back: one variant of the test is about having none.
    await client.query('ALTER TABLE bartleby.items SET (autovacuum_enabled = off)')
    await client.query(`${PLANNER_SETTINGS}; SET synchronous_commit = off`)
    await client.query(loadScript(sizes, NOW))
    return new Loaded(place, client)
  }

  async close(): Promise<void> {
    await this.#client.end()
    await this.#place.dispose()
  }

  async analyze(): Promise<void> {
    await this.#client.query('ANALYZE')
  }

  /** The generic plan of a statement, as a session that runs it often has it. */
  async plan({ postgres }: Statement): Promise<PlanNode> {
    const { rows } = await this.#client.query<Explained>(`EXPLAIN (GENERIC_PLAN, FORMAT JSON) ${postgres}`)
    const [row] = rows
    if (row === undefined) throw new Error('EXPLAIN gave nothing')
    return row['QUERY PLAN'][0].Plan
  }

  /** Pages that a statement touches when it is run with these values; nothing of it stays. */
  async pages(name: string, values: readonly (string | bigint | number)[]): Promise<number> {
    const statement = declaredStatements().find((each) => each.name === name)
    if (statement === undefined) throw new Error(`there is no statement '${name}'`)
    await this.#client.query(`PREPARE measured AS ${statement.postgres}`)
    await this.#client.query('BEGIN')
    const given = values.map((value) => (typeof value === 'string' ? `'${value}'` : value)).join(', ')
    const { rows } = await this.#client.query<Explained>(
      `EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) EXECUTE measured(${given})`,
    )
    await this.#client.query('ROLLBACK; DEALLOCATE measured')
    const [row] = rows
    if (row === undefined) throw new Error('EXPLAIN gave nothing')
    const { Plan } = row['QUERY PLAN'][0]
    return (Plan['Shared Hit Blocks'] ?? 0) + (Plan['Shared Read Blocks'] ?? 0)
  }
}

// Other test files of the same run declare statements too, on tables of their own; and verify reads everything, as it
// should.
const statements = declaredStatements().filter(
  ({ name, postgres }) => postgres !== '' && !/^(test|verify)\./.test(name),
)

describe('a store of a million items on PostgreSQL', () => {
  let large: Loaded
  let small: Loaded

  beforeAll(async () => {
    large = await Loaded.open(LARGE)
    small = await Loaded.open(SMALL)
  }, 60_000)

  afterAll(async () => {
    await large?.close()
    await small?.close()
  })

  const faultsOf = async (store: Loaded): Promise<Record<string, string[]>> => {
    const found: Record<string, string[]> = {}
    for (const statement of statements) {
      if (statement.name in EXCEPTIONS || /^\s*SELECT pg_/.test(statement.postgres)) continue
      const all = faults(await store.plan(statement))
      if (all.length > 0) found[statement.name] = all
    }
    return found
  }

  it('knows all statements of the queues', () => {
    const names = statements.map(({ name }) => name)
    for (const known of [
      'items.lease',
      'items.complete',
      'items.bury',
      'due.leases',
      'counts.read',
      'counts.fold',
      'purge.rows',
    ]) {
      expect(names).toContain(known)
    }
    for (const exception of Object.keys(EXCEPTIONS)) expect(names).toContain(exception)
  })

  it('is never sorted nor read from end to end, without statistics', async () => {
    expect(await faultsOf(large)).toEqual({})
  })

  it('is never sorted nor read from end to end, with statistics', async () => {
    await large.analyze()
    await small.analyze()
    expect(await faultsOf(large)).toEqual({})
  })

  const ids = `{${Array.from({ length: 10 }, (_, i) => LEASED - i).join(',')}}`
  const verbs: Record<string, readonly (string | bigint | number)[]> = {
    'items.lease': [PART, LEASED, NOW, 10, NOW + 60_000_000n],
    'items.complete': [PART, ids],
    'items.facts': [PART, ids, 0],
    'items.head': [PART, NOW, 10],
    'items.shelf': [PART, 0, LEASED, 10],
    'items.oldest': [PART],
    'due.leases': [NOW, 1_000, '{}'],
    'due.expired': [NOW, 1_000, '{}'],
    'due.scheduled': [NOW, 1_000, '{}'],
    'due.next': [NOW + 2_000_000n],
    'counts.read': [`{${PART}}`],
  }

  it.each(Object.entries(verbs))(
    '%s reads about as many pages as with a thousand items',
    async (name, values) => {
      const few = await small.pages(name, values)
      const many = await large.pages(name, values)
      // The indexes are a level or two deeper; nothing else may grow.
      expect(many).toBeLessThanOrEqual(2 * few + 30)
    },
  )
})
