/** Contract 7.9: listing, importing and deleting stored items. */
import { describe, expect, it } from 'vitest'
import { hours, minutes, ms, us, ZERO_TIME } from '../../world/time.ts'
import { protobufCodec } from '../../world/wire.ts'
import { base64, idsOf, only, promises, textsOf, unique } from './bed.ts'

const numbered = (count: number) => Array.from({ length: count }, (_, index) => String(index))
const LAST_ID = 'aWgEPTl1tmebfsQzFP4bxwgy80V'
const FIRST_ID = '000000000000000000000000000'

promises('items.list', (bed) => {
  it('lists queued items by id, leased ones included', async () => {
    const queue = await bed.queue()
    await bed.produce(queue, 'a', 'b', 'c')
    await bed.lease(queue, 2)
    const items = await bed.items(queue)
    expect(textsOf(items)).toEqual(['a', 'b', 'c'])
    expect(items.map((item) => item.is_leased ?? false)).toEqual([true, true, false])
    expect(idsOf(items)).toEqual([...idsOf(items)].sort())
  })

  it('starts with the pivot itself', async () => {
    const queue = await bed.queue()
    await bed.produce(queue, ...numbered(5))
    const all = idsOf(await bed.items(queue))
    expect(idsOf(await bed.items(queue, 0, { pivot: all[2] ?? '' }))).toEqual(all.slice(2))
  })

  it('pages through a queue', async () => {
    const queue = await bed.queue()
    await bed.produce(queue, ...numbered(10))
    const first = await bed.items(queue, 0, { limit: 4 })
    const second = await bed.items(queue, 0, { limit: 4, pivot: first[3]?.id ?? '' })
    expect(textsOf(first)).toEqual(['0', '1', '2', '3'])
    expect(textsOf(second)).toEqual(['3', '4', '5', '6'])
  })

  it('goes on behind a pivot that has vanished', async () => {
    const queue = await bed.queue()
    await bed.produce(queue, ...numbered(3))
    const [, pivot = ''] = idsOf(await bed.items(queue))
    await bed.ok('/v1/storage/items.delete', { queue_name: queue, ids: [pivot] })
    expect(textsOf(await bed.items(queue, 0, { pivot }))).toEqual(['2'])
  })

  it('is empty past the end and whole from the first possible id', async () => {
    const queue = await bed.queue()
    await bed.produce(queue, 'a')
    expect(await bed.items(queue, 0, { pivot: LAST_ID })).toEqual([])
    expect(await bed.items(queue, 0, { pivot: FIRST_ID })).toHaveLength(1)
    expect(await bed.items(queue, 0, { pivot: '' })).toHaveLength(1)
  })

  it('gives 1000 without a limit, and more when asked', async () => {
    const queue = await bed.queue()
    await bed.produce(queue, ...numbered(1000))
    await bed.produce(queue, ...numbered(5))
    expect(await bed.items(queue)).toHaveLength(1000)
    expect(await bed.items(queue, 0, { limit: 0 })).toHaveLength(1000)
    expect(await bed.items(queue, 0, { limit: 20_000 })).toHaveLength(1005)
  })

  it('names the partition it lists', async () => {
    const queue = await bed.queue({ requested_partitions: 2 })
    await bed.produce(queue, 'zero')
    await bed.produce(queue, 'one')
    expect(textsOf(await bed.items(queue, 0))).toEqual(['zero'])
    expect(textsOf(await bed.items(queue, 1))).toEqual(['one'])
  })
})

promises('scheduled.list', (bed) => {
  it('lists scheduled items by id, with pivot and limit as items.list', async () => {
    const queue = await bed.queue()
    await bed.produce(queue, 'queued')
    const later = numbered(5).map((utf8, index) => ({ utf8, enqueue_at: bed.clock.at(hours(10 - index)) }))
    await bed.produceItems(queue, later)
    const all = await bed.scheduled(queue)
    expect(textsOf(all)).toEqual(numbered(5))
    expect(idsOf(all)).toEqual([...idsOf(all)].sort())
    expect(textsOf(await bed.scheduled(queue, 0, { pivot: all[1]?.id ?? '', limit: 2 }))).toEqual(['1', '2'])
    expect(await bed.scheduled(queue, 0, { pivot: LAST_ID })).toEqual([])
  })
})

