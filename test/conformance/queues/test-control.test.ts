/** Contract 11: pause, the controlled clock, and that neither exists unless asked for. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type RunningServer, startServer } from '../../world/server.ts'
import { type FreshStore, stores } from '../../world/stores.ts'
import { hours, minutes, ms, rfc3339, seconds, systemNow, us } from '../../world/time.ts'
import { jsonCodec, Wire } from '../../world/wire.ts'
import { idsOf, only, promises, textsOf, until } from './bed.ts'

promises('pause', (bed) => {
  it('holds produce, lease, complete and retry until the queue runs again', async () => {
    const queue = await bed.queue()
    await bed.produce(queue, 'a', 'b')
    const [a = '', b = ''] = idsOf((await bed.lease(queue, 2)).items)
    await bed.pause(queue)
    const held = [
      bed.call('/v1/queue.produce', { queue_name: queue, request_timeout: '1m', items: [{ utf8: 'c' }] }),
      bed.call('/v1/queue.complete', { queue_name: queue, request_timeout: '1m', ids: [a] }),
      bed.call('/v1/queue.retry', { queue_name: queue, items: [{ id: b }] }),
      bed.startLease(queue, 10).answer,
    ]
    let answered = 0
    for (const each of held) each.then(() => answered++)
    await until(async () => {
      expect((await bed.stats(queue)).in_flight).toBe(4)
    })
    expect(answered).toBe(0)
    expect(textsOf(await bed.items(queue))).toEqual(['a', 'b'])
    await bed.unpause(queue)
    expect((await Promise.all(held)).map((answer) => answer.status)).toEqual([200, 200, 200, 200])
    // One cycle: the lease sees what was produced and what was retried.
    expect(only((await bed.stats(queue)).partitions)).toMatchObject({ total: 2, total_leased: 2 })
  })

  it('still refuses what is not valid, at once', async () => {
    const queue = await bed.queue()
    await bed.pause(queue)
    await bed.refuses(
      '/v1/queue.produce',
      { queue_name: queue, request_timeout: '1m' },
      'items cannot be empty; at least one item is required',
    )
    await bed.refuses(
      '/v1/queue.lease',
      { queue_name: queue, request_timeout: '1m', client_id: 'c' },
      'invalid batch size; must be greater than zero',
    )
  })

  it('keeps sweeps and schedules from running', async () => {
    const queue = await bed.queue({ lease_timeout: '1m', expire_timeout: '1h' })
    await bed.produceItems(queue, [
      { utf8: 'leased' },
      { utf8: 'idle' },
      { utf8: 'later', enqueue_at: bed.clock.at(minutes(10)) },
    ])
    await bed.lease(queue)
    await bed.pause(queue)
    const before = [await bed.items(queue), await bed.scheduled(queue)]
    await bed.clock.advance(hours(2))
    expect([await bed.items(queue), await bed.scheduled(queue)]).toEqual(before)
    await bed.unpause(queue)
    await until(async () => {
      expect([await bed.items(queue), await bed.scheduled(queue)]).toEqual([[], []])
    })
  })

  it('leaves all other calls working', async () => {
    const queue = await bed.queue()
    await bed.produce(queue, 'a')
    await bed.pause(queue)
    await bed.import(queue, [{}])
    expect(await bed.items(queue)).toHaveLength(2)
    await bed.ok('/v1/storage/items.delete', {
      queue_name: queue,
      ids: idsOf(await bed.items(queue)).slice(1),
    })
    await bed.ok('/v1/queue.reload', { queue_name: queue })
    await bed.ok('/v1/queues.update', { queue_name: queue, reference: 'r' })
    expect(await bed.info(queue)).toMatchObject({ reference: 'r' })
    await bed.ok('/v1/queue.clear', { queue_name: queue, queue: true })
    expect(await bed.scheduled(queue)).toEqual([])
    expect(await bed.items(queue)).toEqual([])
    await bed.ok('/v1/queues.delete', { queue_name: queue })
  })

  it('leaves other queues running', async () => {
    const paused = await bed.queue()
    const other = await bed.queue()
    await bed.pause(paused)
    await bed.produce(other, 'a')
    expect((await bed.lease(other)).items).toHaveLength(1)
  })

  it('lets leases whose time ran out meanwhile get their 454 when it ends', async () => {
    const queue = await bed.queue()
    await bed.produce(queue, 'a')
    await bed.pause(queue)
    const short = bed.startLease(queue, 1, { request_timeout: '1s' })
    await bed.untilWaiting(queue, 1)
    const long = bed.startLease(queue, 1, { request_timeout: '1m' })
    await bed.untilWaiting(queue, 2)
    await bed.clock.advance(seconds(2))
    await bed.unpause(queue)
    expect((await short.answer).status).toBe(454)
    expect((await long.answer).status).toBe(200)
  })

  it('answers waiting leases 453 when the queue is deleted', async () => {
    const queue = await bed.queue()
    await bed.pause(queue)
    const [lease] = await bed.startLeases(queue, 1)
    await bed.ok('/v1/queues.delete', { queue_name: queue })
    expect((await lease?.answer)?.status).toBe(453)
  })

  it('may be asked twice, and un-pausing a running queue has no effect', async () => {
    const queue = await bed.queue()
    await bed.unpause(queue)
    await bed.pause(queue)
    await bed.pause(queue)
    await bed.unpause(queue)
    await bed.produce(queue, 'a')
  })

  it.each([
    [{ pause: true }, 'queue name is invalid; queue name cannot be empty'],
    [{ queue_name: 'a~b', pause: true }, "queue name is invalid; 'a~b' cannot contain '~' character"],
    [{ queue_name: 'nowhere', pause: true }, "queue does not exist; no such queue named 'nowhere'"],
  ])('refuses %j', async (body, message) => {
    expect((await bed.wire.control('/v1/queue.pause', body)).body).toMatchObject({ code: 400, message })
  })
})

promises(
  'the controlled clock',
  (bed) => {
    it('drives created_at, updated_at and deadlines', async () => {
      const queue = await bed.queue({ lease_timeout: '1m', expire_timeout: '1h' })
      await bed.produce(queue, 'a')
      await bed.lease(queue)
      expect(only(await bed.items(queue))).toMatchObject({
        created_at: bed.clock.at(0n),
        lease_deadline: bed.clock.at(minutes(1)),
        expire_deadline: bed.clock.at(hours(1)),
      })
    })

    it('may be frozen some milliseconds before now; ids still ascend', async () => {
      const queue = await bed.queue()
      await bed.produce(queue, 'a')
      await bed.clock.freeze(bed.clock.now - ms(3))
      await bed.produce(queue, 'b')
      const items = await bed.items(queue)
      expect(textsOf(items)).toEqual(['a', 'b'])
      expect(items[1]?.created_at).toBe(bed.clock.at(0n))
    })

    it('cuts finer digits of the frozen instant', async () => {
      const at = bed.clock.now + seconds(1)
      const text = rfc3339(at - (at % 1_000_000n) + 123_456n).replace('Z', '789Z')
      expect((await bed.wire.control('/v1/test.clock', { freeze: text })).status).toBe(200)
      const queue = await bed.queue()
      expect((await bed.info(queue)).created_at).toBe(text.replace('789Z', 'Z'))
      await bed.clock.freeze(at + seconds(1))
    })

    it('has done everything that is due when advance answers', async () => {
      const queue = await bed.queue({ lease_timeout: '1m' })
      await bed.produceItems(queue, [{ utf8: 'a' }, { utf8: 'b', enqueue_at: bed.clock.at(seconds(30)) }])
      await bed.lease(queue)
      await bed.clock.advance(minutes(1) + ms(11))
      // Looked at exactly once.
      expect(textsOf(await bed.items(queue)).sort()).toEqual(['a', 'b'])
      expect(only((await bed.stats(queue)).partitions)).toMatchObject({ total: 2, total_leased: 0 })
    })

    it.each([
      [{}],
      [{ advance: '-1s' }],
      [{ advance: 'soon' }],
      [{ advance: '' }],
      [{ freeze: 'now' }],
      [{ freeze: '2030-01-01T00:00:00Z', advance: '1s' }],
    ])('refuses %j', async (body) => {
      expect((await bed.wire.control('/v1/test.clock', body)).status).toBe(400)
    })

    it('accepts an advance of nothing', async () => {
      await bed.clock.advance(us(0))
    })
  },
  { codecs: [jsonCodec] },
)

describe.each(stores)('the test control surface on $name', (store) => {
  let place: FreshStore
  let server: RunningServer
  let wire: Wire

  beforeAll(async () => {
    place = await store.fresh()
    server = await startServer({ store: place.url, testApi: false })
    wire = new Wire(server.url)
  })

  afterAll(async () => {
    await wire.close()
    await server.stop()
    await place.dispose()
  })

  it.each(['/v1/queue.pause', '/v1/test.clock'])('%s does not exist without the flag', async (path) => {
    expect((await wire.control(path, { freeze: rfc3339(systemNow()) })).body).toMatchObject({
      code: 501,
      message: `no such method; ${path}`,
    })
  })
})

promises(
  'a clock that runs',
  (bed) => {
    it('cannot be advanced', async () => {
      const answer = await bed.wire.control('/v1/test.clock', { advance: '1s' })
      expect(answer.status).toBe(400)
    })
  },
  { codecs: [jsonCodec], liveClock: true },
)
