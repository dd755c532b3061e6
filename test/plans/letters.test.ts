/**
 * The plans behind lists, details and search of letters: how much of 100,000 letters they touch, compared with 1,000,
 * and that they find their rows by an index on both stores. What they sort is never more than the rows of a page or
 * the candidates of a search.
 */
import { DatabaseSync } from 'node:sqlite'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { declaredStatements, type Statement } from '../../src/db/database.ts'
import { PLANNER_SETTINGS } from '../../src/db/postgres.ts'
import '../../src/letters/filing.ts'
import '../../src/letters/list.ts'
import { migrateStore } from '../../src/office.ts'
import { type FreshStore, freshPostgres, freshSqlite } from '../harness/stores.ts'

const NOW = 1_800_000_000_000_000n
const HIGHEST = 9_223_372_036_854_775_807n
const LOWEST = -9_223_372_036_854_775_808n
const DRAWERS = 20

/** What may be sorted, and why that is little. */
const SORTED: Readonly<Record<string, string>> = {
  'letters.newest': 'a page of each status',
  'letters.newestInDrawers': 'the head of every lane, then a page of each of the lanes of one page',
  'walk.reopened': 'what was reopened since one walk began',
  'search.among': 'the candidates of one search, whose number is bounded',
}
/** What may be read from end to end, and why that is little. */
const SCANNED: Readonly<Record<string, string>> = {
  'drawers.matching': 'drawers are few',
  'search.unfiled': 'stops at its limit',
}
/** Runs with settings of its own. */
const BITMAPS = 'search.filed'

const NAMES = [
  'letters.read',
  'letters.lock',
  'letters.byRowKey',
  'letters.summaries',
  'letterAttempts.read',
  'letters.newest',
  'letters.newestInDrawers',
  'letters.ofCorrelation',
  'letters.ofInstance',
  'letters.ofQueueItem',
  'walk.latest',
  'walk.reopened',
  'walk.reopenedAmong',
  'letterTexts.ofLetters',
  'letterTexts.ofRange',
  'search.among',
  'search.unfiled',
  BITMAPS,
  'drawers.matching',
  'filing.ranges',
  'filing.removeRange',
  'filing.shortenRange',
]

const named = (name: string): Statement => {
  const statement = declaredStatements().find((each) => each.name === name)
  if (statement === undefined) throw new Error(`there is no statement '${name}'`)
  return statement
}

const script = (letters: number): string => `
  INSERT INTO bartleby.signatures (fingerprint, error_class, title, first_seen_at)
    SELECT '1-' || n, 'Error', 'title', 0 FROM generate_series(1, ${DRAWERS}) AS n;
  INSERT INTO bartleby.drawers (source, engine, queue, signature)
    SELECT 'http', 'engine-' || n % 4, 'queue', n FROM generate_series(1, ${DRAWERS}) AS n;
  INSERT INTO bartleby.letters (id, captured_at, first_failure_at, last_failure_at, drawer, version, dequeue_count, status,
    engine, source_id, instance_id, correlation_id, reason, error_class, error_message, payload)
    SELECT n, ${NOW} + n, ${NOW} + n, ${NOW} + n, 1 + n % ${DRAWERS}, 1, 1, n % 3, 'engine-' || n % 4, 'source-' || n,
      'instance-' || n % 1000, 'correlation-' || n, 'failed', 'Error', 'message ' || md5(n::text), '\\x68656c6c6f'
    FROM generate_series(1, ${letters}) AS n;
  INSERT INTO bartleby.letter_attempts (letter_id, number, failed_at, superseded_at, error_class, error_message)
    SELECT n, 1, ${NOW} + n - 10, ${NOW} + n, 'Error', 'message' FROM generate_series(1, ${letters}, 20) AS n;
  INSERT INTO bartleby.letter_texts SELECT n, 'message' || md5(n::text) FROM generate_series(1, ${letters}) AS n;
  INSERT INTO bartleby.letters_to_file (first_letter, last_letter)
    SELECT ${letters} - n, ${letters} - n FROM generate_series(1, 50) AS n;
  SELECT gin_clean_pending_list('bartleby.letter_texts_words');
  ANALYZE;`

interface PlanNode {
  readonly 'Node Type': string
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

class Loaded {
  readonly #place: FreshStore
  readonly #client: pg.Client

  private constructor(place: FreshStore, client: pg.Client) {
    this.#place = place
    this.#client = client
  }

  static async open(letters: number): Promise<Loaded> {
    const place = await freshPostgres()
    await migrateStore(place.url)
    const client = new pg.Client({ connectionString: place.url })
    await client.connect()
    await client.query(`${PLANNER_SETTINGS}; SET synchronous_commit = off`)
    await client.query(script(letters))
    return new Loaded(place, client)
  }

  async close(): Promise<void> {
    await this.#client.end()
    await this.#place.dispose()
  }

  async plan({ postgres, name }: Statement): Promise<PlanNode> {
    return this.#explain(name, `EXPLAIN (GENERIC_PLAN, FORMAT JSON) ${postgres}`)
  }

  async pages(name: string, values: readonly (string | bigint | number | null)[]): Promise<number> {
    await this.#client.query(`PREPARE measured AS ${named(name).postgres}`)
    const given = values.map((value) => (typeof value === 'string' ? `'${value}'` : String(value ?? 'NULL')))
    const plan = await this.#explain(
      name,
      `EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) EXECUTE measured(${given.join(', ')})`,
    )
    await this.#client.query('DEALLOCATE measured')
    return (plan['Shared Hit Blocks'] ?? 0) + (plan['Shared Read Blocks'] ?? 0)
  }

