/** Contract 7.8: what happens to items whose lease or whose life is over. */
import { describe, expect, it } from 'vitest'
import { hours, minutes, ms, seconds, us, ZERO_TIME } from '../../world/time.ts'
import { idsOf, only, promises, textsOf } from './bed.ts'

promises('the lifecycle sweep', (bed) => {
  describe('of a leased item', () => {
    it('does nothing until the deadline and the grace are over', async () => {
      const queue = await bed.queue({ lease_timeout: '1m' })
      await bed.produce(queue, 'a')
      const { id } = only((await bed.lease(queue)).items)
      await bed.clock.advance(minutes(1))
      expect(only(await bed.items(queue))).toMatchObject({ id, is_leased: true })
      await bed.clock.advance(ms(5))
      expect(only(await bed.items(queue))).toMatchObject({ id, is_leased: true })
      await bed.clock.advance(ms(5) + us(1))
      expect(only(await bed.items(queue))).not.toHaveProperty('is_leased')
    })

    it('puts it back at the tail under a new id and keeps everything else', async () => {
      const queue = await bed.queue({ lease_timeout: '1m' })
      await bed.import(queue, [{ source_id: 's', reference: 'r', payload: 'aGk=' }])
      const leased = only((await bed.lease(queue)).items)
      const before = only(await bed.items(queue))
      await bed.produce(queue, 'b')
      await bed.clock.advance(minutes(1) + ms(11))
      const items = await bed.items(queue)
      expect(textsOf(items)).toEqual(['b', 'hi'])
      expect(items[1]).toEqual({
        id: expect.any(String),
        source_id: 's',
        reference: 'r',
        payload: 'aGk=',
        attempts: 1,
        created_at: before.created_at,
        expire_deadline: before.expire_deadline,
        lease_deadline: ZERO_TIME,
      })
      expect(items[1]?.id).not.toBe(leased.id)
    })

    it('makes a stale consumer fail: the old id does not exist', async () => {
      const queue = await bed.queue({ lease_timeout: '1m' })
      await bed.produce(queue, 'a')
      const { id } = only((await bed.lease(queue)).items)
      await bed.clock.advance(minutes(1) + ms(11))
      await bed.lease(queue)
      await bed.refusesWith(
        '/v1/queue.complete',
        { queue_name: queue, request_timeout: '1m', ids: [id] },
        `invalid storage id; '${id}' does not exist`,
      )
    })

    it('wakes a waiting lease, after the grace', async () => {
      const queue = await bed.queue({ lease_timeout: '1m' })
      await bed.produce(queue, 'a')
      await bed.lease(queue)
      const [waiting] = await bed.startLeases(queue, 1)
      await bed.clock.advance(minutes(1) + ms(5))
      expect((await bed.stats(queue)).lease_waiting).toBe(1)
      await bed.clock.advance(ms(6))
      expect(await waiting?.answer).toMatchObject({ status: 200, body: { items: [{ attempts: 2 }] } })
    })

    it('requeues in order of the lease deadline, then of id', async () => {
      const queue = await bed.queue({ lease_timeout: '1m' })
      const ids = idsOf(
        await bed.import(queue, [
          { payload: 'Yw==', is_leased: true, lease_deadline: bed.clock.at(seconds(30)) },
          { payload: 'YQ==', is_leased: true, lease_deadline: bed.clock.at(seconds(10)) },
          { payload: 'Yg==', is_leased: true, lease_deadline: bed.clock.at(seconds(10)) },
        ]),
      )
      await bed.clock.advance(seconds(31))
      const items = await bed.items(queue)
      expect(textsOf(items)).toEqual(['a', 'b', 'c'])
      expect(idsOf(items).filter((id) => ids.includes(id))).toEqual([])
    })

    it('deletes it after its last attempt', async () => {
      const queue = await bed.queue({ lease_timeout: '1m', max_attempts: 2 })
      await bed.produce(queue, 'a')
      await bed.lease(queue)
      await bed.clock.advance(minutes(1) + ms(11))
      expect(await bed.items(queue)).toHaveLength(1)
      expect(only((await bed.lease(queue)).items).attempts).toBe(2)
      await bed.clock.advance(minutes(1) + ms(11))
      expect(await bed.items(queue)).toEqual([])
    })

    it('lets max_attempts of zero mean without end', async () => {
      const queue = await bed.queue({ lease_timeout: '1m', max_attempts: 0 })
      await bed.import(queue, [{ attempts: 70_000 }])
      expect(only((await bed.lease(queue)).items).attempts).toBe(70_001)
      await bed.clock.advance(minutes(1) + ms(11))
      expect(await bed.items(queue)).toHaveLength(1)
    })

    it('leaves the last permitted attempt alone while its lease is valid', async () => {
      const queue = await bed.queue({ lease_timeout: '1m', max_attempts: 1 })
      await bed.produce(queue, 'a')
      const { items } = await bed.lease(queue)
      await bed.clock.advance(minutes(1))
      await bed.ok('/v1/queue.reload', { queue_name: queue })
      expect(idsOf(await bed.items(queue))).toEqual(idsOf(items))
      await bed.complete(queue, idsOf(items))
    })

    it('leaves an item past its expire deadline alone while its lease is valid', async () => {
      const queue = await bed.queue({ lease_timeout: '1m', expire_timeout: '1m' })
      await bed.produce(queue, 'a')
      await bed.clock.advance(seconds(50))
      const { id } = only((await bed.lease(queue)).items)
      await bed.clock.advance(seconds(40))
      expect(only(await bed.items(queue))).toMatchObject({ id, is_leased: true })
      await bed.clock.advance(seconds(20) + ms(11))
      expect(await bed.items(queue)).toEqual([])
    })

    it('leaves the leases of other items of the batch alone', async () => {
      const queue = await bed.queue({ lease_timeout: '1m' })
      await bed.produce(queue, 'a', 'b')
      await bed.lease(queue, 1)
      await bed.clock.advance(seconds(30))
      const later = only((await bed.lease(queue, 1)).items)
      await bed.clock.advance(seconds(31))
      expect(await bed.items(queue)).toMatchObject([{ id: later.id, is_leased: true }, { attempts: 1 }])
      expect(only((await bed.stats(queue)).partitions)).toMatchObject({ total: 2, total_leased: 1 })
    })
  })

  describe('of an item that is not leased', () => {
    it('deletes it strictly after its expire deadline', async () => {
      const queue = await bed.queue({ expire_timeout: '1h' })
      await bed.produce(queue, 'a')
      await bed.clock.advance(hours(1))
      expect(await bed.items(queue)).toHaveLength(1)
      await bed.clock.advance(us(1))
      expect(await bed.items(queue)).toEqual([])
      expect(only((await bed.stats(queue)).partitions)).toMatchObject({ total: 0 })
    })

    it('never removes it for its attempts: it dies when its next lease ends', async () => {
      const queue = await bed.queue({ lease_timeout: '1m', max_attempts: 0 })
      await bed.import(queue, [{ attempts: 5 }])
      await bed.ok('/v1/queues.update', { queue_name: queue, max_attempts: 2 })
      await bed.clock.advance(minutes(5))
      expect(await bed.items(queue)).toHaveLength(1)
      expect(only((await bed.lease(queue)).items).attempts).toBe(6)
      await bed.clock.advance(minutes(1) + ms(11))
      expect(await bed.items(queue)).toEqual([])
    })

    it('expires it although it was requeued before', async () => {
      const queue = await bed.queue({ lease_timeout: '1m', expire_timeout: '10m' })
      await bed.produce(queue, 'a')
      await bed.lease(queue)
      await bed.clock.advance(minutes(2))
      expect(await bed.items(queue)).toHaveLength(1)
      await bed.clock.advance(minutes(8) + us(1))
      expect(await bed.items(queue)).toEqual([])
    })

    it('works through thousands that are due together', async () => {
      const queue = await bed.queue({ expire_timeout: '1h' })
      for (let request = 0; request < 3; request++) {
        await bed.produce(queue, ...Array.from({ length: 1000 }, (_, index) => String(index)))
      }
      await bed.clock.advance(hours(1) + us(1))
      expect(only((await bed.stats(queue)).partitions).total).toBe(0)
    })
  })

  it('uses the max_attempts that the queue has now, also for older items', async () => {
    const queue = await bed.queue({ lease_timeout: '1m', max_attempts: 5 })
    await bed.produce(queue, 'a')
    await bed.lease(queue)
    await bed.ok('/v1/queues.update', { queue_name: queue, max_attempts: 1 })
    await bed.clock.advance(minutes(1) + ms(11))
    expect(await bed.items(queue)).toEqual([])
  })

  it('covers every partition', async () => {
    const queue = await bed.queue({ lease_timeout: '1m', expire_timeout: '1h', requested_partitions: 3 })
    for (const text of ['a', 'b', 'c']) await bed.produce(queue, text)
    for (let lease = 0; lease < 3; lease++) await bed.lease(queue)
    await bed.clock.advance(minutes(1) + ms(11))
    expect((await bed.stats(queue)).partitions).toMatchObject([
      { total: 1, total_leased: 0 },
      { total: 1, total_leased: 0 },
      { total: 1, total_leased: 0 },
    ])
    await bed.clock.advance(hours(1))
    expect((await bed.stats(queue)).partitions.map((each) => each.total)).toEqual([0, 0, 0])
  })

  it('does everything in order when much time passes at once', async () => {
    const queue = await bed.queue({ lease_timeout: '1m', expire_timeout: '10h', max_attempts: 3 })
    await bed.produceItems(queue, [
      { utf8: 'leased' },
      { utf8: 'scheduled', enqueue_at: bed.clock.at(hours(1)) },
    ])
    await bed.lease(queue)
    await bed.clock.advance(hours(2))
    expect(textsOf(await bed.items(queue)).sort()).toEqual(['leased', 'scheduled'])
    await bed.clock.advance(hours(9))
    expect(await bed.items(queue)).toEqual([])
  })
})
