/** Contract 9: dead queues, and the rows of section 10 that are about them. */
import { describe, expect, it } from 'vitest'
import { hours, minutes, ms, us, ZERO_TIME } from '../../world/time.ts'
import { type Bed, base64, idsOf, only, promises, type StoredItem, textsOf, unique } from './bed.ts'

interface Pair {
  readonly queue: string
  readonly dead: string
}

/** A queue with a dead queue. */
async function pair(bed: Bed, settings: Record<string, string | number> = {}): Promise<Pair> {
  const dead = await bed.queue({ lease_timeout: '1m', expire_timeout: '1h' })
  return { dead, queue: await bed.queue({ lease_timeout: '1m', dead_queue: dead, ...settings }) }
}

/** Ways to die, and what it takes. Each resolves with the id that the item had when it died. */
const DEATHS: [name: string, die: (bed: Bed, pair: Pair) => Promise<string>][] = [
  [
    'a lease that ends after the last attempt',
    async (bed, { queue, dead }) => {
      await bed.ok('/v1/queues.update', { queue_name: queue, dead_queue: dead, max_attempts: 1 })
      const { id } = only((await bed.lease(queue)).items)
      await bed.clock.advance(minutes(1) + ms(11))
      return id
    },
  ],
  [
    'expiry',
    async (bed, { queue }) => {
      const { id } = only(await bed.items(queue))
      await bed.clock.advance(hours(24) + us(1))
      return id
    },
  ],
  [
    'a lease that ends past the expire deadline',
    async (bed, { queue }) => {
      await bed.clock.advance(hours(24) - ms(1))
      const { id } = only((await bed.lease(queue)).items)
      await bed.clock.advance(minutes(1) + ms(11))
      return id
    },
  ],
  [
    'a retry with dead',
    async (bed, { queue }) => {
      const { id } = only((await bed.lease(queue)).items)
      await bed.retry(queue, [{ id, dead: true }])
      return id
    },
  ],
  [
    'a retry after the last attempt',
    async (bed, { queue, dead }) => {
      await bed.ok('/v1/queues.update', { queue_name: queue, dead_queue: dead, max_attempts: 1 })
      const { id } = only((await bed.lease(queue)).items)
      await bed.retry(queue, [{ id, retry_at: bed.clock.at(hours(1)) }])
      return id
    },
  ],
]

const CONTENT = { encoding: 'e', kind: 'k', reference: 'r\u00e4' }

promises('9.1 the rules for dead_queue', (bed) => {
  const create = (dead_queue: string, queue_name = unique()) => ({
    queue_name,
    lease_timeout: '1m',
    expire_timeout: '1h',
    requested_partitions: 1,
    dead_queue,
  })

  it.each([
    ['d'.repeat(501), "dead queue is invalid; cannot be greater than '500' characters"],
    ['a b', "dead queue is invalid; 'a b' cannot contain whitespace"],
    ['a~b', "dead queue is invalid; 'a~b' cannot contain '~' character"],
    ['nowhere', "dead_queue does not exist; 'nowhere' was not found, create it first"],
  ])('%j is refused by create and update', async (dead_queue, text) => {
    await bed.refusesWith('/v1/queues.create', create(dead_queue), text)
    const queue_name = await bed.queue()
    await bed.refusesWith('/v1/queues.update', { queue_name, dead_queue }, text)
  })

  it('a queue cannot be its own dead queue', async () => {
    const text = 'dead_queue cannot reference itself'
    const name = unique()
    await bed.refusesWith('/v1/queues.create', create(name, name), text)
    const queue_name = await bed.queue()
    await bed.refusesWith('/v1/queues.update', { queue_name, dead_queue: queue_name }, text)
  })

  it('a dead queue cannot have a dead queue, seen from either side', async () => {
    const { queue, dead } = await pair(bed)
    const chained = `dead_queue is invalid; '${queue}' already has its own dead_queue configured; a dead_queue cannot have its own dead_queue`
    await bed.refusesWith('/v1/queues.create', create(queue), chained)
    const other = await bed.queue()
    await bed.refusesWith('/v1/queues.update', { queue_name: other, dead_queue: queue }, chained)
    const inUse = `dead_queue is invalid; '${dead}' is used as a dead_queue; a dead_queue cannot have its own dead_queue`
    await bed.refuses('/v1/queues.update', { queue_name: dead, dead_queue: other }, inUse)
  })

  it('a queue may be made one again once it no longer is one', async () => {
    const { queue, dead } = await pair(bed)
    await bed.ok('/v1/queues.update', { queue_name: queue })
    const other = await bed.queue()
    await bed.ok('/v1/queues.update', { queue_name: dead, dead_queue: other })
    expect(await bed.info(dead)).toMatchObject({ dead_queue: other })
  })

  it('several queues may share one', async () => {
    const { dead, queue } = await pair(bed)
    const second = await bed.queue({ dead_queue: dead })
    for (const name of [queue, second]) {
      await bed.produce(name, name)
      await bed.retry(name, [{ id: only((await bed.lease(name)).items).id, dead: true }])
    }
    expect(textsOf(await bed.items(dead))).toEqual([queue, second])
  })
})

