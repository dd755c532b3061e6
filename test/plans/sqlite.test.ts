/** The plans of all statements of the queues on SQLite: no table is read from end to end, nothing is sorted. */
import { DatabaseSync } from 'node:sqlite'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { declaredStatements } from '../../src/db/database.ts'
import { migrateStore } from '../../src/office.ts'
import { type FreshStore, freshSqlite } from '../harness/stores.ts'

/** Statements that may read something from end to end, and why that stays small. */
const EXCEPTIONS: Readonly<Record<string, string>> = {
  'office.ping': 'counts the migrations, of which there is a handful',
  'purge.read': 'its table holds nothing but the partitions of queues that were just deleted',
  'purge.batches': 'runs in the background, for the partitions of a deleted queue',
  'due.held': 'its partial index holds nothing but the items it looks for',
}

const GROWING =
  /^SCAN (items|lease_batches|partition_totals|partitions|queues|dedupe_keys|dropped_parts|migrations)\b/

// Other test files of the same run declare statements too, on tables of their own; and verify reads everything, as it
// should.
const statements = declaredStatements().filter(
  ({ name, sqlite }) => sqlite !== '' && !/^(test|verify)\./.test(name),
)

describe('the statements of the queues on SQLite', () => {
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

  const planOf = (text: string): string[] =>
    store
      .prepare(`EXPLAIN QUERY PLAN ${text}`)
      .all()
      .map(({ detail }) => String(detail))

  it('are all known', () => {
    const names = statements.map(({ name }) => name)
    for (const name of [
      'items.lease',
      'items.complete',
      'items.buryOne',
      'due.leases',
      'counts.read',
      'purge.rows',
    ]) {
      expect(names).toContain(name)
    }
    for (const name of Object.keys(EXCEPTIONS)) expect(names).toContain(name)
  })

  it('find their rows by an index and in its order', () => {
    const found: Record<string, string[]> = {}
    for (const { name, sqlite } of statements) {
      if (name in EXCEPTIONS) continue
      const faults = planOf(sqlite).filter((detail) => GROWING.test(detail) || detail.includes('TEMP B-TREE'))
      if (faults.length > 0) found[name] = faults
    }
    expect(found).toEqual({})
  })
})