promises('items.import', (bed) => {
  it('assigns ids and created_at, and keeps what was given', async () => {
    const queue = await bed.queue()
    const given = {
      source_id: 'any string, not a KSUID',
      is_leased: true,
      lease_deadline: bed.clock.at(minutes(3)),
      expire_deadline: bed.clock.at(hours(5)),
      attempts: 7,
      max_attempts: 9,
      reference: 'r',
      encoding: 'e',
      kind: 'k',
      payload: base64('hi'),
    }
    const ignored = {
      id: LAST_ID,
      created_at: bed.clock.at(-hours(5)),
      updated_at: bed.clock.at(-hours(5)),
      dead_deadline: bed.clock.at(hours(5)),
      enqueue_at: bed.clock.at(hours(5)),
    }
    const reply = await bed.import(queue, [{ ...given, ...ignored }])
    const expected = { ...given, id: expect.any(String), created_at: bed.clock.at(0n) }
    expect(reply).toEqual([expected])
    expect(only(reply).id).not.toBe(LAST_ID)
    expect(await bed.items(queue)).toEqual(reply)
    expect(await bed.scheduled(queue)).toEqual([])
  })

  it('gives ids in the order of the request', async () => {
    const queue = await bed.queue()
    const reply = await bed.import(
      queue,
      numbered(100).map((text) => ({ payload: base64(text) })),
    )
    expect(textsOf(reply)).toEqual(numbered(100))
    expect(await bed.items(queue)).toEqual(reply)
  })

  it('fills in the deadlines that were not given', async () => {
    const queue = await bed.queue({ expire_timeout: '2h' })
    const reply = await bed.import(queue, [
      {},
      { expire_deadline: '1970-01-01T00:00:00Z' },
      { expire_deadline: ZERO_TIME },
    ])
    const expected = { lease_deadline: ZERO_TIME, expire_deadline: bed.clock.at(hours(2)) }
    expect(reply).toMatchObject([expected, expected, expected])
    await bed.clock.advance(hours(1))
    expect(await bed.items(queue)).toHaveLength(3)
  })

  it('keeps the lease deadline of an item that is not leased', async () => {
    const queue = await bed.queue()
    const lease_deadline = bed.clock.at(minutes(1))
    const reply = await bed.import(queue, [{ lease_deadline }])
    expect(only(reply)).toMatchObject({ lease_deadline })
    expect(only(reply)).not.toHaveProperty('is_leased')
    expect(await bed.items(queue)).toEqual(reply)
    expect((await bed.lease(queue)).items).toHaveLength(1)
  })

  it('cuts times down to microseconds, in the reply and in the store alike', async () => {
    const queue = await bed.queue()
    const reply = await bed.import(queue, [
      {
        is_leased: true,
        lease_deadline: '2999-01-01T00:00:00.123456999Z',
        expire_deadline: '2999-01-02T00:00:00.999999999Z',
      },
    ])
    expect(only(reply)).toMatchObject({
      lease_deadline: '2999-01-01T00:00:00.123456Z',
      expire_deadline: '2999-01-02T00:00:00.999999Z',
    })
    expect(await bed.items(queue)).toEqual(reply)
  })

  it('goes to the named partition', async () => {
    const queue = await bed.queue({ requested_partitions: 3 })
    await bed.import(queue, [{ payload: base64('x') }], 2)
    expect((await bed.stats(queue)).partitions.map((each) => each.total)).toEqual([0, 0, 1])
    expect(await bed.lease(queue)).toMatchObject({ partition: 2 })
  })

  it('wakes a waiting lease', async () => {
    const queue = await bed.queue()
    const [lease] = await bed.startLeases(queue, 1)
    await bed.import(queue, [{ attempts: 2 }])
    expect(await lease?.answer).toMatchObject({ status: 200, body: { items: [{ attempts: 3 }] } })
  })

  it('lets the lease of an imported item run out like any other', async () => {
    const queue = await bed.queue()
    await bed.import(queue, [{ is_leased: true, lease_deadline: bed.clock.at(minutes(1)), attempts: 1 }])
    await bed.clock.advance(minutes(1) + ms(11))
    expect(only(await bed.items(queue))).toMatchObject({ lease_deadline: ZERO_TIME, attempts: 1 })
    expect(only((await bed.lease(queue)).items).attempts).toBe(2)
  })

  it('lets an imported item die by its own expire deadline', async () => {
    const queue = await bed.queue({ expire_timeout: '24h' })
    await bed.import(queue, [{ expire_deadline: bed.clock.at(minutes(10)) }])
    await bed.clock.advance(minutes(10) + us(1))
    expect(await bed.items(queue)).toEqual([])
  })

  it('uses the max_attempts of the queue, not the one it echoes', async () => {
    const queue = await bed.queue({ lease_timeout: '1m', max_attempts: 5 })
    await bed.import(queue, [{ max_attempts: 1 }])
    await bed.lease(queue)
    await bed.clock.advance(minutes(1) + ms(11))
    expect(only(await bed.items(queue))).toMatchObject({ attempts: 1, max_attempts: 1 })
  })

  describe('of a source id that is already held', () => {
    it('is skipped and echoed as received; the first one stays', async () => {
      const queue = await bed.queue()
      const [first] = await bed.import(queue, [{ source_id: 's', payload: base64('first') }])
      const second = { source_id: 's', payload: base64('second'), reference: 'r' }
      const reply = await bed.import(queue, [{ source_id: 't' }, second, { source_id: 'u' }])
      expect(reply).toHaveLength(3)
      expect(reply.map((item) => item.source_id)).toEqual(['t', 's', 'u'])
      expect(reply[1]).toMatchObject(second)
      const items = await bed.items(queue)
      expect(items.map((item) => item.source_id)).toEqual(['s', 't', 'u'])
      expect(items[0]).toEqual(first)
    })

    it('is skipped within one request', async () => {
      const queue = await bed.queue()
      const twice = ['one', 'two'].map((text) => ({ source_id: 's', payload: base64(text) }))
      expect(textsOf(await bed.import(queue, twice))).toEqual(['one', 'two'])
      expect(textsOf(await bed.items(queue))).toEqual(['one'])
    })

    it('is skipped while the holder is leased', async () => {
      const queue = await bed.queue()
      await bed.import(queue, [{ source_id: 's' }])
      const leased = await bed.lease(queue)
      await bed.import(queue, [{ source_id: 's' }])
      expect(idsOf(await bed.items(queue))).toEqual(idsOf(leased.items))
    })

    it('is skipped while the holder is scheduled', async () => {
      const queue = await bed.queue()
      await bed.import(queue, [{ source_id: 's' }])
      const { id } = only((await bed.lease(queue)).items)
      await bed.retry(queue, [{ id, retry_at: bed.clock.at(hours(1)) }])
      await bed.import(queue, [{ source_id: 's' }])
      expect(await bed.items(queue)).toEqual([])
      expect(await bed.scheduled(queue)).toHaveLength(1)
    })

    it('counts per partition', async () => {
      const queue = await bed.queue({ requested_partitions: 2 })
      await bed.import(queue, [{ source_id: 's' }], 0)
      await bed.import(queue, [{ source_id: 's' }], 1)
      expect((await bed.stats(queue)).partitions.map((each) => each.total)).toEqual([1, 1])
    })

    it('does not count for empty source ids', async () => {
      const queue = await bed.queue()
      await bed.import(queue, [{ source_id: '' }, {}, { source_id: '' }])
      expect(await bed.items(queue)).toHaveLength(3)
    })

    it.each(['complete', 'delete', 'clear', 'expiry', 'move'])('is free again after %s', async (end) => {
      const dead_queue = await bed.queue()
      const queue = await bed.queue({ lease_timeout: '1m', expire_timeout: '1h', dead_queue })
      const [held] = await bed.import(queue, [{ source_id: 's', payload: base64('old') }])
      const id = held?.id ?? ''
      if (end === 'complete') await bed.complete(queue, idsOf((await bed.lease(queue)).items))
      if (end === 'delete') await bed.ok('/v1/storage/items.delete', { queue_name: queue, ids: [id] })
      if (end === 'clear') await bed.ok('/v1/queue.clear', { queue_name: queue, queue: true })
      if (end === 'expiry') await bed.clock.advance(hours(1) + us(1))
      if (end === 'move') {
        await bed.lease(queue)
        await bed.retry(queue, [{ id, dead: true }])
      }
      await bed.import(queue, [{ source_id: 's', payload: base64('new') }])
      expect(textsOf(await bed.items(queue))).toEqual(['new'])
    })
  })

  it('changes nothing when it fails', async () => {
    const queue = await bed.queue()
    await bed.place.refuseWrites()
    try {
      const body = { queue_name: queue, items: [{}, {}] }
      await bed.refuses('/v1/storage/items.import', body, 'Internal Error', 500)
    } finally {
      await bed.place.acceptWrites()
    }
    expect(await bed.items(queue)).toEqual([])
    expect(await bed.import(queue, [{}])).toHaveLength(1)
  })
})