promises('9.2 to 9.4 an item that dies', (bed) => {
  describe.each(DEATHS)('by %s', (_, die) => {
    it('is moved: one dead letter with its content, nothing left in the source', async () => {
      const both = await pair(bed)
      await bed.produceItems(both.queue, [{ ...CONTENT, bytes: base64('payload') }])
      const id = await die(bed, both)
      expect(await bed.items(both.queue)).toEqual([])
      expect(await bed.scheduled(both.queue)).toEqual([])
      const letter: StoredItem = only(await bed.items(both.dead))
      expect(letter).toEqual({
        ...CONTENT,
        payload: base64('payload'),
        id: expect.stringMatching(/^[0-9A-Za-z]{27}$/),
        source_id: id,
        lease_deadline: ZERO_TIME,
        expire_deadline: ZERO_TIME,
        created_at: bed.clock.at(0n),
      })
      expect(letter.id).not.toBe(id)
      expect(await bed.scheduled(both.dead)).toEqual([])
      expect(only((await bed.stats(both.dead)).partitions)).toMatchObject({ total: 1, total_leased: 0 })
      expect(only((await bed.stats(both.queue)).partitions)).toMatchObject({ total: 0, total_leased: 0 })
    })

    it('wakes a lease that waits on the dead queue', async () => {
      const both = await pair(bed)
      await bed.produce(both.queue, 'x')
      const waiting = bed.startLease(both.dead, 1, { request_timeout: '15m' })
      await bed.untilWaiting(both.dead, 1)
      // Two of the ways take more than the 15 minutes a lease may wait; their lease may time out on the way.
      await die(bed, both)
      const answer = await waiting.answer
      expect(answer.status === 454 ? await bed.lease(both.dead) : answer.body).toMatchObject({
        items: [{ attempts: 1, bytes: base64('x') }],
      })
    })
  })

  it('goes to the dead queue that is configured at that moment', async () => {
    const { queue, dead } = await pair(bed, { max_attempts: 1 })
    const other = await bed.queue()
    await bed.produce(queue, 'x')
    await bed.lease(queue)
    await bed.ok('/v1/queues.update', { queue_name: queue, dead_queue: other, max_attempts: 1 })
    await bed.clock.advance(minutes(1) + ms(11))
    expect(await bed.items(dead)).toEqual([])
    expect(await bed.items(other)).toHaveLength(1)
  })

  it('leaves its queue when no dead queue is configured any more', async () => {
    const { queue, dead } = await pair(bed, { max_attempts: 1 })
    await bed.produce(queue, 'x')
    await bed.lease(queue)
    await bed.ok('/v1/queues.update', { queue_name: queue, max_attempts: 1 })
    await bed.clock.advance(minutes(1) + ms(11))
    expect(await bed.items(queue)).toEqual([])
    expect(await bed.items(dead)).toEqual([])
  })

  it('is delivered max_attempts times before', async () => {
    const { queue, dead } = await pair(bed, { max_attempts: 3 })
    await bed.produce(queue, 'x')
    for (const attempts of [1, 2, 3]) {
      expect(only((await bed.lease(queue)).items).attempts).toBe(attempts)
      await bed.clock.advance(minutes(1) + ms(11))
    }
    expect(await bed.items(queue)).toEqual([])
    expect(await bed.items(dead)).toHaveLength(1)
  })

  it('replaces the source id it had by its last id', async () => {
    const { queue, dead } = await pair(bed)
    await bed.import(queue, [{ source_id: 'from elsewhere' }])
    const { id } = only((await bed.lease(queue)).items)
    await bed.retry(queue, [{ id, dead: true }])
    expect(only(await bed.items(dead)).source_id).toBe(id)
  })

  it('goes to the partition of the dead queue with the fewest leasable items', async () => {
    const dead = await bed.queue({ requested_partitions: 2 })
    const queue = await bed.queue({ dead_queue: dead })
    await bed.produce(dead, 'a')
    await bed.produce(queue, 'x')
    await bed.retry(queue, [{ id: only((await bed.lease(queue)).items).id, dead: true }])
    expect((await bed.stats(dead)).partitions.map((each) => each.total)).toEqual([1, 1])
    expect(only(await bed.items(dead, 1))).toMatchObject({ payload: base64('x') })
  })

  it('moves with all others of its request or not at all', async () => {
    const { queue, dead } = await pair(bed)
    await bed.produce(queue, 'a', 'b', 'c')
    const [a = '', b = '', c = ''] = idsOf((await bed.lease(queue, 3)).items)
    const retry_at = bed.clock.at(hours(1))
    await bed.retry(queue, [{ id: a, dead: true }, { id: b }, { id: c, retry_at }])
    expect(textsOf(await bed.items(dead))).toEqual(['a'])
    expect(textsOf(await bed.items(queue))).toEqual(['b'])
    expect(textsOf(await bed.scheduled(queue))).toEqual(['c'])
  })

  it('moves together with thousands', async () => {
    const { queue, dead } = await pair(bed, { expire_timeout: '2h' })
    for (let request = 0; request < 2; request++) {
      await bed.produce(queue, ...Array.from({ length: 1000 }, (_, index) => String(index)))
    }
    await bed.clock.advance(hours(2) + us(1))
    expect(only((await bed.stats(queue)).partitions).total).toBe(0)
    expect(only((await bed.stats(dead)).partitions).total).toBe(2000)
    const letters = await bed.items(dead, 0, { limit: 2000 })
    expect(new Set(letters.map((letter) => letter.source_id)).size).toBe(2000)
  })
})

