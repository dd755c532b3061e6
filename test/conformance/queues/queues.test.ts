/** Contract 7.11 and 3.3: creating, listing, showing, updating and deleting queues. */
import { describe, expect, it } from 'vitest'
import { hours, minutes, ms, seconds, us } from '../../world/time.ts'
import { type Bed, type Info, idsOf, only, promises, textsOf, unique } from './bed.ts'

const listed = async (bed: Bed, request: { pivot?: string; limit?: number; namespace?: string }) =>
  ((await bed.ok<{ items?: Info[] }>('/v1/queues.list', request)).items ?? []).map(
    (queue) => queue.queue_name,
  )

promises('queues.create', (bed) => {
  it('stores every setting', async () => {
    const dead_queue = await bed.queue()
    const queue_name = unique()
    const settings = {
      queue_name,
      lease_timeout: '1m0s',
      expire_timeout: '1h0m0s',
      dead_queue,
      reference: 'a reference',
      max_attempts: 65_536,
      requested_partitions: 10,
      namespace: '_system',
    }
    await bed.ok('/v1/queues.create', settings)
    const now = bed.clock.at(0n)
    expect(await bed.info(queue_name)).toEqual({ ...settings, created_at: now, updated_at: now })
  })

  it('ignores times and partitions', async () => {
    const queue = await bed.queue({
      created_at: '2001-01-01T00:00:00Z',
      updated_at: '2001-01-01T00:00:00Z',
      partitions: [{ partition: 7 }],
      requested_partitions: 1,
    })
    expect(await bed.info(queue)).toMatchObject({
      created_at: bed.clock.at(0n),
      updated_at: bed.clock.at(0n),
    })
    expect((await bed.stats(queue)).partitions).toHaveLength(1)
  })

  it('gives a queue that can be used at once', async () => {
    const queue = await bed.queue({ requested_partitions: 5 })
    expect((await bed.stats(queue)).partitions.map((each) => each.failures)).toEqual([0, 0, 0, 0, 0])
    await bed.produce(queue, 'a')
    expect(textsOf((await bed.lease(queue)).items)).toEqual(['a'])
  })

  it('accepts names at the limits', async () => {
    const longest = unique('n').padEnd(512, 'n')
    await bed.queue({ queue_name: longest })
    expect(await bed.info(longest)).toMatchObject({ queue_name: longest })
    const special = `${unique()}-grüße/:.$%&"'\\{}`
    await bed.queue({ queue_name: special, reference: 'r'.repeat(2000) })
    expect(await bed.info(special)).toMatchObject({ queue_name: special, reference: 'r'.repeat(2000) })
  })

  it('accepts equal lease and expire timeouts', async () => {
    const queue = await bed.queue({ lease_timeout: '5m', expire_timeout: '300s' })
    expect(await bed.info(queue)).toMatchObject({ lease_timeout: '5m0s', expire_timeout: '5m0s' })
  })

  it('of the same name by many at once succeeds for exactly one', async () => {
    const queue_name = unique()
    const settings = { queue_name, lease_timeout: '1m', expire_timeout: '1h', requested_partitions: 2 }
    const answers = await Promise.all(
      Array.from({ length: 8 }, () => bed.call('/v1/queues.create', settings)),
    )
    expect(answers.filter((answer) => answer.status === 200)).toHaveLength(1)
    for (const answer of answers.filter((each) => each.status !== 200)) {
      expect(answer.body.message).toBe(`invalid queue; '${queue_name}' already exists`)
    }
  })
})

promises('namespaces', (bed) => {
  it('are _system when none is given', async () => {
    expect((await bed.info(await bed.queue())).namespace).toBe('_system')
    expect((await bed.info(await bed.queue({ namespace: '_system' }))).namespace).toBe('_system')
  })

  it('do not exist otherwise', async () => {
    await bed.refusesWith(
      '/v1/queues.create',
      {
        queue_name: unique(),
        lease_timeout: '1m',
        expire_timeout: '1h',
        requested_partitions: 1,
        namespace: 'other',
      },
      "namespace does not exist; 'other' was not found",
      453,
    )
  })

  it('of another name are listed as empty', async () => {
    const queue = await bed.queue()
    expect(await listed(bed, { pivot: queue, limit: 1 })).toEqual([queue])
    expect(await listed(bed, { pivot: queue, limit: 1, namespace: '_system' })).toEqual([queue])
    expect(await listed(bed, { namespace: 'other' })).toEqual([])
  })

  it('are ignored by update', async () => {
    const queue = await bed.queue()
    await bed.ok('/v1/queues.update', { queue_name: queue, namespace: 'other' })
    expect((await bed.info(queue)).namespace).toBe('_system')
  })
})

