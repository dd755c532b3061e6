/** Two servers share one PostgreSQL and one of them is killed, again and again: the other goes on as if alone. */
import { setTimeout as pause } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { ok } from '../world/clerk.ts'
import { PATIENCE_MS, sizeOf } from '../world/limits.ts'
import { MortalServer } from '../world/mortal-server.ts'
import { type Random, seededRandom } from '../world/random.ts'
import { spawnServer, startServer } from '../world/server.ts'
import { type FreshStore, freshPostgres } from '../world/stores.ts'
import { jsonCodec, Wire } from '../world/wire.ts'
import { Books } from './books.ts'
import { contents, drain, expectExactCounts, untilQuiet } from './inventory.ts'
import { createQueues, Load, MAX_ATTEMPTS } from './load.ts'

const ROUNDS = sizeOf(2, 25)
/** Counts are compared while nobody works; so not in every round. */
const QUIET_EVERY = 5
/** A lost notification is made up for by a poll within 1 s; five wake-ups below this were notifications. */
const NOTIFIED_MS = 400

/** One server with its clients. */
class Side extends MortalServer {
  readonly #books: Books
  readonly #random: Random
  readonly #name: string
  #load: Load | undefined
  #loads = 0

  constructor(name: string, place: FreshStore, books: Books, random: Random) {
    super(place.url)
    this.#name = name
    this.#books = books
    this.#random = random
  }

  work(): void {
    const name = `${this.#name}-${++this.#loads}`
    this.#load = new Load(this.wire, { books: this.#books, random: this.#random, name })
  }

  async underway(calls: number): Promise<void> {
    await this.#load?.underway(calls)
  }

  async rest(): Promise<void> {
    await this.#load?.stop()
    this.#load = undefined
  }

  override kill(): Promise<void> {
    return super.kill(() => this.rest())
  }
}

describe('two servers on one PostgreSQL, of which one is killed under load', () => {
  it(`keep their promises over ${ROUNDS} crashes`, async () => {
    const random = seededRandom()
    const seed = `BARTLEBY_TEST_SEED=${random.seed}`
    const books = new Books(MAX_ATTEMPTS)
    const place = await freshPostgres()
    const one = new Side('one', place, books, random)
    const two = new Side('two', place, books, random)
    try {
      await Promise.all([one.start(), two.start()])
      await createQueues(one.wire)
      await createWakeQueue(one.wire)
      one.work()
      two.work()
      for (let round = 1; round <= ROUNDS; round++) {
        const [victim, survivor] = random.chance(0.5) ? [one, two] : [two, one]
        await victim.underway(random.whole(5, 40))
        await pause(random.whole(0, 20))
        await victim.kill()
        await victim.start()
        await wakeUpMs(survivor.wire, victim.wire)
        if (round % QUIET_EVERY === 0) {
          await survivor.rest()
          await expectExactCounts(victim.wire)
          await expectExactCounts(survivor.wire)
          survivor.work()
        }
        victim.work()
      }
      // A few rounds may all be short; there is to be something of everything.
      for (let more = 0; more < 200 && leastDone(books) <= ROUNDS; more++) await one.underway(5)
      await Promise.all([one.rest(), two.rest()])
      await untilQuiet(one.wire)
      await expectExactCounts(one.wire)
      await expectExactCounts(two.wire)
      expect(books.audit(await contents(two.wire)), seed).toEqual([])
      await drain(one.wire, books)
      expect(books.audit(await contents(one.wire)), seed).toEqual([])
      expect(leastDone(books), seed).toBeGreaterThan(ROUNDS)
      await expect
        .poll(() => fiveWakeUpsMs(one.wire, two.wire), { interval: 10 })
        .toSatisfy((times: number[]) => times.every((ms) => ms < NOTIFIED_MS))
    } finally {
      await Promise.all([one.end(), two.end()])
      await place.dispose()
    }
  })

  it('give back to the survivor what clients of the killed one had leased', async () => {
    const place = await freshPostgres()
    const options = { store: place.url, testApi: false }
    const [victim, survivor] = await Promise.all([spawnServer(options), startServer(options)])
    const [first, second] = [new Wire(victim.url), new Wire(survivor.url)]
    try {
      await createQueues(first)
      const queue_name = 'work'
      const lease = { queue_name, batch_size: 10, client_id: 'a', request_timeout: '1m' }
      await ok(first, '/v1/queue.produce', {
        queue_name,
        request_timeout: '1m',
        items: [{ utf8: 'a' }, { utf8: 'b' }],
      })
      expect(await ok(first, '/v1/queue.lease', lease)).toMatchObject({
        items: [{ attempts: 1 }, { attempts: 1 }],
      })
      const again = second.call(jsonCodec, '/v1/queue.lease', lease)
      await victim.kill9()
      const startedMs = performance.now()
      expect((await again).body).toMatchObject({ items: [{ attempts: 2 }, { attempts: 2 }] })
      expect(performance.now() - startedMs).toBeLessThan(sizeOf(PATIENCE_MS, 3_000))
    } finally {
      await Promise.all([first.close(), second.close()])
      await Promise.all([victim.kill9(), survivor.stop()])
      await place.dispose()
    }
  })
})

/** How often that was done which was done least. */
function leastDone(books: Books): number {
  const { acknowledged, completed, buried } = books.totals
  return Math.min(acknowledged, completed, buried)
}

const WAKE_QUEUE = 'wake'

async function createWakeQueue(wire: Wire): Promise<void> {
  const settings = { lease_timeout: '10m', expire_timeout: '1h', requested_partitions: 1 }
  await ok(wire, '/v1/queues.create', { ...settings, queue_name: WAKE_QUEUE })
}

/** How long a lease that waits at one server takes to get what is produced at the other. */
async function wakeUpMs(waitsAt: Wire, producedAt: Wire): Promise<number> {
  const lease = { queue_name: WAKE_QUEUE, batch_size: 1, client_id: 'waits', request_timeout: '10s' }
  const answer = waitsAt.call(jsonCodec, '/v1/queue.lease', lease)
  await expect
    .poll(async () => JSON.stringify(await ok(waitsAt, '/v1/queue.stats', { queue_name: WAKE_QUEUE })), {
      interval: 10,
    })
    .toContain('"lease_waiting":1')
  const startedMs = performance.now()
  await ok(producedAt, '/v1/queue.produce', {
    queue_name: WAKE_QUEUE,
    request_timeout: '1m',
    items: [{ utf8: 'wake up' }],
  })
  const { status, body } = await answer
  expect(status, JSON.stringify(body)).toBe(200)
  return performance.now() - startedMs
}

async function fiveWakeUpsMs(waitsAt: Wire, producedAt: Wire): Promise<number[]> {
  const times: number[] = []
  for (let i = 0; i < 5; i++) times.push(await wakeUpMs(waitsAt, producedAt))
  return times
}