promises('9.4 a dead letter', (bed) => {
  /** A dead queue with one dead letter in it. */
  async function letter(settings: Record<string, number> = {}): Promise<{ dead: string; item: StoredItem }> {
    const dead = await bed.queue({ lease_timeout: '1m', expire_timeout: '1h', ...settings })
    const queue = await bed.queue({ dead_queue: dead })
    await bed.produce(queue, 'x')
    await bed.retry(queue, [{ id: only((await bed.lease(queue)).items).id, dead: true }])
    return { dead, item: only(await bed.items(dead)) }
  }

  it('can be leased, retried and completed like any item', async () => {
    const { dead } = await letter()
    const first = only((await bed.lease(dead)).items)
    expect(first.attempts).toBe(1)
    await bed.retry(dead, [{ id: first.id }])
    const second = only((await bed.lease(dead)).items)
    expect(second.attempts).toBe(2)
    await bed.complete(dead, [second.id])
    expect(await bed.items(dead)).toEqual([])
  })

  it('can be scheduled by a retry', async () => {
    const { dead } = await letter()
    const { id } = only((await bed.lease(dead)).items)
    await bed.retry(dead, [{ id, retry_at: bed.clock.at(hours(1)) }])
    expect(await bed.scheduled(dead)).toHaveLength(1)
    await bed.clock.advance(hours(1) + us(1))
    expect(textsOf(await bed.items(dead))).toEqual(['x'])
  })

  it('does not expire by the expire_timeout of the dead queue', async () => {
    const { dead, item } = await letter()
    await bed.produce(dead, 'ordinary')
    await bed.clock.advance(hours(1000))
    expect(await bed.items(dead)).toEqual([item])
  })

  it('is requeued, not deleted, when a lease ends after max_attempts of the dead queue', async () => {
    const { dead, item } = await letter({ max_attempts: 1 })
    await bed.lease(dead)
    await bed.clock.advance(minutes(1) + ms(11))
    expect(only(await bed.items(dead))).toMatchObject({ attempts: 1, source_id: item.source_id })
  })

  it('is requeued, not deleted, when it is retried after max_attempts of the dead queue', async () => {
    const { dead } = await letter({ max_attempts: 1 })
    await bed.retry(dead, [{ id: only((await bed.lease(dead)).items).id }])
    expect(only((await bed.lease(dead)).items).attempts).toBe(2)
  })

  it.each(['complete', 'clear', 'items.delete', 'dead', 'queues.delete'])('is removed by %s', async (way) => {
    const { dead, item } = await letter()
    if (way === 'complete') await bed.complete(dead, idsOf((await bed.lease(dead)).items))
    if (way === 'clear') await bed.ok('/v1/queue.clear', { queue_name: dead, queue: true })
    if (way === 'items.delete') await bed.ok('/v1/storage/items.delete', { queue_name: dead, ids: [item.id] })
    if (way === 'dead') await bed.retry(dead, [{ id: only((await bed.lease(dead)).items).id, dead: true }])
    if (way === 'queues.delete') {
      await bed.ok('/v1/queues.delete', { queue_name: dead, force: true })
      await bed.queue({ queue_name: dead })
    }
    expect(await bed.items(dead)).toEqual([])
  })

  it('can be recognised by items that were not: those produced or imported there are ordinary', async () => {
    const { dead, item } = await letter({ max_attempts: 1 })
    await bed.import(dead, [{ source_id: 's', expire_deadline: bed.clock.at(hours(2)) }])
    await bed.produce(dead, 'ordinary')
    await bed.clock.advance(hours(1) + us(1))
    expect((await bed.items(dead)).map((each) => each.source_id)).toEqual([item.source_id, 's'])
    await bed.clock.advance(hours(1))
    expect(await bed.items(dead)).toEqual([item])
  })

  it('whose source id is already held is not doubled; the source item is removed', async () => {
    const dead = await bed.queue()
    const queue = await bed.queue({ dead_queue: dead })
    await bed.produce(queue, 'x')
    const { id } = only((await bed.lease(queue)).items)
    const [holder] = await bed.import(dead, [{ source_id: id, payload: base64('holder') }])
    await bed.retry(queue, [{ id, dead: true }])
    expect(await bed.items(queue)).toEqual([])
    expect(await bed.items(dead)).toEqual([holder])
  })

  it('blocks an import of its source id, until it leaves', async () => {
    const { dead, item } = await letter()
    const source_id = item.source_id ?? ''
    await bed.import(dead, [{ source_id }])
    expect(await bed.items(dead)).toEqual([item])
    await bed.complete(dead, idsOf((await bed.lease(dead)).items))
    await bed.import(dead, [{ source_id }])
    expect(await bed.items(dead)).toHaveLength(1)
  })
})

