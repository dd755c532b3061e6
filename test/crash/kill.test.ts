/** Kill -9 under load, again and again on one store: nothing acknowledged is lost, nothing is there twice. */
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as pause } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { sizeOf } from '../world/limits.ts'
import { MortalServer } from '../world/mortal-server.ts'
import { seededRandom } from '../world/random.ts'
import { stores } from '../world/stores.ts'
import { Books } from './books.ts'
import { contents, drain, expectExactCounts, untilQuiet } from './inventory.ts'
import { createQueues, Load, MAX_ATTEMPTS } from './load.ts'

const ROUNDS = sizeOf(2, 25)

describe.each(stores)('a server on $name that is killed under load', (store) => {
  it(`keeps its promises over ${ROUNDS} crashes`, async () => {
    const random = seededRandom()
    const books = new Books(MAX_ATTEMPTS)
    const place = await store.fresh()
    const mortal = new MortalServer(place.url)
    try {
      await mortal.start()
      await createQueues(mortal.wire)
      for (let round = 1; round <= ROUNDS; round++) {
        const load = new Load(mortal.wire, { books, random, name: `round-${round}` })
        await load.underway(random.whole(5, 60))
        // A few rounds may all be short; the last one makes sure that there was something of everything.
        for (let more = 0; round === ROUNDS && more < 200 && leastDone(books) <= ROUNDS; more++) {
          await load.underway(5)
        }
        await pause(random.whole(0, 20))
        await mortal.kill(() => load.stop())
        await mortal.start({ isLast: round === ROUNDS })
        await expectExactCounts(mortal.wire)
      }
      const { wire, server } = mortal
      await untilQuiet(wire)
      await expectExactCounts(wire)
      const seed = `BARTLEBY_TEST_SEED=${random.seed}`
      expect(books.audit(await contents(wire)), seed).toEqual([])
      await drain(wire, books)
      expect(books.audit(await contents(wire)), seed).toEqual([])
      expect(leastDone(books), seed).toBeGreaterThan(ROUNDS)
      expect(await server.term()).toBe(0)
      if (store.name === 'sqlite') expect(integrityOf(place.url)).toBe('ok')
    } finally {
      await mortal.end()
      await place.dispose()
    }
  })
})

/** How often that was done which was done least. */
function leastDone(books: Books): number {
  const { acknowledged, completed, buried } = books.totals
  return Math.min(acknowledged, completed, buried)
}

function integrityOf(storeUrl: string): unknown {
  const file = new DatabaseSync(storeUrl.slice('sqlite:'.length))
  try {
    return file.prepare('PRAGMA integrity_check').get()?.integrity_check
  } finally {
    file.close()
  }
}
