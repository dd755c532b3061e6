/** Items that are written, leased and completed by the hundred: what is alike shares a statement, and nothing is mixed up by it. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { LetterStore } from '../../../test/world/letter-store.ts'
import { stores } from '../../../test/world/stores.ts'
import { later } from '../../core/clock.ts'
import type { NewItem } from '../queue.ts'

const HOUR_US = 3_600_000_000n

describe.each(stores)('large batches on $name', (store) => {
  let office: LetterStore
  beforeEach(async () => {
    office = await LetterStore.open(store)
    await office.queues.create({
      queueName: 'q',
      leaseTimeout: '1m',
      expireTimeout: '24h',
      requestedPartitions: 1,
    })
  })
  afterEach(() => office.close())

  const many = (count: number, item: (n: number) => NewItem): NewItem[] =>
    Array.from({ length: count }, (_, n) => item(n))
  const produce = (items: readonly NewItem[]) => office.queues.produce({ queueName: 'q', items })
  const lease = async (batchSize: number) =>
    (await office.queues.lease({ queueName: 'q', clientId: 'c', batchSize })).items
  const complete = (ids: readonly string[]) => office.queues.complete({ queueName: 'q', partition: 0, ids })
  const counts = async () => {
    const { partitions } = await office.queues.stats('q')
    return partitions.map(({ total, totalLeased, scheduled }) => ({ total, totalLeased, scheduled }))
  }
  const text = (payload: Uint8Array): string => Buffer.from(payload).toString()

  it('keep the order and the contents of items, alike or not', async () => {
    const alike = many(230, (n) => ({ kind: 'order', payload: n === 7 ? '' : `a${n}` }))
    const unlike = many(230, (n) => ({
      kind: n % 3 === 0 ? 'order' : 'refund',
      reference: `r${n}`,
      payload: `b${n}`,
    }))
    const given = [...alike, ...unlike]
    const { items: receipts } = await produce(given)
    const leased = await lease(1_000)
    expect(leased.map(({ id }) => id)).toEqual(receipts.map(({ id }) => id))
    expect(leased.map((item) => [item.kind, item.reference, text(item.payload), item.attempts])).toEqual(
      given.map(({ kind, reference = '', payload }) => [kind, reference, payload, 1]),
    )
  })

  it('keep what is scheduled apart', async () => {
    const enqueueAt = later(office.clock.now(), HOUR_US)
    await produce([
      ...many(100, (n) => ({ payload: `now ${n}` })),
      ...many(100, (n) => ({ payload: `later ${n}`, enqueueAt })),
      ...many(50, (n) => (n % 2 === 0 ? { payload: `now ${100 + n}` } : { payload: 'odd', enqueueAt })),
    ])
    expect(await counts()).toEqual([{ total: 125, totalLeased: 0, scheduled: 125 }])
    const leased = await lease(1_000)
    expect(leased).toHaveLength(125)
    expect(leased.every(({ payload }) => text(payload).startsWith('now '))).toBe(true)
  })

  it('lease what is ready and pass over what is leased', async () => {
    await produce(many(300, (n) => ({ payload: String(n) })))
    const first = await lease(100)
    const second = await lease(1_000)
    expect([...first, ...second].map(({ payload }) => text(payload))).toEqual(
      many(300, (n) => ({ payload: String(n) })).map(({ payload }) => payload),
    )
    expect(await counts()).toEqual([{ total: 300, totalLeased: 300, scheduled: 0 }])
  })

  it('complete neighbours and scattered ones, and nothing of a request with one that is gone', async () => {
    await produce(many(400, (n) => ({ payload: String(n) })))
    const ids = (await lease(1_000)).map(({ id }) => id)
    await complete(ids.slice(0, 100))
    await complete(ids.slice(100, 300).filter((_, n) => n % 2 === 0))
    await expect(complete(ids.slice(290))).rejects.toMatchObject({ code: 'item_unknown' })
    expect(await counts()).toEqual([{ total: 200, totalLeased: 200, scheduled: 0 }])
    await complete(ids.slice(100, 300).filter((_, n) => n % 2 === 1))
    await complete(ids.slice(300))
    expect(await counts()).toEqual([{ total: 0, totalLeased: 0, scheduled: 0 }])
  })
})
