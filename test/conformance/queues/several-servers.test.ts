/** Contract 7.1: several servers on one PostgreSQL serve the same queues at the same time. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type RunningServer, startServer } from '../../world/server.ts'
import { type FreshStore, freshPostgres, stores } from '../../world/stores.ts'
import { TestClock } from '../../world/time.ts'
import { jsonCodec, Wire } from '../../world/wire.ts'
import { Bed, idsOf, only, textsOf } from './bed.ts'

describe('two servers on one PostgreSQL', () => {
  let place: FreshStore
  const servers: RunningServer[] = []
  const wires: Wire[] = []
  let one: Bed
  let two: Bed

  beforeAll(async () => {
    place = await freshPostgres()
    const [, postgres] = stores
    if (postgres === undefined) throw new Error('there is no PostgreSQL among the stores')
    const beds: Bed[] = []
    for (let index = 0; index < 2; index++) {
      const server = await startServer({ store: place.url })
      const wire = new Wire(server.url)
      servers.push(server)
      wires.push(wire)
      const clock = new TestClock(() => wire)
      beds.push(new Bed(postgres, jsonCodec, () => ({ wire, place, clock })))
    }
    ;[one, two] = beds as [Bed, Bed] // two were pushed just now
  })

  afterAll(async () => {
    for (const wire of wires) await wire.close()
    for (const server of servers) await server.stop()
    await place.dispose()
  })

  it('see the same queues, settings and items at once', async () => {
    const queue = await one.queue({ max_attempts: 3 })
    expect(await two.info(queue)).toEqual(await one.info(queue))
    await two.ok('/v1/queues.update', { queue_name: queue, reference: 'changed' })
    expect(await one.info(queue)).toMatchObject({ reference: 'changed' })
    await two.produce(queue, 'a')
    expect(await one.items(queue)).toEqual(await two.items(queue))
    expect(only((await one.stats(queue)).partitions).total).toBe(1)
    await one.ok('/v1/queues.delete', { queue_name: queue })
    await two.refuses(
      '/v1/queue.produce',
      { queue_name: queue, request_timeout: '1m', items: [{}] },
      `queue does not exist; no such queue named '${queue}'`,
    )
  })

  it('work with a queue of the same name that the other created anew', async () => {
    const queue = await one.queue({ requested_partitions: 1 })
    await two.produce(queue, 'old')
    await one.ok('/v1/queues.delete', { queue_name: queue })
    await one.queue({ queue_name: queue, requested_partitions: 2 })
    await two.produce(queue, 'new')
    expect((await two.stats(queue)).partitions.map((each) => each.total)).toEqual([1, 0])
    expect(textsOf((await one.lease(queue)).items)).toEqual(['new'])
  })

  it('complete and retry what the other leased', async () => {
    const queue = await one.queue()
    await one.produce(queue, 'a', 'b')
    const [a = '', b = ''] = idsOf((await one.lease(queue, 2)).items)
    await two.complete(queue, [a])
    await two.retry(queue, [{ id: b }])
    expect(only((await one.lease(queue)).items).attempts).toBe(2)
  })

  it('never hand the same item to two', async () => {
    const queue = await one.queue()
    const count = 200
    await one.produce(queue, ...Array.from({ length: count }, (_, index) => String(index)))
    const beds = [one, two]
    const replies = await Promise.all(
      Array.from({ length: 40 }, (_, index) => beds[index % 2]?.lease(queue, 5)),
    )
    const texts = replies.flatMap((reply) => textsOf(reply?.items ?? []))
    expect(new Set(texts).size).toBe(count)
    expect(texts).toHaveLength(count)
  })

  it('give ids that ascend across servers', async () => {
    const queue = await one.queue()
    for (let index = 0; index < 20; index++) await (index % 2 ? one : two).produce(queue, String(index))
    expect(textsOf(await one.items(queue))).toEqual(Array.from({ length: 20 }, (_, index) => String(index)))
  })

  it('wake a lease that waits at the other', async () => {
    const queue = await one.queue()
    const [lease] = await two.startLeases(queue, 1)
    await one.produce(queue, 'a')
    expect(await lease?.answer).toMatchObject({ status: 200 })
  })

  it('count client ids and waiting leases each for itself', async () => {
    const queue = await one.queue()
    const first = one.startLease(queue, 1, { client_id: 'same' })
    const second = two.startLease(queue, 1, { client_id: 'same' })
    await one.untilWaiting(queue, 1)
    await two.untilWaiting(queue, 1)
    await one.produce(queue, 'a', 'b')
    await two.produce(queue, 'c')
    expect((await first.answer).status).toBe(200)
    expect((await second.answer).status).toBe(200)
  })

  it('requeue an item once whose lease is over', async () => {
    const queue = await one.queue({ lease_timeout: '50ms', expire_timeout: '1h' })
    await one.produce(queue, 'a')
    await one.lease(queue)
    const { items } = await two.lease(queue, 1, { request_timeout: '5s' })
    expect(only(items).attempts).toBe(2)
    expect(only((await one.stats(queue)).partitions).total).toBe(1)
  })

  it('move an item to the dead queue once', async () => {
    const dead = await one.queue()
    const queue = await two.queue({ lease_timeout: '30ms', dead_queue: dead, max_attempts: 1 })
    await one.produce(queue, ...Array.from({ length: 50 }, (_, index) => String(index)))
    await one.lease(queue, 25)
    await two.lease(queue, 25)
    await expect.poll(async () => (await two.items(dead)).length).toBe(50)
    expect(new Set(textsOf(await one.items(dead))).size).toBe(50)
    expect(await one.items(queue)).toEqual([])
  })
})
