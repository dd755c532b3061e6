/** Contract 7.6: retry. */
import { describe, expect, it } from 'vitest'
import { hours, ms, us, ZERO_TIME } from '../../world/time.ts'
import { idsOf, only, promises, textsOf } from './bed.ts'

const UNKNOWN = '2AAAAAAAAAAAAAAAAAAAAAAAAAA'

promises('retry', (bed) => {
  it('puts the item at the tail under a new id, leasable at once', async () => {
    const queue = await bed.queue()
    await bed.produce(queue, 'a', 'b')
    const leased = only((await bed.lease(queue)).items)
    await bed.retry(queue, [{ id: leased.id }])
    const items = await bed.items(queue)
    expect(textsOf(items)).toEqual(['b', 'a'])
    expect(items[1]?.id).not.toBe(leased.id)
    expect(textsOf((await bed.lease(queue, 2)).items)).toEqual(['b', 'a'])
  })

  it('keeps attempts, times, source id and content, and ends the lease', async () => {
    const queue = await bed.queue()
    const content = { reference: 'r', encoding: 'e', kind: 'k', payload: 'aGk=' }
    await bed.import(queue, [{ source_id: 's', attempts: 4, ...content }])
    const [before] = await bed.items(queue)
    await bed.clock.advance(ms(500))
    const { items } = await bed.lease(queue)
    await bed.clock.advance(ms(500))
    await bed.retry(queue, [{ id: only(items).id }])
    expect(only(await bed.items(queue))).toEqual({
      ...content,
      id: expect.any(String),
      source_id: 's',
      attempts: 5,
      created_at: before?.created_at,
      expire_deadline: before?.expire_deadline,
      lease_deadline: ZERO_TIME,
    })
  })

  it('takes several items in one request', async () => {
    const queue = await bed.queue()
    await bed.produce(queue, 'a', 'b', 'c')
    const [a, b, c] = idsOf((await bed.lease(queue, 3)).items)
    await bed.retry(queue, [{ id: c ?? '' }, { id: a ?? '' }, { id: b ?? '' }])
    expect(textsOf(await bed.items(queue)).sort()).toEqual(['a', 'b', 'c'])
    expect(only((await bed.stats(queue)).partitions)).toMatchObject({ total: 3, total_leased: 0 })
  })

  it('makes the old id unknown', async () => {
    const queue = await bed.queue()
    await bed.produce(queue, 'a')
    const { id } = only((await bed.lease(queue)).items)
    await bed.retry(queue, [{ id }])
    await bed.lease(queue)
    await bed.refusesWith(
      '/v1/queue.complete',
      { queue_name: queue, request_timeout: '1m', ids: [id] },
      `invalid storage id; '${id}' does not exist`,
    )
  })

  it('wakes a waiting lease', async () => {
    const queue = await bed.queue()
    await bed.produce(queue, 'a')
    const { id } = only((await bed.lease(queue)).items)
    const [waiting] = await bed.startLeases(queue, 1)
    await bed.retry(queue, [{ id }])
    expect(await waiting?.answer).toMatchObject({ status: 200, body: { items: [{ attempts: 2 }] } })
  })

  describe('with a retry_at', () => {
    it.each([
      ['in the past', 'queued', -hours(1)],
      ['just less than 100 ms ahead', 'queued', ms(100) - us(1)],
      ['100 ms ahead', 'scheduled', ms(100)],
      ['hours ahead', 'scheduled', hours(2)],
    ] as const)('%s the item is %s', async (_, outcome, offset) => {
      const queue = await bed.queue()
      await bed.produce(queue, 'a')
      const { id } = only((await bed.lease(queue)).items)
      await bed.retry(queue, [{ id, retry_at: bed.clock.at(offset) }])
      const queued = await bed.items(queue)
      const scheduled = await bed.scheduled(queue)
      if (outcome === 'queued') {
        expect(scheduled).toEqual([])
        expect(only(queued).id).not.toBe(id)
      } else {
        expect(queued).toEqual([])
        expect(only(scheduled)).toMatchObject({ id, attempts: 1, lease_deadline: ZERO_TIME })
        expect(only(scheduled)).not.toHaveProperty('is_leased')
      }
    })

    it('the item comes back at its time, at the tail under a new id', async () => {
      const queue = await bed.queue()
      await bed.produce(queue, 'a')
      const { id } = only((await bed.lease(queue)).items)
      await bed.retry(queue, [{ id, retry_at: bed.clock.at(hours(1)) }])
      await bed.produce(queue, 'b')
      await bed.clock.advance(hours(1) + us(1))
      const items = await bed.items(queue)
      expect(textsOf(items)).toEqual(['b', 'a'])
      expect(items[1]).toMatchObject({ attempts: 1 })
      expect(items[1]?.id).not.toBe(id)
    })
  })

  describe('of an item that has used its attempts', () => {
    it('takes it out of the queue that has no dead queue, whatever retry_at says', async () => {
      const queue = await bed.queue({ max_attempts: 1 })
      await bed.produce(queue, 'a', 'b')
      const [a, b] = idsOf((await bed.lease(queue, 2)).items)
      await bed.retry(queue, [{ id: a ?? '' }, { id: b ?? '', retry_at: bed.clock.at(hours(1)) }])
      expect(await bed.items(queue)).toEqual([])
      expect(await bed.scheduled(queue)).toEqual([])
    })

    it('counts by the present max_attempts of the queue', async () => {
      const queue = await bed.queue({ max_attempts: 1 })
      await bed.produce(queue, 'a')
      const { id } = only((await bed.lease(queue)).items)
      await bed.ok('/v1/queues.update', { queue_name: queue, max_attempts: 2 })
      await bed.retry(queue, [{ id }])
      expect(await bed.items(queue)).toHaveLength(1)
    })
  })

  it('with dead takes the item out of the queue that has no dead queue', async () => {
    const queue = await bed.queue()
    await bed.produce(queue, 'a')
    const { id } = only((await bed.lease(queue)).items)
    await bed.retry(queue, [{ id, dead: true, retry_at: bed.clock.at(hours(1)) }])
    expect(await bed.items(queue)).toEqual([])
    expect(await bed.scheduled(queue)).toEqual([])
  })

  describe('is refused', () => {
    const attempt = (queue_name: string, ids: string[], text: string) =>
      bed.refusesWith('/v1/queue.retry', { queue_name, items: ids.map((id) => ({ id })) }, text)

    it('for an unknown item', async () => {
      await attempt(await bed.queue(), [UNKNOWN], `invalid storage id; '${UNKNOWN}' does not exist`)
    })

    it('for a scheduled item: it does not exist', async () => {
      const queue = await bed.queue()
      await bed.produceItems(queue, [{ enqueue_at: bed.clock.at(hours(1)) }])
      const { id } = only(await bed.scheduled(queue))
      await attempt(queue, [id], `invalid storage id; '${id}' does not exist`)
    })

    it('for an item that is not leased', async () => {
      const queue = await bed.queue()
      await bed.produce(queue, 'a')
      const { id } = only(await bed.items(queue))
      await attempt(queue, [id], `item(s) cannot be retried; '${id}' is not marked as leased`)
    })

    it('for the same item twice, and nothing is changed', async () => {
      const queue = await bed.queue()
      await bed.produce(queue, 'a')
      const { id } = only((await bed.lease(queue)).items)
      const { status } = await bed.call('/v1/queue.retry', { queue_name: queue, items: [{ id }, { id }] })
      expect(status).toBe(400)
      expect(only(await bed.items(queue))).toMatchObject({ id, is_leased: true })
    })

    it('as a whole when one of the items cannot be retried', async () => {
      const queue = await bed.queue()
      await bed.produce(queue, 'a', 'b')
      const ids = idsOf((await bed.lease(queue, 2)).items)
      const items = [{ id: ids[0] ?? '', dead: true }, { id: UNKNOWN }, { id: ids[1] ?? '' }]
      const { status } = await bed.call('/v1/queue.retry', { queue_name: queue, items })
      expect(status).toBe(400)
      expect(await bed.items(queue)).toMatchObject([
        { id: ids[0], is_leased: true },
        { id: ids[1], is_leased: true },
      ])
    })
  })
})
