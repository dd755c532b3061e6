/** Plans that take longer than a request: they are answered as they stand, go on, can be cancelled, and outlive their server. */
import { setTimeout as pause } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { later } from '../../src/core/clock.ts'
import { type BartlebyError, failure } from '../../src/core/errors.ts'
import { silentLog } from '../../src/core/log.ts'
import { readUnlabelled } from '../../src/letters/lists/detail.ts'
import { type OfficeRuns, officeRuns } from '../../src/letters/work.ts'
import { EngineDirectory } from '../../src/queues/engines/engine-directory.ts'
import type { PlanRequest, RedriveDetail } from '../../src/redrive/redrive.ts'
import { Redrives } from '../../src/redrive/redrives.ts'
import { sql } from '../../src/store/database.ts'
import { stepping } from '../world/intercepted-database.ts'
import { LetterStore } from '../world/letter-store.ts'
import { PATIENCE_MS } from '../world/limits.ts'
import { PLAIN } from '../world/redrive-office.ts'
import { reused } from '../world/reused-store.ts'
import { stores } from '../world/stores.ts'
import { violationsIn } from '../world/verified.ts'

/** Letters that are named are looked up two hundred at a time: these are two portions. */
const LETTERS = 240

/** Plans that wait for a lock with what they read. */
const readWaiting = sql('test.plansThatWait', {
  postgres: `SELECT count(*)::int AS readers FROM pg_stat_activity
    WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE 'DECLARE%'`,
  sqlite: '',
})

