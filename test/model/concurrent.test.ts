/**
 * The FIFO and lease model check: random programs of several clients run at the same time, and what they saw is
 * held against what a queue promises. More programs in `npm run prove`; `BARTLEBY_MODEL_RUNS` sets their number.
 */
import { describe, expect, it } from 'vitest'
import { instant } from '../../src/core/clock.ts'
import { TestClock } from '../../src/core/test-clock.ts'
import { Office } from '../../src/office.ts'
import { sizeOf } from '../world/limits.ts'
import { checkPrograms } from '../world/model.ts'
import { type FreshStore, freshPostgres, stores } from '../world/stores.ts'
import { violations } from './checker.ts'
import { perform } from './perform.ts'
import { program } from './program.ts'

/** Programs on one server, and on two. */
const PROGRAMS = {
  sqlite: sizeOf(50, 100),
  postgres: sizeOf(20, 40),
  two: sizeOf(12, 25),
}
const START = instant(1_800_000_000_000_000n)

/** Checks `runs` programs on one store, served by `servers` offices that share a clock. */
async function check(place: FreshStore, servers: number, runs: number): Promise<void> {
  const clock = new TestClock()
  clock.freeze(START)
  const offices: Office[] = []
  for (let i = 0; i < servers; i++) offices.push(await Office.open({ store: place.url, clock }))
  let performed = 0
  try {
    await checkPrograms(program, runs, async (each) => {
      const history = await perform(offices, `queue-${performed++}`, each)
      expect(violations(history)).toEqual([])
    })
  } finally {
    for (const office of offices) await office.close()
    await place.dispose()
  }
}

describe.each(stores)('what concurrent clients see of a queue on $name', (store) => {
  it('is what one queue, in order and with one holder per item, would have shown them', async () =>
    check(await store.fresh(), 1, PROGRAMS[store.name]))
})

describe('what concurrent clients see of two servers on one PostgreSQL', () => {
  it('has one holder per item, no item lost and none twice in the books', async () =>
    check(await freshPostgres(), 2, PROGRAMS.two))
})
