import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type FreshStore, stores } from '../../../test/world/stores.ts'
import { instant } from '../../core/clock.ts'
import { TestClock } from '../../core/test-clock.ts'
import { Office } from '../../office.ts'

describe.each(stores)('the sweep on $name', (store) => {
  let place: FreshStore
  let office: Office

  beforeAll(async () => {
    place = await store.fresh()
    const clock = new TestClock()
    clock.freeze(instant(1_800_000_000_000_000n))
    office = await Office.open({ store: place.url, clock })
  })

  afterAll(async () => {
    await office?.close()
    await place?.dispose()
  })

  const timeouts = { leaseTimeout: '1s', expireTimeout: '1m', requestedPartitions: 1 }

  /** A queue whose dead queue is gone, with `count` items that died since. */
  const withHeldItems = async (queueName: string, count: number) => {
    const deadQueue = `${queueName}-dead`
    await office.queues.create({ ...timeouts, queueName: deadQueue })
    await office.queues.create({ ...timeouts, queueName, deadQueue })
    await office.queues.delete({ queueName: deadQueue, force: true })
    for (let left = count; left > 0; left -= 1_000) {
      const items = Array.from({ length: Math.min(left, 1_000) }, () => ({ payload: 'x' }))
      await office.queues.produce({ queueName, items })
    }
    await office.advanceClock(61_000_000n)
    return deadQueue
  }

  it('moves held items whose dead queue is back, however many others still wait for theirs', async () => {
    await withHeldItems('many', 2_500)
    const deadQueue = await withHeldItems('few', 3)
    await office.queues.create({ ...timeouts, queueName: deadQueue })
    await office.queues.settle()
    expect(await office.queues.listItems({ queueName: deadQueue })).toHaveLength(3)
    expect((await office.queues.stats('few')).partitions[0]?.total).toBe(0)
    expect((await office.queues.stats('many')).partitions[0]?.total).toBe(2_500)
  })

  it('puts an item back once when two extensions gave its lease the same deadline', async () => {
    const queueName = 'twice'
    await office.queues.create({ ...timeouts, queueName })
    await office.queues.produce({ queueName, items: [{ payload: 'x' }] })
    const { items } = await office.queues.lease({ queueName, clientId: 'c', batchSize: 1 })
    const ids = items.map(({ id }) => id)
    await office.queues.extend({ queueName, ids })
    await office.queues.extend({ queueName, ids, leaseTimeout: '2s' })
    await office.queues.extend({ queueName, ids, leaseTimeout: '2s' })
    await office.advanceClock(2_008_000n)
    expect((await office.queues.stats(queueName)).partitions[0]).toMatchObject({ total: 1, totalLeased: 0 })
    expect(await office.queues.depths()).toContainEqual(
      expect.objectContaining({ queueName, ready: 1, leased: 0 }),
    )
  })
})
