import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { LetterStore } from '../../../test/world/letter-store.ts'
import { stores } from '../../../test/world/stores.ts'
import { EXPIRE_BATCH } from './expire.ts'

const DAY = 86_400_000_000n

describe.each(stores)('bulk expiry on $name', (kind) => {
  let store: LetterStore
  beforeAll(async () => {
    store = await LetterStore.open(kind)
  })
  afterAll(() => store?.close())

  const expire = (engine: string | null) =>
    store.letters.expireOlder({ olderThanDays: 1, engine, actor: 'night shift' })

  it('expires what failed before the line and nothing that failed on it', async () => {
    await store.capture()
    store.clock.advance(DAY)
    await store.capture()
    expect(await expire(null)).toBe(0)
    store.clock.advance(1n)
    expect(await expire(null)).toBe(1)
    expect(await expire(null)).toBe(0)
  })

  it('can be bound to one engine, whatever its errors are', async () => {
    await store.captureMany(3, (i) => ({ engine: 'tls', errorClass: `Error${i}` }))
    await store.captureMany(2, () => ({ engine: 'spn' }))
    store.clock.advance(2n * DAY)
    expect(await expire('tls')).toBe(3)
    expect(await expire('spn')).toBe(2)
  })

  it('takes as many batches as it needs, and writes one history row for every letter', async () => {
    await expire(null)
    const before = (await store.history()).filter((row) => row.operation === 'expire').length
    const many = 2 * EXPIRE_BATCH + 1
    // All of one microsecond: the line between two batches runs through them.
    const ids = await store.captureMany(many)
    store.clock.advance(2n * DAY)
    expect(await expire(null)).toBe(many)
    const rows = (await store.history()).filter((row) => row.operation === 'expire').slice(before)
    expect(new Set(rows.map((row) => BigInt(row.letter_id ?? 0)))).toEqual(new Set(ids))
    expect(rows.every((row) => Number(row.letter_version) === 2 && row.actor === 'night shift')).toBe(true)
    const { counted, real } = await store.statuses()
    expect(counted).toEqual(real)
  })

  it('expires every letter once when two do it at the same time', async () => {
    const many = EXPIRE_BATCH + 200
    await store.captureMany(many)
    store.clock.advance(2n * DAY)
    const [a, b] = await Promise.all([expire(null), expire(null)])
    // What one has locked the other skips; a last look finds what both have skipped.
    expect(a + b + (await expire(null))).toBe(many)
    const { counted, real } = await store.statuses()
    expect(counted).toEqual(real)
  })
})
