import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { sizeOf } from '../../test/world/limits.ts'
import { barePostgres, type FreshStore } from '../../test/world/stores.ts'
import type { Log } from '../core/log.ts'
import { silentLog } from '../core/log.ts'
import type { Database } from './database.ts'
import { openDatabase } from './open.ts'
import { StoreClock } from './store-clock.ts'

const HOUR_MS = 3_600_000
/** How near it comes: half a round trip, which takes its time on a busy machine. */
const NEAR_MS = sizeOf(60_000, 500)

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
    expect(errorMs(storeClock)).toBeGreaterThan(HOUR_MS - NEAR_MS)
    await storeClock.follow()
    expect(errorMs(storeClock)).toBeLessThan(NEAR_MS)
  })

  it('makes two machines agree that are two hours apart', async () => {
    const early = new StoreClock(db, log, { ...machine, wallMs: () => Date.now() - HOUR_MS })
    const late = new StoreClock(db, log, { ...machine, wallMs: () => Date.now() + HOUR_MS })
    await Promise.all([early.follow(), late.follow()])
    expect(Math.abs(Number(early.clock.now() - late.clock.now()))).toBeLessThan(NEAR_MS * 1_000)
  })

  it('follows when the clock of the machine is set, and back again', async () => {
    const storeClock = new StoreClock(db, log, machine)
    for (const skew of [HOUR_MS, -HOUR_MS, 0]) {
      skewMs = skew
      await storeClock.follow()
      expect(errorMs(storeClock)).toBeLessThan(NEAR_MS)
    }
  })

  it('leaves small differences alone', async () => {
    skewMs = 40
    const isLeft = async () => {
      const storeClock = new StoreClock(db, log, machine)
      await storeClock.follow()
      const beforeMs = Date.now()
      const ms = Number(storeClock.clock.now() / 1_000n) - skewMs
      return ms >= beforeMs - 2 && ms <= Date.now() + 2
    }
    // A round trip in which the machine did something else shows a larger one.
    await expect.poll(isLeft).toBe(true)
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