promises('queues.list', (bed) => {
  it('is ordered by the bytes of the names', async () => {
    const prefix = unique('order')
    const names = ['a', 'B', 'Z', '_', 'ä', 'z', '10', '9', 'a-', 'a.'].map((end) => `${prefix}${end}`)
    for (const queue_name of names) await bed.queue({ queue_name })
    const sorted = [...names].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
    expect(await listed(bed, { pivot: prefix, limit: names.length })).toEqual(sorted)
  })

  it('starts with the pivot itself, or with what follows a name that is not there', async () => {
    const prefix = unique('pivot')
    for (const end of ['1', '2', '3', '4']) await bed.queue({ queue_name: `${prefix}${end}` })
    const names = (ends: string[]) => ends.map((end) => `${prefix}${end}`)
    expect(await listed(bed, { pivot: `${prefix}2`, limit: 2 })).toEqual(names(['2', '3']))
    expect(await listed(bed, { pivot: `${prefix}22`, limit: 2 })).toEqual(names(['3', '4']))
  })

  it('gives whole pages', async () => {
    const prefix = unique('page')
    for (let index = 10; index < 22; index++) await bed.queue({ queue_name: `${prefix}${index}` })
    const seen: string[] = []
    for (let pivot = prefix; seen.length < 12; ) {
      const page = await listed(bed, { pivot, limit: 5 })
      seen.push(...page.filter((name) => !seen.includes(name) && name.startsWith(prefix)))
      pivot = page.at(-1) ?? ''
    }
    expect(seen).toEqual(Array.from({ length: 12 }, (_, index) => `${prefix}${index + 10}`))
  })

  it('shows what info shows', async () => {
    const queue = await bed.queue({ reference: 'r', max_attempts: 3 })
    const { items } = await bed.ok<{ items: Info[] }>('/v1/queues.list', { pivot: queue, limit: 1 })
    expect(items).toEqual([await bed.info(queue)])
  })

  it('accepts the largest limit', async () => {
    const queue = await bed.queue()
    expect(await listed(bed, { pivot: queue, limit: 65_536 })).toContain(queue)
  })
})

promises('queues.update', (bed) => {
  const full = {
    lease_timeout: '1m',
    expire_timeout: '1h',
    max_attempts: 3,
    reference: 'r',
    requested_partitions: 2,
  }

  it('changes timeouts and partitions only when they are given', async () => {
    const queue = await bed.queue(full)
    await bed.ok('/v1/queues.update', { queue_name: queue, max_attempts: 3, reference: 'r' })
    expect(await bed.info(queue)).toMatchObject({
      lease_timeout: '1m0s',
      expire_timeout: '1h0m0s',
      requested_partitions: 2,
    })
    await bed.ok('/v1/queues.update', { queue_name: queue, lease_timeout: '2m' })
    expect(await bed.info(queue)).toMatchObject({ lease_timeout: '2m0s', expire_timeout: '1h0m0s' })
    await bed.ok('/v1/queues.update', { queue_name: queue, expire_timeout: '90m' })
    expect(await bed.info(queue)).toMatchObject({ lease_timeout: '2m0s', expire_timeout: '1h30m0s' })
  })

  it('always overwrites max_attempts, reference and dead_queue', async () => {
    const dead_queue = await bed.queue()
    const queue = await bed.queue({ ...full, dead_queue })
    await bed.ok('/v1/queues.update', { queue_name: queue })
    const info = await bed.info(queue)
    expect(info).not.toHaveProperty('max_attempts')
    expect(info).not.toHaveProperty('reference')
    expect(info).not.toHaveProperty('dead_queue')
    await bed.ok('/v1/queues.update', { queue_name: queue, max_attempts: 9, reference: 's', dead_queue })
    expect(await bed.info(queue)).toMatchObject({ max_attempts: 9, reference: 's', dead_queue })
  })

  it('moves updated_at and leaves created_at', async () => {
    const queue = await bed.queue()
    const { created_at } = await bed.info(queue)
    await bed.clock.advance(us(1))
    await bed.ok('/v1/queues.update', { queue_name: queue, created_at: '2001-01-01T00:00:00Z' })
    expect(await bed.info(queue)).toMatchObject({ created_at, updated_at: bed.clock.at(0n) })
  })

  it('stores requested_partitions but neither adds nor removes any', async () => {
    const queue = await bed.queue({ requested_partitions: 2 })
    await bed.ok('/v1/queues.update', { queue_name: queue, requested_partitions: 5 })
    expect((await bed.info(queue)).requested_partitions).toBe(5)
    expect((await bed.stats(queue)).partitions).toHaveLength(2)
    await bed.ok('/v1/queues.update', { queue_name: queue, requested_partitions: 1 })
    expect((await bed.stats(queue)).partitions).toHaveLength(2)
  })

  it('gives new leases the new lease timeout; running ones keep their deadline', async () => {
    const queue = await bed.queue({ lease_timeout: '1m', expire_timeout: '1h' })
    await bed.produce(queue, 'a', 'b')
    const before = only((await bed.lease(queue)).items)
    await bed.ok('/v1/queues.update', { queue_name: queue, lease_timeout: '10m' })
    const after = only((await bed.lease(queue)).items)
    expect(after.lease_deadline).toBe(bed.clock.at(minutes(10)))
    expect((await bed.items(queue))[0]?.lease_deadline).toBe(before.lease_deadline)
    await bed.clock.advance(seconds(60) + ms(11))
    expect(only((await bed.stats(queue)).partitions).total_leased).toBe(1)
  })

  it('gives new items the new expire timeout; old ones keep theirs', async () => {
    const queue = await bed.queue({ lease_timeout: '1m', expire_timeout: '1h' })
    await bed.produce(queue, 'old')
    await bed.ok('/v1/queues.update', { queue_name: queue, expire_timeout: '10h' })
    await bed.produce(queue, 'new')
    expect((await bed.items(queue)).map((item) => item.expire_deadline)).toEqual([
      bed.clock.at(hours(1)),
      bed.clock.at(hours(10)),
    ])
  })

  it('validates the merged result', async () => {
    const queue = await bed.queue({ lease_timeout: '30m', expire_timeout: '1h' })
    await bed.refuses(
      '/v1/queues.update',
      { queue_name: queue, expire_timeout: '20m' },
      'lease timeout is too long; 30m0s cannot be greater than the expire timeout 20m0s',
    )
    await bed.refuses(
      '/v1/queues.update',
      { queue_name: queue, lease_timeout: '2h' },
      'lease timeout is too long; 2h0m0s cannot be greater than the expire timeout 1h0m0s',
    )
    await bed.ok('/v1/queues.update', { queue_name: queue, lease_timeout: '2h', expire_timeout: '3h' })
  })

  it('changes nothing when it is refused', async () => {
    const queue = await bed.queue(full)
    const before = await bed.info(queue)
    await bed.clock.advance(us(1))
    const answer = await bed.call('/v1/queues.update', {
      queue_name: queue,
      lease_timeout: '2m',
      max_attempts: -1,
    })
    expect(answer.status).toBe(400)
    expect(await bed.info(queue)).toEqual(before)
  })
})

