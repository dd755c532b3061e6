/** A PostgreSQL that goes away and comes back: cut, refusing, or silent. No restart, nothing lost, no hanging. */
import { setTimeout as pause } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { Books } from '../crash/books.ts'
import { contents, expectExactCounts, untilQuiet } from '../crash/inventory.ts'
import { createQueues, Load, MAX_ATTEMPTS, QUEUE, TROUBLED } from '../crash/load.ts'
import { ok } from '../world/clerk.ts'
import { PATIENCE_MS, STOP_PROMISED_MS, sizeOf } from '../world/limits.ts'
import type { Path } from '../world/messages.ts'
import { type Door, doorTo } from '../world/proxy.ts'
import { seededRandom } from '../world/random.ts'
import { type RunningServer, type SpawnedServer, spawnServer, startServer } from '../world/server.ts'
import { type FreshStore, freshPostgres } from '../world/stores.ts'
import { type Json, jsonCodec, Wire } from '../world/wire.ts'

const AGAIN = { status: 454, body: { message: 'internal error, try your request again' } }
const INTERNAL = { status: 500, body: { message: 'Internal Error' } }
const SOME_ID = '3OGEefTZywrEH2GvWZYyDARoCmV'
const CUTS = sizeOf(4, 8)

describe('a PostgreSQL that goes away', () => {
  let place: FreshStore
  let door: Door
  let wire: Wire
  const servers: { readonly wire: Wire; stop(): Promise<void> }[] = []

  beforeEach(async () => {
    place = await freshPostgres()
    door = await doorTo(place.url)
  })

  afterEach(async () => {
    // Who holds a connection that is silent would wait for it when it stops.
    door.shut()
    door.open()
    for (const { wire, stop } of servers.splice(0)) {
      await wire.close()
      await stop()
    }
    await door.close()
    await place.dispose()
  })

  const wireTo = ({ url }: RunningServer, stop: () => Promise<void>): Wire => {
    const wire = new Wire(url)
    servers.push({ wire, stop })
    return wire
  }

  /** Serves in this process, from behind the door unless told otherwise. */
  const serveHere = async (store = door.url): Promise<Wire> => {
    const server = await startServer({ store, testApi: false })
    return wireTo(server, () => server.stop())
  }

  /** Makes `wire` that of a server with our queues. */
  const openHere = async (store?: string): Promise<void> => {
    wire = await serveHere(store)
    await createQueues(wire)
  }

  /** The same as users run it: a process, which ends with a code. */
  const openProcess = async (): Promise<SpawnedServer> => {
    const server = await spawnServer({ store: door.url, testApi: false })
    wire = wireTo(server, () => server.kill9())
    await createQueues(wire)
    return server
  }

  const call = (path: Path, body: Json) => wire.call(jsonCodec, path, body)
  const produce = (queue_name: string, ...texts: string[]) =>
    call('/v1/queue.produce', { queue_name, request_timeout: '1m', items: texts.map((utf8) => ({ utf8 })) })
  const lease = (queue_name: string, client_id: string, request_timeout = '10s') =>
    call('/v1/queue.lease', { queue_name, client_id, batch_size: 10, request_timeout })
  const health = async (path: string) => (await wire.raw(path, { method: 'GET' })).status
  const untilBack = () =>
    expect.poll(async () => (await produce(QUEUE, 'back')).status, { interval: 50 }).toBe(200)

  it('is told to clients as an error that the contract knows, within seconds', async () => {
    await openHere()
    await produce(QUEUE, 'a')
    const leased = (await lease(QUEUE, 'a')).body.items
    expect(leased).toHaveLength(1)
    door.shut()
    const startedMs = performance.now()
    const queue_name = QUEUE
    const ids = [SOME_ID]
    expect(await produce(QUEUE, 'b')).toMatchObject(AGAIN)
    expect(await lease(QUEUE, 'b')).toMatchObject(AGAIN)
    expect(await call('/v1/queue.complete', { queue_name, request_timeout: '1m', ids })).toMatchObject(AGAIN)
    expect(await call('/v1/queue.retry', { queue_name, items: [{ id: SOME_ID }] })).toMatchObject(AGAIN)
    const others: [Path, Json][] = [
      ['/v1/queue.stats', { queue_name }],
      ['/v1/queue.clear', { queue_name, queue: true }],
      ['/v1/queue.reload', { queue_name }],
      ['/v1/queues.list', {}],
      ['/v1/queues.info', { queue_name }],
      ['/v1/queues.delete', { queue_name }],
      ['/v1/storage/items.list', { queue_name }],
      ['/v1/storage/scheduled.list', { queue_name }],
      ['/v1/storage/items.import', { queue_name, items: [{}] }],
      ['/v1/storage/items.delete', { queue_name, ids }],
      ['/v1/queues.update', { queue_name, lease_timeout: '2m' }],
      [
        '/v1/queues.create',
        { queue_name: 'new', lease_timeout: '1m', expire_timeout: '1h', requested_partitions: 1 },
      ],
    ]
    for (const [path, body] of others) expect(await call(path, body), path).toMatchObject(INTERNAL)
    expect(await health('/health')).toBe(503)
    expect(await health('/health/ready')).toBe(503)
    expect(await health('/health/live')).toBe(200)
    expect(performance.now() - startedMs).toBeLessThan(sizeOf(PATIENCE_MS, 8_000))
    door.open()
    await untilBack()
    expect(await health('/health')).toBe(200)
    expect(await health('/health/ready')).toBe(200)
  })

  it('is a 454 also for a queue that this server has not met before', async () => {
    await openHere()
    const elsewhere = await serveHere(place.url)
    const settings = { lease_timeout: '1m', expire_timeout: '1h', requested_partitions: 1 }
    await ok(elsewhere, '/v1/queues.create', { ...settings, queue_name: 'unmet' })
    door.shut()
    expect(await produce('unmet', 'a')).toMatchObject(AGAIN)
    expect(await lease('unmet', 'a')).toMatchObject(AGAIN)
    const complete = { queue_name: 'unmet', request_timeout: '1m', ids: [SOME_ID] }
    expect(await call('/v1/queue.complete', complete)).toMatchObject(AGAIN)
  })

  it('ends no wait without an answer: a waiting lease gets items or is told to try again', async () => {
    await openHere()
    const waits = Array.from({ length: 20 }, (_, i) => lease(QUEUE, `w${i}`, '8s'))
    await expect
      .poll(async () => JSON.stringify(await ok(wire, '/v1/queue.stats', { queue_name: QUEUE })))
      .toContain('"lease_waiting":20')
    door.shut()
    await produce(QUEUE, 'lost')
    door.open()
    await untilBack()
    const startedMs = performance.now()
    for (const { status, body } of await Promise.all(waits)) {
      if (status !== 200) expect(body.message).toMatch(/^(internal error|request timeout)/)
    }
    expect(performance.now() - startedMs).toBeLessThan(sizeOf(PATIENCE_MS, 10_000))
  })

  it(`loses nothing that was acknowledged, over ${CUTS} cuts under load`, async () => {
    const server = await openProcess()
    const random = seededRandom()
    const books = new Books(MAX_ATTEMPTS)
    const load = new Load(wire, { books, random, name: 'cut', expected: TROUBLED })
    for (let cut = 0; cut < CUTS; cut++) {
      await load.underway(random.whole(5, 40))
      door.shut()
      await pause(random.whole(0, 200))
      door.open()
    }
    await expect.poll(() => health('/health/ready'), { interval: 50 }).toBe(200)
    await load.underway(20)
    await load.stop()
    await untilQuiet(wire)
    await expectExactCounts(wire)
    expect(books.audit(await contents(wire)), `BARTLEBY_TEST_SEED=${random.seed}`).toEqual([])
    expect(load.troubles).toBeGreaterThan(CUTS)
    expect(books.totals.completed).toBeGreaterThan(CUTS)
    expect(await server.term()).toBe(0)
  })

  it('is heard again once it is back: what another server produces wakes a waiting lease at once', async () => {
    await openHere()
    const elsewhere = await serveHere(place.url)
    door.shut()
    expect(await produce(QUEUE, 'x')).toMatchObject(AGAIN)
    door.open()
    await untilBack()
    await ok(wire, '/v1/queue.clear', { queue_name: QUEUE, queue: true })
    // The connection that listens is tried again every second.
    await expect
      .poll(() => wakesMs(elsewhere), { interval: 10 })
      .toSatisfy((times: number[]) => times.every((ms) => ms < 400))

    /** Five wake-ups: a poll once a second would not be that quick five times. */
    async function wakesMs(producedAt: Wire): Promise<number[]> {
      const times: number[] = []
      for (let i = 0; i < 5; i++) {
        const answer = lease(QUEUE, 'listener')
        await expect
          .poll(async () => JSON.stringify(await ok(wire, '/v1/queue.stats', { queue_name: QUEUE })), {
            interval: 10,
          })
          .toContain('"lease_waiting":1')
        const startedMs = performance.now()
        const items = [{ utf8: 'wake up' }]
        await ok(producedAt, '/v1/queue.produce', { queue_name: QUEUE, request_timeout: '1m', items })
        // The reply of a lease, as the contract has it.
        const { partition = 0, items: got } = (await answer).body as {
          partition?: number
          items: { id: string }[]
        }
        times.push(performance.now() - startedMs)
        const ids = got.map(({ id }) => id)
        await ok(wire, '/v1/queue.complete', { queue_name: QUEUE, partition, request_timeout: '1m', ids })
      }
      return times
    }
  })

  it('does not keep the server from stopping', async () => {
    const server = await openProcess()
    const waiting = lease(QUEUE, 'w', '1m')
    door.shut()
    await produce(QUEUE, 'x')
    const startedMs = performance.now()
    expect(await server.term()).toBe(0)
    expect(performance.now() - startedMs).toBeLessThan(STOP_PROMISED_MS)
    expect([453, 454]).toContain((await waiting).status)
  })

  it('is noticed also when its connections fall silent, and is found again on new ones', async () => {
    const url = new URL(door.url)
    // The default is too long for a test.
    url.searchParams.set('query_timeout', '500')
    await openHere(url.href)
    await expectExactCounts(wire)
    door.block()
    // Every connection that lay idle has to be found out; a request meets one of them at a time.
    await expect.poll(async () => (await produce(QUEUE, 'x')).status).toBe(200)
    await expectExactCounts(wire)
    expect(await health('/health')).toBe(200)
  })
})
