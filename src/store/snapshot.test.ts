import pg from 'pg'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { PATIENCE_MS } from '../../test/world/limits.ts'
import { bareStores, type FreshStore } from '../../test/world/stores.ts'
import { BATCH_ROWS, type Database, type Integer, type Session, sql } from './database.ts'
import { migrate } from './migrations.ts'
import { openDatabase } from './open.ts'

const numbers = {
  number: 1,
  name: 'ledger',
  postgres: 'CREATE TABLE bartleby.numbers (entry int PRIMARY KEY)',
  sqlite: 'CREATE TABLE numbers (entry INTEGER PRIMARY KEY)',
}
const enter = sql('test.enter', 'INSERT INTO bartleby.numbers (entry) VALUES ($1)')
const wipe = sql('test.wipe', 'DELETE FROM bartleby.numbers')
const count = sql('test.count', 'SELECT count(*) AS entries FROM bartleby.numbers')
const entriesFrom = sql(
  'test.entriesFrom',
  'SELECT entry FROM bartleby.numbers WHERE entry >= $1 ORDER BY entry',
)

const entriesIn = async (session: Session): Promise<number> => {
  const [row] = await session.rows<{ entries: number | string }>(count)
  return Number(row?.entries)
}

const places = [
  ...bareStores,
  { name: 'memory', fresh: async () => ({ url: 'sqlite::memory:', dispose: async () => {} }) },
]

describe.each(places)('a snapshot on $name', (store) => {
  let place: { readonly url: string; dispose(): Promise<void> }
  let db: Database

  beforeAll(async () => {
    place = await store.fresh()
    db = openDatabase(place.url, { poolSize: 3 })
    await migrate(db, [numbers])
  })

  beforeEach(async () => {
    await db.transaction('test', (tx) => tx.run(wipe))
    await db.transaction('test', (tx) => tx.run(enter, 1))
  })

  afterAll(async () => {
    await db?.close()
    await place?.dispose()
  })

  it('sees what was committed before it', async () => {
    expect(await db.snapshot('test', entriesIn)).toBe(1)
  })

  it('gives back what its work gives, and throws what that throws', async () => {
    expect(await db.snapshot('test', async () => 'done')).toBe('done')
    const failing = db.snapshot('test', async () => {
      throw new Error('changed my mind')
    })
    await expect(failing).rejects.toThrow('changed my mind')
  })

  it('says what failed, not what the statements sent behind it met', async () => {
    const failing = db.snapshot('test', async (session) => {
      const first = session.run(enter, 2)
      const second = session.rows(count)
      await Promise.all([first.finally(() => Promise.allSettled([second])), second])
    })
    await expect(failing).rejects.toThrow(/read-?only|readonly/)
  })

  it('refuses to write, and leaves a store behind that can be written', async () => {
    for (let i = 0; i < 4; i++) {
      await expect(db.snapshot('test', (session) => session.run(enter, 2))).rejects.toThrow(
        /read-?only|readonly/,
      )
    }
    await db.transaction('test', (tx) => tx.run(enter, 2))
    expect(await db.session('test', entriesIn)).toBe(2)
  })

  it('lets its own work write when it is apart, also more of them than there are connections', async () => {
    const reading = Array.from({ length: 5 }, (_, i) =>
      db.snapshot(
        'test',
        async (session) => {
          const before = await entriesIn(session)
          await db.transaction('test', (tx) => tx.run(enter, 10 + i))
          expect(await entriesIn(session)).toBe(before)
          await expect(session.run(enter, 2)).rejects.toThrow(/read-?only|readonly/)
        },
        { apart: true },
      ),
    )
    await Promise.all(reading)
    expect(await db.session('test', entriesIn)).toBe(6)
  })

  it('gives all rows of long answers in batches, of several beside each other', async () => {
    await db.transaction('test', (tx) =>
      tx.runEach(
        enter,
        Array.from({ length: 2 * BATCH_ROWS }, (_, i) => [100 + i]),
      ),
    )
    await db.snapshot('test', async (session) => {
      const starts = [100, 100 + BATCH_ROWS / 2]
      const readings = starts.map((from) =>
        session.batches<{ entry: Integer }>(entriesFrom, from)[Symbol.asyncIterator](),
      )
      const found: number[][] = starts.map(() => [])
      const open = new Set(readings.keys())
      while (open.size > 0) {
        for (const at of open) {
          const { value = [], done } = (await readings[at]?.next()) ?? {}
          if (done === true) open.delete(at)
          expect(value.length).toBeLessThanOrEqual(BATCH_ROWS)
          found[at]?.push(...value.map(({ entry }: { entry: Integer }) => Number(entry)))
        }
      }
      const upTo = 100 + 2 * BATCH_ROWS
      expect(found).toEqual(starts.map((from) => Array.from({ length: upTo - from }, (_, i) => from + i)))
    })
  })

  it('goes on when an answer is left in the middle, and tells why one fails', async () => {
    await db.snapshot('test', async (session) => {
      for await (const _ of session.batches(entriesFrom, 0)) break
      expect(await entriesIn(session)).toBeGreaterThan(0)
      const failing = sql('test.failing', 'SELECT entry FROM bartleby.no_such_table')
      await expect(session.batches(failing)[Symbol.asyncIterator]().next()).rejects.toThrow(/no_such_table/)
    })
  })

  // SQLite has no time limit, and has answered before anything else is asked.
  it.runIf(store.name === 'postgres')('answers what is asked behind rows that take long', async () => {
    const hasty = openDatabase(`${place.url}?query_timeout=500`, { poolSize: 1 })
    const slow = sql('test.slow', {
      postgres: `SELECT n FROM generate_series(1, ${BATCH_ROWS + 1}) AS n WHERE n <= ${BATCH_ROWS} OR pg_sleep(1) IS NOT NULL`,
      sqlite: '',
    })
    let rows = 0
    await hasty.snapshot('test', async (session) => {
      for await (const batch of session.batches(slow)) {
        rows += batch.length
        expect(await entriesIn(session)).toBe(1)
      }
    })
    expect(rows).toBe(BATCH_ROWS + 1)
    await hasty.close()
  })

  it('is told to whoever observes the store', async () => {
    const verbs: string[] = []
    db.onCall(({ verb, ok }) => verbs.push(`${verb} ${ok}`))
    await db.snapshot('look', entriesIn)
    expect(verbs).toContain('look true')
  })
})

