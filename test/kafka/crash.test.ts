/** Kill -9 while dead events are taken in: every one of them is a letter, in order, none twice. */
import { setTimeout as pause } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { openDatabase } from '../../src/store/open.ts'
import { verifyStore } from '../../src/verify/verify.ts'
import { describeKafka } from '../world/kafka.ts'
import { isProof, sizeOf } from '../world/limits.ts'
import { seededRandom } from '../world/random.ts'
import { stores } from '../world/stores.ts'
import { ask, type PreviewEvent, pending, ServedKafka } from './served.ts'

const EVENTS = sizeOf(1_000, 10_000)
const KILLS = sizeOf(2, 10)
const BATCH = 250

describeKafka('a server that is killed while it takes dead events in', () => {
  // One of them is enough for every day; what differs between them is tested without crashes.
  for (const store of isProof ? stores : stores.filter(({ name }) => name === 'postgres')) {
    it(`has ${EVENTS} letters of ${EVENTS} events after ${KILLS} crashes, on ${store.name}`, async () => {
      const random = seededRandom()
      const desk = await ServedKafka.open(store, { kafka: { preview_limit: 10_000 } })
      let server = await desk.start()
      let next = desk.standby()
      let written = 0
      const write = async (upTo: number) => {
        for (; written < upTo; written += BATCH) {
          const from = written
          await desk.die(
            Array.from({ length: BATCH }, (_, i) => ({ key: `k${from + i}`, value: { n: from + i } })),
          )
        }
      }
      try {
        for (let kill = 1; kill <= KILLS; kill++) {
          const before = await pending(server)
          const writing = write(Math.floor((EVENTS * kill) / (KILLS + 1) / BATCH) * BATCH)
          // It falls into the middle of intake, wherever that is.
          await expect.poll(() => pending(server), { interval: 5 }).toBeGreaterThan(before)
          await pause(random.whole(0, 15))
          await server.kill9()
          await writing
          server = await next.start()
          next = desk.standby()
        }
        await write(EVENTS)
        await expect.poll(() => pending(server), { interval: 50 }).toBe(EVENTS)
        const seed = `BARTLEBY_TEST_SEED=${random.seed}`
        const { body } = await ask<PreviewEvent[]>(server, `/kafka/${desk.service}?limit=10000`)
        expect(
          body.map(({ payload }) => payload),
          seed,
        ).toEqual(Array.from({ length: EVENTS }, (_, n) => ({ n })))
        expect(await server.term(), seed).toBe(0)
        const db = openDatabase(desk.storeUrl, { poolSize: 1 })
        try {
          expect((await verifyStore(db)).invariants.filter(({ broken }) => broken > 0)).toEqual([])
        } finally {
          await db.close()
        }
      } finally {
        await next.discard()
        await server.kill9()
        await desk.close()
      }
    })
  }
})
