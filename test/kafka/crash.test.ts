/** Kill -9 while dead events are taken in: every one of them is a letter, in order, none twice. */
import { setTimeout as pause } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { describeKafka } from '../world/kafka/broker-of-run.ts'
import { ask, KafkaServers, type PreviewEvent, pending } from '../world/kafka/server.ts'
import { isProof, sizeOf } from '../world/limits.ts'
import { seededRandom } from '../world/random.ts'
import { stores } from '../world/stores.ts'

const EVENTS = sizeOf(1_000, 10_000)
const KILLS = sizeOf(2, 10)
const BATCH = 250

describeKafka('a server that is killed while it takes dead events in', () => {
  // One of them is enough for every day; what differs between them is tested without crashes.
  for (const store of isProof ? stores : stores.filter(({ name }) => name === 'postgres')) {
    it(`has ${EVENTS} letters of ${EVENTS} events after ${KILLS} crashes, on ${store.name}`, async () => {
      const random = seededRandom()
      const here = await KafkaServers.prepare(store, {
        services: { svc: {} },
        kafka: { preview_limit: 10_000 },
      })
      const service = here.service('svc')
      let server = await here.spawn()
      let next = here.standby()
      let written = 0
      const write = async (upTo: number) => {
        for (; written < upTo; written += BATCH) {
          const from = written
          await here.die(
            service,
            Array.from({ length: BATCH }, (_, i) => ({ key: `k${from + i}`, value: { n: from + i } })),
          )
        }
      }
      try {
        for (let kill = 1; kill <= KILLS; kill++) {
          const before = await pending(server, service.name)
          const writing = write(Math.floor((EVENTS * kill) / (KILLS + 1) / BATCH) * BATCH)
          // It falls into the middle of intake, wherever that is.
          await expect.poll(() => pending(server, service.name), { interval: 5 }).toBeGreaterThan(before)
          await pause(random.whole(0, 15))
          await server.kill9()
          await writing
          server = await next.start()
          next = here.standby()
        }
        await write(EVENTS)
        await expect.poll(() => pending(server, service.name), { interval: 50 }).toBe(EVENTS)
        const seed = `BARTLEBY_TEST_SEED=${random.seed}`
        const { body } = await ask<PreviewEvent[]>(server, `/kafka/${service.name}?limit=10000`)
        expect(
          body.map(({ payload }) => payload),
          seed,
        ).toEqual(Array.from({ length: EVENTS }, (_, n) => ({ n })))
        expect(await server.term(), seed).toBe(0)
        await here.expectVerified()
      } finally {
        await next.discard()
        await server.kill9()
        await here.close()
      }
    })
  }
})
