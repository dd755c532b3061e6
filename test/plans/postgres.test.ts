/**
 * The plans of all statements on PostgreSQL, as sessions keep them: made while the store was new, emptied, small or
 * large, with fresh statistics and with none. None may sort or read what grows, because a plan stays while the tables
 * fill. And how many pages of a large store statements touch, compared with a small one.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { KSUID_LENGTH } from '../../src/core/ksuid.ts'
import { declaredStatements } from '../../src/db/database.ts'
import { type Argument, BITMAPS, ExplainedStore, NOW, type PlanNode, searchesOf } from './explain.ts'
import './kafka-statements.ts'
import { sizeOf } from '../harness/limits.ts'
import { KAFKA_CALLS } from './kafka-calls.ts'
import { KAFKA_INDEXES } from './kafka-plans.ts'
import { LEASED, PART, type Sizes } from './load.ts'
import { DEAD_PART, DRAWERS, SERIES } from './load-letters.ts'
import { INDEXES, SCANNED, SORTED } from './postgres-plans.ts'
import { REDRIVE_CALLS } from './redrive-calls.ts'
import { REDRIVE_INDEXES } from './redrive-plans.ts'
import { RUN_CALLS, RUN_INDEXES } from './run-plans.ts'
import { WEBHOOKS_CALLS } from './webhook-calls.ts'
import { WEBHOOKS_INDEXES } from './webhook-plans.ts'

// A hundred times the small one: large enough that whatever reads all of something touches hundreds of pages more. A
// million letters, with their ten indexes, would take a minute to load.
const LARGE: Sizes = {
  ready: sizeOf(200_000, 1_000_000),
  scheduled: sizeOf(50_000, 100_000),
  others: 50_000,
  letters: sizeOf(100_000, 300_000),
  jobs: 50_000,
  events: 50_000,
}
const SMALL: Sizes = { ready: 2_000, scheduled: 100, others: 50, letters: 1_000, jobs: 1_000, events: 1_000 }

const DAY = 86_400_000_000n
const HIGHEST = 9_223_372_036_854_775_807n
const LOWEST = -9_223_372_036_854_775_808n

// Other test files of the same run declare statements too, on tables of their own; and verify reads everything, as it
// should. What calls no table has no plan to look at.
const statements = declaredStatements().filter(
  ({ name, postgres }) =>
    postgres !== '' &&
    !/^(test|verify)\./.test(name) &&
    !/^\s*(SELECT (pg_|set_config)|SAVEPOINT|ROLLBACK)/.test(postgres),
)

describe('statements on PostgreSQL', () => {
  let empty: ExplainedStore
  let small: ExplainedStore
  let large: ExplainedStore

  beforeAll(async () => {
    empty = await ExplainedStore.open(null)
    small = await ExplainedStore.open(SMALL)
    large = await ExplainedStore.open(LARGE)
  })

  afterAll(async () => {
    await empty?.close()
    await small?.close()
    await large?.close()
  })

  type Plans = ReadonlyMap<string, PlanNode>

  const plansIn = async (store: ExplainedStore): Promise<Plans> => {
    const plans = new Map<string, PlanNode>()
    for (const statement of statements) plans.set(statement.name, await store.plan(statement))
    return plans
  }

  const faultsIn = (store: ExplainedStore, plans: Plans): Record<string, string[]> => {
    const found: Record<string, string[]> = {}
    for (const [name, plan] of plans) {
      const { sorts, scans } = store.faultsOf(plan)
      const faults = [...(name in SORTED ? [] : sorts), ...(name in SCANNED ? [] : scans)]
      if (faults.length > 0) found[name] = faults
    }
    return found
  }

  const strayedIn = (plans: Plans): string[] => {
    const strayed: string[] = []
    for (const [key, names] of [
      INDEXES,
      WEBHOOKS_INDEXES,
      KAFKA_INDEXES,
      REDRIVE_INDEXES,
      RUN_INDEXES,
    ].flatMap(Object.entries<readonly string[]>)) {
      const [index, column] = key.split(' ')
      const wanted = new RegExp(column === undefined ? `^${index} ` : `^${index} .*\\b${column}\\b`)
      for (const name of names) {
        const plan = plans.get(name)
        const searches = plan === undefined ? ['there is no such statement'] : searchesOf(plan)
        if (!searches.some((search) => wanted.test(search))) strayed.push(`${name}: ${searches.join(', ')}`)
      }
    }
    return strayed
  }

  const check = async (store: ExplainedStore): Promise<void> => {
    const plans = await plansIn(store)
    expect(faultsIn(store, plans)).toEqual({})
    expect(strayedIn(plans)).toEqual([])
  }

  it('are all known', () => {
    const names = statements.map(({ name }) => name)
    for (const known of ['items.lease', 'items.bury', 'due.leases', 'counts.fold', 'letters.newest']) {
      expect(names).toContain(known)
    }
    for (const exception of Object.keys({ ...SORTED, ...SCANNED })) expect(names).toContain(exception)
  })

  it('neither sort nor read from end to end when they were planned on a new store', () => check(empty))

  it('nor on a store that was emptied', async () => {
    await empty.analyze()
    await check(empty)
  })

  it('nor on a small store without statistics', () => check(small))

  it('nor on a large store without statistics', () => check(large))

  it('nor on a small store with statistics', async () => {
    await small.analyze()
    await check(small)
  })

  it('nor on a large store with statistics', async () => {
    await large.analyze()
    await check(large)
  })

  // The indexes are a level or two deeper, and the rows of a lane lie further apart; nothing else may grow.
  const mostFor = (few: number) => 2 * few + 60

  const list = (values: Iterable<Argument>) => `{${[...values].join(',')}}`
  const range = (first: number, length: number) => Array.from({ length }, (_, i) => first + i)
  const lanes = range(0, 60)
  const letters = list(range(0, 20).map((i) => i * 7 + 1))
  const leased = list(range(LEASED - 9, 10))
  const dying = range(LEASED + 1, 1_000)
  const notes = JSON.stringify([
    {
      note: 1,
      drawer: 1,
      series: 1,
      engine: 'queues',
      captured_at: `${NOW}`,
      first_failure_at: `${NOW}`,
      last_failure_at: `${NOW}`,
      reason: 'attempts',
      error_class: 'Error',
      error_message: 'it failed',
      duration_ms: 0,
    },
  ])

  /** Calls and their values; `letters` is how many letters, and rows of history, the store has. */
  const calls: readonly (readonly [string, string, (letters: number) => readonly Argument[]])[] = [
    ['items.lease', 'of ten', () => [PART, LEASED, NOW, 10, NOW + 60_000_000n]],
    ['items.complete', 'of ten', () => [PART, leased]],
    ['items.facts', 'of ten', () => [PART, leased, 0]],
    ['items.head', '', () => [PART, NOW, 10]],
    ['items.shelf', '', () => [PART, 0, LEASED, 10]],
    ['items.heads', 'of two parts', () => [`{${PART},${DEAD_PART}}`]],
    ['lying.heads', 'of two parts', () => [`{${PART},${DEAD_PART}}`]],
    ['due.leases', '', () => [NOW, 1_000, '{}']],
    ['due.expired', '', () => [NOW, 1_000, '{}']],
    ['due.scheduled', '', () => [NOW, 1_000, '{}']],
    ['due.next', '', () => [NOW + 2_000_000n]],
    ['counts.read', '', () => [`{${PART}}`]],
    [
      'items.bury',
      'of a thousand items',
      () => [
        notes,
        PART,
        0,
        list(dying),
        0,
        list(dying.map(() => 0)),
        list(dying.map((serial) => 10_000_000 + serial)),
        dying.map((serial) => String(serial).padStart(KSUID_LENGTH, '0')).join(''),
        list(dying.map(() => 1)),
        DEAD_PART,
        NOW,
        'queue-9',
        0,
        '{}',
      ],
    ],
    ['letters.newest', 'first page', () => ['{0,1,2}', HIGHEST, HIGHEST, LOWEST, 51]],
    ['letters.newest', 'deep page', () => ['{0,1,2}', NOW + 500n, 500, LOWEST, 51]],
    [
      'letters.newestInDrawers',
      'of sixty lanes',
      () => [
        list(lanes.map((i) => 1 + (i % DRAWERS))),
        list(lanes.map((i) => i % 3)),
        HIGHEST,
        HIGHEST,
        LOWEST,
        51,
      ],
    ],
    [
      'letters.newestInDrawers',
      'of a rare drawer',
      () => [list([0, 1, 2].map(() => DRAWERS + 1)), '{0,1,2}', HIGHEST, HIGHEST, LOWEST, 51],
    ],
    ['letters.nextToExpireInDrawer', 'of a rare drawer', () => [HIGHEST, LOWEST, 0, 250, DRAWERS + 1]],
    ['letters.unconfirmed', '', () => [HIGHEST, HIGHEST, LOWEST, 51]],
    ['letters.oldestPending', '', () => []],
    ['letters.countNewest', 'of a thousand', () => ['{0,1,2}', LOWEST, HIGHEST, 1_000]],
    [
      'letters.countInDrawers',
      'of many drawers',
      () => ['{0,1,2}', LOWEST, HIGHEST, 1_000, list(range(1, DRAWERS))],
    ],
    ['letters.facts', '', () => [letters]],
    ['letterActivity.series', 'of a day', () => [0, '{0}', '{0,1,2,3,4,5}', NOW - DAY, 900_000_000, null]],
    [
      'letterActivity.series',
      'of twenty origins',
      () => [1, list(range(-20, 20)), '{0,1,2,3,4,5}', NOW - DAY, 3_600_000_000, list(range(1, 40))],
    ],
    ['letterActivity.ofDrawers', 'of fifty', () => [NOW - DAY, list(range(1, 50)), 1]],
    ['letterActivity.ever', 'of fifty', () => [list(range(1, 50)), '{1,2,3}']],
    ['letterActivity.first', '', () => [1]],
    ['letterActivity.remove.letter_minutes_oldest', '', () => [NOW, 500]],
    ['letterActivity.remove.letter_hours_oldest', '', () => [NOW, 500]],
    ['letters.ofInstance', '', () => ['instance-7', HIGHEST, HIGHEST, LOWEST, 51]],
    ['letters.ofCorrelation', '', () => ['correlation-000000007', HIGHEST, HIGHEST, LOWEST, 51]],
    ['letters.byRowKey', 'of an engine', () => ['engine-2', 'instance-7', NOW + 7n]],
    ['letters.byRowKey', 'of a queue', () => ['queues', 'source-000000008', NOW + 8n]],
    ['letters.read', '', () => [500]],
    ['letters.summaries', '', () => [letters]],
    ['letters.lockUnconfirmed', '', () => [letters]],
    ['letterTexts.ofLetters', '', () => [letters]],
    ['lying.ready', '', () => [DEAD_PART, 0, 5]],
    ['lying.holders', '', () => ['{source-000000100,item-source-000000101}', '{source-000000100}']],
    [
      'walk.reopened',
      'of one reopening',
      (rows) => [
        NOW + BigInt(rows) - 19n,
        '1:1:',
        HIGHEST,
        HIGHEST,
        LOWEST,
        HIGHEST,
        null,
        null,
        '{0,1,2}',
        null,
        51,
      ],
    ],
    ['search.among', '', () => [letters, HIGHEST, HIGHEST, LOWEST, '{0,1,2}', null, null, null, 51]],
    ['search.unfiled', '', () => [1_000]],
    ['history.bySeries', 'of all series', () => [HIGHEST, 0, LOWEST, 51, list(range(1, SERIES + 1))]],
    ['history.bySeries', 'of a rare series', () => [HIGHEST, 0, LOWEST, 51, `{${SERIES + 1}}`]],
    ['history.newestOfSeries', 'of a few runs', () => [list(range(1, SERIES + 1)), LOWEST, 20]],
    ['history.byCorrelation', '', () => [HIGHEST, 0, LOWEST, 51, 'correlation-000000007']],
    ['history.byInstance', '', () => [HIGHEST, 0, LOWEST, 51, 'instance-5']],
    ['history.byKey', '', () => ['correlation-000000007', NOW + 7n]],
    ['history.ofLetter', '', () => [7, 50]],
    ['history.bySource', '', () => ['engine-1', 'source-000000008']],
  ]

  const parts = [
    ['webhooks', /^webhooks\./, WEBHOOKS_CALLS],
    ['kafka', /^kafka\./, KAFKA_CALLS],
    ['redrives', /^redrive/, REDRIVE_CALLS],
    ['runs', /^runs\./, RUN_CALLS],
  ] as const

  it.each(parts)('of %s are all measured', (_, pattern, measured) => {
    const names = statements.map(({ name }) => name).filter((name) => pattern.test(name))
    expect(names.filter((name) => !(name in measured))).toEqual([])
  })

  it.each(calls)('%s %s touches about as many pages as in a small store', async (name, _, valuesFor) => {
    const few = await small.pages(name, valuesFor(SMALL.letters))
    const many = await large.pages(name, valuesFor(LARGE.letters))
    expect(many).toBeLessThanOrEqual(mostFor(few))
  })

  it.each(parts)('touch about as many pages of %s as in a small store', async (_part, _pattern, measured) => {
    const grown: Record<string, string> = {}
    for (const [name, values] of Object.entries(measured)) {
      const few = await small.pages(name, values)
      const many = await large.pages(name, values)
      if (many > mostFor(few)) grown[name] = `${many} instead of ${few}`
    }
    expect(grown).toEqual({})
  })

  it('find a rare text without reading the texts', async () => {
    expect(await large.pages(BITMAPS, ['c4ca4238a0b92382', 100])).toBeLessThan(200)
  })
})
