/**
 * A plan while letters move: they die again, later or earlier by the clocks of their reporters, change their status, or are new. At
 * whichever step of the plan that happens, each letter that was there is in the plan once.
 */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { later } from '../../src/core/clock.ts'
import { silentLog } from '../../src/core/log.ts'
import { inOffice, officeRuns } from '../../src/letters/work.ts'
import { EngineDirectory } from '../../src/queues/engines/engine-directory.ts'
import type { PlanRequest, RedriveDetail } from '../../src/redrive/redrive.ts'
import { Redrives } from '../../src/redrive/redrives.ts'
import type { Database } from '../../src/store/database.ts'
import { stepping } from '../world/intercepted-database.ts'
import { LetterStore } from '../world/letter-store.ts'
import { PLAIN } from '../world/redrive-office.ts'
import { reportOf } from '../world/report.ts'
import { reused } from '../world/reused-store.ts'
import { stores } from '../world/stores.ts'

/** So many different errors that a hundred letters are a portion of the list. */
const ERRORS = 200
const LETTERS = 240
const HOUR_US = 3_600_000_000n

/** Steps of a plan: on SQLite there is one for every kind of error. */
function* moments(): Iterable<number> {
  for (let at = 1; ; at += Math.ceil(at / 4)) yield at
}

describe.each(stores)('a plan on $name while letters move', (kind) => {
  const place = reused(kind)
  let store: LetterStore
  let opened: { stop(): Promise<void> }[]
  beforeEach(async () => {
    opened = []
    store = await LetterStore.open(place)
    await store.createQueue('orders')
    await store.captureMany(LETTERS, (i) => {
      const failedAt = later(store.clock.now(), BigInt(i) - HOUR_US)
      return {
        originalQueue: 'orders',
        errorClass: `Error${i % ERRORS}`,
        firstFailureAt: failedAt,
        lastFailureAt: failedAt,
      }
    })
  })
  afterEach(async () => {
    for (const each of opened) await each.stop()
    await store?.close()
  })

  const redrivesOn = (db: Database): Redrives => {
    const source = store.queues.letterSource('http')
    const runs = officeRuns(db, store.clock, silentLog, { carriesOut: false })
    const redrives = new Redrives({
      ...{ db, clock: store.clock, log: silentLog, runs, sources: new Map([[source.name, source]]) },
      ...{ engines: new EngineDirectory({ context: 'publisher' }), retentionDays: 30 },
    })
    opened.push(runs, redrives)
    return redrives
  }

  /** Makes a plan, and does `act` before its step number `at`; null: it has fewer. */
  const planWhile = async (
    act: (step: number) => Promise<void>,
    at: number,
    changes: Partial<PlanRequest> = {},
  ): Promise<{ readonly plan: RedriveDetail; readonly letters: readonly string[] } | null> => {
    let [steps, isPlanned] = [0, false]
    const redrives = redrivesOn(
      stepping(store.db, async () => {
        if (!isPlanned && ++steps === at) await act(at)
      }),
    )
    const plan = await redrives.plan({
      selection: { by: 'filter', filter: { engine: 'hmac' } },
      ...{ action: 'retry', queue: null, recipe: null, terms: PLAIN, reason: null, actor: 'nell' },
      ...changes,
    })
    isPlanned = true
    const page = { limit: 1_000, token: null, outcome: null }
    const { items } = await redrives.members(plan.id, page)
    const letters = items.map(({ key }) => key?.rowKey ?? 'removed')
    await redrives.cancel(plan.id, 'nell', null)
    return steps < at ? null : { plan, letters }
  }

  /** The failure of letter `number` is reported anew. */
  const diesAgain = (number: number, shiftUs: bigint): Promise<unknown> => {
    const failedAt = later(store.clock.now(), shiftUs)
    return store.letters.capture(
      reportOf(number, store.clock.now(), {
        ...{ errorMessage: `again ${shiftUs}`, lastFailureAt: failedAt, firstFailureAt: failedAt },
      }),
    )
  }

  const allRowKeys = async (): Promise<string[]> => {
    const { items } = await store.letters.list({ engine: 'hmac' }, { limit: 1_000 })
    return items.map(({ rowKey }) => rowKey)
  }

  it('has every letter once, whenever letters die again', async () => {
    const there = await allRowKeys()
    let steps = 0
    for (const at of moments()) {
      const planned = await planWhile(async (step) => {
        const [shift, number] = [BigInt(step), 1 + (step % 100)]
        // The oldest become the newest, and the newest the oldest: reporters have clocks of their own.
        await diesAgain(number, shift)
        await diesAgain(LETTERS + 1 - number, -2n * HOUR_US - shift)
        // And one that is new.
        await store.capture({ originalQueue: 'orders' })
      }, at)
      if (planned === null) break
      steps++
      const { plan, letters } = planned
      expect(new Set(letters).size, `step ${at}`).toBe(letters.length)
      expect(there.filter((rowKey) => !letters.includes(rowKey))).toEqual([])
      expect(plan.numbers).toMatchObject({ matched: letters.length, eligible: letters.length, invalid: 0 })
    }
    expect(steps).toBeGreaterThan(3)
  })

  it('has a letter once that changes its status', async () => {
    const [first = ''] = await allRowKeys()
    const key = { engine: 'hmac', rowKey: first }
    const shut = { notes: null, actor: 'nell' }
    for (const at of moments()) {
      await store.letters.change(key, { ...shut, status: 'Resolved' })
      const planned = await planWhile(
        // At once: between the two a plan would rightly find nothing to restore.
        () =>
          inOffice(store.db, store.clock, 'test.expire', async (work) => {
            await store.letters.changeIn(work, key, { ...shut, status: 'Pending' })
            await store.letters.changeIn(work, key, { ...shut, status: 'Expired' })
          }),
        at,
        { action: 'restore' },
      )
      if (planned === null) break
      expect(planned.letters, `step ${at}`).toEqual([first])
      expect(planned.plan.numbers).toMatchObject({ matched: 1, eligible: 1 })
      await store.letters.change(key, { ...shut, status: 'Pending' })
    }
  })
})