promises('9.3 a move that cannot be done', (bed) => {
  it('changes nothing: the item is held, not leasable, and moves once the dead queue is back', async () => {
    const { queue, dead } = await pair(bed, { max_attempts: 1 })
    await bed.produce(queue, 'x')
    const { id } = only((await bed.lease(queue)).items)
    await bed.ok('/v1/queues.delete', { queue_name: dead, force: true })
    await bed.clock.advance(minutes(1) + ms(11))
    expect(await bed.items(queue)).toHaveLength(1)
    await bed.nothingToLease(queue)
    await bed.queue({ queue_name: dead })
    // The next try comes after a back-off of real time, or with any call that looks.
    await bed.ok('/v1/queue.reload', { queue_name: queue })
    await bed.clock.advance(minutes(1))
    await expect.poll(() => bed.items(dead)).toHaveLength(1)
    expect(only(await bed.items(dead)).source_id).toBe(id)
    expect(await bed.items(queue)).toEqual([])
  })

  it('is answered 454 when a retry needed it, and the item stays leased', async () => {
    const { queue, dead } = await pair(bed)
    await bed.produce(queue, 'x')
    const { id } = only((await bed.lease(queue)).items)
    await bed.ok('/v1/queues.delete', { queue_name: dead, force: true })
    await bed.refuses(
      '/v1/queue.retry',
      { queue_name: queue, items: [{ id, dead: true }] },
      'internal error, try your request again',
      454,
    )
    expect(only(await bed.items(queue))).toMatchObject({ id, is_leased: true })
    await bed.complete(queue, [id])
  })

  it('ends when the queue names another dead queue', async () => {
    const { queue, dead } = await pair(bed, { max_attempts: 1 })
    const other = await bed.queue()
    await bed.produce(queue, 'x')
    await bed.lease(queue)
    await bed.ok('/v1/queues.delete', { queue_name: dead, force: true })
    await bed.clock.advance(minutes(1) + ms(11))
    await bed.ok('/v1/queues.update', { queue_name: queue, max_attempts: 1, dead_queue: other })
    await bed.clock.advance(minutes(1))
    await expect.poll(() => bed.items(other)).toHaveLength(1)
    expect(await bed.items(queue)).toEqual([])
  })

  it('leaves the item in the source when the store refuses the write', async () => {
    const { queue, dead } = await pair(bed)
    await bed.produce(queue, 'x')
    const { id } = only((await bed.lease(queue)).items)
    await bed.place.refuseWrites()
    try {
      await bed.refuses(
        '/v1/queue.retry',
        { queue_name: queue, items: [{ id, dead: true }] },
        'internal error, try your request again',
        454,
      )
    } finally {
      await bed.place.acceptWrites()
    }
    expect(idsOf(await bed.items(queue))).toEqual([id])
    expect(await bed.items(dead)).toEqual([])
    await bed.retry(queue, [{ id, dead: true }])
    expect(await bed.items(dead)).toHaveLength(1)
  })
})

