/** Contract 7.3: produce. */
import { describe, expect, it } from 'vitest'
import { hours, ms, us, ZERO_TIME } from '../../world/time.ts'
import { base64, idsOf, only, promises, textsOf } from './bed.ts'

promises('produce', (bed) => {
  it('stores what was sent, with the deadlines of the queue', async () => {
    const queue = await bed.queue({ expire_timeout: '2h' })
    await bed.produceItems(queue, [{ encoding: 'e', kind: 'k', reference: 'r', bytes: base64('payload') }])
    expect(await bed.items(queue)).toEqual([
      {
        id: expect.stringMatching(/^[0-9A-Za-z]{27}$/),
        lease_deadline: ZERO_TIME,
        created_at: bed.clock.at(0n),
        expire_deadline: bed.clock.at(hours(2)),
        encoding: 'e',
        kind: 'k',
        reference: 'r',
        payload: base64('payload'),
      },
    ])
  })

  it('prefers bytes over utf8', async () => {
    const queue = await bed.queue()
    await bed.produceItems(queue, [
      { bytes: base64('bytes'), utf8: 'text' },
      { bytes: '', utf8: 'text' },
      { utf8: 'grüße ✓' },
    ])
    expect(textsOf(await bed.items(queue))).toEqual(['bytes', 'text', 'grüße ✓'])
  })

  it('allows an item without any content', async () => {
    const queue = await bed.queue()
    await bed.produceItems(queue, [{}])
    expect(only((await bed.lease(queue)).items)).not.toHaveProperty('bytes')
  })

  it('keeps every byte value of a payload', async () => {
    const queue = await bed.queue()
    const bytes = Buffer.from(Uint8Array.from({ length: 256 }, (_, value) => value)).toString('base64')
    await bed.produceItems(queue, [{ bytes }])
    expect(only((await bed.lease(queue)).items).bytes).toBe(bytes)
  })

  it('gives ids that ascend in the order of the request, and from request to request', async () => {
    const queue = await bed.queue()
    const texts = Array.from({ length: 50 }, (_, index) => `item ${index}`)
    await bed.produce(queue, ...texts.slice(0, 30))
    await bed.produce(queue, ...texts.slice(30))
    const items = await bed.items(queue)
    expect(textsOf(items)).toEqual(texts)
    expect(idsOf(items)).toEqual([...idsOf(items)].sort())
    expect(new Set(idsOf(items)).size).toBe(50)
  })

  it('accepts 1000 items in one request', async () => {
    const queue = await bed.queue()
    await bed.produce(queue, ...Array.from({ length: 1000 }, (_, index) => String(index)))
    expect((await bed.stats(queue)).partitions[0]?.total).toBe(1000)
  })

  it('accepts large items', async () => {
    const queue = await bed.queue()
    const large = 'x'.repeat(1_000_000)
    await bed.produceItems(queue, [{ utf8: large, reference: 'r'.repeat(10_000), kind: 'k'.repeat(10_000) }])
    const item = only((await bed.lease(queue)).items)
    expect(item.bytes === base64(large)).toBe(true)
    expect(item.reference).toHaveLength(10_000)
  })

  describe('an enqueue_at', () => {
    it.each([
      ['in the past', 'queued', -hours(1)],
      ['now', 'queued', 0n],
      ['just less than 100 ms ahead', 'queued', ms(100) - us(1)],
      ['100 ms ahead', 'scheduled', ms(100)],
      ['an hour ahead', 'scheduled', hours(1)],
    ] as const)('%s means %s', async (_, outcome, offset) => {
      const queue = await bed.queue()
      await bed.produceItems(queue, [{ utf8: 'x', enqueue_at: bed.clock.at(offset) }])
      const { total, scheduled } = only((await bed.stats(queue)).partitions)
      expect({ total, scheduled }).toEqual(
        outcome === 'queued' ? { total: 1, scheduled: 0 } : { total: 0, scheduled: 1 },
      )
    })

    it('counts per item: one request may queue some and schedule others', async () => {
      const queue = await bed.queue()
      await bed.produceItems(queue, [
        { utf8: 'now' },
        { utf8: 'later', enqueue_at: bed.clock.at(hours(1)) },
        { utf8: 'now too' },
      ])
      expect(textsOf(await bed.items(queue))).toEqual(['now', 'now too'])
      expect(textsOf(await bed.scheduled(queue))).toEqual(['later'])
    })
  })

  it('writes all items or none', async () => {
    const queue = await bed.queue()
    await bed.place.refuseWrites()
    try {
      await bed.refuses(
        '/v1/queue.produce',
        { queue_name: queue, request_timeout: '1m', items: [{ utf8: 'a' }, { utf8: 'b' }] },
        'internal error, try your request again',
        454,
      )
    } finally {
      await bed.place.acceptWrites()
    }
    expect(await bed.items(queue)).toEqual([])
    await bed.produce(queue, 'a', 'b')
    expect(textsOf(await bed.items(queue))).toEqual(['a', 'b'])
  })

  it('serves waiting leases in the same cycle', async () => {
    const queue = await bed.queue()
    const [lease] = await bed.startLeases(queue, 5)
    await bed.produce(queue, 'a', 'b')
    expect(await lease?.answer).toMatchObject({
      status: 200,
      body: { items: [{ attempts: 1 }, { attempts: 1 }] },
    })
    expect(await bed.stats(queue)).toMatchObject({
      lease_waiting: 0,
      partitions: [{ total: 2, total_leased: 2 }],
    })
  })
})
