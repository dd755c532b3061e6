/** Dead queues hold letters: what queue clients do to them and what the office does to them is one story. */
import { describe, expect, it } from 'vitest'
import { hours, minutes, ms, us } from '../../world/time.ts'
import { base64, type Desk, idsOf, type Listed, micros, offices, only, unique } from './bed.ts'

interface NewPosition {
  readonly queue: string
  readonly dead: string
  readonly letter: Listed
}

/** A letter that lies in its dead queue. */
async function position(desk: Desk, text = 'x'): Promise<NewPosition> {
  const { queue, dead } = await desk.pair()
  return { queue, dead, letter: await desk.death(queue, text) }
}

const total = async (desk: Desk, queue: string) => only((await desk.queues.stats(queue)).partitions).total

const DEATHS: [name: string, die: (desk: Desk, queue: string) => Promise<string>, attempts: number][] = [
  [
    'max_attempts, when its lease ends',
    async (desk, queue) => {
      const { dead_queue = '' } = await desk.queues.info(queue)
      await desk.queues.ok('/v1/queues.update', { queue_name: queue, dead_queue, max_attempts: 2 })
      await desk.queues.retry(queue, [{ id: only((await desk.queues.lease(queue)).items).id }])
      const { id } = only((await desk.queues.lease(queue)).items)
      await desk.clock.advance(minutes(1) + ms(11))
      return id
    },
    2,
  ],
  [
    'max_attempts, when it is retried',
    async (desk, queue) => {
      const { dead_queue = '' } = await desk.queues.info(queue)
      await desk.queues.ok('/v1/queues.update', { queue_name: queue, dead_queue, max_attempts: 1 })
      const { id } = only((await desk.queues.lease(queue)).items)
      await desk.queues.retry(queue, [{ id }])
      return id
    },
    1,
  ],
  [
    'retry with dead',
    async (desk, queue) => {
      const { id } = only((await desk.queues.lease(queue)).items)
      await desk.queues.retry(queue, [{ id, dead: true }])
      return id
    },
    1,
  ],
  [
    'expiry',
    async (desk, queue) => {
      const { id } = only(await desk.queues.items(queue))
      await desk.clock.advance(hours(24) + us(1))
      return id
    },
    0,
  ],
]

offices('an item that dies', (desk) => {
  it.each(DEATHS)('by %s is a letter of engine queues', async (_, die, attempts) => {
    const { queue, dead } = await desk.pair()
    await desk.queues.produce(queue, 'content')
    const id = await die(desk, queue)
    const letter = only(await desk.walk({ originalQueue: queue }))
    expect(letter).toMatchObject({
      engine: 'queues',
      source: 'queues',
      originalQueue: queue,
      status: 'Pending',
      dequeueCount: attempts,
      lastFailureAtUtc: micros(desk.clock.now),
      errorMessage: expect.stringMatching(/./),
    })
    expect(letter.rowKey.startsWith(`${id}-`)).toBe(true)
    expect((await desk.letter(letter)).originalMessage).toBe('content')
    expect(only(await desk.queues.items(dead)).source_id).toBe(id)
    expect(await desk.acts(letter)).toEqual(['capture'])
  })

  it('with a thousand others: a thousand letters, each once', async () => {
    const { queue, dead } = await desk.pair({ expire_timeout: '2h' })
    await desk.queues.produce(queue, ...Array.from({ length: 1000 }, (_, n) => String(n)))
    await desk.clock.advance(hours(2) + us(1))
    const letters = await desk.walk({ originalQueue: queue, limit: 100 })
    expect(new Set(letters.map(({ rowKey }) => rowKey)).size).toBe(1000)
    expect(await total(desk, dead)).toBe(1000)
  })

  it('is no letter when it was produced into a dead queue directly', async () => {
    const { dead } = await desk.pair()
    await desk.queues.produce(dead, 'ordinary')
    await desk.queues.complete(dead, idsOf((await desk.queues.lease(dead)).items))
    expect(await desk.walk({ originalQueue: dead })).toEqual([])
  })
})

