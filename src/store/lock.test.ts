import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { bareStores, type FreshStore } from '../../test/world/stores.ts'
import { instant } from '../core/clock.ts'
import { TestClock } from '../core/test-clock.ts'
import type { Database } from './database.ts'
import { leasedLock, lockMigration } from './lock.ts'
import { migrate } from './migrations.ts'
import { openDatabase } from './open.ts'

const SECOND = 1_000_000n

describe.each(bareStores)('a leased lock on $name', (store) => {
  let place: FreshStore
  let db: Database
  const clock = new TestClock()
  let locks = 0

  beforeAll(async () => {
    clock.freeze(instant(1_800_000_000_000_000n))
    place = await store.fresh()
    db = openDatabase(place.url, { poolSize: 8 })
    await migrate(db, [lockMigration])
  })

  afterAll(async () => {
    await db?.close()
    await place?.dispose()
  })

  const twoOwners = () => {
    const name = `lock-${locks++}`
    return { mine: leasedLock(db, clock, name, 'me'), theirs: leasedLock(db, clock, name, 'them') }
  }

  it('has one owner at a time', async () => {
    const { mine, theirs } = twoOwners()
    expect(await mine.take(10n * SECOND)).toBe(true)
    expect(await theirs.take(10n * SECOND)).toBe(false)
  })

  it('has one winner when many reach for it at once', async () => {
    const name = `lock-${locks++}`
    const owners = Array.from({ length: 12 }, (_, i) => leasedLock(db, clock, name, `owner-${i}`))
    const taken = await Promise.all(owners.map((owner) => owner.take(10n * SECOND)))
    expect(taken.filter(Boolean)).toHaveLength(1)
  })

  it('is renewed by its owner', async () => {
    const { mine, theirs } = twoOwners()
    await mine.take(10n * SECOND)
    clock.advance(9n * SECOND)
    expect(await mine.take(10n * SECOND)).toBe(true)
    clock.advance(9n * SECOND)
    expect(await theirs.take(10n * SECOND)).toBe(false)
  })

  it('is free for others once its lease is over, and not a moment before', async () => {
    const { mine, theirs } = twoOwners()
    await mine.take(10n * SECOND)
    clock.advance(10n * SECOND)
    expect(await theirs.take(10n * SECOND)).toBe(false)
    clock.advance(1n)
    expect(await theirs.take(10n * SECOND)).toBe(true)
    expect(await mine.take(10n * SECOND)).toBe(false)
  })

  it('is held to the end of a transaction by one who has not lost it', async () => {
    const { mine, theirs } = twoOwners()
    const isHeld = () => db.transaction('test', (tx) => mine.hold(tx))
    await mine.take(10n * SECOND)
    clock.advance(11n * SECOND)
    expect(await isHeld()).toBe(true)
    await theirs.take(10n * SECOND)
    expect(await isHeld()).toBe(false)
    await theirs.drop()
    expect(await isHeld()).toBe(false)
  })

  it('can be given up, but not by one who has lost it', async () => {
    const { mine, theirs } = twoOwners()
    await mine.take(10n * SECOND)
    await theirs.drop()
    expect(await theirs.take(10n * SECOND)).toBe(false)
    await mine.drop()
    expect(await theirs.take(10n * SECOND)).toBe(true)
  })
})