promises('queues.delete', (bed) => {
  it('removes the queue and all its data; a later one of the same name is empty', async () => {
    const queue = await bed.queue({ requested_partitions: 2, reference: 'old' })
    await bed.produceItems(queue, [{}, {}, { enqueue_at: bed.clock.at(hours(1)) }])
    await bed.lease(queue)
    await bed.import(queue, [{ source_id: 's' }], 1)
    await bed.ok('/v1/queues.delete', { queue_name: queue })
    const gone = `queue does not exist; no such queue named '${queue}'`
    await bed.refuses('/v1/queues.info', { queue_name: queue }, gone)
    await bed.refuses('/v1/queue.stats', { queue_name: queue }, gone)
    await bed.refuses('/v1/queues.delete', { queue_name: queue }, gone)
    expect(await listed(bed, { pivot: queue, limit: 1 })).not.toContain(queue)

    await bed.queue({ queue_name: queue, requested_partitions: 2 })
    expect(await bed.info(queue)).not.toHaveProperty('reference')
    expect((await bed.stats(queue)).partitions).toMatchObject([
      { total: 0, total_leased: 0, scheduled: 0 },
      { total: 0, total_leased: 0, scheduled: 0 },
    ])
    await bed.import(queue, [{ source_id: 's' }], 1)
    expect(await bed.items(queue, 1)).toHaveLength(1)
  })

  it('answers waiting leases 453', async () => {
    const queue = await bed.queue()
    const [lease] = await bed.startLeases(queue, 1)
    await bed.ok('/v1/queues.delete', { queue_name: queue })
    expect(await lease?.answer).toEqual({
      status: 453,
      body: { code: 453, code_text: 'Request Failed', message: 'queue is shutting down' },
    })
  })

  it('leaves nothing behind that a later queue would wake up to', async () => {
    const queue = await bed.queue({ lease_timeout: '1m' })
    await bed.produceItems(queue, [{ utf8: 'old' }, { utf8: 'old', enqueue_at: bed.clock.at(hours(1)) }])
    await bed.lease(queue)
    await bed.ok('/v1/queues.delete', { queue_name: queue })
    await bed.queue({ queue_name: queue })
    await bed.produce(queue, 'new')
    await bed.clock.advance(hours(2))
    expect(textsOf(await bed.items(queue))).toEqual(['new'])
  })

  it('does not reuse ids: ids of the later queue do not match those of the first', async () => {
    const queue = await bed.queue()
    await bed.produce(queue, 'a')
    const before = idsOf(await bed.items(queue))
    await bed.ok('/v1/queues.delete', { queue_name: queue })
    await bed.queue({ queue_name: queue })
    await bed.produce(queue, 'a')
    expect(idsOf(await bed.items(queue))).not.toEqual(before)
  })

  describe('with force', () => {
    it('deletes an ordinary queue like without', async () => {
      const queue = await bed.queue()
      await bed.ok('/v1/queues.delete', { queue_name: queue, force: true })
      await bed.refuses(
        '/v1/queues.info',
        { queue_name: queue },
        `queue does not exist; no such queue named '${queue}'`,
      )
    })
  })
})