offices('a letter in its dead queue', (desk) => {
  it('is resolved by who leases and completes it there', async () => {
    const { dead, letter } = await position(desk)
    const client_id = unique('consumer')
    const { id } = only((await desk.queues.lease(dead, 1, { client_id })).items)
    expect((await desk.letter(letter)).status).toBe('Pending')
    await desk.queues.complete(dead, [id])
    expect(await desk.letter(letter)).toMatchObject({
      status: 'Resolved',
      resolvedBy: client_id,
      resolvedAtUtc: micros(desk.clock.now),
    })
    expect(await desk.acts(letter)).toEqual(['capture', 'complete'])
    expect(await desk.queues.items(dead)).toEqual([])
  })

  it.each(['items.delete', 'clear', 'dead', 'queues.delete'])('is resolved by %s', async (way) => {
    const { dead, letter } = await position(desk)
    const { id } = only(await desk.queues.items(dead))
    if (way === 'items.delete')
      await desk.queues.ok('/v1/storage/items.delete', { queue_name: dead, ids: [id] })
    if (way === 'clear') await desk.queues.ok('/v1/queue.clear', { queue_name: dead, queue: true })
    if (way === 'dead') {
      await desk.queues.retry(dead, [{ id: only((await desk.queues.lease(dead)).items).id, dead: true }])
    }
    if (way === 'queues.delete') await desk.queues.ok('/v1/queues.delete', { queue_name: dead, force: true })
    // The contents of a deleted queue are cleared away in the background.
    await expect.poll(async () => (await desk.letter(letter)).status).toBe('Resolved')
    const detail = await desk.letter(letter)
    expect(detail.resolvedAtUtc).toBe(micros(desk.clock.now))
    expect(detail.history).toHaveLength(2)
  })

  it('is not resolved by a lease, a retry there or the end of a lease', async () => {
    const { dead, letter } = await position(desk)
    await desk.queues.retry(dead, [{ id: only((await desk.queues.lease(dead)).items).id }])
    await desk.queues.lease(dead)
    await desk.clock.advance(minutes(1) + ms(11))
    const { id } = only((await desk.queues.lease(dead)).items)
    await desk.queues.retry(dead, [{ id, retry_at: desk.clock.at(hours(1)) }])
    await desk.clock.advance(hours(1) + us(1))
    const detail = await desk.letter(letter)
    expect(detail).toMatchObject({ status: 'Pending', dequeueCount: letter.dequeueCount })
    expect(detail.history).toHaveLength(1)
    expect(await desk.queues.items(dead)).toHaveLength(1)
  })

  it('is not cleared while it is leased, unless the clear is destructive', async () => {
    const { dead, letter } = await position(desk)
    await desk.queues.lease(dead)
    await desk.queues.ok('/v1/queue.clear', { queue_name: dead, queue: true })
    expect((await desk.letter(letter)).status).toBe('Pending')
    await desk.queues.ok('/v1/queue.clear', { queue_name: dead, queue: true, destructive: true })
    expect((await desk.letter(letter)).status).toBe('Resolved')
  })

  describe('that is acted on from the office', () => {
    it('leaves the dead queue when it is retried, and is on its own queue again', async () => {
      const { queue, dead, letter } = await position(desk, 'content')
      const { messageId } = await desk.retry(letter)
      expect(await desk.queues.items(dead)).toEqual([])
      expect(await total(desk, dead)).toBe(0)
      expect(only(await desk.queues.items(queue))).toMatchObject({
        id: messageId,
        payload: base64('content'),
      })
      expect(await total(desk, queue)).toBe(1)
    })

    it('leaves it when it is discarded, and is back when it is restored', async () => {
      const { dead, letter } = await position(desk, 'content')
      const { source_id } = only(await desk.queues.items(dead))
      await desk.patch(letter, 'Resolved', 'no')
      expect(await desk.queues.items(dead)).toEqual([])
      expect(await total(desk, dead)).toBe(0)
      await desk.queues.nothingToLease(dead)
      await desk.patch(letter, 'Pending')
      expect(only(await desk.queues.items(dead))).toMatchObject({ payload: base64('content'), source_id })
      expect(await total(desk, dead)).toBe(1)
      await desk.queues.complete(dead, [only((await desk.queues.lease(dead)).items).id])
      expect((await desk.letter(letter)).status).toBe('Resolved')
    })

    it('leaves it when it expires, and is back when it is restored', async () => {
      const { dead, letter } = await position(desk)
      await desk.patch(letter, 'Expired')
      expect(await desk.queues.items(dead)).toEqual([])
      await desk.patch(letter, 'Pending')
      expect(await desk.queues.items(dead)).toHaveLength(1)
    })

    it('leaves it when all old ones expire', async () => {
      const { dead, letter } = await position(desk)
      await desk.clock.advance(hours(49))
      await desk.ok('POST', '/api/dlq/expire', { body: { olderThanDays: 2, engine: 'queues' } })
      expect((await desk.letter(letter)).status).toBe('Expired')
      expect(await desk.queues.items(dead)).toEqual([])
      expect(await total(desk, dead)).toBe(0)
    })

    it('wakes a lease on its dead queue when it is restored', async () => {
      const { dead, letter } = await position(desk)
      await desk.patch(letter, 'Resolved', 'no')
      const waiting = desk.queues.startLease(dead)
      await desk.queues.untilWaiting(dead, 1)
      await desk.patch(letter, 'Pending')
      expect((await waiting.answer).body).toMatchObject({ items: [{ bytes: base64('x') }] })
    })

    it('can be restored when its dead queue is gone', async () => {
      const { queue, dead, letter } = await position(desk)
      await desk.patch(letter, 'Resolved', 'no')
      await desk.queues.ok('/v1/queues.delete', { queue_name: dead, force: true })
      await desk.patch(letter, 'Pending')
      expect((await desk.letter(letter)).status).toBe('Pending')
      await desk.retry(letter)
      expect(await desk.queues.items(queue)).toHaveLength(1)
    })

    it('is never in two places: an old id cannot complete what was retried', async () => {
      const { queue, dead, letter } = await position(desk)
      const { id } = only(await desk.queues.items(dead))
      await desk.retry(letter)
      const body = { queue_name: dead, request_timeout: '1m', ids: [id] }
      await desk.queues.refusesWith('/v1/queue.complete', body, 'does not exist')
      expect(await desk.queues.items(queue)).toHaveLength(1)
    })

    it('either goes or is refused while a consumer of the dead queue holds it, never both', async () => {
      const { queue, dead, letter } = await position(desk)
      const { id } = only((await desk.queues.lease(dead)).items)
      const reply = await desk.api('POST', `/api/dlq/queues/${letter.rowKey}/retry`)
      expect([200, 409]).toContain(reply.status)
      const complete = await desk.queues.call('/v1/queue.complete', {
        queue_name: dead,
        request_timeout: '1m',
        ids: [id],
      })
      expect([reply.status, complete.status]).toEqual(reply.status === 200 ? [200, 400] : [409, 200])
      expect(await desk.queues.items(queue)).toHaveLength(reply.status === 200 ? 1 : 0)
      expect((await desk.letter(letter)).status).toBe('Resolved')
    })
  })

  it('retried and completed at the same time has one outcome', async () => {
    for (let round = 0; round < 5; round++) {
      const { queue, dead, letter } = await position(desk)
      const { id } = only((await desk.queues.lease(dead)).items)
      const body = { queue_name: dead, request_timeout: '1m', ids: [id] }
      const [retried, completed] = await Promise.all([
        desk.api('POST', `/api/dlq/queues/${letter.rowKey}/retry`),
        desk.queues.call('/v1/queue.complete', body),
      ])
      const outcomes = [retried.status === 200, completed.status === 200]
      expect(outcomes.filter(Boolean)).toHaveLength(1)
      expect(await desk.queues.items(queue)).toHaveLength(retried.status === 200 ? 1 : 0)
      expect((await desk.letter(letter)).history).toHaveLength(2)
    }
  })

  it('shows everything the queue contract says of it, after any number of lives', async () => {
    const { queue, dead } = await desk.pair()
    const letter = await desk.death(queue, 'content', { kind: 'k', encoding: 'e', reference: 'r' })
    await desk.retry(letter)
    const { id } = only((await desk.queues.lease(queue)).items)
    await desk.queues.retry(queue, [{ id, dead: true }])
    expect(only(await desk.queues.items(dead))).toEqual({
      id: expect.stringMatching(/^[0-9A-Za-z]{27}$/),
      source_id: id,
      kind: 'k',
      encoding: 'e',
      reference: 'r',
      payload: base64('content'),
      lease_deadline: '0001-01-01T00:00:00Z',
      expire_deadline: '0001-01-01T00:00:00Z',
      created_at: desk.clock.at(0n),
    })
  })
})
