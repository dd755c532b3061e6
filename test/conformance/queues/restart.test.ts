/** Contract 2.6.4, 5.4 and 10.12: what survives a restart, and that work goes on right after it. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { PATIENCE_MS, sizeOf } from '../../world/limits.ts'
import { reused } from '../../world/reused-store.ts'
import { type RunningServer, startServer } from '../../world/server.ts'
import { type FreshStore, stores } from '../../world/stores.ts'
import { hours, minutes, ms, systemNow, TestClock, us } from '../../world/time.ts'
import { jsonCodec, Wire } from '../../world/wire.ts'
import { Bed, idsOf, only, textsOf, until } from './bed.ts'

const kinds = stores.map((kind) => reused(kind))

describe.each(kinds)('a restart on $name', (store) => {
  let place: FreshStore
  let server: RunningServer
  let wire: Wire
  let bed: Bed

  async function start(): Promise<void> {
    server = await startServer({ store: place.url })
    wire = new Wire(server.url)
  }

  async function stop(): Promise<void> {
    await wire.close()
    await server.stop()
  }

  /** Stops and starts; the clock stands where it stood. */
  async function restart(): Promise<void> {
    await stop()
    await start()
    await bed.clock.freeze(bed.clock.now)
  }

  beforeEach(async () => {
    place = await store.fresh()
    await start()
    const clock = new TestClock(() => wire)
    bed = new Bed(store, jsonCodec, () => ({ wire, place, clock }))
    await clock.freeze(systemNow())
  })

  afterEach(async () => {
    await stop()
    await place.dispose()
  })

  it('keeps queues and their settings', async () => {
    const dead_queue = await bed.queue()
    const queue = await bed.queue({ dead_queue, max_attempts: 3, reference: 'r', requested_partitions: 4 })
    await bed.clock.advance(us(1))
    await bed.ok('/v1/queues.update', { queue_name: queue, dead_queue, max_attempts: 5, lease_timeout: '2m' })
    const before = await bed.info(queue)
    await restart()
    expect(await bed.info(queue)).toEqual(before)
    expect((await bed.stats(queue)).partitions).toHaveLength(4)
  })

  it('keeps items, leases with their deadlines, and schedules', async () => {
    const queue = await bed.queue({ lease_timeout: '5m' })
    await bed.produceItems(queue, [
      { utf8: 'leased' },
      { utf8: 'idle', reference: 'r' },
      { utf8: 'later', enqueue_at: bed.clock.at(hours(1)) },
    ])
    await bed.lease(queue)
    const before = [await bed.items(queue), await bed.scheduled(queue), (await bed.stats(queue)).partitions]
    await restart()
    expect([await bed.items(queue), await bed.scheduled(queue), (await bed.stats(queue)).partitions]).toEqual(
      before,
    )
    await bed.clock.advance(minutes(5) + ms(11))
    expect(textsOf(await bed.items(queue))).toEqual(['idle', 'leased'])
    await bed.clock.advance(hours(1))
    expect(textsOf(await bed.items(queue))).toEqual(['idle', 'leased', 'later'])
  })

  it('lets a consumer complete what it leased before', async () => {
    const queue = await bed.queue()
    await bed.produce(queue, 'a')
    const ids = idsOf((await bed.lease(queue)).items)
    await restart()
    await bed.complete(queue, ids)
    expect(await bed.items(queue)).toEqual([])
  })

  it('gives ids greater than every id given before, also of items that are gone', async () => {
    const queue = await bed.queue({ requested_partitions: 2 })
    await bed.clock.advance(hours(10))
    await bed.produce(queue, ...Array.from({ length: 10 }, (_, index) => String(index)))
    const last = idsOf(await bed.items(queue)).at(-1) ?? ''
    await bed.ok('/v1/queue.clear', { queue_name: queue, queue: true })
    await stop()
    await start()
    // The clock is hours behind what it was.
    await bed.produce(queue, 'new')
    const { id } = only(await bed.items(queue))
    expect(id > last).toBe(true)
  })

  it('keeps dead letters what they are: they do not expire', async () => {
    const dead = await bed.queue({ expire_timeout: '1h' })
    const queue = await bed.queue({ dead_queue: dead })
    await bed.produce(queue, 'x')
    await bed.retry(queue, [{ id: only((await bed.lease(queue)).items).id, dead: true }])
    const before = await bed.items(dead)
    await restart()
    await bed.clock.advance(hours(5))
    expect(await bed.items(dead)).toEqual(before)
  })

  it('ends a pause', async () => {
    const queue = await bed.queue()
    await bed.pause(queue)
    await restart()
    await bed.produce(queue, 'a')
    expect((await bed.lease(queue)).items).toHaveLength(1)
  })

  it('is followed at once by what became due meanwhile, in queues that nobody touches', async () => {
    const dead = await bed.queue()
    const queue = await bed.queue({ dead_queue: dead, lease_timeout: '1m' })
    await bed.pause(queue)
    const past = '2020-01-01T00:00:00Z'
    await bed.import(queue, [
      { payload: 'ZXhwaXJlZA==', expire_deadline: past },
      { payload: 'bGVhc2U=', is_leased: true, lease_deadline: past, attempts: 1 },
    ])
    await stop()
    await start()
    await until(async () => {
      expect(textsOf(await bed.items(dead))).toEqual(['expired'])
      expect(await bed.items(queue)).toMatchObject([{ payload: 'bGVhc2U=', attempts: 1 }])
      expect((await bed.items(queue))[0]).not.toHaveProperty('is_leased')
    })
  })

  it('is not delayed by thousands of expired items', async () => {
    const queue = await bed.queue()
    await bed.pause(queue)
    const expire_deadline = '2020-01-01T00:00:00Z'
    await bed.import(
      queue,
      Array.from({ length: 5000 }, () => ({ expire_deadline })),
    )
    await stop()
    const before = performance.now()
    await start()
    expect((await wire.raw('/health', { method: 'GET' })).status).toBe(200)
    expect(performance.now() - before).toBeLessThan(sizeOf(PATIENCE_MS, 2_000))
    await until(async () => {
      expect(only((await bed.stats(queue)).partitions).total).toBe(0)
    })
  })
})
