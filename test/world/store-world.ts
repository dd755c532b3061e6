/**
 * An empty store with our tables and without an office, for tests of single acts: what the worlds of modules stand on. Time stands
 * still, what is logged is kept, and everything opened here is closed with it.
 */
import { DatabaseSync } from 'node:sqlite'
import pg from 'pg'
import { expect } from 'vitest'
import { type Clock, instant } from '../../src/core/clock.ts'
import { TestClock } from '../../src/core/test-clock.ts'
import { Xids } from '../../src/core/xid.ts'
import { newRegisters, type Registers } from '../../src/letters/registers.ts'
import { type OfficeRuns, officeRuns } from '../../src/letters/work.ts'
import { MIGRATIONS } from '../../src/migrations.ts'
import type { Database, Statement, Value } from '../../src/store/database.ts'
import { migrate } from '../../src/store/migrations.ts'
import { openDatabase } from '../../src/store/open.ts'
import { KeptLog } from './logs.ts'
import type { FreshStore } from './stores.ts'
import { violationsIn } from './verified.ts'

/** 2027-01-15T08:00:00Z, where the clocks of test stores stand. */
export const START = instant(1_800_000_000_000_000n)

/** How often a test looks for what happens at once. */
export const SOON = { interval: 5 }

/** A world whose store has our tables. */
export async function migrated<World extends StoreWorld>(world: World): Promise<World> {
  await migrate(world.db, MIGRATIONS)
  return world
}

/** Every promise of a store is kept. */
export async function expectVerified({
  db,
  clock,
}: {
  readonly db: Database
  readonly clock: Clock
}): Promise<void> {
  expect(await violationsIn(db, { clock })).toEqual([])
}

export class StoreWorld {
  readonly place: FreshStore
  readonly db: Database
  readonly clock = new TestClock()
  readonly xids = new Xids(this.clock)
  readonly registers: Registers = newRegisters()
  readonly log = new KeptLog()
  readonly #runs: OfficeRuns[] = []
  readonly #databases: Database[] = []

  constructor(place: FreshStore) {
    this.place = place
    this.db = this.another()
    this.clock.freeze(START)
  }

  async close(): Promise<void> {
    for (const runs of this.#runs) await runs.stop()
    for (const db of this.#databases) await db.close()
    await this.place.dispose()
  }

  /** The same store as another server opens it. */
  another(): Database {
    const db = openDatabase(this.place.url, { poolSize: 8 })
    this.#databases.push(db)
    return db
  }

  /** The runs of a server. */
  runs(db = this.db): OfficeRuns {
    const runs = officeRuns(db, this.clock, this.log)
    this.#runs.push(runs)
    return runs
  }

  /** Resolves when there is nothing left to do for any server before the clock moves. */
  async idle(): Promise<void> {
    for (const runs of this.#runs) await runs.settle()
  }

  /** Lets seconds pass. */
  pass(seconds: number): void {
    this.clock.advance(BigInt(Math.round(seconds * 1_000_000)))
  }

  read<Row>(statement: Statement, ...values: readonly Value[]): Promise<Row[]> {
    return this.db.session('test', (session) => session.rows<Row>(statement, ...values))
  }

  write(statement: Statement, ...values: readonly Value[]): Promise<number> {
    return this.db.session('test', (session) => session.run(statement, ...values))
  }

  expectVerified(): Promise<void> {
    return expectVerified(this)
  }
}

/** Keeps everybody from writing to the rows that a table has until it is released; to all of an SQLite file. */
export async function holdRows(url: string, table: string): Promise<{ release(): Promise<void> }> {
  if (url.startsWith('sqlite:')) {
    const file = new DatabaseSync(url.slice('sqlite:'.length))
    file.exec('PRAGMA busy_timeout = 5000; BEGIN IMMEDIATE')
    return { release: async () => file.close() }
  }
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  await client.query('BEGIN')
  await client.query(`SELECT id FROM bartleby.${table} FOR UPDATE`)
  return { release: () => client.end() }
}
