import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { bareStores, type FreshStore } from '../../test/world/stores.ts'
import type { Database } from './database.ts'
import { sql } from './database.ts'
import { type Migration, migrate, StoreTooNew } from './migrations.ts'
import { openDatabase } from './open.ts'

const make = (number: number, table: string): Migration => ({
  number,
  name: table,
  postgres: `CREATE TABLE bartleby.${table} (x int)`,
  sqlite: `CREATE TABLE ${table} (x INTEGER)`,
})

const first = make(1, 'first')
const second = make(2, 'second')
const third = make(3, 'third')
const failing: Migration = {
  number: 3,
  name: 'failing',
  postgres: 'CREATE NONSENSE',
  sqlite: 'CREATE NONSENSE',
}

const applied = sql('test.applied', 'SELECT number, name FROM bartleby.migrations ORDER BY number')

describe.each(bareStores)('migrations on $name', (store) => {
  let place: FreshStore
  let db: Database

  beforeEach(async () => {
    place = await store.fresh()
    db = openDatabase(place.url, { poolSize: 4 })
  })

  afterEach(async () => {
    await db.close()
    await place.dispose()
  })

  const names = async () =>
    (await db.session('test', (session) => session.rows<{ name: string }>(applied))).map(({ name }) => name)

  it('bring an empty store to the newest version, in the order of their numbers', async () => {
    expect(await migrate(db, [second, first])).toEqual({ from: 0, to: 2 })
    expect(await names()).toEqual(['first', 'second'])
  })

  it('run once, and only what is missing', async () => {
    await migrate(db, [first])
    expect(await migrate(db, [first])).toEqual({ from: 1, to: 1 })
    expect(await migrate(db, [first, second])).toEqual({ from: 1, to: 2 })
    expect(await names()).toEqual(['first', 'second'])
  })

  it('refuse a store that is newer than the program, and leave it alone', async () => {
    await migrate(db, [first, second, third])
    await expect(migrate(db, [first, second])).rejects.toThrow(StoreTooNew)
    await expect(migrate(db, [first, second])).rejects.toThrow(
      'version 3, this program knows versions up to 2',
    )
    expect(await names()).toEqual(['first', 'second', 'third'])
  })

  it('are all or nothing', async () => {
    await migrate(db, [first])
    await expect(migrate(db, [first, second, failing])).rejects.toThrow(/syntax|NONSENSE/)
    expect(await names()).toEqual(['first'])
    expect(await migrate(db, [first, second, third])).toEqual({ from: 1, to: 3 })
  })

  it('run once when several servers start together', async () => {
    const others = Array.from({ length: 4 }, () => openDatabase(place.url, { poolSize: 1 }))
    try {
      const reports = await Promise.all(others.map((other) => migrate(other, [first, second])))
      expect(reports.filter(({ from }) => from === 0)).toHaveLength(1)
      expect(await names()).toEqual(['first', 'second'])
    } finally {
      for (const other of others) await other.close()
    }
  })
})
