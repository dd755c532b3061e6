/** Contract 7.10: clear, stats, reload. */
import { describe, expect, it } from 'vitest'
import { hours, minutes, ms, seconds } from '../../world/time.ts'
import type { Json } from '../../world/wire.ts'
import { type Bed, idsOf, only, promises, textsOf, unique, until } from './bed.ts'

/** A queue with an item of each kind: leased, idle, scheduled. */
async function mixed(bed: Bed): Promise<string> {
  const queue = await bed.queue()
  await bed.produceItems(queue, [
    { utf8: 'leased' },
    { utf8: 'idle' },
    { utf8: 'scheduled', enqueue_at: bed.clock.at(hours(1)) },
  ])
  await bed.lease(queue)
  return queue
}

promises('clear', (bed) => {
  it.each<[what: Json, queued: string[], scheduled: string[]]>([
    [{ queue: true }, ['leased'], ['scheduled']],
    [{ queue: true, destructive: true }, [], ['scheduled']],
    [{ scheduled: true }, ['leased', 'idle'], []],
    [{ scheduled: true, destructive: true }, ['leased', 'idle'], []],
    [{ queue: true, scheduled: true }, ['leased'], []],
    [{ queue: true, scheduled: true, destructive: true }, [], []],
  ])('with %j leaves %j queued and %j scheduled', async (what, queued, scheduled) => {
    const queue = await mixed(bed)
    await bed.ok('/v1/queue.clear', { queue_name: queue, ...what })
    expect(textsOf(await bed.items(queue))).toEqual(queued)
    expect(textsOf(await bed.scheduled(queue))).toEqual(scheduled)
    expect(only((await bed.stats(queue)).partitions)).toMatchObject({
      total: queued.length,
      total_leased: queued.includes('leased') ? 1 : 0,
      scheduled: scheduled.length,
    })
  })

  it('acts on all partitions', async () => {
    const queue = await bed.queue({ requested_partitions: 3 })
    for (const text of ['a', 'b', 'c']) await bed.produce(queue, text)
    await bed.ok('/v1/queue.clear', { queue_name: queue, queue: true })
    expect((await bed.stats(queue)).partitions.map((each) => each.total)).toEqual([0, 0, 0])
  })

  it('leaves other queues alone', async () => {
    const queue = await bed.queue()
    const other = await bed.queue()
    await bed.produce(other, 'a')
    await bed.ok('/v1/queue.clear', { queue_name: queue, queue: true, destructive: true })
    expect(await bed.items(other)).toHaveLength(1)
  })

  it('makes a leased item that it removed unknown to complete', async () => {
    const queue = await bed.queue()
    await bed.produce(queue, 'a')
    const ids = idsOf((await bed.lease(queue)).items)
    await bed.ok('/v1/queue.clear', { queue_name: queue, queue: true, destructive: true })
    await bed.refusesWith(
      '/v1/queue.complete',
      { queue_name: queue, request_timeout: '1m', ids },
      `invalid storage id; '${ids[0]}' does not exist`,
    )
  })

  it('leaves the queue usable', async () => {
    const queue = await mixed(bed)
    const all = { queue: true, scheduled: true, destructive: true }
    await bed.ok('/v1/queue.clear', { queue_name: queue, ...all })
    await bed.produce(queue, 'new')
    expect(textsOf((await bed.lease(queue, 10)).items)).toEqual(['new'])
  })
})

