/**
 * A dead queue may hold letters and ordinary items side by side. To queue clients they are one list: one order, one set
 * of counts, all-or-nothing across both.
 */
import { describe, expect, it } from 'vitest'
import { hours, minutes, ms, us } from '../../world/time.ts'
import { textOf, textsOf } from '../queues/bed.ts'
import { type Desk, idsOf, offices, only, unique } from './bed.ts'

/** A dead queue with these in it, in this order: lower case is an ordinary item, upper case a letter. */
async function mixed(desk: Desk, texts: string, settings: Record<string, number> = {}) {
  const dead = await desk.queues.queue(settings)
  const queue = await desk.queues.queue({ dead_queue: dead })
  for (const text of texts) {
    if (text === text.toLowerCase()) await desk.queues.produce(dead, text)
    else await desk.death(queue, text)
  }
  return { dead, queue }
}

const statusOf = async (desk: Desk, queue: string): Promise<Record<string, string>> => {
  const letters = await desk.walk({ originalQueue: queue })
  const details = await Promise.all(letters.map((letter) => desk.letter(letter)))
  return Object.fromEntries(details.map(({ originalMessage, status }) => [originalMessage, status]))
}

offices('letters and items in one dead queue', (desk) => {
  it('are listed in one order, page by page', async () => {
    const { dead } = await mixed(desk, 'aBcDEf')
    const all = await desk.queues.items(dead)
    expect(textsOf(all).join('')).toBe('aBcDEf')
    expect(idsOf(all)).toEqual(idsOf(all).sort())
    for (const limit of [1, 2, 3, 5]) {
      const walked: string[] = []
      let pivot = ''
      for (;;) {
        // The pivot is part of the page.
        const page = await desk.queues.items(dead, 0, { pivot, limit: limit + (pivot === '' ? 0 : 1) })
        const fresh = page.filter(({ id }) => id !== pivot)
        if (fresh.length === 0) break
        walked.push(...textsOf(fresh))
        pivot = fresh.at(-1)?.id ?? ''
      }
      expect(walked.join('')).toBe('aBcDEf')
    }
  })

  it('are leased in one order, whatever the batch', async () => {
    const { dead } = await mixed(desk, 'AbCdEf')
    const leased: string[] = []
    for (const size of [1, 2, 3]) leased.push(...textsOf((await desk.queues.lease(dead, size)).items))
    expect(leased.join('')).toBe('AbCdEf')
    await desk.queues.nothingToLease(dead)
  })

  it('are shared fairly by those who wait', async () => {
    const { dead, queue } = await mixed(desk, '')
    await desk.queues.produce(queue, 'A', 'B')
    const ids = idsOf((await desk.queues.lease(queue, 2)).items)
    const waiting = await desk.queues.startLeases(dead, 5, 5)
    await desk.queues.pause(dead)
    await desk.queues.retry(
      queue,
      ids.map((id) => ({ id, dead: true })),
    )
    await desk.queues.unpause(dead)
    const answers = await Promise.all(waiting.map(({ answer }) => answer))
    expect(answers.map(({ status }) => status)).toEqual([200, 200])
    for (const { body } of answers) expect(body.items).toHaveLength(1)
  })

  it('are counted together', async () => {
    const { dead } = await mixed(desk, 'aBcD')
    await desk.queues.lease(dead, 3)
    expect(only((await desk.queues.stats(dead)).partitions)).toMatchObject({ total: 4, total_leased: 3 })
    await desk.queues.ok('/v1/queue.reload', { queue_name: dead })
    expect(only((await desk.queues.stats(dead)).partitions)).toMatchObject({ total: 4, total_leased: 3 })
  })

  it('are completed together, or not at all', async () => {
    const { dead, queue } = await mixed(desk, 'aBcD')
    const { items } = await desk.queues.lease(dead, 3)
    const notLeased = idsOf(await desk.queues.items(dead)).at(-1) ?? ''
    const body = { queue_name: dead, request_timeout: '1m', ids: [...idsOf(items), notLeased] }
    await desk.queues.refusesWith('/v1/queue.complete', body, `'${notLeased}' is not marked as leased`)
    expect(await desk.queues.items(dead)).toHaveLength(4)
    expect(await statusOf(desk, queue)).toEqual({ B: 'Pending', D: 'Pending' })
    const twice = { ...body, ids: [...idsOf(items), items[1]?.id ?? ''] }
    await desk.queues.refusesWith('/v1/queue.complete', twice, 'does not exist')
    expect(await statusOf(desk, queue)).toEqual({ B: 'Pending', D: 'Pending' })
    await desk.queues.complete(dead, idsOf(items))
    expect(textsOf(await desk.queues.items(dead)).join('')).toBe('D')
    expect(await statusOf(desk, queue)).toEqual({ B: 'Resolved', D: 'Pending' })
  })

  it('say of each bad id what they say of items, in the order of the request', async () => {
    const { dead } = await mixed(desk, 'AbC')
    const [first, second] = idsOf(await desk.queues.items(dead))
    const ask = (ids: (string | undefined)[]) => ({
      queue_name: dead,
      request_timeout: '1m',
      ids: ids.map((id) => id ?? ''),
    })
    await desk.queues.refusesWith(
      '/v1/queue.complete',
      ask([first, second]),
      `'${first}' is not marked as leased`,
    )
    await desk.queues.refusesWith(
      '/v1/queue.complete',
      ask([second, first]),
      `'${second}' is not marked as leased`,
    )
    await desk.queues.refusesWith('/v1/queue.complete', ask(['x', first]), "invalid storage id; 'x'")
  })

  it('go to the tail together when they are retried, in the order they had', async () => {
    const { dead } = await mixed(desk, 'aBcDe')
    const { items } = await desk.queues.lease(dead, 4)
    await desk.queues.retry(
      dead,
      items.map(({ id }) => ({ id })),
    )
    const listed = await desk.queues.items(dead)
    expect(textsOf(listed)[0]).toBe('e')
    expect(new Set(textsOf(listed))).toEqual(new Set('aBcDe'))
    const second = await desk.queues.lease(dead, 5)
    expect(idsOf(second.items)).toEqual(idsOf(listed))
    expect(second.items.map(({ attempts }) => attempts)).toEqual([1, 2, 2, 2, 2])
  })

  it('come back together when their leases end', async () => {
    const { dead } = await mixed(desk, 'aBcD')
    await desk.queues.lease(dead, 4)
    await desk.clock.advance(minutes(1) + ms(11))
    expect(only((await desk.queues.stats(dead)).partitions)).toMatchObject({ total: 4, total_leased: 0 })
    const { items } = await desk.queues.lease(dead, 4)
    expect(new Set(textsOf(items))).toEqual(new Set('aBcD'))
    expect(items.every(({ attempts }) => attempts === 2)).toBe(true)
  })

  it('are scheduled together and come due in the order of their times', async () => {
    const { dead } = await mixed(desk, 'aBcD')
    const { items } = await desk.queues.lease(dead, 4)
    const inMinutes = [4, 3, 2, 1]
    const retries = items.map(({ id }, n) => ({ id, retry_at: desk.clock.at(minutes(inMinutes[n] ?? 1)) }))
    await desk.queues.retry(dead, retries)
    expect(await desk.queues.items(dead)).toEqual([])
    expect(textsOf(await desk.queues.scheduled(dead)).join('')).toBe('aBcD')
    expect(only((await desk.queues.stats(dead)).partitions)).toMatchObject({ total: 0, scheduled: 4 })
    await desk.clock.advance(minutes(4) + us(1))
    expect(textsOf(await desk.queues.items(dead)).join('')).toBe('DcBa')
    expect(only((await desk.queues.stats(dead)).partitions)).toMatchObject({ total: 4, scheduled: 0 })
  })

  it('part ways at the expire deadline: the item goes, the letter stays', async () => {
    const { dead, queue } = await mixed(desk, 'aB')
    await desk.clock.advance(hours(24) + us(1))
    expect(textsOf(await desk.queues.items(dead)).join('')).toBe('B')
    expect(await statusOf(desk, queue)).toEqual({ B: 'Pending' })
  })

  describe('are removed together', () => {
    it('by items.delete, leased or scheduled or neither', async () => {
      const { dead, queue } = await mixed(desk, 'aBcDeF')
      const { items } = await desk.queues.lease(dead, 4)
      const later = items.slice(2).map(({ id }) => ({ id, retry_at: desk.clock.at(hours(1)) }))
      await desk.queues.retry(dead, later)
      const ids = [...idsOf(await desk.queues.items(dead)), ...idsOf(await desk.queues.scheduled(dead))]
      expect(ids).toHaveLength(6)
      await desk.queues.ok('/v1/storage/items.delete', { queue_name: dead, ids })
      expect(await desk.queues.items(dead)).toEqual([])
      expect(await desk.queues.scheduled(dead)).toEqual([])
      expect(await statusOf(desk, queue)).toEqual({ B: 'Resolved', D: 'Resolved', F: 'Resolved' })
    })

    it('by clear, which leaves what is leased and what is scheduled', async () => {
      const { dead, queue } = await mixed(desk, 'aBcDeF')
      const { items } = await desk.queues.lease(dead, 4)
      await desk.queues.retry(
        dead,
        items.slice(2).map(({ id }) => ({ id, retry_at: desk.clock.at(hours(1)) })),
      )
      await desk.queues.ok('/v1/queue.clear', { queue_name: dead, queue: true })
      expect(textsOf(await desk.queues.items(dead)).join('')).toBe('aB')
      expect(textsOf(await desk.queues.scheduled(dead)).join('')).toBe('cD')
      expect(await statusOf(desk, queue)).toEqual({ B: 'Pending', D: 'Pending', F: 'Resolved' })
      await desk.queues.ok('/v1/queue.clear', { queue_name: dead, scheduled: true })
      expect(await desk.queues.scheduled(dead)).toEqual([])
      expect(await statusOf(desk, queue)).toEqual({ B: 'Pending', D: 'Resolved', F: 'Resolved' })
      await desk.queues.ok('/v1/queue.clear', { queue_name: dead, queue: true, destructive: true })
      expect(await statusOf(desk, queue)).toEqual({ B: 'Resolved', D: 'Resolved', F: 'Resolved' })
      expect(only((await desk.queues.stats(dead)).partitions)).toMatchObject({ total: 0, scheduled: 0 })
    })
  })

  it('keep apart the queues that share the dead queue', async () => {
    const { dead, queue } = await mixed(desk, 'A')
    const other = await desk.queues.queue({ dead_queue: dead })
    const letter = await desk.death(other, 'B')
    expect(textsOf(await desk.queues.items(dead)).join('')).toBe('AB')
    await desk.retry(letter)
    expect(textsOf(await desk.queues.items(other)).join('')).toBe('B')
    expect(await desk.queues.items(queue)).toEqual([])
    expect(textsOf(await desk.queues.items(dead)).join('')).toBe('A')
  })

  it('fill the partitions of a dead queue evenly', async () => {
    const { dead } = await mixed(desk, 'aBcD', { requested_partitions: 2 })
    expect((await desk.queues.stats(dead)).partitions.map(({ total }) => total)).toEqual([2, 2])
    const { partition = 0, items } = await desk.queues.lease(dead, 4)
    expect(items).toHaveLength(2)
    await desk.queues.complete(dead, idsOf(items), partition)
  })

  it('tell the consumer who resolved each: the client of the lease, not of an earlier one', async () => {
    const { dead, queue } = await mixed(desk, 'AB')
    await desk.queues.lease(dead, 2, { client_id: 'first' })
    await desk.clock.advance(minutes(1) + ms(11))
    const second = unique('second')
    const { items } = await desk.queues.lease(dead, 1, { client_id: second })
    await desk.queues.complete(dead, idsOf(items))
    const resolved = only(await desk.walk({ originalQueue: queue, status: 'Resolved' }))
    expect(resolved.resolvedBy).toBe(second)
    expect((await desk.letter(resolved)).originalMessage).toBe(textOf(only(items)))
  })

  it('never give an id again: that of a letter that left is unknown', async () => {
    const { dead, queue } = await mixed(desk, 'A')
    const { id: before } = only((await desk.queues.lease(dead)).items)
    await desk.queues.retry(dead, [{ id: before }])
    const [{ rowKey } = expect.fail('there is one')] = await desk.walk({ originalQueue: queue })
    await desk.patch({ engine: 'queues', rowKey }, 'Resolved', 'x')
    await desk.patch({ engine: 'queues', rowKey }, 'Pending')
    const { id: after } = only(await desk.queues.items(dead))
    expect(after > before).toBe(true)
    const ids = [before]
    const body = { queue_name: dead, request_timeout: '1m', ids }
    await desk.queues.refusesWith('/v1/queue.complete', body, 'does not exist')
  })
})
