/** Folds that lose their lock, crash on the way, or meet what commits late. Only PostgreSQL has something to fold. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { letterCounter } from '../../../src/letters/numbers/counts.ts'
import { type Channel, type Consumer, queueOfConsumer } from '../../../src/sources/webhooks/webhook.ts'
import type { Database } from '../../../src/store/database.ts'
import { foldCounts } from '../../../src/store/fold.ts'
import { leasedLock } from '../../../src/store/lock.ts'
import { openDatabase } from '../../../src/store/open.ts'
import { CrashPoint, Gate, intercepted } from '../../world/intercepted-database.ts'
import { freshPostgres } from '../../world/stores.ts'
import { CountedOffice, expectExact } from '../../world/webhooks/office.ts'

const LEASE_OVER_US = 11_000_000n

describe('a fold on postgres', () => {
  let house: CountedOffice
  let other: Database
  let lock = ''
  let tests = 0
  beforeAll(async () => {
    house = await CountedOffice.open({ name: 'postgres', fresh: freshPostgres })
    other = openDatabase(house.place.url, { poolSize: 2 })
  })
  beforeEach(() => {
    lock = `lock ${++tests}`
  })
  afterAll(async () => {
    await other?.close()
    await house?.close()
  })

  const fold = (db: Database, owner: string, most?: number) =>
    foldCounts(
      db,
      { ...letterCounter, lock },
      { clock: house.clock, owner, ...(most === undefined ? {} : { most }) },
    )
  const unfolded = () => house.unfolded()
  /** Two consumers with dead jobs, of which nothing is folded. */
  const bury = async () => {
    await house.fold()
    for (const name of ['a', 'b']) {
      const channel = await house.channel(`${lock} ${name}`)
      const consumer = await house.consumer(channel, name)
      for (let i = 0; i < 3; i++) await house.dead(channel, consumer)
    }
  }
  const deadJobs = async (consumer: Consumer) => {
    const page = await house.office.webhooks.jobs.dead(consumer, { next: null, previous: null })
    return page.items.map(({ id }) => id)
  }
  /** Of the letters of a channel's consumer, without what is not folded. */
  const pendingTotal = ({ channelId }: Channel) => house.pendingTotal(queueOfConsumer(channelId, 'k'))
  const expectThreeEach = async () => {
    const sheets = (await expectExact(house.db)).filter(({ channelId }) => channelId.startsWith(`${lock} `))
    expect(sheets.map(({ jobs }) => jobs)).toEqual([3, 3])
  }

  // H9
  it('whose lock was taken away on the way does nothing more', async () => {
    await bury()
    const before = await unfolded()
    let steps = 0
    const robbed = intercepted(house.db, async ({ next }) => {
      if (next !== 'committed' || ++steps !== 1) return
      await house.pass(LEASE_OVER_US)
      expect(await leasedLock(other, house.clock, lock, 'thief').take(60_000_000n)).toBe(true)
    })
    expect(await fold(robbed, 'former', 2)).toBeNull()
    expect(await unfolded()).toBe(before - 2)
    await expectThreeEach()
  })

  it('whose lease is over before it is committed is waited for, and rolled back it leaves all to the next', async () => {
    await bury()
    const before = await unfolded()
    const gate = new Gate(({ next }) => next === 'commit')
    const crash = new CrashPoint(1)
    const former = fold(
      intercepted(house.db, async (step) => {
        await gate.intercept(step)
        if (step.next === 'commit') await crash.intercept(step)
      }),
      'former',
    )
    former.catch(() => {})
    await gate.reached
    await house.pass(LEASE_OVER_US)
    let isNextDone = false
    const next = fold(other, 'next').finally(() => {
      isNextDone = true
    })
    await expectThreeEach()
    expect([isNextDone, await unfolded()]).toEqual([false, before])
    gate.open()
    await expect(former).rejects.toThrow('before commit')
    expect(await next).not.toBeNull()
    expect(await unfolded()).toBe(0)
    await expectThreeEach()
  })

  // H10
  it('is not ended by who gives back a lock that is not his', async () => {
    await bury()
    expect(await fold(house.db, 'holder', 2)).not.toBeNull()
    await leasedLock(other, house.clock, lock, 'stranger').drop()
    expect(await fold(other, 'stranger')).toBeNull()
    expect(await fold(house.db, 'holder')).not.toBeNull()
  })

  it('is done by others when the lease of one that crashed is over', async () => {
    await bury()
    await expect(fold(intercepted(house.db, new CrashPoint(3).intercept), 'crashed', 2)).rejects.toThrow()
    expect(await fold(other, 'next')).toBeNull()
    await expectThreeEach()
    await house.pass(LEASE_OVER_US)
    expect(await fold(other, 'next')).not.toBeNull()
    expect(await unfolded()).toBe(0)
    await expectThreeEach()
  })

  // H12
  it('is done for all consumers or for none', async () => {
    await bury()
    const before = await unfolded()
    for (const step of [1, 2]) {
      const crash = new CrashPoint(step)
      await expect(fold(intercepted(house.db, crash.intercept), 'me')).rejects.toThrow()
      expect([crash.hit, await unfolded()]).toEqual([true, before])
      await expectThreeEach()
    }
    // Fails when the last total is written, behind all others.
    await house.refusingLastTotal(async () => {
      await expect(fold(house.db, 'me')).rejects.toThrow('no total')
      expect(await unfolded()).toBe(before)
      await expectThreeEach()
    })
    await fold(house.db, 'me')
    expect(await unfolded()).toBe(0)
    await expectThreeEach()
  })

  // H19
  it('may take a requeue before the death that it undoes: no floor swallows it', async () => {
    const channel = await house.channel(lock)
    const consumer = await house.consumer(channel, 'k')
    // The first death of a kind makes the drawer, and others wait for that.
    await house.office.webhooks.jobs.requeue(consumer, await house.dead(channel, consumer))
    await house.fold()
    const job = await house.job(channel, consumer)
    const gate = new Gate(({ next }) => next === 'commit')
    const slow = house.webhooksOn(intercepted(other, gate.intercept))
    const dying = slow.jobs.move(consumer, job, 'DEAD', 0)
    await gate.reached
    // Its count is written, and behind that of another, which is folded.
    await house.dead(channel, consumer)
    const turn = { clock: house.clock, owner: 'me' }
    const after = (await foldCounts(house.db, { ...letterCounter, lock }, turn)) ?? 0
    gate.open()
    await dying
    for (const id of await deadJobs(consumer)) await house.office.webhooks.jobs.requeue(consumer, id)
    await foldCounts(house.db, { ...letterCounter, lock }, { ...turn, after })
    expect(await pendingTotal(channel)).toBe(-1)
    await house.expectDead(channel, consumer, 0)
    expect(await pendingTotal(channel)).toBe(0)
  })
})
