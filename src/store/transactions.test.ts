import { DatabaseSync } from 'node:sqlite'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { barePostgres, bareStores, type FreshStore, freshSqlite } from '../../test/world/stores.ts'
import { CommittedAnyway, type Database, type StoreCall, StoreUnavailable, sql } from './database.ts'
import { migrate } from './migrations.ts'
import { openDatabase } from './open.ts'

const accounts = {
  number: 1,
  name: 'accounts',
  postgres: 'CREATE TABLE bartleby.accounts (name text PRIMARY KEY, amount bigint NOT NULL)',
  sqlite: 'CREATE TABLE accounts (name TEXT PRIMARY KEY, amount INTEGER NOT NULL)',
}
const put = sql(
  'test.put',
  `INSERT INTO bartleby.accounts (name, amount) VALUES ($1, $2)
   ON CONFLICT (name) DO UPDATE SET amount = excluded.amount`,
)
const add = sql('test.add', 'UPDATE bartleby.accounts SET amount = amount + $2 WHERE name = $1')
const read = sql('test.read', 'SELECT amount FROM bartleby.accounts WHERE name = $1', { bigints: true })
const make = sql('test.make', 'INSERT INTO bartleby.accounts (name, amount) VALUES ($1, 0)')
const divide = sql('test.divide', 'SELECT abs($1)')

const amountOf = async (db: Database, name: string): Promise<number> => {
  const [row] = await db.session('test', (session) => session.rows<{ amount: bigint }>(read, name))
  return Number(row?.amount)
}

describe('a transaction of one trip on PostgreSQL', () => {
  it('refuses statements that come after its commit, and says that the others are kept', async () => {
    const place = await barePostgres()
    const db = openDatabase(place.url, { poolSize: 2 })
    try {
      await migrate(db, [accounts])
      const late = db.transaction(
        'test',
        async (tx) => {
          await tx.run(make, 'a')
          await tx.run(make, 'b')
        },
        { oneTrip: true },
      )
      await expect(late).rejects.toThrow(CommittedAnyway)
      await expect(late).rejects.toThrow("'test.make' came after the end of its session")
      expect([await amountOf(db, 'a'), await amountOf(db, 'b')]).toEqual([0, Number.NaN])

      const asksNothing = () => {
        throw new RangeError('changed my mind')
      }
      await expect(db.transaction('test', asksNothing, { oneTrip: true })).rejects.toThrow(RangeError)
      expect(await amountOf(db, 'a')).toBe(0)
    } finally {
      await db.close()
      await place.dispose()
    }
  })
})

describe.each(bareStores)('a transaction on $name', (store) => {
  let place: FreshStore
  let db: Database

  beforeAll(async () => {
    place = await store.fresh()
    db = openDatabase(place.url, { poolSize: 4 })
    await migrate(db, [accounts])
  })

  beforeEach(async () => {
    await db.transaction('test', async (tx) => {
      await tx.run(put, 'a', 0)
      await tx.run(put, 'b', 0)
    })
  })

  afterAll(async () => {
    await db?.close()
    await place?.dispose()
  })

  it('keeps nothing when its work fails', async () => {
    const failing = db.transaction('test', async (tx) => {
      await tx.run(add, 'a', 1)
      tx.atCommit(add, 'b', 1)
      throw new Error('changed my mind')
    })
    await expect(failing).rejects.toThrow('changed my mind')
    expect([await amountOf(db, 'a'), await amountOf(db, 'b')]).toEqual([0, 0])
  })

  it('keeps all or nothing of statements that travel with the commit in one trip', async () => {
    const inOneTrip = (amount: number, twin: string) =>
      db.transaction(
        'test',
        async (tx) => {
          const adding = tx.run(add, 'a', amount)
          const making = tx.run(make, twin)
          tx.atCommit(add, 'b', amount)
          await Promise.allSettled([adding, making])
          return [await adding, await making]
        },
        { oneTrip: true },
      )
    const amounts = async () => [await amountOf(db, 'a'), await amountOf(db, 'b')]
    await expect(inOneTrip(1, 'c')).resolves.toEqual([1, 1])
    expect(await amounts()).toEqual([1, 1])
    await expect(inOneTrip(1, 'c')).rejects.toThrow()
    expect(await amounts()).toEqual([1, 1])
  })

  it('keeps what travels with the commit, and nothing when that fails', async () => {
    await db.transaction('test', async (tx) => tx.atCommit(add, 'a', 1))
    expect(await amountOf(db, 'a')).toBe(1)
    const failing = db.transaction('test', async (tx) => {
      await tx.run(add, 'a', 1)
      tx.atCommit(put, 'c', null)
    })
    await expect(failing).rejects.toThrow(/null/i)
    expect(await amountOf(db, 'a')).toBe(1)
  })

  it('does not succeed when nobody is told of a statement that failed', async () => {
    if (db.dialect === 'sqlite') return
    const failing = db.transaction('test', async (tx) => {
      await tx.run(add, 'a', 1)
      await tx.run(put, 'c', null).catch(() => {})
    })
    await expect(failing).rejects.toThrow(/null/i)
    expect(await amountOf(db, 'a')).toBe(0)
  })

  it('says what failed, not what the statements sent behind it met', async () => {
    const failing = db.transaction('test', async (tx) => {
      const first = tx.run(put, 'c', null)
      const second = tx.run(add, 'a', 1)
      await Promise.all([first.finally(() => Promise.allSettled([second])), second])
    })
    await expect(failing).rejects.toThrow(/null/i)
  })

  it('leaves a connection behind that others can use', async () => {
    for (let i = 0; i < 8; i++) {
      await expect(db.transaction('test', (tx) => tx.run(put, 'c', null))).rejects.toThrow()
    }
    await db.transaction('test', (tx) => tx.run(add, 'a', 1))
    expect(await amountOf(db, 'a')).toBe(1)
  })

  it('is alone with what it changes, however many run at once', async () => {
    const work = Array.from({ length: 40 }, () => db.transaction('test', (tx) => tx.run(add, 'a', 1)))
    await Promise.all(work)
    expect(await amountOf(db, 'a')).toBe(40)
  })

  it('reads integers beyond 2^53 exactly', async () => {
    const large = 9_007_199_254_740_993n
    await db.transaction('test', (tx) => tx.run(put, 'a', large))
    const [row] = await db.session('test', (session) => session.rows<{ amount: bigint | string }>(read, 'a'))
    expect(BigInt(row?.amount ?? 0)).toBe(large)
  })

  it('is told to whoever observes the store, with how it ended', async () => {
    const calls: StoreCall[] = []
    db.onCall((call) => calls.push(call))
    await db.transaction('good', (tx) => tx.run(add, 'a', 1))
    await db.transaction('bad', (tx) => tx.run(put, 'c', null)).catch(() => {})
    const seen = calls
      .filter(({ verb }) => verb === 'good' || verb === 'bad')
      .map(({ verb, ok }) => [verb, ok])
    expect(seen).toEqual([
      ['good', true],
      ['bad', false],
    ])
  })
})

