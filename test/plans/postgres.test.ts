/**
 * What all statements read on PostgreSQL, which plans as it likes. A plan is made when tables have the size that they have, with
 * statistics of whenever: none, of empty tables, of small ones, of large ones. On each of these grounds a statement reads, sorts and joins
 * about as many rows of a large store as of a small one, planned for its values and with the plan that a session keeps.
 *
 * No plan costs as much as PostgreSQL's JIT begins at, so that it makes no difference.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { declaredStatements } from '../../src/store/database.ts'
import { callsOf, ExplainedStore, JIT_COST, type Measured, type Work } from './explain.ts'
import './source-statements.ts'
import { sizeOf } from '../world/limits.ts'
import { AZURE_CALLS } from './azure-calls.ts'
import { KAFKA_CALLS } from './kafka-calls.ts'
import type { Sizes } from './load.ts'
import { QUEUE_AND_LETTER_CALLS } from './queue-and-letter-calls.ts'
import { REDRIVE_CALLS } from './redrive-calls.ts'
import { RUN_CALLS } from './run-calls.ts'
import { UNMEASURED } from './unmeasured.ts'
import { WEBHOOKS_CALLS } from './webhook-calls.ts'

// A hundred times the small one: large enough that whatever reads all of something meets thousands of rows more. A
// million letters, with their ten indexes, would take a minute to load.
const LARGE: Sizes = {
  ready: sizeOf(200_000, 1_000_000),
  scheduled: sizeOf(50_000, 100_000),
  others: 50_000,
  letters: sizeOf(100_000, 1_000_000),
  jobs: sizeOf(50_000, 200_000),
  events: sizeOf(50_000, 200_000),
}
const SMALL: Sizes = { ready: 2_000, scheduled: 100, others: 50, letters: 1_000, jobs: 1_000, events: 1_000 }

/** Statements that no values are given for and that may sort, and why that is little. */
const SORTS: Readonly<Record<string, string>> = {
  'deletedQueues.read': 'the partitions of queues that were just deleted',
  'drawers.insert': 'the drawers of one call',
  'engineQueues.readAll': 'queues of engines are few',
  'history.labels': 'series are few',
  'letters.reopen': 'the letters of one call',
  'queues.page': 'queues are few',
  'queues.partitions': 'partitions are few',
  'queues.partitionsOf': 'partitions are few',
  'queues.untold': 'queues are few, and it is read once per start',
}

/** Statements that are run, and whose generic plan would read all of an index or cost much, and why it does not. */
const GENERIC: Readonly<Record<string, string>> = {
  'drawers.holding.anywhere': 'begins with the first row of the index',
  'letterCounts.holding.anywhere': 'the same',
  'letterCounts.bySignature.anywhere': 'the same',
  'lying.holders': 'the same',
  'history.bySeries':
    'planned for its values, which cost less: of a limit that it does not know PostgreSQL expects a tenth of all',
  'letters.countInDrawers': 'the same',
  'redriveExceptions.count': 'wants all that one redrive left out, and that may be all there is',
}

// Other test files of the same run declare statements too, on tables of their own; and verify reads everything, as it
// should, and so do plans of redrives. What calls no table has no plan to look at.
const statements = declaredStatements().filter(
  ({ name, postgres }) =>
    postgres !== '' &&
    !/^((test|verify)\.|letters\.all)/.test(name) &&
    !/^\s*(SELECT (pg_|set_config)|SAVEPOINT|ROLLBACK)/.test(postgres),
)

const parts = [
  ['webhooks', /^webhooks\./, WEBHOOKS_CALLS],
  ['kafka', /^kafka\./, KAFKA_CALLS],
  ['azure', /^azure\./, AZURE_CALLS],
  ['redrives', /^redrive/, REDRIVE_CALLS],
  ['runs', /^runs\./, RUN_CALLS],
] as const

const calls = [QUEUE_AND_LETTER_CALLS, ...parts.map(([, , measured]) => measured)].flatMap(callsOf)
const measuredNames = new Set(calls.map(({ name }) => name))

/** Indexes are a level or two deeper, and the rows of a lane lie further apart; nothing else may grow. */
const mostRowsFor = (few: number, gives: number) => 2 * few + 600 + 4 * gives
/** A row that is written anew enters up to ten indexes. */
const mostPagesFor = (few: number, gives: number, written: number) => 2 * few + 60 + 4 * gives + 40 * written

