/** Contract 10.10 and 9.3: a write that fails is never answered 200, and changes nothing. */
import { describe, expect, it } from 'vitest'
import { minutes, ms } from '../../world/time.ts'
import { jsonCodec } from '../../world/wire.ts'
import { idsOf, only, promises, textsOf, unique } from './bed.ts'

const AGAIN = 'internal error, try your request again'

promises(
  'a store that refuses writes',
  (bed) => {
    /** Runs `body` while no write succeeds. */
    async function refusing(body: () => Promise<void>): Promise<void> {
      await bed.place.refuseWrites()
      try {
        await body()
      } finally {
        await bed.place.acceptWrites()
      }
    }

    it('makes a lease fail with 454, and nothing is leased', async () => {
      const queue = await bed.queue()
      await bed.produce(queue, 'a')
      await refusing(() =>
        bed.refuses(
          '/v1/queue.lease',
          { queue_name: queue, batch_size: 1, client_id: unique('client'), request_timeout: '1m' },
          AGAIN,
          454,
        ),
      )
      expect(only(await bed.items(queue))).not.toHaveProperty('is_leased')
      expect(only((await bed.lease(queue)).items).attempts).toBe(1)
    })

    it('makes a complete fail with 454, and the item stays leased', async () => {
      const queue = await bed.queue()
      await bed.produce(queue, 'a')
      const ids = idsOf((await bed.lease(queue)).items)
      await refusing(() =>
        bed.refuses('/v1/queue.complete', { queue_name: queue, request_timeout: '1m', ids }, AGAIN, 454),
      )
      expect(only(await bed.items(queue))).toMatchObject({ id: ids[0], is_leased: true })
      await bed.complete(queue, ids)
    })

    it('makes a retry fail with 454, and the item stays leased', async () => {
      const queue = await bed.queue()
      await bed.produce(queue, 'a')
      const { id } = only((await bed.lease(queue)).items)
      await refusing(() => bed.refuses('/v1/queue.retry', { queue_name: queue, items: [{ id }] }, AGAIN, 454))
      expect(only(await bed.items(queue))).toMatchObject({ id, is_leased: true })
      await bed.retry(queue, [{ id }])
    })

    it('makes the other writing calls fail with 500 and no word of the cause', async () => {
      const queue_name = await bed.queue()
      await bed.produce(queue_name, 'a')
      const ids = idsOf(await bed.items(queue_name))
      const settings = { lease_timeout: '1m', expire_timeout: '1h', requested_partitions: 1 }
      await refusing(async () => {
        const internal = 'Internal Error'
        await bed.refuses('/v1/queues.create', { ...settings, queue_name: unique() }, internal, 500)
        await bed.refuses('/v1/queues.update', { queue_name, reference: 'r' }, internal, 500)
        await bed.refuses('/v1/queues.delete', { queue_name }, internal, 500)
        await bed.refuses('/v1/queue.clear', { queue_name, queue: true }, internal, 500)
        await bed.refuses('/v1/storage/items.delete', { queue_name, ids }, internal, 500)
        await bed.refuses('/v1/storage/items.import', { queue_name, items: [{}] }, internal, 500)
      })
      expect(textsOf(await bed.items(queue_name))).toEqual(['a'])
      expect(await bed.info(queue_name)).not.toHaveProperty('reference')
    })

    it('leaves reading calls working', async () => {
      const queue = await bed.queue()
      await bed.produce(queue, 'a')
      await refusing(async () => {
        expect(await bed.items(queue)).toHaveLength(1)
        expect(await bed.info(queue)).toMatchObject({ queue_name: queue })
        expect(only((await bed.stats(queue)).partitions).total).toBe(1)
      })
    })

    describe('while leases end', () => {
      it('keeps the items, which come back once it accepts writes', async () => {
        const queue = await bed.queue({ lease_timeout: '1m' })
        await bed.produce(queue, 'a')
        const { id } = only((await bed.lease(queue)).items)
        await refusing(async () => {
          // The advance may succeed or fail; what counts is that nothing is lost.
          await bed.wire.control('/v1/test.clock', { advance: '2m' })
          expect(idsOf(await bed.items(queue))).toEqual([id])
        })
        await bed.ok('/v1/queue.reload', { queue_name: queue })
        await expect.poll(async () => (await bed.items(queue))[0]?.is_leased ?? false).toBe(false)
        expect(textsOf((await bed.lease(queue)).items)).toEqual(['a'])
      })
    })

    it('is healthy again by itself', async () => {
      const queue = await bed.queue()
      await refusing(() =>
        bed.refuses(
          '/v1/queue.produce',
          { queue_name: queue, request_timeout: '1m', items: [{}] },
          AGAIN,
          454,
        ),
      )
      await bed.produce(queue, 'a')
      await bed.clock.freeze(bed.clock.now + minutes(3) + ms(1))
      expect(only((await bed.stats(queue)).partitions)).toMatchObject({ total: 1, failures: 0 })
    })
  },
  { codecs: [jsonCodec] },
)
