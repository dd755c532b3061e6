import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type FreshStore, stores } from '../../../test/world/stores.ts'
import { instant } from '../../core/clock.ts'
import { TestClock } from '../../core/test-clock.ts'
import { Office } from '../../office.ts'

describe.each(stores)('a dedupe key on $name', (store) => {
  let place: FreshStore
  let office: Office
  let queueName = ''
  let queues = 0

  beforeAll(async () => {
    place = await store.fresh()
    const clock = new TestClock()
    clock.freeze(instant(1_800_000_000_000_000n))
    office = await Office.open({ store: place.url, clock, queues: { dedupeWindow: '10s' } })
  })

  beforeEach(async () => {
    queueName = `queue-${queues++}`
    await office.queues.create({ queueName, leaseTimeout: '1s', expireTimeout: '1h', requestedPartitions: 3 })
  })

  afterAll(async () => {
    await office?.close()
    await place?.dispose()
  })

  const produce = async (...keys: (string | undefined)[]) => {
    const items = keys.map((dedupeKey) => ({
      payload: 'x',
      ...(dedupeKey === undefined ? {} : { dedupeKey }),
    }))
    return (await office.queues.produce({ queueName, items })).items
  }
  const total = async () =>
    (await office.queues.stats(queueName)).partitions.reduce((sum, partition) => sum + partition.total, 0)

  it('repeated within the window returns the first id and adds nothing', async () => {
    const [first] = await produce('a')
    const [again] = await produce('a')
    expect(first?.outcome).toBe('queued')
    expect(again).toEqual({ outcome: 'existed', id: first?.id })
    expect(await total()).toBe(1)
  })

  it('repeated within one request counts once, beside items without a key, in order', async () => {
    const outcomes = await produce(undefined, 'a', undefined, 'a', 'b', undefined)
    expect(outcomes.map(({ outcome }) => outcome)).toEqual([
      'queued',
      'queued',
      'queued',
      'existed',
      'queued',
      'queued',
    ])
    expect(outcomes[3]?.id).toBe(outcomes[1]?.id)
    const made = outcomes.filter(({ outcome }) => outcome === 'queued').map(({ id }) => id)
    expect(made).toEqual([...made].sort())
    expect(await total()).toBe(5)
  })

  it('repeated by requests at the same time counts once, whatever partitions they go to', async () => {
    const all = (await Promise.all(Array.from({ length: 9 }, () => produce('a', undefined)))).flat()
    const keyed = all.filter((_, i) => i % 2 === 0)
    expect(keyed.filter(({ outcome }) => outcome === 'queued')).toHaveLength(1)
    expect(new Set(keyed.map(({ id }) => id)).size).toBe(1)
    expect(await total()).toBe(10)
  })

  it('is remembered to the end of the window, also when the item is long gone, and not beyond', async () => {
    const [first] = await produce('a')
    await office.queues.clear({ queueName, queue: true })
    await office.advanceClock(10_000_000n)
    expect((await produce('a'))[0]).toEqual({ outcome: 'existed', id: first?.id })
    await office.advanceClock(1n)
    const [later] = await produce('a')
    expect(later?.outcome).toBe('queued')
    expect(later?.id).not.toBe(first?.id)
  })

  it('belongs to its queue', async () => {
    await produce('a')
    queueName = `${queueName}-other`
    await office.queues.create({ queueName, leaseTimeout: '1s', expireTimeout: '1h', requestedPartitions: 1 })
    expect((await produce('a'))[0]?.outcome).toBe('queued')
  })

  it('is forgotten with its queue', async () => {
    await produce('a')
    await office.queues.delete({ queueName })
    await office.queues.create({ queueName, leaseTimeout: '1s', expireTimeout: '1h', requestedPartitions: 1 })
    expect((await produce('a'))[0]?.outcome).toBe('queued')
  })

  it('may be any text, U+0000 included, up to 512 bytes', async () => {
    const odd = `\0ü'"{},\\${'x'.repeat(500)}`
    expect((await produce(odd, odd)).map(({ outcome }) => outcome)).toEqual(['queued', 'existed'])
    await expect(produce('ü'.repeat(257))).rejects.toMatchObject({ code: 'dedupe_key_too_long' })
  })
})
