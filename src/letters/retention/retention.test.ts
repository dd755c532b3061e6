import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { LetterStore } from '../../../test/world/letter-store.ts'
import { reused } from '../../../test/world/reused-store.ts'
import { stores } from '../../../test/world/stores.ts'
import { later } from '../../core/clock.ts'
import { type Log, silentLog } from '../../core/log.ts'
import { History } from '../../history/history.ts'
import { EngineDirectory } from '../../queues/engines/engine-directory.ts'
import { sql } from '../../store/database.ts'
import { change } from '../change.ts'
import type { LetterId } from '../letter.ts'
import { lockLetter, readLetterById } from '../lists/detail.ts'
import { inOffice, type OfficeRuns, officeRuns } from '../work.ts'
import { type Removed, Retention } from './retention.ts'

const HOUR = 3_600_000_000n
const DAY = 24n * HOUR

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
  let servers: OfficeRuns[]
  let clerk: Retention
  let told: Removed[]
  beforeEach(async () => {
    store = await LetterStore.open(places)
    told = []
    servers = []
    clerk = newClerk()
  })
  afterEach(async () => {
    await Promise.all(servers.map((runs) => runs.stop()))
    await store.close()
  })

  /** Retention as another server has it. */
  const newClerk = (log: Log = silentLog) => {
    const runs = officeRuns(store.db, store.clock, log)
    servers.push(runs)
    const made = new Retention(runs, { retentionDays: 90, log })
    made.onRemoved((removed) => told.push(removed))
    return made
  }
  const toldOf = () =>
    told.reduce(
      (sum, { letters, history }) => ({ letters: sum.letters + letters, history: sum.history + history }),
      { letters: 0, history: 0 },
    )
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
    expect(toldOf()).toEqual(removed)
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
    expect(entry?.correlationId).toMatch(/^[0-9a-v]{20}$/)
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
    expect(told).toEqual([])
    expect(await servers[0]?.list({ kinds: null, states: null, before: null, limit: 9 })).toEqual([])
  })

  /** Stops the first server after this many steps of it. */
  const stopAfter = (steps: number) => {
    let taken = 0
    store.db.onCall(({ verb }) => {
      if (verb === 'run.retention' && ++taken === steps) void servers[0]?.stop()
    })
  }

  it('goes on with its row on another server when it is stopped between two batches', async () => {
    await resolve(await store.captureMany(501))
    store.clock.advance(91n * DAY)
    // Source ids once, history three times, expired letters once, resolved ones.
    stopAfter(6)
    expect(await clerk.runNow()).toEqual({ letters: 500, history: 1_002 })
    expect(await removals()).toMatchObject([{ letters: { hmac: 500 }, history: 1_002 }])
    expect(await newClerk().runNow()).toEqual({ letters: 501, history: 1_002 })
    expect(await removals()).toMatchObject([{ letters: { hmac: 501 }, history: 1_002 }])
    expect(await servers[1]?.list({ kinds: null, states: null, before: null, limit: 9 })).toMatchObject([
      { kind: 'retention', state: 'done', done: 1_503, actor: 'retention' },
    ])
  })

  it('takes no letter out before the history of it', async () => {
    await store.captureMany(501)
    await expireAll()
    store.clock.advance(91n * DAY)
    stopAfter(2)
    expect(await clerk.runNow()).toEqual({ letters: 0, history: 500 })
    expect(await newClerk().runNow()).toEqual({ letters: 501, history: 1_002 })
  })

  it('takes nothing out that it could not write down', async () => {
    await resolve(await store.captureMany(100))
    store.clock.advance(91n * DAY)
    await store.db.transaction('test', (tx) => store.db.script(tx, REFUSE_CHANGES[store.db.dialect]))
    let refused = 0
    const round = newClerk({ ...silentLog, warn: () => void refused++ }).runNow()
    await expect.poll(() => refused).toBe(1)
    expect((await store.statuses()).real).toEqual([0, 100, 0])
    expect(await removals()).toMatchObject([{ letters: {}, history: 200 }])
    await servers[1]?.stop()
    expect(await round).toEqual({ letters: 0, history: 200 })
    expect(toldOf()).toEqual({ letters: 0, history: 200 })
  })

  it('is done by one of two servers that begin at the same moment', async () => {
    await store.captureMany(501)
    await expireAll()
    store.clock.advance(91n * DAY)
    let ended = 0
    const rounds = [clerk, newClerk()].map((each) => each.runNow().finally(() => ended++))
    await expect
      .poll(() => {
        // Who is not at it looks every second.
        store.clock.advance(1_000_000n)
        return ended
      })
      .toBe(2)
    await Promise.all(rounds)
    expect(await removals()).toHaveLength(1)
    expect(toldOf().letters).toBe(501)
    expect(await store.removed()).toBe(501)
  })

  it('runs by itself: a minute after the start, then every hour', async () => {
    await resolve(await store.captureMany(1))
    store.clock.advance(91n * DAY)
    const [runs] = servers
    runs?.start()
    store.clock.advance(59_000_000n)
    await runs?.settle()
    expect(toldOf().letters).toBe(0)
    store.clock.advance(2_000_000n)
    await expect.poll(() => toldOf().letters).toBe(1)
    await resolve(await store.captureMany(1))
    store.clock.advance(91n * DAY)
    // An hour counts from the end of a round, and the first may not have come to its end yet.
    const anHourLater = () => {
      store.clock.advance(HOUR)
      return toldOf().letters
    }
    await expect.poll(anHourLater).toBe(2)
  })
})
