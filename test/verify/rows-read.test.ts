/**
 * Verify reads each row a bounded number of times: ten times as many rows are ten times as much work, for every check, whatever the
 * planner knows. Its statements are run once more, explained, with the values that it calls them with.
 */
import { DatabaseSync } from 'node:sqlite'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parameterFor } from '../../src/store/database.ts'
import { openDatabase } from '../../src/store/open.ts'
import { INVARIANTS } from '../../src/verify/verify.ts'
import { ExplainedStore, NOW, nodesOf, type PlanNode, rowsMet } from '../plans/explain.ts'
import { sizeOf } from '../world/limits.ts'
import { freshSqlite, type StoreKind } from '../world/stores.ts'
import { fillRedriven } from './redriven-store.ts'
import { type Call, callsOfVerify } from './watched-calls.ts'

const LETTERS = sizeOf(2_000, 20_000)
const TIMES = 10

/** Asks the catalogue for one name, by a function. */
const READ_NOWHERE = ['all verify.findMigrations']

const sqliteStore: StoreKind = { name: 'sqlite', fresh: freshSqlite }

const sizesOf = (letters: number) => ({
  ...{ ready: letters, scheduled: letters / 10, others: letters, letters },
  ...{ jobs: letters, events: letters / 2 },
})

async function calls(store: ExplainedStore): Promise<readonly Call[]> {
  const db = openDatabase(store.url, { poolSize: 1 })
  try {
    return await callsOfVerify(db)
  } finally {
    await db.close()
  }
}

/** Rows that were met in tables and indexes, wanted or not, by check and statement. */
async function rowsRead(store: ExplainedStore, all: readonly Call[]): Promise<ReadonlyMap<string, number>> {
  const client = new pg.Client({ connectionString: store.url })
  await client.connect()
  const rows = new Map<string, number>()
  try {
    for (const { invariant, statement, values, isLong } of all) {
      const text = `${isLong ? 'DECLARE looked NO SCROLL CURSOR FOR ' : ''}${statement.postgres}`
      const { rows: answer } = await client.query(
        `EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) ${text}`,
        values.map((value) => parameterFor('postgres', value)),
      )
      const plan: PlanNode = answer[0]['QUERY PLAN'][0].Plan
      const met = nodesOf(plan)
        .filter((node) => / Scan$/.test(node['Node Type']))
        .reduce((sum, node) => sum + rowsMet(node), 0)
      const name = `${invariant} ${statement.name}`
      rows.set(name, (rows.get(name) ?? 0) + met)
    }
  } finally {
    await client.end()
  }
  return rows
}

function byCheck(rows: ReadonlyMap<string, number>): ReadonlyMap<string, number> {
  const sums = new Map<string, number>()
  for (const [name, met] of rows) {
    const [check = ''] = name.split(' ')
    sums.set(check, (sums.get(check) ?? 0) + met)
  }
  return sums
}

describe('what verify reads on PostgreSQL', () => {
  let small: ExplainedStore
  let large: ExplainedStore
  let ofSmall: readonly Call[]
  let ofLarge: readonly Call[]

  beforeAll(async () => {
    small = await ExplainedStore.open(sizesOf(LETTERS))
    large = await ExplainedStore.open(sizesOf(TIMES * LETTERS))
    ofSmall = await calls(small)
    ofLarge = await calls(large)
  })

  afterAll(async () => {
    await small?.close()
    await large?.close()
  })

  it('is read for every check, of letters or of its own', () => {
    const met = new Set(ofSmall.map(({ invariant }) => invariant))
    expect(met).toEqual(new Set(ofLarge.map(({ invariant }) => invariant)))
    const own = INVARIANTS.filter(({ check }) => check !== undefined).map(({ id }) => id)
    expect([...met]).toEqual(expect.arrayContaining(['letters', ...own]))
    expect(
      INVARIANTS.filter(({ check, ofLetters }) => check === undefined && ofLetters === undefined),
    ).toEqual([])
  })

  const grounds = {
    'without statistics': async () => {},
    'with statistics of empty tables': async () => {
      await small.knowEmpty()
      await large.knowEmpty()
    },
    'with statistics of small tables': async () => {
      await small.analyze()
      await large.knowThoseOf(small)
    },
    'with fresh statistics': async () => large.analyze(),
  }
  it.each(Object.entries(grounds))('%s grows as the rows do', async (_, know) => {
    await know()
    const [few, many] = [await rowsRead(small, ofSmall), await rowsRead(large, ofLarge)]
    const unread = [...few, ...many].filter(([, rows]) => !(rows > 0)).map(([name]) => name)
    expect(new Set(unread)).toEqual(new Set(READ_NOWHERE))
    // By check: a bitmap counts the rows of its index and those of its table.
    const [before, after] = [few, many].map(byCheck)
    const grown = [...(after ?? [])].map(([check, rows]) => ({
      check,
      rows,
      times: rows / (before?.get(check) ?? 0),
    }))
    expect(grown.filter(({ times }) => !(times <= TIMES + 1))).toEqual([])
    // Of every lane that leaves over a network, the letter that is next.
    const { custom, kept } = await large.measure('verify.nextMember', [1, 0, NOW, 0])
    for (const { rows } of [custom, kept]) expect(rows).toBeLessThan(10)
  })
})

describe('what verify reads on SQLite', () => {
  it('is each table once, and of what is joined to it one row by a unique key', async () => {
    const { place } = await fillRedriven(sqliteStore)
    const db = openDatabase(place.url, { poolSize: 1 })
    const file = new DatabaseSync(place.url.slice('sqlite:'.length))
    try {
      const long = (await callsOfVerify(db)).filter(({ isLong }) => isLong)
      expect(long.length).toBeGreaterThan(25)
      for (const { statement } of long) {
        const steps = file.prepare(`EXPLAIN QUERY PLAN ${statement.sqlite}`).all()
        const loops = Map.groupBy(
          steps.filter(({ detail }) => /^(SCAN|SEARCH)/.test(String(detail))),
          ({ parent }) => parent,
        )
        for (const [, ...inner] of loops.values())
          expect([statement.name, inner.map(({ detail }) => detail)]).toEqual([
            statement.name,
            inner.map(() =>
              expect.stringMatching(
                /^SEARCH \w+ USING (INTEGER PRIMARY KEY|INDEX sqlite_autoindex_\w+) \(\w+=\?\)/,
              ),
            ),
          ])
      }
    } finally {
      file.close()
      await db.close()
      await place.dispose()
    }
  })
})
