/** Contract 3: what became of a retried message is written on its letter: confirmed, or open again. */
import { describe, expect, it, vi } from 'vitest'
import { PATIENCE_MS } from '../../world/limits.ts'
import { hours, minutes, ms, seconds, us } from '../../world/time.ts'
import { type Desk, type Listed, micros, offices, only, unique } from './bed.ts'

/** Letters of any status, by the counts: pending, resolved and expired ones. */
async function lettersOf(desk: Desk, queue: string): Promise<Listed[]> {
  return desk.walk({ originalQueue: queue, limit: 100 })
}

offices('a retried message that completes', (desk) => {
  it('confirms its letter', async () => {
    const queue = await desk.queues.queue()
    const letter = await desk.capture({ originalQueue: queue })
    await desk.retry(letter)
    const { id } = only((await desk.queues.lease(queue)).items)
    await desk.clock.advance(seconds(7))
    await desk.queues.complete(queue, [id])
    expect(await desk.letter(letter)).toMatchObject({
      status: 'Resolved',
      confirmedAtUtc: micros(desk.clock.now),
    })
    expect(await desk.acts(letter)).toEqual(['capture', 'retry', 'confirm'])
  })

  it('confirms it however often it was tried before', async () => {
    const queue = await desk.queues.queue()
    const letter = await desk.capture({ originalQueue: queue })
    await desk.retry(letter)
    await desk.queues.retry(queue, [{ id: only((await desk.queues.lease(queue)).items).id }])
    const second = only((await desk.queues.lease(queue)).items)
    await desk.queues.retry(queue, [{ id: second.id, retry_at: desk.clock.at(minutes(5)) }])
    await desk.clock.advance(minutes(5) + us(1))
    await desk.queues.lease(queue)
    await desk.clock.advance(minutes(1) + ms(11))
    expect((await desk.letter(letter)).confirmedAtUtc ?? null).toBeNull()
    await desk.queues.complete(queue, [only((await desk.queues.lease(queue)).items).id])
    expect((await desk.letter(letter)).confirmedAtUtc).toBe(micros(desk.clock.now))
  })

  it('confirms each of many in one call', async () => {
    const { queue } = await desk.pair({ expire_timeout: '1h' })
    await desk.queues.produce(queue, ...Array.from({ length: 60 }, (_, n) => String(n)))
    await desk.clock.advance(hours(1) + us(1))
    const letters = await lettersOf(desk, queue)
    expect(letters).toHaveLength(60)
    await Promise.all(letters.map((letter) => desk.retry(letter)))
    const { items } = await desk.queues.lease(queue, 1000)
    expect(items).toHaveLength(60)
    await desk.queues.complete(
      queue,
      items.map(({ id }) => id),
    )
    const details = await Promise.all(letters.map((letter) => desk.letter(letter)))
    expect(details.every(({ confirmedAtUtc }) => typeof confirmedAtUtc === 'string')).toBe(true)
    const { items: confirmed } = await desk.history({ engine: 'queues', operation: 'confirm', limit: 100 })
    expect(confirmed).toHaveLength(60)
  })

  it('of an item that was never a letter confirms nothing', async () => {
    const queue = await desk.queues.queue()
    await desk.queues.produce(queue, 'x')
    await desk.queues.complete(queue, [only((await desk.queues.lease(queue)).items).id])
    expect(await lettersOf(desk, queue)).toEqual([])
  })
})

/** Ways in which a retried message can die again. */
const DEATHS: [name: string, die: (desk: Desk, queue: string) => Promise<void>][] = [
  [
    'a retry with dead',
    async (desk, queue) => {
      const { id } = only((await desk.queues.lease(queue)).items)
      await desk.queues.retry(queue, [{ id, dead: true }])
    },
  ],
  [
    'a retry after the last attempt',
    async (desk, queue) => {
      const { dead_queue = '' } = await desk.queues.info(queue)
      await desk.queues.ok('/v1/queues.update', { queue_name: queue, dead_queue, max_attempts: 1 })
      const { id } = only((await desk.queues.lease(queue)).items)
      await desk.queues.retry(queue, [{ id }])
    },
  ],
  [
    'a lease that ends after the last attempt',
    async (desk, queue) => {
      const { dead_queue = '' } = await desk.queues.info(queue)
      await desk.queues.ok('/v1/queues.update', { queue_name: queue, dead_queue, max_attempts: 1 })
      await desk.queues.lease(queue)
      await desk.clock.advance(minutes(1) + ms(11))
    },
  ],
  [
    'expiry',
    (desk, queue) =>
      desk.clock
        .advance(hours(24) + us(1))
        .then(() => desk.queues.stats(queue))
        .then(() => {}),
  ],
]

