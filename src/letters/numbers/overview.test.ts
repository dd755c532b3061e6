import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { captureFromQueue } from '../../../test/world/letter-acts.ts'
import { LetterStore } from '../../../test/world/letter-store.ts'
import { stores } from '../../../test/world/stores.ts'
import { instant } from '../../core/clock.ts'

const MINUTE = 60_000_000n
const HOUR = 60n * MINUTE
const RETRY = { edit: null, notes: null, actor: 'nell' }

describe.each(stores)('the overview on $name', (kind) => {
  let store: LetterStore
  beforeAll(async () => {
    store = await LetterStore.open(kind)
  })
  afterAll(() => store?.close())
  const overview = () => store.letters.numbers.overview()

  it('of an office without letters says so', async () => {
    expect(await overview()).toEqual({
      asOf: store.clock.now(),
      letters: { Pending: 0, Resolved: 0, Expired: 0 },
      oldestPending: null,
      arrivals: { lastHour: 0, usualPerHour: null },
      returnedLastDay: 0,
      unconfirmed: 0,
      sources: ['queues', 'engines', 'outbox', 'webhooks', 'kafka', 'azure', 'http'].map((source) => ({
        source,
        pending: 0,
      })),
    })
  })

  it('tells what is open, and since when', async () => {
    await store.createQueue('orders', 3)
    const old = instant(store.clock.now() - 100n * HOUR)
    const report = store.report({ originalQueue: 'orders', lastFailureAt: old })
    const { letter } = await store.letters.capture(report)
    await captureFromQueue(store, 'item-1')
    const { oldestPending, letters, sources } = await overview()
    expect(oldestPending).toEqual({ engine: 'hmac', rowKey: letter.rowKey, lastFailureAt: old })
    expect(letters.Pending).toBe(2)
    expect(sources.filter(({ pending }) => pending > 0)).toEqual([
      { source: 'queues', pending: 1 },
      { source: 'http', pending: 1 },
    ])
    await store.letters.retry(letter, RETRY)
    expect(await overview()).toMatchObject({ unconfirmed: 1, oldestPending: { engine: 'queues' } })
    const { partition, items } = await store.lease('orders')
    await store.queues.retry({
      queueName: 'orders',
      partition,
      items: items.map(({ id }) => ({ id, dead: true })),
    })
    expect(await overview()).toMatchObject({ unconfirmed: 0, returnedLastDay: 1 })
    store.clock.advance(24n * HOUR)
    expect(await overview()).toMatchObject({ returnedLastDay: 0, arrivals: { lastHour: 0 } })
  })

  it('compares the last hour with the median of the last week', async () => {
    // Two letters an hour, and a storm in one of them.
    for (let hour = 0; hour < 30; hour++) {
      await store.captureMany(hour === 10 ? 50 : 2)
      store.clock.advance(HOUR)
    }
    expect((await overview()).arrivals).toEqual({ lastHour: 0, usualPerHour: 2 })
    await store.captureMany(9)
    store.clock.advance(59n * MINUTE)
    expect((await overview()).arrivals).toEqual({ lastHour: 9, usualPerHour: 2 })
    store.clock.advance(MINUTE)
    expect((await overview()).arrivals.lastHour).toBe(0)
  })
})
