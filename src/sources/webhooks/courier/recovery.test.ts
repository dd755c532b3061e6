import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { wrapped } from '../../../../test/world/intercepted-database.ts'
import { type StoreKind, stores } from '../../../../test/world/stores.ts'
import { Depot } from '../../../../test/world/webhooks/couriers.ts'
import { instant } from '../../../core/clock.ts'
import { StoreUnavailable } from '../../../store/database.ts'
import { DEFAULT_WEBHOOK_SETTINGS } from '../settings.ts'
import { JOB } from '../webhook.ts'
import { Recovery } from './recovery.ts'

describe.each(stores)('recovery, on $name', (store: StoreKind) => {
  let depot: Depot
  beforeAll(async () => {
    depot = await Depot.open(store)
  })
  afterAll(() => depot.close())

  it('does not try claims one by one while the store is away', async () => {
    const consumer = await depot.subscriber({ url: 'http://localhost' })
    const lapsed = { state: JOB.inFlight, dueAt: instant(1n), claim: 'of a server that is gone' }
    for (let i = 0; i < 3; i++) await depot.message([consumer], { ...lapsed })
    let isAway = true
    let tries = 0
    const db = wrapped(depot.db, 'webhooks.recover', (call, go) => {
      tries = call
      return isAway ? Promise.reject(new StoreUnavailable('it is away')) : go()
    })
    const { clock, log, registers } = depot
    const settings = DEFAULT_WEBHOOK_SETTINGS
    const recovery = new Recovery({ db, clock, log, registers, settings, onReady: () => {} })
    recovery.start()
    await expect.poll(() => log.lines.map(({ level }) => level)).toEqual(['warn'])
    expect(tries).toBe(1)
    isAway = false
    depot.clock.advance(2_000_001n)
    await depot.until(JOB.later, JOB.later, JOB.later)
    expect(tries).toBe(2)
    await recovery.stop()
  })
})
