/** Contract 7.2 and 7.4.6: partitions and the fair sharing of items among waiting leases. */
import { describe, expect, it } from 'vitest'
import { hours, ms, seconds, us } from '../../world/time.ts'
import { type Bed, idsOf, type Leased, type PendingLease, promises, textsOf, until } from './bed.ts'

const numbered = (count: number, prefix = '') =>
  Array.from({ length: count }, (_, index) => `${prefix}${index}`)

const totals = async (bed: Bed, queue: string) =>
  (await bed.stats(queue)).partitions.map((partition) => partition.total)

/** What each pending lease was given. */
async function shares(leases: PendingLease[]): Promise<Leased[]> {
  const answers = await Promise.all(leases.map((lease) => lease.answer))
  // A 200 of queue.lease is a QueueLeaseResponse; the wire has checked it.
  return answers.map((answer) => answer.body as unknown as Leased)
}

const sizes = (replies: Leased[]) => replies.map((reply) => reply.items?.length ?? 0)

promises('partitions', (bed) => {
  it('are exactly as many as requested, numbered from 0', async () => {
    const queue = await bed.queue({ requested_partitions: 12 })
    const { partitions } = await bed.stats(queue)
    expect(partitions.map((each) => each.partition)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11])
    expect(partitions.every((each) => each.failures === 0)).toBe(true)
  })

  it('get a request where the fewest leasable items are, the lowest number first', async () => {
    const queue = await bed.queue({ requested_partitions: 2 })
    const seen: number[][] = []
    for (let request = 0; request < 5; request++) {
      await bed.produce(queue, ...numbered(10))
      seen.push(await totals(bed, queue))
    }
    expect(seen).toEqual([
      [10, 0],
      [10, 10],
      [20, 10],
      [20, 20],
      [30, 20],
    ])
  })

  it('serve a lease from the one with the most leasable items, and only from that', async () => {
    const queue = await bed.queue({ requested_partitions: 2 })
    for (let request = 0; request < 5; request++) await bed.produce(queue, ...numbered(10))
    const taken: [number, number][] = []
    for (const batch of [5, 10, 20]) {
      const { partition = 0, items } = await bed.lease(queue, batch)
      taken.push([partition, items.length])
    }
    expect(taken).toEqual([
      [0, 5],
      [0, 10],
      [1, 20],
    ])
  })

  it('never split a request', async () => {
    const queue = await bed.queue({ requested_partitions: 3 })
    await bed.produce(queue, ...numbered(1000))
    expect(await totals(bed, queue)).toEqual([1000, 0, 0])
  })

  it('give a lease less than it asked for rather than mix partitions', async () => {
    const queue = await bed.queue({ requested_partitions: 2 })
    await bed.produce(queue, 'a', 'b', 'c')
    await bed.produce(queue, 'd')
    const { items, partition = 0 } = await bed.lease(queue, 10)
    expect([partition, textsOf(items)]).toEqual([0, ['a', 'b', 'c']])
    expect(await bed.lease(queue, 10)).toMatchObject({ partition: 1, items: [{ attempts: 1 }] })
  })

  it('have their own ids, and are named when completing', async () => {
    const queue = await bed.queue({ requested_partitions: 2 })
    await bed.produce(queue, 'zero')
    await bed.produce(queue, 'one')
    await bed.lease(queue)
    await bed.lease(queue)
    const ids = idsOf(await bed.items(queue, 1))
    await bed.refusesWith(
      '/v1/queue.complete',
      { queue_name: queue, partition: 0, request_timeout: '1m', ids },
      `invalid storage id; '${ids[0]}' does not exist`,
    )
    await bed.complete(queue, ids, 1)
    expect(await totals(bed, queue)).toEqual([1, 0])
  })

  describe('do not count as leasable', () => {
    it('leased items', async () => {
      const queue = await bed.queue({ requested_partitions: 2 })
      await bed.produce(queue, ...numbered(3))
      await bed.produce(queue, 'x')
      await bed.lease(queue, 3)
      await bed.produce(queue, ...numbered(2))
      expect(await totals(bed, queue)).toEqual([5, 1])
    })

    it('scheduled items', async () => {
      const queue = await bed.queue({ requested_partitions: 2 })
      const enqueue_at = bed.clock.at(hours(1))
      await bed.produceItems(
        queue,
        numbered(5).map((utf8) => ({ utf8, enqueue_at })),
      )
      await bed.produce(queue, 'x')
      expect((await bed.stats(queue)).partitions).toMatchObject([
        { total: 1, scheduled: 5 },
        { total: 0, scheduled: 0 },
      ])
    })

    it('items past their expire deadline, even before they are swept', async () => {
      const queue = await bed.queue({
        requested_partitions: 2,
        lease_timeout: '1s',
        expire_timeout: '1s',
      })
      await bed.produce(queue, ...numbered(3))
      await bed.pause(queue)
      await bed.clock.advance(seconds(1) + us(1))
      const produced = bed.produce(queue, 'x')
      await bed.unpause(queue)
      await produced
      await until(async () => {
        expect(await totals(bed, queue)).toEqual([1, 0])
      })
    })
  })

  it('count an item as leasable again when it was retried or its lease is over', async () => {
    const queue = await bed.queue({ requested_partitions: 2, lease_timeout: '1m' })
    await bed.produce(queue, 'a', 'b')
    await bed.produce(queue, 'x')
    const { items } = await bed.lease(queue, 2)
    await bed.retry(queue, [{ id: items[0]?.id ?? '' }])
    await bed.clock.advance(seconds(60) + ms(11))
    // Two against one: the next goes to partition 1.
    await bed.produce(queue, 'y')
    expect(await totals(bed, queue)).toEqual([2, 2])
  })

  it('count what a clear or a delete removed', async () => {
    const queue = await bed.queue({ requested_partitions: 2 })
    await bed.produce(queue, 'a', 'b', 'c')
    await bed.produce(queue, 'x')
    const ids = idsOf(await bed.items(queue))
    await bed.ok('/v1/storage/items.delete', { queue_name: queue, ids })
    await bed.produce(queue, 'y')
    expect(await totals(bed, queue)).toEqual([1, 1])
    await bed.ok('/v1/queue.clear', { queue_name: queue, queue: true })
    await bed.produce(queue, 'z')
    expect(await totals(bed, queue)).toEqual([1, 0])
  })

  it('count what an import brought', async () => {
    const queue = await bed.queue({ requested_partitions: 2 })
    await bed.import(queue, [{ payload: '' }, { payload: '' }], 0)
    await bed.produce(queue, 'x')
    expect(await totals(bed, queue)).toEqual([2, 1])
  })
})

