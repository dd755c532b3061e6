import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { SOON } from '../../../../test/world/store-world.ts'
import { type StoreKind, stores } from '../../../../test/world/stores.ts'
import { Depot } from '../../../../test/world/webhooks/couriers.ts'
import { JOB } from '../webhook.ts'
import { pauseConsumer, prolongPause, resumeConsumer } from './breaker.ts'

describe.each(stores)('a consumer whose every delivery fails, on $name', (store: StoreKind) => {
  let depot: Depot
  beforeAll(async () => {
    depot = await Depot.open(store)
  })
  afterEach(() => depot.clear())
  afterAll(() => depot.close())

  const breaker = { failures: 3, forSeconds: 10, pauseSeconds: 5, longestPauseSeconds: 12 }
  const warnings = () => depot.log.lines.filter(({ level }) => level === 'warn')

  /** A consumer that fails until it is told not to, paused since its fourth failure. */
  const paused = async () => {
    let works = false
    const receiver = await depot.receiver((response) => void response.writeHead(works ? 200 : 500).end())
    const consumer = await depot.subscriber({ url: receiver.hook(), consumerId: 'billing' })
    for (let i = 0; i < 3; i++) await depot.message([consumer])
    const courier = depot.courier({ breaker, backoffSeconds: [1_000] })
    await depot.until(JOB.later, JOB.later, JOB.later)
    expect(await depot.pauseOf(consumer)).toBeNull()
    depot.clock.advance(10_000_000n)
    await depot.message([consumer])
    courier.wake([consumer.number])
    await receiver.gets(4)
    await expect.poll(() => depot.pauseOf(consumer), SOON).not.toBeNull()
    return {
      receiver,
      consumer,
      courier,
      mend: () => {
        works = true
      },
    }
  }

  it('is paused, which is said, and its jobs wait without losing attempts', async () => {
    const { receiver, consumer, courier } = await paused()
    const now = depot.clock.now()
    expect(await depot.pauseOf(consumer)).toMatchObject({
      since: now,
      until: now + 5_000_000n,
      seconds: 5,
      reason: expect.stringContaining('4 deliveries in a row failed since 2027-01-15'),
    })
    expect(warnings()).toMatchObject([
      { details: { channelId: 'orders', consumerId: 'billing', triedAgainAt: expect.any(String) } },
    ])
    await depot.message([consumer])
    courier.wake([consumer.number])
    await depot.passInSteps(4, 2)
    expect((await depot.jobRows()).at(-1)).toMatchObject({ state: JOB.ready, attempts: 0 })
    expect(receiver.requests).toHaveLength(4)
  })

  it('is tried with one job after the pause; longer pauses follow, and success ends them', async () => {
    const { receiver, consumer, mend } = await paused()
    depot.courier({ breaker, backoffSeconds: [1_000] }, { another: true })
    for (let i = 0; i < 3; i++) await depot.message([consumer])
    for (const [failed, seconds] of [10, 12].entries()) {
      await depot.passUntil(() => receiver.requests.length === 5 + failed)
      await expect.poll(async () => (await depot.pauseOf(consumer))?.seconds, SOON).toBe(seconds)
      await depot.passInSteps(4, 2)
    }
    expect(receiver.requests).toHaveLength(6)
    expect(warnings()).toHaveLength(3)
    mend()
    await depot.passUntil(() => receiver.requests.length === 7)
    await expect.poll(() => depot.pauseOf(consumer), SOON).toBeNull()
    await depot.passInSteps(4, 2)
    const delivered = async () =>
      (await depot.jobRows()).filter(({ state }) => state === JOB.delivered).length
    await expect.poll(delivered, SOON).toBe(1)
    expect(depot.log.lines.at(-1)?.message).toContain('delivered to again')
  })

  it('is tried by another server at once when the one that tried it stops', async () => {
    let hangs = true
    const receiver = await depot.receiver((response) => {
      if (!hangs) response.writeHead(200).end()
    })
    const consumer = await depot.subscriber({ url: receiver.hook() })
    await depot.message([consumer])
    await pauseConsumer(depot.db, consumer.number, { now: depot.clock.now(), seconds: 5, reason: 'it fails' })
    depot.clock.advance(5_000_000n)
    const stopping = depot.courier({ breaker })
    await receiver.gets(1)
    await stopping.stop(0)
    hangs = false
    depot.courier({ breaker }, { another: true })
    await depot.until(JOB.delivered)
    await expect.poll(() => depot.pauseOf(consumer), SOON).toBeNull()
  })

  it('is paused for parts of seconds too', async () => {
    const consumer = await depot.subscriber({ url: 'http://localhost' })
    const now = depot.clock.now()
    const reason = 'it fails'
    expect(await pauseConsumer(depot.db, consumer.number, { now, seconds: 1.5, reason })).toBe(true)
    expect(await depot.pauseOf(consumer)).toMatchObject({ until: now + 1_500_000n, seconds: 2 })
    expect(await prolongPause(depot.db, consumer.number, { now, longestSeconds: 2.5, reason })).toBe(
      now + 3_000_000n,
    )
  })

  it('is delivered to again when its pause is ended by hand', async () => {
    const { receiver, consumer, courier, mend } = await paused()
    mend()
    await depot.message([consumer])
    expect(await resumeConsumer(depot.db, consumer.number)).toBe(true)
    expect(await resumeConsumer(depot.db, consumer.number)).toBe(false)
    courier.wake([consumer.number])
    await receiver.gets(5)
    expect(await depot.pauseOf(consumer)).toBeNull()
  })
})
