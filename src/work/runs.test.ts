/** What every kind of run can rely on. The one here counts to its subject, in rows of a table. */
import { setImmediate as turn } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { PATIENCE_MS } from '../../test/world/limits.ts'
import { type StoreKind, stores } from '../../test/world/stores.ts'
import { instant } from '../core/clock.ts'
import { silentLog } from '../core/log.ts'
import { TestClock } from '../core/test-clock.ts'
import { type Xid, xid } from '../core/xid.ts'
import { MIGRATIONS } from '../migrations.ts'
import { type Database, type Integer, sql } from '../store/database.ts'
import { migrate } from '../store/migrations.ts'
import { openDatabase } from '../store/open.ts'
import type { Run, RunCommand, RunWork, Step } from './run.ts'
import { changeRun } from './run-rows.ts'
import { Runs } from './runs.ts'

const NOW = instant(1_800_000_000_000_000n)
const insert = sql('test.insertCounted', "INSERT INTO bartleby.locks VALUES ($1, 'test', $2)")
const count = sql('test.countCounted', 'SELECT count(*) AS found FROM bartleby.locks')

const readLease = sql('test.leaseOfRun', 'SELECT owned_until AS at FROM bartleby.runs ORDER BY id', {
  bigints: true,
})

interface Server {
  readonly runs: Runs<RunWork>
  /** Called before each step; throws where a step is to fail. */
  onStep: (run: Run, most: number) => void
  /** What follows a step instead of the next. */
  next: ((run: Run) => Step['next'] | null) | null
}

