/** SIGTERM in the middle of everything: everybody is answered, nobody is refused a connection, it ends well. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { Books } from '../crash/books.ts'
import { contents, untilQuiet } from '../crash/inventory.ts'
import { createQueues, Load, MAX_ATTEMPTS, TROUBLED } from '../crash/load.ts'
import { ok } from '../world/clerk.ts'
import { STOP_PROMISED_MS } from '../world/limits.ts'
import { seededRandom } from '../world/random.ts'
import { type SpawnedServer, spawnServer, startServer } from '../world/server.ts'
import { type FreshStore, stores } from '../world/stores.ts'
import { type Answer, type Json, jsonCodec, Wire } from '../world/wire.ts'

describe.each(stores)('SIGTERM under load on $name', (store) => {
  let place: FreshStore
  let server: SpawnedServer
  let wire: Wire

  beforeEach(async () => {
    place = await store.fresh()
    server = await spawnServer({ store: place.url, testApi: false })
    wire = new Wire(server.url)
    await createQueues(wire)
    await ok(wire, '/v1/queues.create', { queue_name: 'idle', ...SETTINGS })
  })

  afterEach(async () => {
    await wire.close()
    await server.kill9()
    await place.dispose()
  })

  it('answers every request, ends with code 0 in time, and loses nothing', async () => {
    const random = seededRandom()
    const seed = `BARTLEBY_TEST_SEED=${random.seed}`
    const books = new Books(MAX_ATTEMPTS)
    const loads = [1, 2, 3].map(
      (n) => new Load(wire, { books, random, name: `load-${n}`, expected: TROUBLED }),
    )
    const waiting = Array.from({ length: 20 }, (_, i) => longPoll(wire, `waits-${i}`))
    await expect
      .poll(async () => JSON.stringify(await ok(wire, '/v1/queue.stats', { queue_name: 'idle' })))
      .toContain('"lease_waiting":20')
    await Promise.all(loads.map((load) => load.underway(20)))
    const startedMs = performance.now()
    const ended = server.term()
    const lateComers = knock(server.url)
    expect(await ended, seed).toBe(0)
    expect(performance.now() - startedMs).toBeLessThan(STOP_PROMISED_MS)
    for (const { status, body } of await Promise.all(waiting)) {
      expect({ status, body }).toMatchObject({ status: 453, body: { message: 'queue is shutting down' } })
    }
    expect(await lateComers).toEqual([])
    await Promise.all(loads.map((load) => load.stop()))
    await wire.close()

    const next = await startServer({ store: place.url, testApi: false })
    wire = new Wire(next.url)
    try {
      await untilQuiet(wire)
      expect(books.audit(await contents(wire)), seed).toEqual([])
    } finally {
      await wire.close()
      await next.stop()
    }
  })

  it('does not wait for thousands of items that are due', async () => {
    const expire_deadline = '2020-01-01T00:00:00Z'
    const items = Array.from({ length: 3_000 }, () => ({ expire_deadline }))
    const busy = Array.from({ length: 4 }, (_, i) => ({ queue_name: `expiring-${i}`, ...SETTINGS }))
    for (const queue of busy) await ok(wire, '/v1/queues.create', queue)
    await Promise.all(
      busy.map(({ queue_name }) => wire.call(jsonCodec, '/v1/storage/items.import', { queue_name, items })),
    )
    const random = seededRandom()
    const books = new Books(MAX_ATTEMPTS)
    const load = new Load(wire, { books, random, name: 'load', expected: TROUBLED })
    await load.underway(3)
    const startedMs = performance.now()
    expect(await server.term()).toBe(0)
    expect(performance.now() - startedMs).toBeLessThan(STOP_PROMISED_MS)
    await load.stop()
  })
})

const SETTINGS = { lease_timeout: '1m', expire_timeout: '1h', requested_partitions: 1 }

function longPoll(wire: Wire, client_id: string): Promise<Answer> {
  const request: Json = { queue_name: 'idle', client_id, batch_size: 1, request_timeout: '1m' }
  return wire.call(jsonCodec, '/v1/queue.lease', request)
}

/**
 * Comes with a new connection again and again until the server is gone. Gives what a client would take for a
 * broken server: a connection refused while somebody is still being answered, or any answer but 200 and 453.
 */
async function knock(url: string): Promise<string[]> {
  const problems: string[] = []
  for (let refused = false; !refused; ) {
    const wire = new Wire(url)
    try {
      const { status } = await wire.call(jsonCodec, '/v1/queue.stats', { queue_name: 'work' })
      if (status !== 200 && status !== 453) problems.push(`answered ${status}`)
    } catch (error) {
      // The end: refused, or reset while it closed.
      refused = true
      if (!(error instanceof Error && 'code' in error)) throw error
    } finally {
      await wire.close()
    }
  }
  return problems
}