describe.each(stores)('a plan on $name that takes longer than a request', (kind) => {
  const place = reused(kind)
  let store: LetterStore
  let stops: (() => Promise<void>)[]
  let request: PlanRequest
  beforeEach(async () => {
    stops = []
    store = await LetterStore.open(place)
    await store.createQueue('orders')
    const letters = await store.captureMany(LETTERS, (i) => ({
      originalQueue: 'orders',
      lastFailureAt: later(store.clock.now(), BigInt(i - LETTERS)),
    }))
    const ids = await store.db.session('test', (session) => readUnlabelled(session, letters))
    request = {
      selection: { by: 'ids', ids },
      ...{ action: 'retry', queue: null, recipe: null, terms: PLAIN, reason: null, actor: 'nell' },
    }
  })
  afterEach(async () => {
    for (const stop of stops.reverse()) await stop()
    await store?.close()
  })

  /** A server whose plans stand still once they have written a portion, until it is let go. */
  const server = ({ holds = true } = {}) => {
    const reached = Promise.withResolvers<void>()
    const opened = Promise.withResolvers<void>()
    let portions = 0
    const halting = stepping(store.db, async (verb) => {
      if (verb !== 'redrive.freeze' || ++portions !== 2) return
      reached.resolve()
      await opened.promise
    })
    const db = holds ? halting : store.db
    const runs: OfficeRuns = officeRuns(db, store.clock, silentLog)
    const source = store.queues.letterSource('http')
    const redrives = new Redrives({
      ...{ db, clock: store.clock, log: silentLog, runs, sources: new Map([[source.name, source]]) },
      ...{ engines: new EngineDirectory({ context: 'publisher' }), retentionDays: 30 },
    })
    stops.push(async () => {
      opened.resolve()
      await runs.stop()
      await redrives.stop()
    })
    return { runs, redrives, reached: reached.promise, open: opened.resolve, fail: opened.reject }
  }
  type Server = ReturnType<typeof server>

  /** Lets half a minute pass, as often as it takes: the wait for an answer begins a moment after the question. */
  const answered = async <T>(asked: Promise<T>): Promise<T> => {
    let isAnswered = false
    const over = asked.finally(() => {
      isAnswered = true
    })
    while (!isAnswered) {
      store.clock.advance(30_000_000n)
      await Promise.race([over, pause(20)])
    }
    return over
  }

  /** Begins a plan, and gives how it is answered after half a minute. */
  const planOn = async ({ redrives, reached }: Server): Promise<RedriveDetail> => {
    const asked = redrives.plan(request)
    await reached
    return answered(asked)
  }

  const lettersOf = async ({ redrives }: Server, { id }: RedriveDetail): Promise<Set<string>> => {
    const { items } = await redrives.members(id, { limit: 1_000, token: null, outcome: null })
    expect(items).toHaveLength(LETTERS)
    return new Set(items.map(({ key }) => key?.rowKey ?? ''))
  }

  it('is answered as it stands, and goes on', async () => {
    const one = server()
    const begun = await planOn(one)
    const { matched, eligible } = begun.numbers
    expect(begun).toMatchObject({ state: 'planning', numbers: { matched: eligible } })
    expect([matched > 0, matched < LETTERS]).toEqual([true, true])
    expect(await one.redrives.read(begun.id)).toMatchObject({ state: 'planning', numbers: { matched } })
    const runs = await one.runs.open()
    expect(runs).toMatchObject([{ id: begun.id, kind: 'redrive-plan', state: 'running', done: matched }])
    await expect(one.redrives.start(begun.id, 'nell')).rejects.toMatchObject({ code: 'redrive_state_wrong' })
    one.open()
    await one.runs.settle()
    const planned = await one.redrives.read(begun.id)
    expect(planned).toMatchObject({ state: 'planned', numbers: { matched: LETTERS, eligible: LETTERS } })
    expect((await lettersOf(one, planned)).size).toBe(LETTERS)
    expect(await one.runs.open()).toEqual([])
    await one.redrives.start(begun.id, 'nell')
    await one.runs.settle()
    expect(await one.redrives.read(begun.id)).toMatchObject({ state: 'done', counts: { sent: LETTERS } })
  })

  it('is the same for a key, while it is being made and afterwards', async () => {
    const one = server()
    const key = { scope: 'nell POST /api/redrives', key: 'k' }
    const first = one.redrives.plan(request, key)
    await one.reached
    const second = one.redrives.plan(request, key)
    const { id } = await answered(first)
    expect(await answered(second)).toMatchObject({ id, state: 'planning' })
    one.open()
    await one.runs.settle()
    expect(await one.redrives.plan(request, key)).toMatchObject({ id, state: 'planned' })
    expect(await one.redrives.list({ limit: 9, before: null, states: ['planned'] })).toHaveLength(1)
  })

  it('can be cancelled', async () => {
    const one = server()
    const { id } = await planOn(one)
    expect(await one.redrives.cancel(id, 'nell', 'too many')).toMatchObject({
      state: 'cancelled',
      note: 'too many',
    })
    one.open()
    await one.runs.settle()
    expect((await one.redrives.read(id)).state).toBe('cancelled')
    expect(await one.runs.read(id)).toMatchObject({ state: 'cancelled', owner: null })
    expect(await violationsIn(store.db, { clock: store.clock })).toEqual([])
  })

  it('is begun anew by another server when its own stands still, and each letter is in it once', async () => {
    const [one, other] = [server(), server({ holds: false })]
    const begun = await planOn(one)
    store.clock.advance(4_000_000n)
    await other.runs.settle()
    const planned = await other.redrives.read(begun.id)
    expect(planned).toMatchObject({ state: 'planned', numbers: { matched: LETTERS, eligible: LETTERS } })
    // The first comes back, and finds that it is not its own any more.
    one.open()
    await one.runs.settle()
    expect((await lettersOf(other, planned)).size).toBe(LETTERS)
    expect(await other.redrives.read(begun.id)).toMatchObject({
      state: 'planned',
      counts: { planned: LETTERS },
    })
  })

  it('is stopped, and says why, when it cannot be made', async () => {
    const one = server()
    const { id } = await planOn(one)
    const refusal: BartlebyError = failure('parameter_invalid', {
      parameter: 'repair',
      reason: 'it is too slow',
    })
    one.fail(refusal)
    await one.runs.settle()
    const stopped = await one.redrives.read(id)
    expect(stopped.state).toBe('stopped')
    expect(stopped.note).toContain('it is too slow')
    expect(await one.runs.read(id)).toMatchObject({ state: 'failed' })
  })

  it('is refused to whoever still waits for it, and leaves nothing', async () => {
    const one = server()
    const key = { scope: 'nell POST /api/redrives', key: 'k' }
    const asked = one.redrives.plan(request, key)
    await one.reached
    one.fail(failure('parameter_invalid', { parameter: 'repair', reason: 'it is too slow' }))
    await expect(asked).rejects.toMatchObject({ code: 'parameter_invalid' })
    await one.runs.settle()
    expect(await one.runs.open()).toEqual([])
    expect(await one.redrives.plan(request, key)).toMatchObject({ state: 'planned' })
  })

  // On SQLite nothing is read for long: it reads in steps, between which the server stops.
  it.runIf(kind.name === 'postgres')(
    'lets its server stop while letters are read that take long',
    async () => {
      const one = server({ holds: false })
      const [locked, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
      const other = store.db.transaction('test', async (tx) => {
        await store.db.script(tx, 'LOCK TABLE bartleby.letters IN ACCESS EXCLUSIVE MODE')
        locked.resolve()
        await released.promise
      })
      await locked.promise
      const asked = one.redrives.plan({ ...request, selection: { by: 'filter', filter: {} } })
      asked.catch(() => {})
      const waiting = () => store.db.session('test', (session) => session.rows(readWaiting))
      await expect.poll(waiting, { timeout: PATIENCE_MS }).toEqual([{ readers: 1 }])
      await one.runs.stop()
      released.resolve()
      await other
    },
  )
})
