/** Two servers on one SQLite file: not what it is made for, but nothing may break. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Books } from '../crash/books.ts'
import { contents, expectExactCounts, untilQuiet } from '../crash/inventory.ts'
import { createQueues, Load, MAX_ATTEMPTS } from '../crash/load.ts'
import { ok } from '../world/clerk.ts'
import { seededRandom } from '../world/random.ts'
import { type SpawnedServer, spawnServer } from '../world/server.ts'
import { type FreshStore, freshSqlite } from '../world/stores.ts'
import { jsonCodec, Wire } from '../world/wire.ts'

describe('two servers on one SQLite file', () => {
  let place: FreshStore
  let servers: SpawnedServer[]
  let one: Wire
  let two: Wire

  beforeAll(async () => {
    place = await freshSqlite()
    servers = await Promise.all([1, 2].map(() => spawnServer({ store: place.url, testApi: false })))
    ;[one, two] = servers.map(({ url }) => new Wire(url)) as [Wire, Wire] // two were started just now
    await createQueues(one)
  })

  afterAll(async () => {
    await Promise.all([one.close(), two.close(), ...servers.map((server) => server.kill9())])
    await place.dispose()
  })

  it('keep the same books under load on both', async () => {
    const random = seededRandom()
    const books = new Books(MAX_ATTEMPTS)
    const loads = [one, two].map((wire, i) => new Load(wire, { books, random, name: `side-${i}` }))
    await Promise.all(loads.map((load) => load.underway(100)))
    await Promise.all(loads.map((load) => load.stop()))
    await untilQuiet(one)
    await expectExactCounts(one)
    await expectExactCounts(two)
    expect(books.audit(await contents(two)), `BARTLEBY_TEST_SEED=${random.seed}`).toEqual([])
  })

  it('give what one of them gets to a lease that waits at the other', async () => {
    const queue_name = 'shared'
    const settings = { lease_timeout: '10m', expire_timeout: '1h', requested_partitions: 1 }
    await ok(one, '/v1/queues.create', { ...settings, queue_name })
    const lease = { queue_name, client_id: 'c', batch_size: 1, request_timeout: '8s' }
    const answer = two.call(jsonCodec, '/v1/queue.lease', lease)
    await expect
      .poll(async () => JSON.stringify(await ok(two, '/v1/queue.stats', { queue_name })))
      .toContain('"lease_waiting":1')
    await ok(one, '/v1/queue.produce', { queue_name, request_timeout: '1m', items: [{ utf8: 'x' }] })
    expect((await answer).status).toBe(200)
  })
})