offices('a retried message that dies again', (desk) => {
  describe.each(DEATHS)('by %s', (name, die) => {
    it('reopens its letter; no second one is made', async () => {
      const { queue, dead } = await desk.pair()
      const letter = await desk.death(queue, 'payload')
      expect(letter.dequeueCount).toBe(1)
      await desk.clock.advance(seconds(10))
      await desk.retry(letter)
      expect(await desk.queues.items(dead)).toEqual([])
      await desk.clock.advance(seconds(10))
      await die(desk, queue)
      const again = only(await lettersOf(desk, queue))
      expect(again).toMatchObject({
        rowKey: letter.rowKey,
        status: 'Pending',
        correlationId: letter.correlationId,
        firstFailureAtUtc: letter.firstFailureAtUtc,
        lastFailureAtUtc: micros(desk.clock.now),
        resolvedAtUtc: null,
        resolvedBy: null,
      })
      // Only a lease is an attempt; what expires was not tried.
      expect(again.dequeueCount).toBe(name === 'expiry' ? 1 : 2)
      expect(await desk.acts(letter)).toEqual(['capture', 'retry', 'reopen'])
      expect(only(await desk.queues.items(dead))).toMatchObject({ payload: 'cGF5bG9hZA==' })
      expect(await desk.queues.items(queue)).toEqual([])
    })

    it('reopens a letter of an engine too, also when its queue has no dead queue', async () => {
      const queue = await desk.queues.queue({ queue_name: unique('engine-queue') })
      const letter = await desk.capture({
        engine: 'ledger',
        originalQueue: queue,
        dequeueCount: 3,
        errorMessage: 'the first error',
        errorClass: 'FirstError',
      })
      await desk.retry(letter)
      await desk.clock.advance(seconds(1))
      await die(desk, queue)
      const again = only(await lettersOf(desk, queue))
      expect(again).toMatchObject({ engine: 'ledger', rowKey: letter.rowKey, status: 'Pending' })
      expect(again.dequeueCount).toBe(name === 'expiry' ? 3 : 4)
      const { attempts, errorMessage } = await desk.letter(letter)
      expect(errorMessage).not.toBe('the first error')
      expect(attempts.map((attempt) => attempt.errorMessage)).toContain('the first error')
      expect(await desk.queues.items(queue)).toEqual([])
    })
  })

  it('reopens it again and again: every attempt is kept, the count grows', async () => {
    const { queue } = await desk.pair()
    const letter = await desk.death(queue)
    for (let round = 2; round <= 6; round++) {
      await desk.clock.advance(seconds(1))
      await desk.retry(letter)
      const { id } = only((await desk.queues.lease(queue)).items)
      await desk.queues.retry(queue, [{ id, dead: true }])
      const detail = await desk.letter(letter)
      expect(detail).toMatchObject({ status: 'Pending', dequeueCount: round })
      expect(detail.attempts.length).toBeGreaterThanOrEqual(round - 1)
    }
    expect(await lettersOf(desk, queue)).toHaveLength(1)
  })

  it('counts every attempt of the retried message', async () => {
    const { queue } = await desk.pair()
    const letter = await desk.death(queue)
    await desk.retry(letter)
    for (let n = 0; n < 3; n++) {
      await desk.queues.retry(queue, [{ id: only((await desk.queues.lease(queue)).items).id }])
    }
    const { id } = only((await desk.queues.lease(queue)).items)
    await desk.queues.retry(queue, [{ id, dead: true }])
    expect(only(await lettersOf(desk, queue)).dequeueCount).toBe(5)
  })

  it('may be completed the next time: reopened, then confirmed', async () => {
    const { queue } = await desk.pair()
    const letter = await desk.death(queue)
    await desk.retry(letter)
    await desk.queues.retry(queue, [{ id: only((await desk.queues.lease(queue)).items).id, dead: true }])
    await desk.retry(letter)
    await desk.queues.complete(queue, [only((await desk.queues.lease(queue)).items).id])
    expect(await desk.acts(letter)).toEqual(['capture', 'retry', 'reopen', 'retry', 'confirm'])
    expect((await desk.letter(letter)).status).toBe('Resolved')
  })

  it.each([
    ['clear', 'Cleared'],
    ['items.delete', 'ItemDeleted'],
    ['queues.delete', 'QueueDeleted'],
  ])('is reopened by %s, and says so', async (way, errorClass) => {
    const { queue } = await desk.pair()
    const letter = await desk.death(queue)
    const { messageId } = await desk.retry(letter)
    if (way === 'clear') await desk.queues.ok('/v1/queue.clear', { queue_name: queue, queue: true })
    if (way === 'items.delete') {
      await desk.queues.ok('/v1/storage/items.delete', { queue_name: queue, ids: [messageId] })
    }
    if (way === 'queues.delete') await desk.queues.ok('/v1/queues.delete', { queue_name: queue })
    // What lies in a queue that is deleted is removed afterwards.
    await vi.waitFor(
      async () => expect(await desk.letter(letter)).toMatchObject({ status: 'Pending', errorClass }),
      { timeout: PATIENCE_MS },
    )
    expect(await desk.acts(letter)).toEqual(['capture', 'retry', 'reopen'])
  })
})
