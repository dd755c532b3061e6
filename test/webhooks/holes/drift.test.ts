/** Counts that are wrong, however they came to be: they are found, and put right while jobs move. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { checkWebhooks } from '../../../src/sources/webhooks/numbers/check.ts'
import { queueOfConsumer } from '../../../src/sources/webhooks/webhook.ts'
import { stores } from '../../world/stores.ts'
import { CountedOffice, expectExact } from '../../world/webhooks/office.ts'

// H24
describe.each(stores)('a wrong count of dead jobs on $name', (store) => {
  let house: CountedOffice
  let names = 0
  beforeAll(async () => {
    house = await CountedOffice.open(store)
  })
  afterAll(() => house?.close())

  /** A consumer with three dead jobs, all folded. */
  const receiver = async () => {
    const channel = await house.channel(`channel ${++names}`)
    const consumer = await house.consumer(channel, 'k')
    for (let i = 0; i < 3; i++) await house.dead(channel, consumer)
    await house.fold()
    return { channel, consumer, queue: queueOfConsumer(channel.channelId, 'k') }
  }
  const check = (repair = false) => checkWebhooks(house.db, { clock: house.clock, repair })

  it.each([
    ['too high', 5],
    ['too low', -2],
    ['below zero', -7],
  ])('that is %s is found, and repaired', async (_, amount) => {
    const { channel, queue } = await receiver()
    expect((await check()).mismatches).toEqual([])
    expect(await house.plant(queue, amount)).toBe(1)
    const mismatch = { channelId: channel.channelId, consumerId: 'k', counted: 3 + amount, actual: 3 }
    const { channelId } = mismatch
    // It does not go away by itself.
    await house.fold()
    expect(await check()).toMatchObject({ mismatches: [mismatch], repaired: false })
    expect(await check(true)).toMatchObject({ mismatches: [mismatch], repaired: true })
    expect((await check()).mismatches).toEqual([])
    expect((await expectExact(house.db)).find((sheet) => sheet.channelId === channelId)?.counted).toBe(3)
    await house.expectVerified()
  })

  // H15: the first count of all, while jobs die, are requeued and deleted.
  it('is put right while jobs move, and they are counted once', async () => {
    const { channel, consumer, queue } = await receiver()
    const { jobs } = house.office.webhooks
    await house.plant(queue, 4)
    await house.plant(queue, -1, 'unfolded')
    const move = async () => {
      for (let i = 0; i < 6; i++) {
        const job = await house.dead(channel, consumer)
        await new Promise((resolve) => setImmediate(resolve))
        if (i % 3 === 0) await jobs.requeue(consumer, job)
        if (i % 3 === 1) await jobs.erase(consumer, job)
      }
    }
    const [, report] = await Promise.all([move(), check(true), house.fold()])
    expect(report.repaired).toBe(true)
    await house.fold()
    expect(await check()).toMatchObject({ mismatches: [], tallies: [] })
    await house.expectDead(channel, consumer, 5)
    await house.expectVerified()
  })
})