promises('stats', (bed) => {
  it('counts exactly through the life of items', async () => {
    const queue = await bed.queue()
    const counts = async () => {
      const { total, total_leased, scheduled, failures } = only((await bed.stats(queue)).partitions)
      return [total, total_leased, scheduled, failures]
    }
    expect(await counts()).toEqual([0, 0, 0, 0])
    await bed.produceItems(queue, [{}, {}, {}, { enqueue_at: bed.clock.at(minutes(30)) }])
    expect(await counts()).toEqual([3, 0, 1, 0])
    const [first, second] = (await bed.lease(queue, 2)).items
    expect(await counts()).toEqual([3, 2, 1, 0])
    await bed.complete(queue, [first?.id ?? ''])
    expect(await counts()).toEqual([2, 1, 1, 0])
    await bed.retry(queue, [{ id: second?.id ?? '', retry_at: bed.clock.at(minutes(30)) }])
    expect(await counts()).toEqual([1, 0, 2, 0])
    await bed.clock.advance(minutes(31))
    expect(await counts()).toEqual([3, 0, 0, 0])
  })

  it('has the mean age of queued items', async () => {
    const queue = await bed.queue()
    await bed.produce(queue, 'a')
    await bed.clock.advance(seconds(60))
    await bed.produceItems(queue, [{}, { enqueue_at: bed.clock.at(hours(1)) }])
    await bed.clock.advance(ms(2_500))
    // 62.5 s and 2.5 s; the scheduled one counts once it is queued.
    expect(only((await bed.stats(queue)).partitions).average_age).toBe('32.5s')
    await bed.clock.advance(seconds(3600))
    expect(only((await bed.stats(queue)).partitions).average_age).toBe('1h0m22.5s')
  })

  it('has the mean remaining lease of leased items', async () => {
    const queue = await bed.queue({ lease_timeout: '2m' })
    await bed.produce(queue, 'a', 'b', 'c')
    await bed.lease(queue)
    await bed.clock.advance(seconds(60))
    await bed.lease(queue)
    await bed.clock.advance(ms(500))
    // 59.5 s and 1m59.5s are left.
    expect(only((await bed.stats(queue)).partitions).average_leased_age).toBe('1m29.5s')
  })

  it('reports each partition by its own number', async () => {
    const queue = await bed.queue({ requested_partitions: 3 })
    await bed.produce(queue, 'a', 'b')
    await bed.produce(queue, 'c')
    await bed.clock.advance(seconds(1))
    expect((await bed.stats(queue)).partitions).toMatchObject([
      { partition: 0, total: 2, average_age: '1s' },
      { partition: 1, total: 1, average_age: '1s' },
      { partition: 2, total: 0, average_age: '0s' },
    ])
  })

  it('counts requests that wait', async () => {
    const queue = await bed.queue()
    await bed.produce(queue, 'a', 'b')
    const [one, two] = idsOf((await bed.lease(queue, 2)).items)
    await bed.pause(queue)
    const produce = { queue_name: queue, request_timeout: '1m', items: [{}] }
    const complete = { queue_name: queue, request_timeout: '1m', ids: [one ?? ''] }
    const held = [
      bed.call('/v1/queue.produce', produce),
      bed.call('/v1/queue.produce', produce),
      bed.call('/v1/queue.complete', complete),
    ]
    const lease = bed.startLease(queue)
    await until(async () => {
      expect(await bed.stats(queue)).toMatchObject({
        produce_waiting: 2,
        complete_waiting: 1,
        lease_waiting: 1,
        in_flight: 4,
      })
    })
    held.push(bed.call('/v1/queue.retry', { queue_name: queue, items: [{ id: two ?? '' }] }))
    await until(async () => {
      expect((await bed.stats(queue)).in_flight).toBe(5)
    })
    await bed.unpause(queue)
    for (const answer of [...(await Promise.all(held)), await lease.answer]) expect(answer.status).toBe(200)
    expect(await bed.stats(queue)).toMatchObject({
      produce_waiting: 0,
      complete_waiting: 0,
      lease_waiting: 0,
      in_flight: 0,
    })
  })

  it('is answered while leases wait', async () => {
    const queue = await bed.queue()
    const [lease] = await bed.startLeases(queue, 1)
    expect(await bed.stats(queue)).toMatchObject({ lease_waiting: 1, in_flight: 1 })
    lease?.abort()
  })
})

promises('reload', (bed) => {
  it('changes no item', async () => {
    const queue = await mixed(bed)
    const before = [await bed.items(queue), await bed.scheduled(queue)]
    expect(await bed.ok('/v1/queue.reload', { queue_name: queue })).toEqual({ code: 200 })
    expect([await bed.items(queue), await bed.scheduled(queue)]).toEqual(before)
  })

  it('leaves waiting leases waiting when there is nothing for them', async () => {
    const queue = await bed.queue()
    const [lease] = await bed.startLeases(queue, 1)
    await bed.ok('/v1/queue.reload', { queue_name: queue })
    expect((await bed.stats(queue)).lease_waiting).toBe(1)
    await bed.produce(queue, 'a')
    expect((await lease?.answer)?.status).toBe(200)
  })
})

promises('overload', (bed) => {
  it('is 454 beyond a hundred requests not yet picked up, and those are still served', async () => {
    const queue = await bed.queue()
    await bed.pause(queue)
    const produce = { queue_name: queue, request_timeout: '1m', items: [{ utf8: unique() }] }
    const held = Array.from({ length: 100 }, () => bed.call('/v1/queue.produce', produce))
    await until(async () => {
      expect((await bed.stats(queue)).produce_waiting).toBe(100)
    })
    await bed.refuses('/v1/queue.produce', produce, 'queue is overloaded; try again later', 454)
    await bed.unpause(queue)
    for (const answer of await Promise.all(held)) expect(answer.status).toBe(200)
    expect(only((await bed.stats(queue)).partitions).total).toBe(100)
  })

  it('does not come from waiting leases', async () => {
    const queue = await bed.queue()
    const leases = Array.from({ length: 150 }, () => bed.startLease(queue))
    await bed.untilWaiting(queue, 150)
    await bed.produce(queue, 'a')
    await bed.untilWaiting(queue, 149)
    for (const lease of leases) lease.abort()
    await bed.untilWaiting(queue, 0)
  })

  describe('of one queue', () => {
    it('does not touch another', async () => {
      const full = await bed.queue()
      const other = await bed.queue()
      await bed.pause(full)
      const produce = { queue_name: full, request_timeout: '1m', items: [{}] }
      const held = Array.from({ length: 100 }, () => bed.call('/v1/queue.produce', produce))
      await until(async () => {
        expect((await bed.stats(full)).produce_waiting).toBe(100)
      })
      await bed.produce(other, 'a')
      await bed.unpause(full)
      await Promise.all(held)
    })
  })
})
