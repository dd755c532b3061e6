/** `GET /api/counts`: how many letters there are of each kind, exactly, at every moment. */
import { expect, it } from 'vitest'
import { hours, us } from '../../world/time.ts'
import { type Desk, offices, only, unique } from './bed.ts'

/** The number of letters that the counts have for some of their keys. */
async function counted(desk: Desk, wanted: Record<string, unknown>): Promise<number> {
  const { items } = await desk.counts()
  return items
    .filter((item) => Object.entries(wanted).every(([name, value]) => item[name] === value))
    .reduce((sum, item) => sum + Number(item.count), 0)
}

offices('counts', (desk) => {
  it('have an entry per source, engine, queue, signature and status', async () => {
    const originalQueue = unique('queue')
    const letter = await desk.capture({ engine: 'ledger', originalQueue })
    const { items } = await desk.counts()
    expect(only(items.filter((item) => item.originalQueue === originalQueue))).toMatchObject({
      source: letter.source,
      engine: 'ledger',
      originalQueue,
      signature: letter.signature,
      status: 'Pending',
      count: 1,
    })
  })

  it('follow every transition at once', async () => {
    const queue = await desk.queues.queue()
    const of = (status: string) => counted(desk, { originalQueue: queue, status })
    const all = async () => [await of('Pending'), await of('Resolved'), await of('Expired')]
    expect(await all()).toEqual([0, 0, 0])
    const letter = await desk.capture({ originalQueue: queue })
    await desk.capture({ originalQueue: queue })
    expect(await all()).toEqual([2, 0, 0])
    await desk.patch(letter, 'Resolved', 'x')
    expect(await all()).toEqual([1, 1, 0])
    await desk.patch(letter, 'Pending')
    await desk.patch(letter, 'Expired')
    expect(await all()).toEqual([1, 0, 1])
    await desk.patch(letter, 'Pending')
    await desk.retry(letter)
    expect(await all()).toEqual([1, 1, 0])
    const { id } = only((await desk.queues.lease(queue)).items)
    await desk.queues.retry(queue, [{ id, dead: true }])
    expect(await all()).toEqual([2, 0, 0])
    await desk.retry(letter)
    await desk.queues.complete(queue, [only((await desk.queues.lease(queue)).items).id])
    expect(await all()).toEqual([1, 1, 0])
  })

  it('do not count what was not captured: refusals, repeats, dry runs', async () => {
    const originalQueue = unique('queue')
    const body = {
      engine: 'hmac',
      originalMessage: 'x',
      errorMessage: 'e',
      sourceId: unique('s'),
      originalQueue,
    }
    await desk.ok('POST', '/api/dlq', { body }, 201)
    await desk.ok('POST', '/api/dlq', { body })
    await desk.refuses(
      'POST',
      '/api/dlq',
      { body: { ...body, dequeueCount: -1, sourceId: unique('s') } },
      400,
    )
    expect(await counted(desk, { originalQueue })).toBe(1)
  })

  it('agree with the dead queue', async () => {
    const { queue, dead } = await desk.pair({ expire_timeout: '1h' })
    await desk.queues.produce(queue, ...Array.from({ length: 50 }, (_, n) => String(n)))
    await desk.clock.advance(hours(1) + us(1))
    const pending = () => counted(desk, { originalQueue: queue, status: 'Pending' })
    const inQueue = async () => only((await desk.queues.stats(dead)).partitions).total
    expect([await pending(), await inQueue()]).toEqual([50, 50])
    const { items } = await desk.queues.lease(dead, 20)
    await desk.queues.complete(
      dead,
      items.slice(0, 15).map(({ id }) => id),
    )
    expect([await pending(), await inQueue()]).toEqual([35, 35])
    for (const letter of (await desk.list({ originalQueue: queue, status: 'Pending', limit: 5 })).items) {
      await desk.api('PATCH', `/api/dlq/queues/${letter.rowKey}`, {
        body: { status: 'Resolved', resolutionNotes: 'x' },
      })
    }
    expect(await pending()).toBe(await inQueue())
    await desk.queues.ok('/v1/queue.clear', { queue_name: dead, queue: true, destructive: true })
    expect([await pending(), await inQueue()]).toEqual([0, 0])
    expect(await counted(desk, { originalQueue: queue, status: 'Resolved' })).toBe(50)
  })
})
