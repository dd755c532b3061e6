import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { LetterStore } from '../../test/harness/letter-store.ts'
import { reused } from '../../test/harness/reused-store.ts'
import { stores } from '../../test/harness/stores.ts'
import { later } from '../core/clock.ts'
import { silentLog } from '../core/log.ts'
import { sql } from '../db/database.ts'
import { leasedLock } from '../db/lock.ts'
import { EngineDirectory } from '../engines/definitions.ts'
import { History } from '../history/history.ts'
import { change } from './change.ts'
import { lockLetter, readLetterById } from './detail.ts'
import type { LetterId } from './letter.ts'
import { type Removed, RetentionClerk } from './retention.ts'
import { inOffice } from './work.ts'

const DAY = 86_400_000_000n
const HOUR = 3_600_000_000n

const ATTEMPTS = sql('test.countAttempts', 'SELECT count(*) AS rows FROM bartleby.letter_attempts')
const ADD_ATTEMPT = sql(
  'test.addAttempt',
  `INSERT INTO bartleby.letter_attempts (letter_id, number, failed_at, error_class, error_message)
   VALUES ($1, 1, 0, 'Error', 'first')`,
)

/** From now on no row of history can be brought up to date. */
const REFUSE_CHANGES = {
  postgres: `CREATE FUNCTION bartleby.refuse() RETURNS trigger LANGUAGE plpgsql
               AS $$ BEGIN RAISE EXCEPTION 'history is closed'; END $$;
             CREATE TRIGGER refuse BEFORE UPDATE ON bartleby.history EXECUTE FUNCTION bartleby.refuse();`,
  sqlite: `CREATE TRIGGER refuse BEFORE UPDATE ON history BEGIN SELECT raise(ABORT, 'history is closed'); END;`,
}

