/** Contract 7.7: scheduled items. */
import { describe, expect, it } from 'vitest'
import { hours, minutes, seconds, us, ZERO_TIME } from '../../world/time.ts'
import { idsOf, only, promises, textsOf } from './bed.ts'

promises('a scheduled item', (bed) => {
  it('is not leasable, not listed with the queued ones and not in the total', async () => {
    const queue = await bed.queue()
    await bed.produceItems(queue, [{ utf8: 'later', enqueue_at: bed.clock.at(hours(1)) }])
    expect(await bed.items(queue)).toEqual([])
    expect(only((await bed.stats(queue)).partitions)).toMatchObject({ total: 0, scheduled: 1 })
    await bed.nothingToLease(queue)
  })

  it('is listed as scheduled, with the fields of any stored item', async () => {
    const queue = await bed.queue({ expire_timeout: '24h' })
    await bed.produceItems(queue, [{ utf8: 'later', kind: 'k', enqueue_at: bed.clock.at(hours(1)) }])
    expect(await bed.scheduled(queue)).toEqual([
      {
        id: expect.any(String),
        lease_deadline: ZERO_TIME,
        expire_deadline: bed.clock.at(hours(24)),
        created_at: bed.clock.at(0n),
        kind: 'k',
        payload: 'bGF0ZXI=',
      },
    ])
  })

  it('is due strictly after its time', async () => {
    const queue = await bed.queue()
    await bed.produceItems(queue, [{ utf8: 'x', enqueue_at: bed.clock.at(seconds(10)) }])
    await bed.clock.advance(seconds(10))
    expect(await bed.items(queue)).toEqual([])
    await bed.clock.advance(us(1))
    expect(textsOf(await bed.items(queue))).toEqual(['x'])
    expect(await bed.scheduled(queue)).toEqual([])
  })

  it('gets a new id at the tail when it is due, and keeps everything else', async () => {
    const queue = await bed.queue()
    await bed.produceItems(queue, [{ utf8: 'early', reference: 'r', enqueue_at: bed.clock.at(minutes(1)) }])
    await bed.produce(queue, 'first')
    const before = only(await bed.scheduled(queue))
    await bed.clock.advance(minutes(1) + us(1))
    const items = await bed.items(queue)
    expect(textsOf(items)).toEqual(['first', 'early'])
    expect(items[1]).toEqual({ ...before, id: expect.any(String) })
    expect(items[1]?.id).not.toBe(before.id)
  })

  it('wakes a waiting lease', async () => {
    const queue = await bed.queue()
    await bed.produceItems(queue, [{ utf8: 'x', enqueue_at: bed.clock.at(seconds(5)) }])
    const [lease] = await bed.startLeases(queue, 1)
    await bed.clock.advance(seconds(5) + us(1))
    expect(await lease?.answer).toMatchObject({ status: 200, body: { items: [{ attempts: 1 }] } })
  })

  it('comes in order of time, then of id', async () => {
    const queue = await bed.queue()
    const at = (offset: number) => bed.clock.at(seconds(offset))
    await bed.produceItems(queue, [
      { utf8: '3', enqueue_at: at(30) },
      { utf8: '1a', enqueue_at: at(10) },
      { utf8: '1b', enqueue_at: at(10) },
      { utf8: '2', enqueue_at: at(20) },
      { utf8: '1c', enqueue_at: at(10) },
    ])
    await bed.clock.advance(seconds(31))
    expect(textsOf(await bed.items(queue))).toEqual(['1a', '1b', '1c', '2', '3'])
  })

  it('comes even when an earlier one was scheduled later', async () => {
    const queue = await bed.queue()
    await bed.produceItems(queue, [{ utf8: 'late', enqueue_at: bed.clock.at(hours(3)) }])
    await bed.produceItems(queue, [{ utf8: 'early', enqueue_at: bed.clock.at(hours(1)) }])
    await bed.clock.advance(hours(1) + us(1))
    expect(textsOf(await bed.items(queue))).toEqual(['early'])
    await bed.clock.advance(hours(2))
    expect(textsOf(await bed.items(queue))).toEqual(['early', 'late'])
  })

  it('keeps its order with a thousand others of the same time', async () => {
    const queue = await bed.queue()
    const texts = Array.from({ length: 1000 }, (_, index) => String(index))
    const enqueue_at = bed.clock.at(minutes(1))
    await bed.produceItems(
      queue,
      texts.map((utf8) => ({ utf8, enqueue_at })),
    )
    await bed.clock.advance(minutes(1) + us(1))
    expect(textsOf(await bed.items(queue))).toEqual(texts)
  })

  it('can be scheduled beyond the reach of a timer', async () => {
    const queue = await bed.queue({ expire_timeout: '9000h' })
    await bed.produceItems(queue, [{ utf8: 'x', enqueue_at: bed.clock.at(hours(24 * 60)) }])
    await bed.clock.advance(hours(24 * 59))
    expect(await bed.scheduled(queue)).toHaveLength(1)
    await bed.clock.advance(hours(25))
    expect(await bed.items(queue)).toHaveLength(1)
  })

  describe('and its expire deadline', () => {
    it('is not swept before it is queued, and then dies at once if it is past it', async () => {
      const queue = await bed.queue({ expire_timeout: '1h' })
      await bed.produceItems(queue, [{ utf8: 'x', enqueue_at: bed.clock.at(hours(2)) }])
      await bed.clock.advance(hours(1) + minutes(30))
      expect(await bed.scheduled(queue)).toHaveLength(1)
      await bed.clock.advance(hours(1))
      expect(await bed.scheduled(queue)).toEqual([])
      expect(await bed.items(queue)).toEqual([])
    })

    it('runs from the produce time', async () => {
      const queue = await bed.queue({ expire_timeout: '3h' })
      await bed.produceItems(queue, [{ utf8: 'x', enqueue_at: bed.clock.at(hours(2)) }])
      const expire_deadline = bed.clock.at(hours(3))
      await bed.clock.advance(hours(2) + us(1))
      expect(only(await bed.items(queue))).toMatchObject({ expire_deadline })
      await bed.clock.advance(hours(1))
      expect(await bed.items(queue)).toEqual([])
    })
  })

  it('is removed by items.delete', async () => {
    const queue = await bed.queue()
    await bed.produceItems(queue, [{ utf8: 'x', enqueue_at: bed.clock.at(hours(1)) }])
    const ids = idsOf(await bed.scheduled(queue))
    await bed.ok('/v1/storage/items.delete', { queue_name: queue, ids })
    expect(await bed.scheduled(queue)).toEqual([])
    await bed.clock.advance(hours(2))
    expect(await bed.items(queue)).toEqual([])
  })
})