describe('a session on PostgreSQL', () => {
  it('that is over asks nothing on a connection that is somebody else’s by then', async () => {
    const place = await barePostgres()
    const db = openDatabase(place.url, { poolSize: 1 })
    const one = sql('test.one', 'SELECT 1 AS one')
    const late = await db.session('test', async (session) => () => session.rows(one))
    await expect(late()).rejects.toThrow("'test.one' came after the end of its session")
    await db.close()
    await place.dispose()
  })
})

describe('two transactions that stand in each other’s way on PostgreSQL', () => {
  let place: FreshStore
  let db: Database

  beforeAll(async () => {
    place = await barePostgres()
    db = openDatabase(place.url, { poolSize: 4 })
    await migrate(db, [accounts])
  })

  beforeEach(async () => {
    await db.transaction('test', async (tx) => {
      await tx.run(put, 'a', 0)
      await tx.run(put, 'b', 0)
    })
  })

  afterAll(async () => {
    await db?.close()
    await place?.dispose()
  })

  it('both succeed after a deadlock: one of them is run again', async () => {
    let runs = 0
    const bothHold = barrier(2)
    const move = (from: string, to: string) =>
      db.transaction('test', async (tx) => {
        runs++
        await tx.run(add, from, -1)
        await bothHold()
        await tx.run(add, to, 1)
      })
    await Promise.all([move('a', 'b'), move('b', 'a')])
    // Run again, it may be back at its first row before the other has noticed that it was left: then they meet once more.
    expect(runs).toBeGreaterThanOrEqual(3)
    expect([await amountOf(db, 'a'), await amountOf(db, 'b')]).toEqual([0, 0])
  })

  it('both succeed after a serialisation failure', async () => {
    let runs = 0
    const bothRead = barrier(2)
    const increment = () =>
      db.transaction('test', async (tx) => {
        runs++
        await db.script(tx, 'SET TRANSACTION ISOLATION LEVEL REPEATABLE READ')
        const [row] = await tx.rows<{ amount: string }>(read, 'a')
        await bothRead()
        await tx.run(put, 'a', Number(row?.amount) + 1)
      })
    await Promise.all([increment(), increment()])
    expect(runs).toBe(3)
    expect(await amountOf(db, 'a')).toBe(2)
  })
})

describe('a SQLite store that another program has locked', () => {
  it('waits for it a while, then says that the store cannot be used', async () => {
    const place = await freshSqlite()
    const db = openDatabase(place.url, { poolSize: 1 })
    await migrate(db, [accounts])
    const other = new DatabaseSync(place.url.slice('sqlite:'.length))
    try {
      await db.session('test', (session) => session.rows(divide, 1))
      other.exec('BEGIN IMMEDIATE')
      const locked = db.transaction('test', (tx) => tx.run(put, 'a', 1))
      await expect(locked).rejects.toThrow(StoreUnavailable)
      other.exec('ROLLBACK')
      await db.transaction('test', (tx) => tx.run(put, 'a', 1))
      expect(await amountOf(db, 'a')).toBe(1)
    } finally {
      other.close()
      await db.close()
      await place.dispose()
    }
  })
})

/** Everyone waits until `count` have come; later ones pass. */
function barrier(count: number): () => Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  let arrived = 0
  return () => {
    if (++arrived === count) resolve()
    return promise
  }
}