describe.each(stores)('a run on $name', (kind: StoreKind) => {
  let db: Database
  let clock: TestClock
  let place: Awaited<ReturnType<StoreKind['fresh']>>
  let servers: Server[]

  beforeEach(async () => {
    place = await kind.fresh()
    db = openDatabase(place.url, { poolSize: 4 })
    await migrate(db, MIGRATIONS)
    clock = new TestClock()
    clock.freeze(NOW)
    servers = []
  })
  afterEach(async () => {
    for (const { runs } of servers) await runs.stop()
    await db.close()
    await place.dispose()
  })

  /** A server on the store; `carriesOut` as the option of runs. */
  function server(carriesOut = true): Server {
    const runs = new Runs<RunWork>({
      db,
      clock,
      log: silentLog,
      carriesOut,
      inWork: async (verb, act) => {
        const effects: (() => void)[] = []
        const result = await db.transaction(verb, (tx) => {
          effects.length = 0
          return act({ tx, now: clock.now(), afterCommit: (effect) => effects.push(effect) })
        })
        for (const effect of effects) effect()
        return result
      },
    })
    const made: Server = { runs, onStep: () => {}, next: null }
    runs.define<number, number>({
      kind: 'count',
      batch: 3,
      step: async ({ tx }, run, most) => {
        const to = Math.min(run.subject, run.place + most)
        for (let n = run.place; n < to; n++) await tx.run(insert, `${run.id} ${n}`, n)
        made.onStep(run, most)
        const next = made.next?.(run) ?? (to === run.subject ? 'finished' : 'more')
        return { place: to, done: to - run.place, next }
      },
    })
    servers.push(made)
    return made
  }

  const begin = ({ runs }: Server, more: { rate?: number; name?: string } = {}) =>
    runs.inWork('test.begin', (work) =>
      runs.begin<number, number>(work, {
        kind: 'count',
        about: 'ten',
        subject: 10,
        place: 0,
        actor: 'nell',
        expected: 10,
        ...more,
      }),
    )
  const command = ({ runs }: Server, id: Xid, asked: RunCommand) =>
    runs.inWork('test.command', (work) => runs.command(work, id, asked))
  const counted = async () =>
    Number((await db.session('test', (s) => s.rows<{ found: Integer }>(count)))[0]?.found)
  const leaseEnds = async () =>
    BigInt((await db.session('test', (s) => s.rows<{ at: Integer }>(readLease)))[0]?.at ?? 0)
  const pass = async (seconds: number) => {
    clock.advance(BigInt(Math.round(seconds * 1e6)))
    for (const { runs } of servers) await runs.settle()
  }
  const PAUSE = { act: 'pause', actor: 'nell', reason: 'lunch' } as const
  const RESUME = { act: 'resume', actor: 'nell' } as const
  const CANCEL = { act: 'cancel', actor: 'nell', reason: null } as const

  it('goes step by step, and is done', async () => {
    const one = server()
    const seen: [number, number][] = []
    one.onStep = ({ done }, most) => seen.push([done, most])
    const { id } = await begin(one)
    expect(await one.runs.over(id, 1_000_000n)).toMatchObject({
      state: 'done',
      done: 10,
      expected: 10,
      owner: null,
      endedAt: NOW,
    })
    expect(seen.map(([done]) => done)).toEqual([0, 3, 6, 9])
    expect(await counted()).toBe(10)
    expect(await one.runs.list({ kinds: ['count'], states: ['done'], before: null, limit: 5 })).toMatchObject(
      [{ id }],
    )
    expect(await one.runs.list({ kinds: ['other'], states: null, before: null, limit: 5 })).toEqual([])
    expect(await one.runs.list({ kinds: null, states: null, before: id, limit: 5 })).toEqual([])
  })

  it('is waited for also by who asks between the commit that began it and its first step', async () => {
    const { runs } = server()
    runs.define({
      kind: 'walk',
      walk: (run) => ({
        round: async () => {
          const over = { state: 'done', endedAt: NOW, lease: { owner: null, until: null } } as const
          await db.transaction('test', async (tx) => void changeRun(tx, run, over))
          return 'over'
        },
      }),
      command: async () => ({ run: null }),
    })
    const effects: (() => void)[] = []
    const { id } = await db.transaction('test', (tx) =>
      runs.begin(
        { tx, now: NOW, afterCommit: (effect) => effects.push(effect) },
        { kind: 'walk', about: '', subject: null, place: null, actor: 'nell' },
      ),
    )
    const hasLooked = Promise.withResolvers<void>()
    db.onCall(({ verb }) => verb === 'run.read' && hasLooked.resolve())
    const over = runs.over(id, 1_000_000n)
    await hasLooked.promise
    await turn()
    for (const effect of effects) effect()
    expect(await over).toMatchObject({ state: 'done' })
  })

  it('is not begun when its transaction is rolled back', async () => {
    const one = server()
    const broken = one.runs.inWork('test.begin', async (work) => {
      await one.runs.begin(work, { kind: 'count', about: '', subject: 1, place: 0, actor: 'nell' })
      throw new Error('no')
    })
    await expect(broken).rejects.toThrow('no')
    await one.runs.settle()
    expect(await one.runs.open()).toEqual([])
    expect(await counted()).toBe(0)
  })

  it('goes on elsewhere three seconds after its server was heard of last', async () => {
    const [one, other] = [server(), server()]
    one.onStep = ({ done }) => {
      if (done === 3) throw new Error('it was killed')
    }
    const { id } = await begin(one)
    await one.runs.settle()
    await other.runs.settle()
    expect(await other.runs.read(id)).toMatchObject({ done: 3, owner: one.runs.owner })
    clock.advance(3_100_000n)
    await vi.waitFor(
      async () => {
        await other.runs.settle()
        expect(await other.runs.read(id)).toMatchObject({ state: 'done', done: 10, resumed: 1 })
      },
      { timeout: PATIENCE_MS },
    )
    expect(await counted()).toBe(10)
  })

  it('is kept by a server that waits, as long as that is there', async () => {
    const [one, other] = [server(), server()]
    one.runs.start()
    const { id } = await begin(one, { rate: 0.1 })
    for (let i = 0; i < 6; i++) {
      clock.advance(1_000_001n)
      await vi.waitFor(async () => expect(await leaseEnds()).toBe(clock.now() + 3_000_000n), {
        timeout: PATIENCE_MS,
      })
      await one.runs.settle()
      await other.runs.settle()
    }
    expect(await other.runs.read(id)).toMatchObject({ owner: one.runs.owner, resumed: 0 })
  })

  it('goes on when its server lost it without a word, also while that server is at others', async () => {
    const [one, other] = [server(), server()]
    one.runs.start()
    await begin(one, { rate: 0.1 })
    const { id } = await one.runs.inWork('test.begin', (work) =>
      // What follows the commit is lost, as when its answer is.
      one.runs.begin<number, number>(
        { ...work, afterCommit: () => {} },
        { kind: 'count', about: 'ten', subject: 10, place: 0, actor: 'nell' },
      ),
    )
    for (let i = 0; i < 5; i++) {
      clock.advance(1_000_001n)
      await vi.waitFor(async () => expect(await leaseEnds()).toBe(clock.now() + 3_000_000n), {
        timeout: PATIENCE_MS,
      })
      await one.runs.settle()
      await other.runs.settle()
    }
    expect(await other.runs.read(id)).toMatchObject({ state: 'done', done: 10 })
  })

  it('is left to others by a server that stops, after the step at hand', async () => {
    const [one, other] = [server(), server()]
    one.onStep = () => void one.runs.stop()
    const { id } = await begin(one)
    await one.runs.stop()
    expect(await other.runs.read(id)).toMatchObject({ state: 'running', done: 3, owner: null })
    await other.runs.settle()
    expect(await other.runs.read(id)).toMatchObject({ state: 'done', done: 10 })
  })

  it('does nothing more once it is paused, and goes on where it was', async () => {
    const [one, other] = [server(), server()]
    const { id } = await begin(one, { rate: 3 })
    await pass(1)
    expect(await command(other, id, PAUSE)).toMatchObject({ state: 'paused', note: 'lunch', version: 2 })
    const [{ done }] = [await one.runs.read(id)] as [Run]
    expect(done).toBeGreaterThan(0)
    expect(done).toBeLessThan(10)
    await pass(60)
    expect(await one.runs.read(id)).toMatchObject({ state: 'paused', done, rateNow: null, owner: null })
    expect(await command(other, id, RESUME)).toMatchObject({ state: 'running', note: null })
    await pass(1)
    await pass(60)
    await pass(60)
    await pass(60)
    expect(await one.runs.read(id)).toMatchObject({ state: 'done', done: 10 })
    expect(await counted()).toBe(10)
  })

  it('ends when it is cancelled, and cannot be changed any more', async () => {
    const one = server()
    const { id } = await begin(one, { rate: 1 })
    await pass(2)
    expect(await command(one, id, CANCEL)).toMatchObject({
      state: 'cancelled',
      note: 'by nell',
      endedAt: clock.now(),
    })
    const { done } = (await one.runs.read(id)) as Run
    await pass(60)
    expect(await counted()).toBe(done)
    for (const asked of [PAUSE, RESUME, CANCEL])
      await expect(command(one, id, asked)).rejects.toMatchObject({ code: 'run_state_wrong' })
    const unknown = xid('c0000000000000000000')
    await expect(command(one, unknown, PAUSE)).rejects.toMatchObject({ code: 'run_unknown' })
  })

  it('hears of another rate while it waits', async () => {
    const [one, other] = [server(), server()]
    const { id } = await begin(one, { rate: 0.001 })
    await one.runs.settle()
    expect(await counted()).toBe(0)
    await command(other, id, { act: 'rate', actor: 'nell', rate: null })
    // Nobody may have been told.
    await pass(1.1)
    await one.runs.over(id, 1_000_000n)
    expect(await counted()).toBe(10)
  })

  it('tries again what failed, and is paused when that does not help', async () => {
    const one = server()
    let tries = 0
    one.onStep = () => {
      tries++
      throw new Error('no such table')
    }
    const { id } = await begin(one)
    for (let i = 0; i < 30; i++) await pass(1.1)
    expect(tries).toBe(30)
    expect(await one.runs.read(id)).toMatchObject({
      state: 'paused',
      done: 0,
      note: 'it failed 30 times on this server: no such table',
    })
    one.onStep = () => {}
    await command(one, id, RESUME)
    // Where the walk before it has just ended, the next look takes it up.
    await pass(1.1)
    expect(await one.runs.over(id, 1_000_000n)).toMatchObject({ state: 'done', done: 10 })
  })

  it('is not taken for done by who waits for it, when it was paused', async () => {
    const one = server()
    one.onStep = ({ done }) => {
      if (done > 0) throw new Error('no such table')
    }
    const { id } = await begin(one)
    const broken = { code: 'run_broken_off', details: { state: 'paused', done: 3 } }
    // Expected before time passes: it may be told in the middle.
    const waiting = expect(one.runs.done(id)).rejects.toMatchObject(broken)
    for (let i = 0; i < 30; i++) await pass(1.1)
    await waiting
  })

  it('of one name is open once', async () => {
    const [one, other] = [server(), server()]
    const { id } = await begin(one, { name: 'hourly', rate: 1 })
    expect((await begin(other, { name: 'hourly' })).id).toBe(id)
    expect((await begin(other, { name: 'daily' })).id).not.toBe(id)
    await command(one, id, CANCEL)
    expect((await begin(other, { name: 'hourly' })).id).not.toBe(id)
  })

  it('can say itself that it cannot go on', async () => {
    const one = server()
    one.next = () => ({ state: 'failed', note: 'there is no way' })
    const { id } = await begin(one)
    expect(await one.runs.over(id, 1_000_000n)).toMatchObject({
      state: 'failed',
      note: 'there is no way',
      done: 3,
      endedAt: NOW,
    })
  })

  it('is left to others where runs are not carried out', async () => {
    const [caller, other] = [server(false), server()]
    caller.runs.start()
    const { id } = await begin(caller)
    await caller.runs.settle()
    expect(await counted()).toBe(0)
    await other.runs.settle()
    expect(await caller.runs.read(id)).toMatchObject({ state: 'done', resumed: 0 })
  })

  it('is forgotten a month after its end', async () => {
    const one = server()
    const { id } = await begin(one)
    await one.runs.over(id, 1_000_000n)
    const forgotten = () => one.runs.inWork('test', (work) => one.runs.forgetEnded(work))
    await pass(29 * 86_400)
    expect(await forgotten()).toBe(0)
    await pass(2 * 86_400)
    expect(await forgotten()).toBe(1)
    expect(await one.runs.read(id)).toBeNull()
  })
})