describe.each(stores)('retention on $name', (kind) => {
  const places = reused(kind)
  let store: LetterStore
  let clerk: RetentionClerk
  let told: Removed[]
  beforeEach(async () => {
    store = await LetterStore.open(places)
    told = []
    clerk = newClerk()
    clerk.onRemoved((removed) => told.push(removed))
  })
  afterEach(async () => {
    await clerk.stop()
    await store.close()
  })

  const newClerk = () => new RetentionClerk(store.db, store.clock, silentLog, { retentionDays: 90 })
  const resolve = (ids: readonly LetterId[]) =>
    inOffice(store.db, store.clock, 'test', async (work) => {
      for (const id of ids) {
        const letter = await lockLetter(work.tx, id)
        if (letter === null) throw new Error('no letter')
        await change(work, 'discard', [{ id, engine: letter.engine }], { actor: 'tester', notes: 'gone' })
      }
    })
  const expireAll = () => store.expireBefore(later(store.clock.now(), 1n))
  /** What the history rows of the office say, the oldest first. */
  const removals = async () =>
    (await store.history())
      .filter((row) => row.operation === 'remove')
      .map(({ engine, actor, output }) => ({
        engine,
        actor,
        ...JSON.parse(Buffer.from(output ?? []).toString()),
      }))

  it('never removes what is pending', async () => {
    await store.captureMany(3)
    store.clock.advance(1_000n * DAY)
    expect(await clerk.runNow()).toEqual({ letters: 0, history: 3 })
    expect((await store.statuses()).real).toEqual([3, 0, 0])
  })

  it('removes resolved letters 90 days after their resolution', async () => {
    const ids = await store.captureMany(2)
    store.clock.advance(30n * DAY)
    await resolve(ids)
    store.clock.advance(90n * DAY)
    expect(await clerk.runNow()).toMatchObject({ letters: 0 })
    store.clock.advance(1n)
    expect(await clerk.runNow()).toMatchObject({ letters: 2 })
    expect(await store.statuses()).toEqual({ counted: [0, 0, 0], real: [0, 0, 0] })
    expect(await store.removed()).toBe(2)
  })

  it('removes expired letters 90 days after their expiry, however long ago they failed', async () => {
    await store.captureMany(1)
    const [changed] = await store.captureMany(1)
    store.clock.advance(1_000n * DAY)
    const { engine, rowKey } = await store.db.session('test', async (session) => {
      const letter = changed === undefined ? null : await readLetterById(session, changed)
      if (letter === null) throw new Error('there is no letter')
      return letter
    })
    await store.letters.change({ engine, rowKey }, { status: 'Expired', notes: null, actor: 'nell' })
    expect(await expireAll()).toBe(1)
    store.clock.advance(90n * DAY)
    expect(await clerk.runNow()).toMatchObject({ letters: 0 })
    store.clock.advance(1n)
    expect(await clerk.runNow()).toMatchObject({ letters: 2 })
    expect(await store.statuses()).toEqual({ counted: [0, 0, 0], real: [0, 0, 0] })
  })

  it('removes expired letters not before 90 days after their last failure, when its reporter’s clock is ahead', async () => {
    await store.captureMany(2, (i) => ({ lastFailureAt: later(store.clock.now(), BigInt(i) * 30n * DAY) }))
    store.clock.advance(1n)
    await store.expireBefore(later(store.clock.now(), 31n * DAY))
    store.clock.advance(90n * DAY + 1n)
    expect(await clerk.runNow()).toMatchObject({ letters: 1 })
    store.clock.advance(30n * DAY)
    expect(await clerk.runNow()).toMatchObject({ letters: 1 })
  })

  it('begins anew when a letter was restored and expires again', async () => {
    await store.captureMany(1)
    await expireAll()
    store.clock.advance(60n * DAY)
    const [expired] = (await store.letters.list({ status: 'Expired' })).items
    if (expired === undefined) throw new Error('nothing expired')
    await store.letters.change(expired, { status: 'Pending', notes: null, actor: 'nell' })
    store.clock.advance(60n * DAY)
    await expireAll()
    store.clock.advance(90n * DAY)
    expect(await clerk.runNow()).toMatchObject({ letters: 0 })
  })

  it('takes the attempts along', async () => {
    const [id] = await store.captureMany(1)
    await store.db.session('test', (session) => session.run(ADD_ATTEMPT, id ?? null))
    await resolve([id as LetterId]) // the line above has captured it
    store.clock.advance(91n * DAY)
    await clerk.runNow()
    const [row] = await store.db.session('test', (session) => session.rows<{ rows: number }>(ATTEMPTS))
    expect(Number(row?.rows)).toBe(0)
  })

  it('removes history 90 days after it was made', async () => {
    await store.captureMany(2)
    store.clock.advance(1n)
    await store.captureMany(1)
    store.clock.advance(90n * DAY - 1n)
    expect(await clerk.runNow()).toEqual({ letters: 0, history: 0 })
    store.clock.advance(1n)
    expect(await clerk.runNow()).toEqual({ letters: 0, history: 2 })
    store.clock.advance(1n)
    expect(await clerk.runNow()).toEqual({ letters: 0, history: 1 })
  })

  it('writes one history row per run, whatever the number of batches and engines, and tells the metrics', async () => {
    // One more than a batch.
    await store.captureMany(501, (i) => ({ engine: i % 3 === 0 ? 'tls' : 'hmac' }))
    await expireAll()
    await resolve(await store.captureMany(2, (i) => ({ engine: i === 0 ? 'spn' : 'tls' })))
    store.clock.advance(91n * DAY)
    const before = (await store.history()).length
    const removed = await clerk.runNow()
    expect(removed).toEqual({ letters: 503, history: before })
    expect(told).toEqual([removed])
    expect(await removals()).toEqual([
      {
        engine: 'office',
        actor: 'retention',
        letters: { hmac: 334, tls: 168, spn: 1 },
        history: before,
      },
    ])
    expect(await store.removed()).toBe(503)
  })

  it('shows its row in the history of the office, under an id of the run', async () => {
    await resolve(await store.captureMany(1))
    store.clock.advance(91n * DAY)
    await clerk.runNow()
    const history = new History(store.db, store.clock, new EngineDirectory({ context: 'publisher' }))
    const { items } = await history.list({ engine: 'office', operation: 'remove', status: 'Succeeded' })
    expect(items).toHaveLength(1)
    const [entry] = items
    expect(entry?.correlationId).toMatch(/^[0-9a-f-]{36}$/)
    expect(entry).toMatchObject({ instanceId: entry?.correlationId, createdAt: store.clock.now() })
    expect(await history.get('office', entry?.rowKey ?? '')).toMatchObject({
      actor: 'retention',
      letter: null,
    })
  })

  it('writes nothing when there was nothing to remove', async () => {
    await resolve(await store.captureMany(1))
    await clerk.runNow()
    expect(await removals()).toEqual([])
    expect(told).toEqual([{ letters: 0, history: 0 }])
  })

  it('has a row of what is gone when it is stopped between two batches, and another run has its own', async () => {
    await resolve(await store.captureMany(501))
    store.clock.advance(91n * DAY)
    let batches = 0
    store.db.onCall(({ verb }) => {
      // The first batch is of expired letters, of which there are none.
      if (verb === 'letters.remove' && ++batches === 2) void clerk.stop()
    })
    expect(await clerk.runNow()).toEqual({ letters: 500, history: 1_002 })
    expect(await removals()).toMatchObject([{ letters: { hmac: 500 }, history: 1_002 }])
    expect(await newClerk().runNow()).toEqual({ letters: 1, history: 0 })
    expect(await removals()).toMatchObject([
      { letters: { hmac: 500 }, history: 1_002 },
      { letters: { hmac: 1 }, history: 0 },
    ])
  })

  it('takes no letter out before the history of it', async () => {
    await store.captureMany(501)
    await expireAll()
    store.clock.advance(91n * DAY)
    store.db.onCall(({ verb }) => {
      if (verb === 'history.remove') void clerk.stop()
    })
    expect(await clerk.runNow()).toEqual({ letters: 0, history: 500 })
    expect(await newClerk().runNow()).toEqual({ letters: 501, history: 502 })
  })

  it('takes nothing out that it could not write down', async () => {
    await resolve(await store.captureMany(100))
    store.clock.advance(91n * DAY)
    await store.db.transaction('test', (tx) => store.db.script(tx, REFUSE_CHANGES[store.db.dialect]))
    await expect(clerk.runNow()).rejects.toThrow('history is closed')
    expect((await store.statuses()).real).toEqual([0, 100, 0])
    expect(await removals()).toMatchObject([{ letters: {}, history: 200 }])
    expect(told).toEqual([{ letters: 0, history: 200 }])
  })

  it('is done by one of two servers that begin at the same moment', async () => {
    await store.captureMany(501)
    await expireAll()
    store.clock.advance(91n * DAY)
    const outcomes = await Promise.all([clerk.runNow(), newClerk().runNow()])
    expect(outcomes.filter((outcome) => outcome === null)).toHaveLength(1)
    expect(await removals()).toHaveLength(1)
    expect(await store.removed()).toBe(501)
  })

  it('is left to the server that holds the lock, for a minute when that one has died', async () => {
    await resolve(await store.captureMany(1))
    store.clock.advance(91n * DAY)
    const other = leasedLock(store.db, store.clock, 'letters.retention', 'another server')
    await other.take(60_000_000n)
    store.clock.advance(60_000_000n)
    expect(await clerk.runNow()).toBeNull()
    expect(told).toEqual([])
    store.clock.advance(1n)
    expect(await clerk.runNow()).toMatchObject({ letters: 1 })
  })

  it('runs by itself: a minute after the start, then every hour', async () => {
    await resolve(await store.captureMany(1))
    store.clock.advance(91n * DAY)
    clerk.start()
    store.clock.advance(60_000_001n)
    await expect.poll(() => told.length).toBe(1)
    expect(told[0]?.letters).toBe(1)
    // The next alarm is set once the run is over.
    await clerk.runNow()
    await new Promise((resolve) => setImmediate(resolve))
    store.clock.advance(HOUR + 1n)
    await expect.poll(() => told.length).toBe(3)
  })
})
