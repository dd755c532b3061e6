import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { dlqIds, KafkaWorld } from '../../../test/world/kafka/world.ts'
import { stores } from '../../../test/world/stores.ts'
import { UNKNOWN } from './event.ts'
import { type QueuePart, QueueReader } from './queue-reader.ts'

describe.each(stores)('what is next, on $name', (kind) => {
  let store: KafkaWorld
  let reader: QueueReader

  beforeEach(async () => {
    store = await KafkaWorld.open(kind)
    reader = new QueueReader(store.db, store.letters.numbers)
  })
  afterEach(() => store.close())

  const next = (part: Partial<QueuePart> = {}) =>
    reader.preview(
      { service: 'wps', topic: null, skip: 0, limit: 100, maxBytes: 1_000_000, ...part },
      () => false,
    )
  const idsOf = async (part: Partial<QueuePart> = {}) => dlqIds((await next(part)).events)

  it('is in the order of time and partition, and by offset where a clock went backwards', async () => {
    const late = await store.dead({ timestampMs: 3_000, partition: 0 })
    const backwards = await store.dead({ timestampMs: 1_000, partition: 0 })
    const early = await store.dead({ timestampMs: 2_000, partition: 1 })
    const same = await store.dead({ timestampMs: 3_000, partition: 2 })
    expect(await idsOf()).toEqual(dlqIds([early, late, backwards, same]))
  })

  it('is of one service, and of one topic of it, without those that are resolved', async () => {
    const first = await store.dead({ originalTopic: 'orders' })
    const second = await store.dead({ originalTopic: 'users' })
    const third = await store.dead({ originalTopic: 'orders' })
    await store.dead({ topic: 'ucs_dlq', service: 'ucs' })
    expect(await idsOf()).toEqual(dlqIds([first, second, third]))
    expect(await idsOf({ topic: 'orders' })).toEqual(dlqIds([first, third]))
    await store.publish(first)
    expect(await idsOf()).toEqual(dlqIds([second, third]))
    expect(await idsOf({ topic: 'orders' })).toEqual(dlqIds([third]))
  })

  it('is the same event as everybody else reads, with all its bytes', async () => {
    const event = await store.dead({ value: '{"a": 12345678901234567890}', more: [['x', null]] })
    expect((await next()).events).toEqual([event])
  })

  it('is as many as asked for, from the place asked for', async () => {
    const events = []
    for (let i = 0; i < 5; i++) events.push(await store.dead())
    const ids = dlqIds(events)
    for (const limit of [0, 1, 4, 5, 6]) expect(await idsOf({ limit })).toEqual(ids.slice(0, limit))
    for (const topic of [null, 'orders']) {
      expect(await idsOf({ topic, skip: 2, limit: 2 })).toEqual(ids.slice(2, 4))
      expect(await idsOf({ topic, skip: 5 })).toEqual([])
      expect(await idsOf({ topic, skip: Number.MAX_SAFE_INTEGER })).toEqual([])
    }
  })

  it('is cut where values get too large, behind one event at least', async () => {
    const value = (bytes: number) => `"${'x'.repeat(bytes - 2)}"`
    const events = []
    for (const bytes of [100, 50, 51, 10]) events.push(await store.dead({ value: value(bytes) }))
    const cutAt = async (maxBytes: number, part: Partial<QueuePart> = {}) => {
      const { events: given, truncated } = await next({ ...part, maxBytes })
      return [given.length, truncated]
    }
    expect(await cutAt(211)).toEqual([4, false])
    expect(await cutAt(210)).toEqual([3, true])
    expect(await cutAt(150)).toEqual([2, true])
    expect(await cutAt(149)).toEqual([1, true])
    expect(await cutAt(0)).toEqual([1, true])
    expect(await cutAt(0, { limit: 1 })).toEqual([1, true])
    expect(await cutAt(61, { skip: 2 })).toEqual([2, false])
  })

  it('leaves out the value of its first event when that alone is too large', async () => {
    for (const value of [`"${'x'.repeat(98)}"`, '1']) await store.dead({ value })
    const within = async (maxBytes: number) => {
      const { events, omittedBytes } = await next({ maxBytes })
      return [events.map(({ value }) => value?.length ?? null), omittedBytes]
    }
    expect(await within(100)).toEqual([[100], null])
    expect(await within(99)).toEqual([[null], 100])
    expect(await within(101)).toEqual([[100, 1], null])
  })

  it('is cut where headers or keys get too large, of which the usual do not count', async () => {
    const large = 'x'.repeat(100_000)
    await store.dead({ value: '1', more: [['x', large]] })
    await store.dead({ value: '1', key: large })
    await store.dead({ value: '1', more: [['x', large.slice(0, 3_000)]], key: large.slice(0, 3_000) })
    const givenWithin = async (maxBytes: number) => (await next({ maxBytes })).events.length
    expect(await givenWithin(200_000)).toBe(3)
    expect(await givenWithin(100_000)).toBe(1)
    expect(await givenWithin(193_000)).toBe(3)
    expect(await givenWithin(190_000)).toBe(1)
  })

  it('is nothing under names that nobody can have', async () => {
    await store.dead()
    for (const service of ['nobody', 'w\0ps', "w'ps", '', 'health']) {
      expect(await idsOf({ service })).toEqual([])
      expect(await reader.hasLetter(service)).toBe(false)
    }
    for (const topic of ['nothing', 'or\0ders', '', '..']) expect(await idsOf({ topic })).toEqual([])
  })

  it('knows who ever had a letter, resolved or not', async () => {
    const known = (service: string) => reader.hasLetter(service)
    await store.publish(await store.dead())
    expect(await known('wps')).toBe(true)
    expect(await known('wp')).toBe(false)
    expect(await known('wps0')).toBe(false)
    expect(await known(UNKNOWN)).toBe(false)
    await store.dead({ service: 'nobody' })
    expect(await known(UNKNOWN)).toBe(true)
    expect(await known('nobody')).toBe(false)
  })

  it('sums up what is unresolved, by service and original topic', async () => {
    const first = await store.dead({ originalTopic: 'orders', excMsg: 'one' })
    await store.dead({ originalTopic: 'orders', excMsg: 'quite another' })
    await store.dead({ originalTopic: '__proto__' })
    await store.dead({ originalTopic: null })
    await store.dead({ service: 'nobody', value: 'no JSON' })
    const ofUcs = await store.dead({ topic: 'ucs_dlq', service: 'ucs' })
    await store.publishing(first)
    await store.publish(ofUcs)
    const summary = await reader.summary()
    expect(
      Object.fromEntries([...summary].map(([service, topics]) => [service, [...topics].sort()])),
    ).toEqual({
      wps: [
        ['__proto__', 1],
        ['orders', 2],
        [UNKNOWN, 1],
      ].sort(),
      [UNKNOWN]: [['orders', 1]],
    })
  })

  it('has the past of what died again, and says what came after it', async () => {
    const first = await store.dead({ key: 'k' })
    const second = await store.dead({ key: 'k' })
    await store.dead({ key: 'other' })
    const minted = await store.publish(first, { partition: 2, offset: 7n })
    await store.dead({ key: 'k', originalEventId: minted, excMsg: 'again' })
    const shown = await reader.preview(
      { service: 'wps', topic: null, skip: 0, limit: 10, maxBytes: 1_000_000 },
      ({ dlqId }) => dlqId !== second.dlqId,
    )
    expect(shown.events.map(({ attempts }) => attempts)).toEqual([1, 1, 2])
    expect(shown.events.map(({ letterId }) => shown.details.get(letterId) ?? null)).toMatchObject([
      null,
      { chain: [], hasLaterSameKey: false },
      {
        chain: [{ dlqId: first.dlqId, sent: { eventId: minted, publishedOffset: 7n } }],
        hasLaterSameKey: false,
      },
    ])
    const [ofSecond] = shown.events
    expect(ofSecond && (await reader.detailed(ofSecond))).toMatchObject({ chain: [], hasLaterSameKey: true })
  })

  it('finds an event by each of its names, and the value that belongs to it', async () => {
    const first = await store.dead({ value: '{"n": 1}' })
    const minted = await store.publish(first)
    await store.dead({ originalEventId: minted, value: '{"n": 2}' })
    const again = await store.again(first)
    for (const id of [first.dlqId, again.dlqId]) expect(await reader.named(id)).toMatchObject(again)
    const text = async (id: string) => Buffer.from((await reader.value(id))?.value ?? []).toString()
    expect(await text(first.dlqId)).toBe('{"n": 1}')
    expect(await text(again.dlqId)).toBe('{"n": 2}')
    // Most records that die again have the value that they had: it is kept once.
    await store.dead({ originalEventId: await store.publish(again), value: '{"n": 2}' })
    expect(await text(first.dlqId)).toBe('{"n": 1}')
    expect(await text(again.dlqId)).toBe('{"n": 2}')
    const nothing = await store.dead({ value: null })
    const empty = await store.dead({ value: '' })
    expect((await reader.value(nothing.dlqId))?.value).toBe(null)
    expect((await reader.value(empty.dlqId))?.value).toHaveLength(0)
    const nobody = '00000000-0000-4000-8000-000000000000'
    expect([await reader.named(nobody), await reader.value(nobody)]).toEqual([null, null])
  })
})
