import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { barePostgres, type FreshStore, freshSqlite } from '../../test/world/stores.ts'
import { instant } from '../core/clock.ts'
import { silentLog } from '../core/log.ts'
import { TestClock } from '../core/test-clock.ts'
import { MIGRATIONS } from '../migrations.ts'
import { CountChanges, readCountsOf, webhookCounter } from '../sources/webhooks/numbers/counts.ts'
import { type Database, type Integer, sql } from './database.ts'
import { CountFolder, type FoldTurn, foldCounts, readLastFoldAt } from './fold.ts'
import { leasedLock } from './lock.ts'
import { migrate } from './migrations.ts'
import { openDatabase } from './open.ts'

const countDeltas = sql('test.countDeltas', 'SELECT count(*) AS found FROM bartleby.webhook_deltas')
const readTotal = sql(
  'test.readTotal',
  'SELECT amount FROM bartleby.webhook_totals WHERE subject = $1 AND tally = 3',
)
const emptied = ['webhook_deltas', 'webhook_totals', 'locks', 'count_folds'].map((table) =>
  sql(`test.empty.${table}`, `DELETE FROM bartleby.${table}`),
)
const insertDelta = sql(
  'test.insertDelta',
  'INSERT INTO bartleby.webhook_deltas (subject, tally, amount) VALUES ($1, $2, $3)',
)

describe('folding', () => {
  let place: FreshStore
  let db: Database
  const clock = new TestClock()

  beforeAll(async () => {
    place = await barePostgres()
    db = openDatabase(place.url, { poolSize: 4 })
    await migrate(db, MIGRATIONS)
  })
  beforeEach(async () => {
    clock.freeze(instant(1_800_000_000_000_000n))
    await db.session('test', async (session) => {
      for (const statement of emptied) await session.run(statement)
    })
  })
  afterAll(async () => {
    await db?.close()
    await place?.dispose()
  })

  const deliver = (subject: number, amount = 1) =>
    db.transaction('test', async (tx) => {
      const counts = new CountChanges()
      counts.add(subject, 'delivered', amount)
      counts.write(tx)
    })
  const fold = (turn: Partial<FoldTurn> = {}) =>
    foldCounts(db, webhookCounter, { clock, owner: 'me', ...turn })
  const unfolded = () =>
    db.session('test', async (session) => {
      const [row] = await session.rows<{ found: Integer }>(countDeltas)
      return Number(row?.found)
    })
  const delivered = (subject: number) =>
    db.session('test', async (session) => (await readCountsOf(session, subject)).delivered ?? 0)
  const lastFold = () => db.session('test', (session) => readLastFoldAt(session, webhookCounter, instant(0n)))

  it('moves deltas to the totals, in as many steps as it takes, and changes no number', async () => {
    for (let i = 0; i < 12; i++) await deliver(i % 3)
    await deliver(1, -2)
    await fold({ most: 5 })
    expect(await unfolded()).toBe(0)
    expect([await delivered(0), await delivered(1), await delivered(2)]).toEqual([4, 2, 4])
  })

  it('may leave a total below zero while the number is right', async () => {
    await deliver(1, 3)
    await fold()
    await deliver(1, -5)
    await fold()
    await deliver(1, 4)
    const [total] = await db.session('test', (session) => session.rows<{ amount: Integer }>(readTotal, 1))
    expect(Number(total?.amount)).toBe(-2)
    expect(await delivered(1)).toBe(2)
  })

  it('is done by one at a time; another gets its turn when the lease is over', async () => {
    await deliver(1)
    expect(await fold()).not.toBeNull()
    await deliver(1)
    expect(await fold({ owner: 'other' })).toBeNull()
    expect(await unfolded()).toBe(1)
    clock.advance(10_000_001n)
    expect(await fold({ owner: 'other' })).not.toBeNull()
    expect(await unfolded()).toBe(0)
    expect(await delivered(1)).toBe(2)
  })

  it('ends where the lock was lost on the way, and takes nothing from then on', async () => {
    for (let i = 0; i < 6; i++) await deliver(1)
    let steps = 0
    const other = leasedLock(db, clock, webhookCounter.lock, 'other')
    const rob: Database = new Proxy(db, {
      get: (target, key) =>
        key === 'statement' && ++steps === 2
          ? async (...call: Parameters<Database['statement']>) => {
              clock.advance(10_000_001n)
              expect(await other.take(60_000_000n)).toBe(true)
              return target.statement(...call)
            }
          : Reflect.get(target, key).bind?.(target),
    })
    expect(await foldCounts(rob, webhookCounter, { clock, owner: 'me', most: 2 })).toBeNull()
    expect(await unfolded()).toBe(4)
    expect(await delivered(1)).toBe(6)
    // Giving up what one no longer has is without effect.
    await leasedLock(db, clock, webhookCounter.lock, 'me').drop()
    expect(await fold()).toBeNull()
  })

  it('is right when two do it at once without knowing of each other, and to readers in between', async () => {
    const expected = 40
    for (let i = 0; i < expected; i++) await deliver(i % 2)
    let folding = true
    const folds = Promise.all(
      ['one', 'two', 'three'].map((owner) =>
        foldCounts(db, { ...webhookCounter, lock: owner }, { clock, owner, most: 3 }),
      ),
    ).finally(() => {
      folding = false
    })
    while (folding) expect([await delivered(0), await delivered(1)]).toEqual([20, 20])
    await folds
    expect([await delivered(0), await delivered(1)]).toEqual([20, 20])
  })

  it('takes up what commits late, below what was folded already, when it starts from the beginning', async () => {
    const opened = Promise.withResolvers<void>()
    const hold = Promise.withResolvers<void>()
    const late = db.transaction('test', async (tx) => {
      await tx.run(insertDelta, 1, 3, 10)
      opened.resolve()
      await hold.promise
    })
    await opened.promise
    await deliver(1)
    const last = await fold()
    hold.resolve()
    await late
    expect(await delivered(1)).toBe(11)
    await fold({ after: last ?? 0 })
    expect(await unfolded()).toBe(1)
    await fold()
    expect(await unfolded()).toBe(0)
    expect(await delivered(1)).toBe(11)
  })

  it('notes when it was done last, also when there was nothing to do', async () => {
    expect(await lastFold()).toBeNull()
    await fold()
    expect(await lastFold()).toBe(clock.now())
    const before = clock.now()
    clock.advance(1_000_000n)
    await fold({ owner: 'other' })
    expect(await lastFold()).toBe(before)
    await fold()
    expect(await lastFold()).toBe(clock.now())
  })

  it('begins with the folder, which leaves the lock when it stops', async () => {
    await deliver(1)
    const folder = new CountFolder(webhookCounter, { db, clock, log: silentLog })
    folder.start()
    await folder.stop()
    expect(await unfolded()).toBe(0)
    expect(await fold({ owner: 'next' })).not.toBeNull()
  })

  it('has nothing to do on SQLite, where the totals are of now', async () => {
    const file = await freshSqlite()
    const sqlite = openDatabase(file.url, { poolSize: 1 })
    await migrate(sqlite, MIGRATIONS)
    const folder = new CountFolder(webhookCounter, { db: sqlite, clock, log: silentLog })
    folder.start()
    await folder.stop()
    const now = clock.now()
    expect(await sqlite.session('test', (session) => readLastFoldAt(session, webhookCounter, now))).toBe(now)
    await sqlite.close()
    await file.dispose()
  })
})
