import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { barePostgres, type FreshStore } from '../../test/harness/stores.ts'
import type { Log } from '../core/log.ts'
import { silentLog } from '../core/log.ts'
import type { Database } from './database.ts'
import { openDatabase } from './open.ts'
import { StoreClock } from './store-clock.ts'

const HOUR_MS = 3_600_000

describe("a clock that follows the database's", () => {
  let place: FreshStore
  let db: Database
  let skewMs = 0
  const warnings: object[] = []
  const log: Log = { ...silentLog, warn: (details) => void warnings.push(details) }
  const machine = { wallMs: () => Date.now() + skewMs, steadyMs: () => performance.now() }

  beforeAll(async () => {
    place = await barePostgres()
    db = openDatabase(place.url, { poolSize: 2 })
  })
  afterEach(() => {
    skewMs = 0
    warnings.length = 0
  })
  afterAll(async () => {
    await db?.close()
    await place?.dispose()
  })

  /** How far it is from the database, which runs on this machine. */
  const errorMs = ({ clock }: StoreClock) => Math.abs(Number(clock.now() / 1_000n) - Date.now())

  it.each([HOUR_MS, -HOUR_MS])('is right on a machine whose clock is off by %d ms', async (skew) => {
    skewMs = skew
    const storeClock = new StoreClock(db, log, machine)
    expect(errorMs(storeClock)).toBeGreaterThan(HOUR_MS - 1_000)
    await storeClock.follow()
    expect(errorMs(storeClock)).toBeLessThan(500)
  })

  it('makes two machines agree that are two hours apart', async () => {
    const early = new StoreClock(db, log, { ...machine, wallMs: () => Date.now() - HOUR_MS })
    const late = new StoreClock(db, log, { ...machine, wallMs: () => Date.now() + HOUR_MS })
    await Promise.all([early.follow(), late.follow()])
    expect(Math.abs(Number(early.clock.now() - late.clock.now()))).toBeLessThan(500_000)
  })

  it('follows when the clock of the machine is set, and back again', async () => {
    const storeClock = new StoreClock(db, log, machine)
    for (const skew of [5_000, -5_000, 0]) {
      skewMs = skew
      await storeClock.follow()
      expect(errorMs(storeClock)).toBeLessThan(500)
    }
  })

  it('leaves small differences alone', async () => {
    skewMs = 40
    const storeClock = new StoreClock(db, log, machine)
    await storeClock.follow()
    expect(Math.abs(errorMs(storeClock) - 40)).toBeLessThanOrEqual(2)
    expect(warnings).toEqual([])
  })

  it('warns once of a difference that somebody should look after', async () => {
    const storeClock = new StoreClock(db, log, machine)
    skewMs = HOUR_MS
    await storeClock.follow()
    await storeClock.follow()
    expect(warnings).toHaveLength(1)
    skewMs = 0
    await storeClock.follow()
    skewMs = HOUR_MS
    await storeClock.follow()
    expect(warnings).toHaveLength(2)
  })
})