  async #explain(name: string, text: string): Promise<PlanNode> {
    await this.#client.query('BEGIN')
    if (name === BITMAPS) {
      await this.#client.query('SET LOCAL enable_bitmapscan = on; SET LOCAL enable_indexscan = off')
    }
    const { rows } = await this.#client.query<Explained>(text)
    await this.#client.query('ROLLBACK')
    const [row] = rows
    if (row === undefined) throw new Error('EXPLAIN gave nothing')
    return row['QUERY PLAN'][0].Plan
  }
}

describe('lists and search over 100,000 letters on PostgreSQL', () => {
  let large: Loaded
  let small: Loaded

  beforeAll(async () => {
    large = await Loaded.open(100_000)
    small = await Loaded.open(1_000)
  }, 120_000)

  afterAll(async () => {
    await large?.close()
    await small?.close()
  })

  it.each(NAMES.filter((name) => named(name).postgres !== ''))('%s is driven by an index', async (name) => {
    const nodes = [...nodesOf(await large.plan(named(name)))]
    const types = nodes.map((node) => node['Node Type'])
    if (!(name in SORTED)) expect(types.filter((type) => type.endsWith('Sort'))).toEqual([])
    if (name === BITMAPS) return expect(types).toContain('Bitmap Index Scan')
    if (name in SCANNED) return
    expect(types).not.toContain('Seq Scan')
    const whole = nodes.filter((node) => node['Index Name'] !== undefined && node['Index Cond'] === undefined)
    expect(whole).toEqual([])
  })

  const someIds = `{${Array.from({ length: 20 }, (_, i) => i * 7 + 1).join(',')}}`
  const lanes = Array.from({ length: 60 }, (_, i) => i)
  const calls: readonly [string, readonly (string | bigint | number | null)[]][] = [
    ['letters.newest', ['{0,1,2}', HIGHEST, HIGHEST, LOWEST, 51]],
    ['letters.newest', ['{0,1,2}', NOW + 500n, 500, LOWEST, 51]],
    [
      'letters.newestInDrawers',
      [
        `{${lanes.map((i) => 1 + (i % DRAWERS)).join(',')}}`,
        `{${lanes.map((i) => i % 3).join(',')}}`,
        NOW + 900n,
        900,
        LOWEST,
        51,
      ],
    ],
    ['letters.ofInstance', ['instance-7', HIGHEST, HIGHEST, LOWEST, 51]],
    ['letters.ofCorrelation', ['correlation-7', HIGHEST, HIGHEST, LOWEST, 51]],
    ['letters.summaries', [someIds]],
    ['letterTexts.ofLetters', [someIds]],
    [
      'walk.reopened',
      [NOW + 981n, '1:1:', HIGHEST, HIGHEST, LOWEST, HIGHEST, null, null, '{0,1,2}', null, 51],
    ],
    ['search.among', [someIds, HIGHEST, HIGHEST, LOWEST, '{0,1,2}', null, null, null, 51]],
    ['search.unfiled', [1_000]],
  ]

  it.each(calls)('%s touches about as many pages as with 1,000 letters', async (name, values) => {
    // Reopenings are dated: the same number of them lies behind this instant in both stores.
    const of = (letters: bigint) =>
      name === 'walk.reopened' ? [NOW + letters - 19n, ...values.slice(1)] : values
    const few = await small.pages(name, of(1_000n))
    const many = await large.pages(name, of(100_000n))
    expect(many).toBeLessThanOrEqual(2 * few + 60)
  })

  it('finds a rare text without reading the texts', async () => {
    expect(await large.pages(BITMAPS, ['c4ca4238a0b92382', 100])).toBeLessThan(200)
  })
})

describe('lists and search on SQLite', () => {
  let place: FreshStore
  let store: DatabaseSync

  beforeAll(async () => {
    place = await freshSqlite()
    await migrateStore(place.url)
    store = new DatabaseSync(place.url.slice('sqlite:'.length))
  })

  afterAll(async () => {
    store?.close()
    await place?.dispose()
  })

  it.each(NAMES.filter((name) => named(name).sqlite !== ''))('%s is driven by an index', (name) => {
    const details = store
      .prepare(`EXPLAIN QUERY PLAN ${named(name).sqlite}`)
      .all()
      .map(({ detail }) => String(detail))
    const faults = details.filter(
      (detail) =>
        (/^SCAN (letters|letter_attempts|attempt|earlier|drawers|batch)\b/.test(detail) &&
          !(name in SCANNED)) ||
        (detail.includes('TEMP B-TREE') && !(name in SORTED)),
    )
    expect({ faults, details: faults.length > 0 ? details : [] }).toEqual({ faults: [], details: [] })
  })

  it('goes on behind a position without reading what lies above it', () => {
    for (const name of ['letters.newest', 'letters.newestInDrawers', 'letters.ofInstance']) {
      const [plan] = store.prepare(`EXPLAIN QUERY PLAN ${named(name).sqlite}`).all()
      expect(String(plan?.detail)).toMatch(
        /last_failure_at>\? AND (last_failure_at<\?|\(last_failure_at,rowid\)<\(\?,\?\))/,
      )
    }
  })
})