promises('items.delete', (bed) => {
  it('deletes queued, leased and scheduled items and ignores unknown ids', async () => {
    const queue = await bed.queue()
    await bed.produceItems(queue, [
      { utf8: 'leased' },
      { utf8: 'queued' },
      { utf8: 'scheduled', enqueue_at: bed.clock.at(hours(1)) },
      { utf8: 'stays' },
    ])
    await bed.lease(queue)
    const [leased = '', queued = ''] = idsOf(await bed.items(queue))
    const { id: scheduled } = only(await bed.scheduled(queue))
    const ids = [leased, LAST_ID, queued, scheduled, queued]
    await bed.ok('/v1/storage/items.delete', { queue_name: queue, ids })
    expect(textsOf(await bed.items(queue))).toEqual(['stays'])
    expect(only((await bed.stats(queue)).partitions)).toMatchObject({
      total: 1,
      total_leased: 0,
      scheduled: 0,
    })
  })

  it('checks the form of all ids first and deletes nothing when one is wrong', async () => {
    const queue = await bed.queue()
    await bed.produce(queue, 'a')
    const [id = ''] = idsOf(await bed.items(queue))
    await bed.refusesWith(
      '/v1/storage/items.delete',
      { queue_name: queue, ids: [id, 'wrong'] },
      "invalid storage id; 'wrong': Valid encoded KSUIDs are 27 characters",
    )
    expect(await bed.items(queue)).toHaveLength(1)
  })

  it('stays within the named partition', async () => {
    const queue = await bed.queue({ requested_partitions: 2 })
    await bed.produce(queue, 'zero')
    const ids = idsOf(await bed.items(queue, 0))
    await bed.ok('/v1/storage/items.delete', { queue_name: queue, partition: 1, ids })
    expect(await bed.items(queue, 0)).toHaveLength(1)
  })

  it('is about one queue only', async () => {
    const queue = await bed.queue()
    const other = await bed.queue({ queue_name: unique() })
    await bed.produce(queue, 'a')
    await bed.ok('/v1/storage/items.delete', { queue_name: other, ids: idsOf(await bed.items(queue)) })
    expect(await bed.items(queue)).toHaveLength(1)
  })
})

promises(
  'a large call',
  (bed) => {
    it('imports 10,000 items in one request, and they can be listed and leased', async () => {
      const queue = await bed.queue()
      const expire_deadline = bed.clock.at(hours(1))
      const items = Array.from({ length: 10_000 }, (_, index) => ({
        source_id: `${index}`,
        payload: base64(`payload ${index}`),
        expire_deadline,
      }))
      expect(await bed.import(queue, items)).toHaveLength(10_000)
      expect(await bed.items(queue, 0, { limit: 20_000 })).toHaveLength(10_000)
      expect((await bed.lease(queue, 1000)).items).toHaveLength(1000)
    })

    it('deletes thousands of items', async () => {
      const queue = await bed.queue()
      await bed.import(
        queue,
        numbered(5000).map(() => ({})),
      )
      const ids = idsOf(await bed.items(queue, 0, { limit: 5000 }))
      await bed.ok('/v1/storage/items.delete', { queue_name: queue, ids })
      expect(await bed.items(queue)).toEqual([])
    })
  },
  { codecs: [protobufCodec] },
)