const faultOf = (many: Work, few: Work, gives: number): string | null => {
  if (many.rows > mostRowsFor(few.rows, gives))
    return `${many.rows} rows instead of ${few.rows}: ${many.shape}`
  if (many.pages > mostPagesFor(few.pages, gives, many.written))
    return `${many.pages} pages instead of ${few.pages}: ${many.shape}`
  if (many.cost >= JIT_COST) return `costs ${many.cost}: ${many.shape}`
  return null
}

describe('statements on PostgreSQL', () => {
  let small: ExplainedStore
  let large: ExplainedStore
  const inSmall = new Map<string, Measured>()

  beforeAll(async () => {
    small = await ExplainedStore.open(SMALL)
    await small.analyze()
    for (const { name, asked, valuesFor } of calls)
      inSmall.set(asked, await small.measure(name, valuesFor(SMALL.letters)))
    large = await ExplainedStore.open(LARGE)
  })

  afterAll(async () => {
    await small?.close()
    await large?.close()
  })

  const faults = async (): Promise<Record<string, string>> => {
    const found: Record<string, string> = {}
    for (const { name, asked, gives, valuesFor } of calls) {
      const few = inSmall.get(asked)
      if (few === undefined) throw new Error(`${name} was not measured in the small store`)
      const many = await large.measure(name, valuesFor(LARGE.letters))
      const fewest = { ...few.custom, rows: Math.max(few.custom.rows, few.kept.rows) }
      for (const kind of ['custom', 'kept'] as const) {
        const fault = faultOf(many[kind], fewest, gives)
        if (fault !== null) found[`${asked} (${kind})`] = fault
      }
    }
    for (const statement of statements) {
      const { name } = statement
      const faults = await large.faultsOfGeneric(statement)
      // What those that are run sort was judged by their rows.
      const maySort = name in SORTS || measuredNames.has(name)
      const wrong = name in GENERIC ? [] : faults.filter((fault) => !(maySort && fault.endsWith('Sort')))
      if (wrong.length > 0) found[`${name} (generic)`] = wrong.join(', ')
    }
    return found
  }

  it('by lists of serials are told their ends before version 17', () => {
    const byList = statements.filter(({ postgres }) =>
      // The key of items and of letters in a dead queue; what only sets a shelf goes by the numbers of letters.
      /\bshelf (?:=|IN)[^=]* AND (?:\w+\.)?(?:id|serial) = ANY\(\$\d+::bigint\[\]\)/.test(postgres),
    )
    expect(byList.length).toBeGreaterThan(15)
    for (const { name, olderPostgres } of byList)
      expect(`${name}: ${olderPostgres}`).toMatch(/ (?:id|serial|item\.id) <= \(SELECT max\(listed\)/)
  })

  it('are all known', () => {
    const names = statements.map(({ name }) => name)
    for (const known of ['items.lease', 'items.bury', 'due.leases', 'counts.fold', 'letters.newest']) {
      expect(names).toContain(known)
    }
    for (const exception of Object.keys({ ...SORTS, ...GENERIC })) expect(names).toContain(exception)
  })

  it('are all measured, or listed with the reason why not', () => {
    const listed = Object.values(UNMEASURED).flat()
    const unmeasured = statements.map(({ name }) => name).filter((name) => !measuredNames.has(name))
    expect([...listed].sort()).toEqual([...unmeasured].sort())
  })

  it.each(parts)('of %s are all measured', (_, pattern, measured) => {
    const names = statements.map(({ name }) => name).filter((name) => pattern.test(name))
    expect(names.filter((name) => !(name in measured))).toEqual([])
  })

  it('read no more of a large store when the planner knows nothing', async () => {
    expect(await faults()).toEqual({})
  })

  it('nor when it believes that all tables are empty', async () => {
    await large.knowEmpty()
    expect(await faults()).toEqual({})
  })

  it('nor when it believes that all tables are small', async () => {
    await large.knowThoseOf(small)
    expect(await faults()).toEqual({})
  })

  it('nor when it knows all of them', async () => {
    await large.analyze()
    expect(await faults()).toEqual({})
  })

  it('find a rare text without reading the texts', async () => {
    const { custom } = await large.measure('search.filed', ['c4ca4238a0b92382', 100])
    expect(custom.pages).toBeLessThan(200)
  })
})
