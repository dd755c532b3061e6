/** Contract 7.4 and 2.5: the long poll. */
import { describe, expect, it } from 'vitest'
import { hours, minutes, ms, seconds, us, ZERO_TIME } from '../../world/time.ts'
import { idsOf, only, promises, textsOf, unique, until } from './bed.ts'

const TIMED_OUT = {
  code: 454,
  code_text: 'Retry Request',
  message: 'request timeout; no items are in the queue, try again',
}

promises('lease', (bed) => {
  it('hands out the oldest items in ascending order of id', async () => {
    const queue = await bed.queue()
    await bed.produce(queue, 'a', 'b', 'c', 'd')
    const stored = await bed.items(queue)
    const first = await bed.lease(queue, 2)
    expect(textsOf(first.items)).toEqual(['a', 'b'])
    expect(idsOf(first.items)).toEqual(idsOf(stored).slice(0, 2))
    expect(textsOf((await bed.lease(queue, 2)).items)).toEqual(['c', 'd'])
  })

  it('marks each item as leased, with a deadline and one attempt more', async () => {
    const queue = await bed.queue({ lease_timeout: '90s' })
    await bed.produce(queue, 'a')
    const leased = only((await bed.lease(queue)).items)
    expect(leased).toMatchObject({ attempts: 1, lease_deadline: bed.clock.at(seconds(90)) })
    expect(only(await bed.items(queue))).toMatchObject({
      id: leased.id,
      is_leased: true,
      attempts: 1,
      lease_deadline: leased.lease_deadline,
    })
  })

  it('does not hand out what is leased', async () => {
    const queue = await bed.queue()
    await bed.produce(queue, 'a')
    await bed.lease(queue)
    await bed.nothingToLease(queue)
  })

  it('answers with what there is and does not wait for a full batch', async () => {
    const queue = await bed.queue()
    await bed.produce(queue, 'a', 'b')
    expect(textsOf((await bed.lease(queue, 1000)).items)).toEqual(['a', 'b'])
  })

  it('counts every delivery', async () => {
    const queue = await bed.queue()
    await bed.produce(queue, 'a')
    for (const attempts of [1, 2, 3]) {
      const item = only((await bed.lease(queue)).items)
      expect(item.attempts).toBe(attempts)
      await bed.retry(queue, [{ id: item.id }])
    }
  })

  it('does not hand out items past their expire deadline', async () => {
    const queue = await bed.queue({ lease_timeout: '1s', expire_timeout: '10s' })
    await bed.produce(queue, 'old')
    await bed.pause(queue)
    await bed.clock.advance(seconds(10) + us(1))
    const lease = bed.startLease(queue)
    await bed.untilWaiting(queue, 1)
    await bed.unpause(queue)
    await bed.produce(queue, 'new')
    const { body } = await lease.answer
    expect(body).toMatchObject({ items: [{ bytes: Buffer.from('new').toString('base64') }] })
  })

  it('is woken by produce', async () => {
    const queue = await bed.queue()
    const [lease] = await bed.startLeases(queue, 1)
    await bed.produce(queue, 'a')
    expect(await lease?.answer).toMatchObject({ status: 200, body: { queue_name: queue } })
  })

  describe('that finds nothing', () => {
    it('waits, and is answered 454 when its time is over', async () => {
      const queue = await bed.queue()
      const lease = bed.startLease(queue, 1, { request_timeout: '30s' })
      await bed.untilWaiting(queue, 1)
      await bed.clock.advance(seconds(30) - ms(1))
      expect((await bed.stats(queue)).lease_waiting).toBe(1)
      await bed.clock.advance(ms(2))
      expect(await lease.answer).toEqual({ status: 454, body: TIMED_OUT })
      expect((await bed.stats(queue)).lease_waiting).toBe(0)
    })

    it('times out each lease by its own time', async () => {
      const queue = await bed.queue()
      const long = bed.startLease(queue, 1, { request_timeout: '15m' })
      await bed.untilWaiting(queue, 1)
      const short = bed.startLease(queue, 1, { request_timeout: '11ms' })
      await bed.untilWaiting(queue, 2)
      await bed.clock.advance(ms(12))
      expect((await short.answer).status).toBe(454)
      expect((await bed.stats(queue)).lease_waiting).toBe(1)
      await bed.clock.advance(minutes(15))
      expect((await long.answer).status).toBe(454)
    })
  })

  describe('a client id', () => {
    const DUPLICATE = 'duplicate client id; a client cannot make multiple leased requests to the same queue'

    it('may wait only once per queue; the first is not disturbed', async () => {
      const queue = await bed.queue()
      const request = { client_id: unique('client'), request_timeout: '1m' }
      const first = bed.startLease(queue, 1, request)
      await bed.untilWaiting(queue, 1)
      await bed.refuses('/v1/queue.lease', { queue_name: queue, batch_size: 1, ...request }, DUPLICATE)
      expect((await bed.stats(queue)).lease_waiting).toBe(1)
      await bed.produce(queue, 'a')
      expect((await first.answer).status).toBe(200)
    })

    it('is refused at once on a paused queue too', async () => {
      const queue = await bed.queue()
      const request = { client_id: unique('client'), request_timeout: '1m' }
      await bed.produce(queue, 'a')
      await bed.pause(queue)
      const first = bed.startLease(queue, 1, request)
      await bed.untilWaiting(queue, 1)
      await bed.refuses('/v1/queue.lease', { queue_name: queue, batch_size: 1, ...request }, DUPLICATE)
      await bed.unpause(queue)
      expect((await first.answer).status).toBe(200)
    })

    it('may be used again once its lease is answered', async () => {
      const queue = await bed.queue()
      await bed.produce(queue, 'a', 'b')
      const client_id = unique('client')
      await bed.lease(queue, 1, { client_id })
      expect(textsOf((await bed.lease(queue, 1, { client_id })).items)).toEqual(['b'])
      const waiting = bed.startLease(queue, 1, { client_id, request_timeout: '1s' })
      await bed.untilWaiting(queue, 1)
      await bed.clock.advance(seconds(1) + ms(1))
      expect((await waiting.answer).status).toBe(454)
      await bed.produce(queue, 'c')
      expect(textsOf((await bed.lease(queue, 1, { client_id })).items)).toEqual(['c'])
    })

    it('may wait on several queues at the same time', async () => {
      const client_id = unique('client')
      const queues = [await bed.queue(), await bed.queue()]
      const leases = queues.map((queue) => bed.startLease(queue, 1, { client_id }))
      for (const queue of queues) await bed.untilWaiting(queue, 1)
      for (const queue of queues) await bed.produce(queue, 'x')
      for (const lease of leases) expect((await lease.answer).status).toBe(200)
    })

    it('does not own the lease: anyone who knows the id may complete', async () => {
      const queue = await bed.queue()
      await bed.produce(queue, 'a')
      const { items } = await bed.lease(queue, 1, { client_id: unique('client') })
      await bed.complete(queue, idsOf(items))
      expect(await bed.items(queue)).toEqual([])
    })
  })

  describe('whose connection closes', () => {
    it('receives nothing and frees its client id', async () => {
      const queue = await bed.queue()
      const client_id = unique('client')
      const gone = bed.startLease(queue, 5, { client_id })
      await bed.untilWaiting(queue, 1)
      gone.abort()
      await bed.untilWaiting(queue, 0)
      await bed.produce(queue, 'a')
      expect(only((await bed.stats(queue)).partitions)).toMatchObject({ total: 1, total_leased: 0 })
      expect(textsOf((await bed.lease(queue, 5, { client_id })).items)).toEqual(['a'])
    })

    it('leaves the other waiting leases in their order', async () => {
      const queue = await bed.queue()
      const [first, second, third] = await bed.startLeases(queue, 1, 1, 1)
      second?.abort()
      await bed.untilWaiting(queue, 2)
      await bed.produce(queue, 'a', 'b')
      expect(await first?.answer).toMatchObject({ status: 200 })
      expect(await third?.answer).toMatchObject({ status: 200 })
      expect(only((await bed.stats(queue)).partitions).total_leased).toBe(2)
    })

    it('is dropped while the queue is paused', async () => {
      const queue = await bed.queue()
      await bed.produce(queue, 'a')
      await bed.pause(queue)
      const gone = bed.startLease(queue)
      await bed.untilWaiting(queue, 1)
      gone.abort()
      await bed.untilWaiting(queue, 0)
      await bed.unpause(queue)
      expect(only(await bed.items(queue))).not.toHaveProperty('is_leased')
    })
  })

  it('lets hundreds of clients wait without counting them as overload', async () => {
    const queue = await bed.queue()
    const leases = Array.from({ length: 300 }, () => bed.startLease(queue))
    await bed.untilWaiting(queue, 300)
    await bed.produce(queue, ...Array.from({ length: 300 }, (_, index) => String(index)))
    const answers = await Promise.all(leases.map((lease) => lease.answer))
    expect(answers.filter((answer) => answer.status === 200)).toHaveLength(300)
    const ids = answers.flatMap((answer) => (answer.body.items as { id: string }[]).map((item) => item.id))
    expect(new Set(ids).size).toBe(300)
  })

  it('hands out each item once when many clients ask at the same time', async () => {
    const queue = await bed.queue()
    await bed.produce(queue, ...Array.from({ length: 100 }, (_, index) => String(index)))
    const replies = await Promise.all(Array.from({ length: 40 }, () => bed.lease(queue, 2)))
    const ids = replies.flatMap((reply) => idsOf(reply.items))
    expect(new Set(ids).size).toBe(ids.length)
    await until(async () => {
      expect(only((await bed.stats(queue)).partitions).total_leased).toBe(ids.length)
    })
  })

  it('hands out the last lease of a queue with a long lease timeout', async () => {
    const queue = await bed.queue({ lease_timeout: '2000h', expire_timeout: '9000h' })
    await bed.produce(queue, 'a')
    expect(only((await bed.lease(queue)).items).lease_deadline).toBe(bed.clock.at(hours(2000)))
    // A timer of more than 24.8 days fires at once when it is set naively; the lease would end.
    await bed.clock.advance(hours(1999))
    expect(only(await bed.items(queue))).toMatchObject({ is_leased: true })
    await bed.clock.advance(hours(1) + ms(11))
    expect(only(await bed.items(queue))).toMatchObject({ lease_deadline: ZERO_TIME })
  })
})
