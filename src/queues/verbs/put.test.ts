import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { LetterStore } from '../../../test/world/letter-store.ts'
import { stores } from '../../../test/world/stores.ts'
import { inOffice } from '../../letters/work.ts'
import type { ItemContent } from '../queue.ts'

const item = (n: number, payload = Buffer.from(`payload ${n}`)): ItemContent => ({
  encoding: 'text/plain',
  kind: 'noted',
  reference: `r-${n}`,
  payload,
})
const many = (count: number): ItemContent[] => Array.from({ length: count }, (_, n) => item(n))

describe.each(stores)('items put within a transaction, on $name', (store) => {
  let office: LetterStore
  beforeEach(async () => {
    office = await LetterStore.open(store)
  })
  afterEach(() => office.close())

  const create = (requestedPartitions = 1) =>
    office.queues.create({ queueName: 'q', leaseTimeout: '1m', expireTimeout: '24h', requestedPartitions })
  const put = (items: readonly ItemContent[], andThen = async (): Promise<void> => {}) =>
    inOffice(office.db, office.clock, 'test.put', async (work) => {
      await office.queues.put(work, 'q', items)
      await andThen()
    })
  const lease = (batchSize: number, requestTimeout = '1m') =>
    office.queues.lease({ queueName: 'q', clientId: 'c', batchSize, requestTimeout })

  it('are leased as they were put, in their order, and expire with the queue', async () => {
    await create()
    const bytes = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte))
    await put([item(0, bytes), item(1, Buffer.alloc(0)), ...many(1_000).slice(2)])

    const { items } = await lease(1_000)
    expect(items.map(({ reference }) => reference)).toEqual(many(1_000).map(({ reference }) => reference))
    expect(items[0]).toMatchObject({ encoding: 'text/plain', kind: 'noted', attempts: 1 })
    expect(Buffer.from(items[0]?.payload ?? []).equals(bytes)).toBe(true)
    expect(items[1]?.payload).toHaveLength(0)
    const [stored] = await office.queues.listItems({ queueName: 'q', limit: 1 })
    expect((stored?.expireDeadline ?? 0n) - office.clock.now()).toBe(86_400_000_000n)
  })

  it('are counted with the commit', async () => {
    await create()
    await put(many(250))
    await put([])
    const { partitions } = await office.queues.stats('q')
    expect(partitions[0]).toMatchObject({ total: 250, totalLeased: 0, averageAgeUs: 0n })
  })

  it('were never there when the transaction fails', async () => {
    await create()
    const refusal = put(many(3), async () => {
      throw new Error('changed my mind')
    })
    await expect(refusal).rejects.toThrow('changed my mind')
    expect(await office.queues.listItems({ queueName: 'q' })).toEqual([])
    expect((await office.queues.stats('q')).partitions[0]?.total).toBe(0)
  })

  it('reach a lease that waits, once they are committed', async () => {
    await create()
    const waiting = lease(10)
    await put(many(2))
    expect((await waiting).items).toHaveLength(2)
  })

  it('lie together in the emptiest partition', async () => {
    await create(3)
    for (const count of [5, 3, 1, 2]) await put(many(count))
    const { partitions } = await office.queues.stats('q')
    expect(partitions.map(({ total }) => total)).toEqual([5, 3, 3])
  })

  it('may be more and larger than one statement takes', async () => {
    await create()
    const large = Array.from({ length: 5 }, (_, n) => item(n, Buffer.alloc(6_000_000, n)))
    await put(large)
    await put(many(2_500))
    const { partitions } = await office.queues.stats('q')
    expect(partitions[0]?.total).toBe(2_505)
    const { items } = await lease(5)
    expect(items.map(({ payload }) => [payload.length, payload[0]])).toEqual(
      [0, 1, 2, 3, 4].map((n) => [6_000_000, n]),
    )
  })

  it('are refused without a queue, and once the office stops', async () => {
    await expect(put(many(1))).rejects.toMatchObject({ code: 'queue_unknown' })
    await create()
    await office.queues.stop()
    await expect(put(many(1))).rejects.toMatchObject({ code: 'service_stopping' })
  })
})