promises('fair sharing', (bed) => {
  it('deals 23 items to leases of 20, 6 and 1 as 16, 6 and 1', async () => {
    const queue = await bed.queue()
    const leases = await bed.startLeases(queue, 20, 6, 1)
    await bed.produce(queue, ...numbered(23))
    expect(sizes(await shares(leases))).toEqual([16, 6, 1])
  })

  it('deals the same from a paused queue', async () => {
    const queue = await bed.queue()
    await bed.produce(queue, ...numbered(23))
    await bed.pause(queue)
    const leases = await bed.startLeases(queue, 20, 6, 1)
    await bed.unpause(queue)
    expect(sizes(await shares(leases))).toEqual([16, 6, 1])
  })

  it('gives five waiting leases on five partitions two each of one produce of ten', async () => {
    const queue = await bed.queue({ requested_partitions: 5 })
    const leases = await bed.startLeases(queue, 10, 10, 10, 10, 10)
    await bed.produce(queue, ...numbered(10))
    expect(sizes(await shares(leases))).toEqual([2, 2, 2, 2, 2])
  })

  it('deals one at a time, in order of id, round robin in order of arrival', async () => {
    const queue = await bed.queue()
    const leases = await bed.startLeases(queue, 3, 3, 1)
    await bed.produce(queue, ...numbered(7))
    expect((await shares(leases)).map((reply) => textsOf(reply.items))).toEqual([
      ['0', '3', '5'],
      ['1', '4', '6'],
      ['2'],
    ])
  })

  it('lets those who got nothing keep waiting', async () => {
    const queue = await bed.queue()
    const leases = await bed.startLeases(queue, 5, 5, 5)
    await bed.produce(queue, 'a', 'b')
    expect(sizes(await shares(leases.slice(0, 2)))).toEqual([1, 1])
    expect((await bed.stats(queue)).lease_waiting).toBe(1)
    await bed.produce(queue, 'c')
    expect(sizes(await shares(leases.slice(2)))).toEqual([1])
  })

  it('sends each lease to the partition with the most items not yet promised', async () => {
    const queue = await bed.queue({ requested_partitions: 2 })
    await bed.produce(queue, ...numbered(10, 'zero '))
    await bed.produce(queue, ...numbered(6, 'one '))
    await bed.pause(queue)
    const leases = await bed.startLeases(queue, 5, 5, 5, 5)
    await bed.unpause(queue)
    // 10 and 6: to 0 (5 left), to 1 (1 left), to 0 (0 left), to 1 (0 left).
    const replies = await shares(leases)
    expect(replies.map((reply) => [reply.partition ?? 0, reply.items.length])).toEqual([
      [0, 5],
      [1, 3],
      [0, 5],
      [1, 3],
    ])
  })

  it('sends a lease to the fullest partition when everything is promised', async () => {
    const queue = await bed.queue({ requested_partitions: 2 })
    await bed.produce(queue, ...numbered(10, 'zero '))
    await bed.produce(queue, ...numbered(6, 'one '))
    await bed.pause(queue)
    const leases = await bed.startLeases(queue, 10, 6, 5)
    await bed.unpause(queue)
    const replies = await shares(leases)
    expect(replies.map((reply) => [reply.partition ?? 0, reply.items.length])).toEqual([
      [0, 5],
      [1, 6],
      [0, 5],
    ])
  })

  it('does not starve waiters when only one partition has items', async () => {
    const queue = await bed.queue({ requested_partitions: 10 })
    const leases = await bed.startLeases(queue, 1, 1, 1)
    await bed.produce(queue, 'a', 'b', 'c')
    expect(sizes(await shares(leases))).toEqual([1, 1, 1])
  })

  it('hands the items of one partition out in order when leases come one after another', async () => {
    const queue = await bed.queue()
    await bed.produce(queue, ...numbered(20))
    const order: string[] = []
    for (const batch of [3, 1, 7, 4, 5]) order.push(...textsOf((await bed.lease(queue, batch)).items))
    expect(order).toEqual(numbered(20))
  })
})
