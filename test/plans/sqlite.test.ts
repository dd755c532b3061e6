/** The plans of all statements on SQLite: no table is read from end to end, nothing is sorted. */
import { DatabaseSync } from 'node:sqlite'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { migrateStore } from '../../src/office.ts'
import { declaredStatements } from '../../src/store/database.ts'
import { addFunctions } from '../../src/store/sqlite.ts'
import { type FreshStore, freshSqlite } from '../world/stores.ts'
import { named } from './explain.ts'
import './source-statements.ts'

/** Statements that may sort, and why that is little. */
const SORTED: Readonly<Record<string, string>> = {
  'webhooks.queuedJobs': 'the first of two lists, each of which ends at the limit',
  'redriveExceptions.count': 'a row for each reason',
  'items.waitForCases': 'the items of one call',
  'walk.reopened': 'what was reopened since one walk began',
  'search.among': 'the candidates of one search, whose number is bounded',
  'letterActivity.hours': 'the sums of a bounded number of times',
  'letterActivity.minutes': 'the same',
  'letterActivity.ofDrawers': 'the same',
  'letterCounts.places': 'one row per place',
  'letterCounts.holding.few': 'few drawers',
  'letterCounts.bySignature.few': 'few drawers',
  'letterCounts.holding.anywhere': 'one row per drawer that holds letters',
  'letterCounts.holding.ofPlaces': 'the same',
  'letterCounts.ofSignatures': 'one row per drawer that is asked for',
  'letterCounts.bySignature.anywhere': 'one row per signature that has letters',
  'letterCounts.bySignature.ofPlaces': 'the same',
  'counts.addAll.partition_totals': 'the changes of one transaction',
  'letterCounts.addAll.letter_hours': 'the same',
  'letterCounts.addAll.letter_minutes': 'the same',
  'letterCounts.addAll.letter_totals': 'the same',
  'letterCounts.addAll.place_totals': 'the same',
  'redriveOutcomes.addAll.redrive_outcomes': 'the same',
  'webhooks.addAll.webhook_totals': 'the same',
  'letters.newest': 'a page, which its index gives in order',
  'letters.newestInDrawers': 'the same',
  'letters.newestAndDrawers': 'the same',
  'lying.lockFacts': 'the letters of one call',
  'lying.lockToResolve': 'the same',
}

/** Statements that may read something from end to end, and why that stays small. */
const SCANNED: Readonly<Record<string, string>> = {
  'webhooks.readTallies': 'a few numbers for each channel and consumer',
  'redrives.open': 'its partial index holds nothing but redrives that have not ended',
  'redrives.old': 'redrives are few, and it stops at its limit',
  'runs.open': 'its partial index holds nothing but the runs that have not ended',
  'runs.left': 'the same',
  'runs.renew': 'the same',
  'queues.untold': 'queues are few, and it is read once per start',
  'partitions.withPrefix': 'partitions are few, and imports into dead queues rare',
  'engineQueues.readAll': 'there is a row for each queue of an engine, and those are few',
  'office.ping': 'counts the migrations, of which there is a handful',
  'deletedQueues.read': 'its table holds nothing but the partitions of queues that were just deleted',
  'deletedQueues.batches': 'runs in the background, for the partitions of a deleted queue',
  'due.held': 'its partial index holds nothing but the items it looks for',
  'letterCounts.read': 'one total per drawer and status',
  'letterCounts.places': 'one total per place and status',
  'history.labels': 'there is a series for each operation and outcome, however many rows it has',
  'drawers.labels': 'drawers are few',
  'places.matching': 'places are few',
  'search.unfiled': 'stops at its limit',
  'walk.latest': 'stops at its limit',
  'views.read': 'the catalogue is as small as the schema',
  'schema.parts': 'the same',
  'schema.invalid': 'the same',
}

/** Lists and rows of a call, parts of the statement itself, and the index of texts, which is a table that is asked. */
const GIVEN =
  /^SCAN (json_each|(asked|lane) VIRTUAL TABLE INDEX 1:|failure|CONSTANT ROW|\d+-ROW VALUES CLAUSE|\(subquery|relapse|[a-d]$|first$|letter_texts VIRTUAL TABLE INDEX 0:[M=])/

// Other test files of the same run declare statements too, on tables of their own; and verify reads everything, as it
// should.
const statements = declaredStatements().filter(
  ({ name, sqlite }) => sqlite !== '' && !/^(test|verify)\./.test(name),
)

describe('statements on SQLite', () => {
  let place: FreshStore
  let store: DatabaseSync

  beforeAll(async () => {
    place = await freshSqlite()
    await migrateStore(place.url)
    store = new DatabaseSync(place.url.slice('sqlite:'.length))
    addFunctions(store)
  })

  afterAll(async () => {
    store?.close()
    await place?.dispose()
  })

  const planOf = (text: string): string[] =>
    store
      .prepare(`EXPLAIN QUERY PLAN ${text}`)
      .all()
      .map(({ detail }) => String(detail))

  it('are all known', () => {
    const names = statements.map(({ name }) => name)
    for (const known of ['items.lease', 'items.take', 'due.leases', 'counts.read', 'letters.newest']) {
      expect(names).toContain(known)
    }
    for (const name of Object.keys({ ...SORTED, ...SCANNED })) expect(names).toContain(name)
  })

  it('find their rows by an index and in its order', () => {
    const found: Record<string, string[]> = {}
    for (const { name, sqlite } of statements) {
      const plan = planOf(sqlite)
      // What a part of the statement gives is read as it comes; how the part comes by it is in the plan too.
      const parts = new Set(
        plan
          .flatMap((detail) => detail.match(/^(?:CO-ROUTINE|MATERIALIZE) (.*)/)?.[1] ?? [])
          .map((part) => `SCAN ${part}`),
      )
      const faults = plan.filter(
        (detail) =>
          (/^SCAN /.test(detail) && !GIVEN.test(detail) && !parts.has(detail) && !(name in SCANNED)) ||
          (detail.includes('TEMP B-TREE') && !(name in SORTED)),
      )
      if (faults.length > 0) found[name] = faults
    }
    expect(found).toEqual({})
  })

  // Read the difference before you record it (`vitest -u`): each line is an index that a statement finds its rows by.
  it('find their rows by the indexes that were recorded', async () => {
    const plans = statements.map(({ name, sqlite }) => `${name}: ${planOf(sqlite).join('; ')}\n`)
    await expect(plans.sort().join('')).toMatchFileSnapshot('sqlite-plans.txt')
  })

  it('go on behind a position without reading what lies above it', () => {
    for (const name of [
      'letters.newest',
      'letters.newestInDrawers',
      'letters.ofInstance',
      'letters.unconfirmed',
    ]) {
      expect(planOf(named(name).sqlite).join('; ')).toMatch(
        /last_failure_at\)?>[^ ]+ AND [^ ]*last_failure_at(,rowid)?\)?</,
      )
    }
  })

  it('go on within a microsecond of history by the number of the row', () => {
    for (const name of [
      'history.bySeries',
      'history.byCorrelation',
      'history.byInstance',
      'history.byDefaultInstance',
    ]) {
      expect(planOf(named(name).sqlite).join('; ')).toMatch(/created_at=\? AND rowid<\?/)
    }
  })
})
