/** Contract 7.5: complete. */
import { describe, expect, it } from 'vitest'
import { hours, minutes, ms } from '../../world/time.ts'
import { idsOf, only, promises, textsOf } from './bed.ts'

const UNKNOWN = '2AAAAAAAAAAAAAAAAAAAAAAAAAA'

promises('complete', (bed) => {
  const request = (queue_name: string, ids: string[]) => ({ queue_name, request_timeout: '1m', ids })

  it('removes leased items', async () => {
    const queue = await bed.queue()
    await bed.produce(queue, 'a', 'b', 'c')
    const { items } = await bed.lease(queue, 2)
    await bed.complete(queue, idsOf(items))
    expect(textsOf(await bed.items(queue))).toEqual(['c'])
    expect(only((await bed.stats(queue)).partitions)).toMatchObject({ total: 1, total_leased: 0 })
  })

  it('takes the ids in any order, and 1000 of them', async () => {
    const queue = await bed.queue()
    await bed.produce(queue, ...Array.from({ length: 1000 }, (_, index) => String(index)))
    const { items } = await bed.lease(queue, 1000)
    await bed.complete(queue, idsOf(items).reverse())
    expect(await bed.items(queue)).toEqual([])
  })

  it('works after the deadline as long as the item is still marked as leased', async () => {
    const queue = await bed.queue({ lease_timeout: '1m' })
    await bed.produce(queue, 'a')
    const { items } = await bed.lease(queue)
    await bed.clock.advance(minutes(1) + ms(1))
    await bed.complete(queue, idsOf(items))
    expect(await bed.items(queue)).toEqual([])
  })

  it('works past the expire deadline of an item whose lease is valid', async () => {
    const queue = await bed.queue({ lease_timeout: '1m', expire_timeout: '1m' })
    await bed.produce(queue, 'a')
    await bed.clock.advance(ms(59_000))
    const { items } = await bed.lease(queue)
    await bed.clock.advance(ms(30_000))
    await bed.complete(queue, idsOf(items))
    expect(await bed.items(queue)).toEqual([])
  })

  describe('is refused', () => {
    it('for a second complete of the same id', async () => {
      const queue = await bed.queue()
      await bed.produce(queue, 'a')
      const ids = idsOf((await bed.lease(queue)).items)
      await bed.complete(queue, ids)
      await bed.refusesWith(
        '/v1/queue.complete',
        request(queue, ids),
        `invalid storage id; '${ids[0]}' does not exist`,
      )
    })

    it('for the same id twice in one request, and nothing is changed', async () => {
      const queue = await bed.queue()
      await bed.produce(queue, 'a')
      const id = only((await bed.lease(queue)).items).id
      await bed.refusesWith(
        '/v1/queue.complete',
        request(queue, [id, id]),
        `invalid storage id; '${id}' does not exist`,
      )
      expect(only(await bed.items(queue))).toMatchObject({ id, is_leased: true })
    })

    it('for a scheduled item: it does not exist', async () => {
      const queue = await bed.queue()
      await bed.produceItems(queue, [{ enqueue_at: bed.clock.at(hours(1)) }])
      const { id } = only(await bed.scheduled(queue))
      await bed.refusesWith(
        '/v1/queue.complete',
        request(queue, [id]),
        `invalid storage id; '${id}' does not exist`,
      )
    })

    it('for an item that is not leased', async () => {
      const queue = await bed.queue()
      await bed.produce(queue, 'a')
      const { id } = only(await bed.items(queue))
      await bed.refusesWith(
        '/v1/queue.complete',
        request(queue, [id]),
        `item(s) cannot be completed; '${id}' is not marked as leased`,
      )
    })

    it.each(['malformed', 'unknown', 'not leased'])('as a whole when one id is %s', async (flaw) => {
      const queue = await bed.queue()
      await bed.produce(queue, 'a', 'b', 'c')
      const leased = idsOf((await bed.lease(queue, 2)).items)
      const idle = (await bed.items(queue))[2]?.id ?? ''
      const wrong = { malformed: 'x', unknown: UNKNOWN, 'not leased': idle }[flaw] ?? ''
      const ids = [leased[0] ?? '', wrong, leased[1] ?? '']
      const { body } = await bed.call('/v1/queue.complete', request(queue, ids))
      expect(body).toMatchObject({ code: 400, message: expect.stringContaining(`'${wrong}'`) })
      expect(idsOf(await bed.items(queue))).toEqual([...leased, idle])
      await bed.complete(queue, leased)
    })

    it('with the first failure in the order of the request', async () => {
      const queue = await bed.queue()
      await bed.produce(queue, 'a')
      const { id } = only(await bed.items(queue))
      const notLeased = `item(s) cannot be completed; '${id}' is not marked as leased`
      const unknown = `invalid storage id; '${UNKNOWN}' does not exist`
      await bed.refusesWith('/v1/queue.complete', request(queue, [id, UNKNOWN]), notLeased)
      await bed.refusesWith('/v1/queue.complete', request(queue, [UNKNOWN, id]), unknown)
    })
  })

  it('belongs to one queue: the id of another does not exist', async () => {
    const one = await bed.queue()
    const two = await bed.queue()
    await bed.produce(one, 'a')
    const ids = idsOf((await bed.lease(one)).items)
    await bed.refusesWith(
      '/v1/queue.complete',
      request(two, ids),
      `invalid storage id; '${ids[0]}' does not exist`,
    )
    expect(await bed.items(one)).toHaveLength(1)
  })

  it('frees the source id for a new import', async () => {
    const queue = await bed.queue()
    await bed.import(queue, [{ source_id: 'once' }])
    await bed.complete(queue, idsOf((await bed.lease(queue)).items))
    await bed.import(queue, [{ source_id: 'once' }])
    expect(await bed.items(queue)).toHaveLength(1)
  })

  it('of one item leaves concurrent completes of others alone', async () => {
    const queue = await bed.queue()
    await bed.produce(queue, ...Array.from({ length: 20 }, (_, index) => String(index)))
    const ids = idsOf((await bed.lease(queue, 20)).items)
    const wrong = Array.from({ length: 5 }, () => bed.call('/v1/queue.complete', request(queue, [UNKNOWN])))
    await Promise.all(ids.map((id) => bed.complete(queue, [id])))
    for (const answer of await Promise.all(wrong)) expect(answer.status).toBe(400)
    expect(await bed.items(queue)).toEqual([])
  })

  it('of the same item by two callers at once succeeds for exactly one', async () => {
    const queue = await bed.queue()
    await bed.produce(queue, 'a')
    const ids = idsOf((await bed.lease(queue)).items)
    const answers = await Promise.all(
      [1, 2, 3].map(() => bed.call('/v1/queue.complete', request(queue, ids))),
    )
    expect(answers.map((answer) => answer.status).sort()).toEqual([200, 400, 400])
  })
})