describe.each(bareStores)('writers beside a snapshot on $name', (store) => {
  it('do not wait for it and are not seen by it', async () => {
    const place = await store.fresh()
    const db = openDatabase(place.url, { poolSize: 3 })
    try {
      await migrate(db, [numbers])
      await db.transaction('test', (tx) => tx.run(enter, 1))
      await db.snapshot(
        'test',
        async (session) => {
          // Written before the snapshot has read anything: apart, its moment is when it began.
          await db.transaction('test', (tx) => tx.run(enter, 2))
          expect(await entriesIn(session)).toBe(1)
        },
        { apart: true },
      )
      await db.snapshot('test', async (session) => {
        expect(await entriesIn(session)).toBe(2)
        for (let entry = 3; entry <= 50; entry++) await db.transaction('test', (tx) => tx.run(enter, entry))
        expect(await db.session('test', entriesIn)).toBe(50)
        expect(await entriesIn(session)).toBe(2)
      })
      expect(await db.snapshot('test', entriesIn)).toBe(50)
    } finally {
      await db.close()
      await place.dispose()
    }
  })
})

describe.each(bareStores.filter(({ name }) => name === 'postgres'))(
  'a snapshot on $name whose rows do not come',
  (store) => {
    const LOCK = 1853
    const held = sql('test.held', {
      postgres: `SELECT entry, pg_advisory_xact_lock_shared(${LOCK})::text AS locked FROM generate_series(1, 2) AS entry`,
      sqlite: '',
    })
    let place: FreshStore
    let db: Database
    let holder: pg.Client

    beforeEach(async () => {
      place = await store.fresh()
      db = openDatabase(place.url, { poolSize: 1 })
      holder = new pg.Client(place.url)
      await holder.connect()
      await holder.query(`SELECT pg_advisory_lock(${LOCK})`)
    })
    afterEach(async () => {
      await holder.end()
      await db.close()
      await place.dispose()
    })

    const isHeld = () =>
      expect
        .poll(
          async () =>
            (
              await holder.query(
                "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'advisory'",
              )
            ).rowCount,
          { timeout: PATIENCE_MS },
        )
        .toBe(1)
    const one = sql('test.one', 'SELECT 1 AS one')

    it.each([false, true])('ends when it is told to, apart: %s', async (apart) => {
      const stop = new AbortController()
      const reading = db.snapshot(
        'test',
        async (session) => {
          for await (const _ of session.batches(held)) throw new Error('a row came')
        },
        { apart, signal: stop.signal },
      )
      const failed = expect(reading).rejects.toThrow('enough')
      await isHeld()
      stop.abort(new Error('enough'))
      await failed
      // The lock is still held.
      expect(await db.session('test', (session) => session.rows(one))).toEqual([{ one: 1 }])
    })

    it('ends when its work fails meanwhile, and the next has a connection', async () => {
      const reading = db.snapshot('test', async (session) => {
        const rows = session.batches(held)[Symbol.asyncIterator]()
        const next = rows.next()
        next.catch(() => {})
        await isHeld()
        throw new Error('changed my mind')
      })
      await expect(reading).rejects.toThrow('changed my mind')
      expect(await db.session('test', (session) => session.rows(one))).toEqual([{ one: 1 }])
    })
  },
)
