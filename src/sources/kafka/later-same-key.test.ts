import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { SERVICES } from '../../../test/world/kafka/settings.ts'
import { KafkaWorld } from '../../../test/world/kafka/world.ts'
import { stores } from '../../../test/world/stores.ts'
import { sql } from '../../store/database.ts'
import type { StoredEvent } from './stored-event.ts'
import { earlierOpenSameKey, hasLaterSameKey, sameKeyOf } from './stored-event.ts'

const setState = sql(
  'test.kafka.setState',
  'UPDATE bartleby.kafka_events SET state = $2 WHERE letter_id = $1',
)
const setHash = sql(
  'test.kafka.setHash',
  'UPDATE bartleby.kafka_events SET same_key = $2 WHERE letter_id = $1',
)

describe('the hash of a key', () => {
  it('is the beginning of its SHA-256, with a sign', () => {
    expect(sameKeyOf(Buffer.from('abc'))).toBe(BigInt.asIntN(64, 0xba7816bf8f01cfean))
    expect(sameKeyOf(Buffer.alloc(0))).toBe(BigInt.asIntN(64, 0xe3b0c44298fc1c14n))
  })
})

describe.each(stores)('letters with the same key on $name', (kind) => {
  let store: KafkaWorld
  beforeAll(async () => {
    const uber = {
      dlqTopic: 'uber_dlq',
      profile: 'generic',
      retryTopic: 'uber_retry',
      keyFormat: 'uber',
    } as const
    store = await KafkaWorld.open(kind, { settings: { services: { ...SERVICES, uber } } })
  })
  afterAll(() => store?.close())

  const isLater = (event: StoredEvent) =>
    store.db.session('test', (session) => hasLaterSameKey(session, event))
  const earlier = (event: StoredEvent) =>
    store.db.session('test', (session) => earlierOpenSameKey(session, event))
  const become = (event: StoredEvent, state: number) =>
    store.db.transaction('test', (tx) => tx.run(setState, event.letterId, state))

  it('are those of the same service, topic and key, before and behind', async () => {
    const first = await store.dead({ key: 'a' })
    const otherKey = await store.dead({ key: 'b' })
    const otherTopic = await store.dead({ key: 'a', originalTopic: 'bills' })
    const otherService = await store.dead({ key: 'a', topic: 'ucs_dlq', service: 'ucs' })
    const last = await store.dead({ key: 'a' })
    expect(await isLater(first)).toBe(true)
    for (const event of [otherKey, otherTopic, otherService, last]) expect(await isLater(event)).toBe(false)
    expect(await earlier(last)).toBe(first.letterId)
    for (const event of [first, otherKey, otherTopic, otherService]) expect(await earlier(event)).toBeNull()
  })

  it('count behind unless they are discarded, and before only while they are open', async () => {
    const first = await store.dead({ key: 'state' })
    const last = await store.dead({ key: 'state' })
    for (const state of [0, 1, 2, 3, 4, 5]) {
      await become(last, state)
      expect(await isLater(first)).toBe(state !== 5)
      await become(last, 4)
      await become(first, state)
      expect((await earlier(last)) !== null).toBe(state < 4)
      await become(first, 4)
    }
  })

  it('have the same key, and not only its hash', async () => {
    const first = await store.dead({ key: 'one' })
    const last = await store.dead({ key: 'two' })
    await store.db.transaction('test', (tx) => tx.run(setHash, last.letterId, sameKeyOf(Buffer.from('one'))))
    expect(await isLater(first)).toBe(false)
  })

  it('have it inside their keys, where those tell of the way that they came', async () => {
    // Topic `orders`, another offset each time, and the original key.
    const dead = (offset: number, key: string) =>
      store.dead({
        topic: 'uber_dlq',
        headers: [],
        key: Buffer.from([
          0x12,
          6,
          ...Buffer.from('orders'),
          0x20,
          offset,
          0x32,
          key.length,
          ...Buffer.from(key),
        ]),
      })
    const [first, otherKey, last] = [await dead(1, 'a'), await dead(2, 'b'), await dead(3, 'a')]
    expect(first).toMatchObject({ service: 'uber', originalTopic: 'orders' })
    expect([await isLater(first), await isLater(otherKey), await isLater(last)]).toEqual([true, false, false])
    expect([await earlier(first), await earlier(otherKey), await earlier(last)]).toEqual([
      null,
      null,
      first.letterId,
    ])
  })

  it('are told by empty keys, and not by missing ones nor by topics that nobody knows', async () => {
    const [empty] = [await store.dead({ key: '' }), await store.dead({ key: '' })]
    const [none] = [await store.dead({ key: null }), await store.dead({ key: null })]
    const draft = { key: 'u', originalTopic: null }
    const [unknown] = [await store.dead(draft), await store.dead(draft)]
    expect(await Promise.all([empty, none, unknown].map(isLater))).toEqual([true, false, false])
  })

  it('are in the order of offsets where their times are equal or go backwards', async () => {
    const first = await store.dead({ key: 'order', timestampMs: 5_000n, partition: 7 })
    const last = await store.dead({ key: 'order', timestampMs: 4_000n, partition: 7 })
    expect(await isLater(first)).toBe(true)
    expect(await isLater(last)).toBe(false)
  })
})
