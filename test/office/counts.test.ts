/**
 * Counts against COUNT, and activity against history, while 16 writers move letters at random and at the end. 2,000
 * transitions on each store; 200,000 in `npm run prove`.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { openDatabase } from '../../src/store/open.ts'
import { Clerk } from '../world/clerk.ts'
import { sizeOf } from '../world/limits.ts'
import { seededRandom } from '../world/random.ts'
import { type Counts, countLetters, countsFrom, drawerKey } from '../world/recount.ts'
import { startServer } from '../world/server.ts'
import { stores } from '../world/stores.ts'
import { Wire } from '../world/wire.ts'
import { Mover, QUEUES } from './transitions.ts'

const TRANSITIONS = sizeOf(2_000, 200_000)
const WRITERS = 16
/** How often everybody stops, so that the API can be held against the store. */
const STOPS = sizeOf(4, 8)

async function shown(clerk: Clerk): Promise<Counts> {
  const { data } = await clerk.expects([200], 'GET', '/api/counts')
  const { items } = data as { items: Record<string, unknown>[] } // the reply of counts
  return countsFrom(
    items.map(({ source, engine, originalQueue, signature, status, count }) => [
      drawerKey(source, engine, originalQueue, signature, status),
      Number(count),
    ]),
  )
}

/** What lists call a status: letters that nothing was heard of are resolved, too. */
const listed = (counts: Counts): Counts =>
  countsFrom(Object.entries(counts).filter(([key]) => !key.endsWith('unconfirmed')))

describe.each(stores)('counts on $name', (store) => {
  it(`equal COUNT for every key, throughout ${TRANSITIONS} transitions of ${WRITERS} writers`, async () => {
    const random = seededRandom()
    const seed = `BARTLEBY_TEST_SEED=${random.seed}`
    const place = await store.fresh()
    const server = await startServer({ store: place.url, testApi: false })
    const wire = new Wire(server.url)
    const db = openDatabase(place.url, { poolSize: 1 })
    try {
      const reader = new Clerk(wire, 'reader')
      for (const queue of QUEUES) await reader.createPair(queue)
      const movers = Array.from(
        { length: WRITERS },
        (_, n) => new Mover(new Clerk(wire, `writer-${n}`), random),
      )
      const moved = () => movers.reduce((sum, mover) => sum + mover.moved, 0)

      for (let stop = 1; stop <= STOPS; stop++) {
        const goal = Math.ceil((TRANSITIONS * stop) / STOPS)
        const writing = Promise.all(
          movers.map(async (mover) => {
            while (moved() < goal) await mover.turn()
          }),
        )
        // At random moments in between: letters and books, read in one snapshot.
        let over = false
        const watching = (async () => {
          while (!over) {
            await pause(random.whole(20, 400))
            const { letters, acts } = await countLetters(db)
            expect(letters.books, seed).toEqual(letters.found)
            expect(acts.books, seed).toEqual(acts.found)
            expect(Object.values(await shown(reader)).every((count) => count > 0)).toBe(true)
          }
        })()
        // Its failure is told below, when the writers have stopped.
        watching.catch(() => {})
        try {
          await writing
        } finally {
          over = true
          await watching
        }
        const { letters } = await countLetters(db)
        expect(await shown(reader), seed).toEqual(listed(letters.found))
      }
      expect(moved()).toBeGreaterThanOrEqual(TRANSITIONS)
      const statuses = new Set(Object.keys(await shown(reader)).map((key) => key.split(' | ').at(-1)))
      expect(statuses).toEqual(new Set(['Pending', 'Resolved', 'Expired']))
    } finally {
      await db.close()
      await wire.close()
      await server.stop()
      await place.dispose()
    }
  })
})