promises('9.5 deleting a dead queue', (bed) => {
  it('is refused while another queue names it', async () => {
    const { queue, dead } = await pair(bed)
    await bed.refuses(
      '/v1/queues.delete',
      { queue_name: dead },
      `queue is in use; '${dead}' is the dead_queue of '${queue}', use force to delete it anyway`,
    )
    await bed.produce(dead, 'still there')
  })

  it('works once no queue names it', async () => {
    const { queue, dead } = await pair(bed)
    await bed.ok('/v1/queues.delete', { queue_name: queue })
    await bed.ok('/v1/queues.delete', { queue_name: dead })
  })

  it('works with force; the other queue keeps the name', async () => {
    const { queue, dead } = await pair(bed)
    await bed.ok('/v1/queues.delete', { queue_name: dead, force: true })
    expect(await bed.info(queue)).toMatchObject({ dead_queue: dead })
    await bed.refuses(
      '/v1/queues.info',
      { queue_name: dead },
      `queue does not exist; no such queue named '${dead}'`,
    )
  })

  it('allows the source to be deleted at any time', async () => {
    const { queue, dead } = await pair(bed)
    await bed.produce(queue, 'x')
    await bed.retry(queue, [{ id: only((await bed.lease(queue)).items).id, dead: true }])
    await bed.ok('/v1/queues.delete', { queue_name: queue })
    expect(textsOf(await bed.items(dead))).toEqual(['x'])
  })
})
