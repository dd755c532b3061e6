import type { ServerResponse } from 'node:http'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { SOON } from '../../../../test/world/store-world.ts'
import { type StoreKind, stores } from '../../../../test/world/stores.ts'
import { Depot } from '../../../../test/world/webhooks/couriers.ts'
import { sql } from '../../../store/database.ts'
import { type Consumer, JOB } from '../webhook.ts'

const stealClaim = sql('test.courier.steal', "UPDATE bartleby.webhook_jobs SET claim = 'another'")

const bodies = (receiver: { requests: readonly { body: Buffer }[] }): string[] =>
  receiver.requests.map(({ body }) => body.toString())

describe.each(stores)('a courier, on $name', (store: StoreKind) => {
  let depot: Depot
  beforeAll(async () => {
    depot = await Depot.open(store)
  })
  afterEach(() => depot.clear())
  afterAll(() => depot.close())

  it('delivers what is ready, counts it, and holds nothing afterwards', async () => {
    const receiver = await depot.receiver()
    const one = await depot.subscriber({ url: receiver.hook() })
    const two = await depot.subscriber({ url: receiver.hook() })
    await depot.message([one, two], { payload: 'hello' })
    const courier = depot.courier()
    const attempts: unknown[] = []
    courier.onAttempt((attempt) => attempts.push(attempt))
    const jobs = await depot.until(JOB.delivered, JOB.delivered)
    const settled = { attempts: 0, claim: null, dueAt: null }
    expect(jobs).toMatchObject([settled, settled])
    expect(bodies(receiver)).toEqual(['hello', 'hello'])
    expect(await depot.counted(one)).toEqual({ delivered: 1 })
    await expect.poll(() => courier.held, SOON).toBe(0)
    expect(attempts).toHaveLength(2)
    expect(attempts).toContainEqual({
      channelId: 'orders',
      consumerId: one.consumerId,
      outcome: 'success',
      seconds: expect.any(Number),
    })
  })

  it('is woken for jobs that come later, and finds those of which nobody told it', async () => {
    const receiver = await depot.receiver()
    const consumer = await depot.subscriber({ url: receiver.hook() })
    const courier = depot.courier()
    await depot.rest()
    await depot.message([consumer], { payload: 'told' })
    courier.wake([consumer.number])
    await depot.until(JOB.delivered)
    await depot.message([consumer], { payload: 'untold' })
    await depot.rest()
    expect(bodies(receiver)).toEqual(['told'])
    depot.clock.advance(2_000_001n)
    await depot.until(JOB.delivered, JOB.delivered)
  })

  it('asks all that it was woken for, however many have nothing', async () => {
    const receiver = await depot.receiver()
    const consumer = await depot.subscriber({ url: receiver.hook() })
    const courier = depot.courier()
    await depot.rest()
    await depot.message([consumer])
    courier.wake([...Array.from({ length: 500 }, (_, i) => 1_000_000 + i), consumer.number])
    // Without a look for what is ready, for which time would have to pass.
    await depot.until(JOB.delivered)
  })

  it('delivers the most urgent first and the oldest first among equals, whoever gets them', async () => {
    const receiver = await depot.receiver()
    const one = await depot.subscriber({ url: receiver.hook() })
    const two = await depot.subscriber({ url: receiver.hook() })
    for (const [payload, consumer, priority] of [
      ['a0', one, 0],
      ['b0', two, 0],
      ['c9', two, 9],
      ['d0', one, 0],
      ['e5', one, 5],
      ['f9', one, 9],
    ] as const) {
      await depot.message([consumer], { payload, priority })
      depot.clock.advance(1n)
    }
    depot.courier({ workers: 1 })
    await receiver.gets(6)
    expect(bodies(receiver)).toEqual(['c9', 'f9', 'e5', 'a0', 'b0', 'd0'])
  })

  it('delivers each job once when several servers share the store', async () => {
    const receiver = await depot.receiver()
    const consumers = [
      await depot.subscriber({ url: receiver.hook() }),
      await depot.subscriber({ url: receiver.hook() }),
    ]
    for (let i = 0; i < 40; i++) await depot.message(consumers, { payload: `m${i}` })
    const couriers = [depot.courier({ workers: 8 }), depot.courier({ workers: 8 }, { another: true })]
    await depot.until(...Array.from({ length: 80 }, () => JOB.delivered))
    expect(receiver.requests).toHaveLength(80)
    await expect.poll(() => couriers.map(({ held }) => held), SOON).toEqual([0, 0])
    expect(await depot.counted(consumers[0] ?? expect.fail())).toEqual({ delivered: 40 })
  })

  it('leaves pull consumers alone, also those that became one, and follows a changed address', async () => {
    const old = await depot.receiver()
    const receiver = await depot.receiver()
    const pulls = await depot.subscriber({ url: old.hook(), type: 'pull' })
    const turned = await depot.subscriber({ url: old.hook() })
    const moved = await depot.subscriber({ url: old.hook() })
    const courier = depot.courier()
    await depot.rest()
    await depot.change(turned, 'pull', old.hook())
    await depot.change(moved, 'push', receiver.hook())
    await depot.message([pulls, turned, moved])
    courier.wake([pulls.number, turned.number, moved.number])
    await depot.until(JOB.ready, JOB.ready, JOB.delivered)
    expect(old.requests).toHaveLength(0)
    expect(receiver.requests).toHaveLength(1)
  })

  it('gives a consumer no more at once than its limit, and no more in a second than its rate', async () => {
    const held: ServerResponse[] = []
    const slow = await depot.receiver((response) => held.push(response))
    const quick = await depot.receiver()
    const limited = await depot.subscriber({ url: slow.hook(), mostAtOnce: 2 })
    const rated = await depot.subscriber({ url: quick.hook(), mostPerSecond: 2 })
    for (let i = 0; i < 5; i++) await depot.message([limited, rated])
    depot.courier()
    await slow.gets(2)
    await quick.gets(1)
    await depot.rest()
    expect([slow.requests.length, quick.requests.length]).toEqual([2, 1])
    held[0]?.writeHead(200).end()
    await slow.gets(3)
    for (const seen of [2, 3, 4, 5]) {
      depot.clock.advance(499_000n)
      await depot.rest()
      expect(quick.requests).toHaveLength(seen - 1)
      depot.clock.advance(1_002n)
      await quick.gets(seen)
    }
    expect(slow.requests).toHaveLength(3)
  })

  it('lets no consumer that hangs slow down another one', async () => {
    const hangs = await depot.receiver(() => {})
    const receiver = await depot.receiver()
    const stuck = await depot.subscriber({ url: hangs.hook() })
    const alsoStuck = await depot.subscriber({ url: hangs.hook() })
    const fine = await depot.subscriber({ url: receiver.hook() })
    for (let i = 0; i < 12; i++) await depot.message([stuck, alsoStuck])
    const courier = depot.courier({ workers: 8 })
    await hangs.gets(2)
    await depot.rest()
    for (let i = 0; i < 12; i++) await depot.message([fine], { payload: `${i}` })
    courier.wake([fine.number])
    await receiver.gets(12)
    // After their first timeouts they are trusted with one attempt at a time.
    depot.clock.advance(30_000_001n)
    await expect.poll(() => hangs.openConnections, SOON).toBeLessThanOrEqual(2)
  })

  it('makes no more attempts at once than it has workers, however quick they are', async () => {
    let open = 0
    let most = 0
    const receiver = await depot.receiver((response) => {
      most = Math.max(most, ++open)
      setImmediate(() => {
        open -= 1
        response.writeHead(200).end()
      })
    })
    const consumers: Consumer[] = []
    for (let i = 0; i < 4; i++)
      consumers.push(await depot.subscriber({ url: receiver.hook(), mostAtOnce: 4 }))
    for (let i = 0; i < 25; i++) await depot.message(consumers)
    depot.courier({ workers: 4 })
    await receiver.gets(100)
    expect(most).toBeLessThanOrEqual(4)
  })

  it('reads a consumer anew for each attempt: it may have moved, or pull now, while others were under way', async () => {
    const held: ServerResponse[] = []
    let isQuick = true
    const receiver = await depot.receiver((response) => {
      if (isQuick) response.writeHead(200).end()
      else held.push(response)
    })
    const other = await depot.receiver((response) => held.push(response))
    const consumer = await depot.subscriber({ url: receiver.hook(), mostAtOnce: 2 })
    const courier = depot.courier()
    await depot.message([consumer, consumer])
    courier.wake([consumer.number])
    await depot.until(JOB.delivered, JOB.delivered)
    isQuick = false
    for (let i = 0; i < 6; i++) await depot.message([consumer])
    courier.wake([consumer.number])
    await receiver.gets(4)
    await depot.rest()
    // Time stands still from here on.
    await depot.change(consumer, 'push', other.hook())
    held.shift()?.writeHead(200).end()
    await other.gets(1)
    await depot.change(consumer, 'pull', other.hook())
    for (const response of held.splice(0)) response.writeHead(200).end()
    const { delivered, ready } = JOB
    const states = async () => (await depot.jobRows()).map(({ state }) => state).sort()
    await expect.poll(states, SOON).toEqual([ready, ready, ready, ...Array(5).fill(delivered)].sort())
    expect([receiver.requests.length, other.requests.length]).toEqual([4, 1])
  })

  it.runIf(store.name === 'postgres')('tells other servers of what it does not get to', async () => {
    const held: ServerResponse[] = []
    const receiver = await depot.receiver((response) => held.push(response))
    const consumer = await depot.subscriber({ url: receiver.hook() })
    await depot.message([consumer])
    const busy = depot.courier({ workers: 1 })
    await receiver.gets(1)
    depot.courier({ workers: 8 }, { another: true })
    // Time stands still: after its first look the other one gets only what it is told of, once it listens.
    for (const all of [2, 3]) {
      await depot.message([consumer])
      const arrived = () => {
        busy.wake([consumer.number])
        return receiver.requests.length
      }
      await expect.poll(arrived, SOON).toBe(all)
    }
    await busy.stop(0)
    await receiver.gets(4)
  })

  it('ignores a result that comes after its claim is over', async () => {
    const held: ServerResponse[] = []
    const receiver = await depot.receiver((response) => held.push(response))
    const consumer = await depot.subscriber({ url: receiver.hook() })
    await depot.message([consumer])
    const courier = depot.courier()
    await receiver.gets(1)
    const [job] = await depot.jobRows()
    expect(job).toMatchObject({ state: JOB.inFlight, claim: expect.any(String) })
    await depot.db.session('test', (session) => session.run(stealClaim))
    held[0]?.writeHead(200).end()
    await expect.poll(() => courier.held, SOON).toBe(0)
    expect(await depot.jobRows()).toMatchObject([{ state: JOB.inFlight, claim: 'another', attempts: 0 }])
    expect(await depot.counted(consumer)).toEqual({ inFlight: 1 })
  })

  it('begins nothing that it has held for too long already', async () => {
    const startedAt = depot.clock.now()
    const calledAt: bigint[] = []
    const receiver = await depot.receiver((response) => {
      calledAt.push(depot.clock.now() - startedAt)
      response.writeHead(200).end()
    })
    const consumer = await depot.subscriber({ url: receiver.hook() })
    await depot.message([consumer])
    let stalls = 0
    depot.db.onCall(({ verb }) => {
      if (verb !== 'webhooks.claim' || stalls === 3) return
      stalls += 1
      depot.clock.advance(20_000_000n)
    })
    depot.courier({ timeoutSeconds: 30 })
    expect(await depot.until(JOB.delivered)).toMatchObject([{ attempts: 0, letter: null }])
    expect(calledAt).toEqual([60_000_000n])
  })

  it('waits for what runs when it is stopped, and hands back what runs too long', async () => {
    const held: ServerResponse[] = []
    const receiver = await depot.receiver((response) => held.push(response))
    const consumer = await depot.subscriber({ url: receiver.hook(), mostAtOnce: 2 })
    for (let i = 0; i < 3; i++) await depot.message([consumer])
    const courier = depot.courier()
    await receiver.gets(2)
    const stopped = courier.stop(100)
    held[0]?.writeHead(200).end()
    await stopped
    const jobs = await depot.jobRows()
    expect(jobs.map(({ state }) => state).sort()).toEqual([JOB.ready, JOB.ready, JOB.delivered])
    expect(jobs).toEqual(jobs.map((job) => ({ ...job, attempts: 0, claim: null, dueAt: null })))
    expect(courier.held).toBe(0)
    expect(await depot.counted(consumer)).toEqual({ queued: 2, delivered: 1 })
    await receiver.allClosed()
    expect(receiver.requests).toHaveLength(2)
  })

  it('writes results down when the store is back, and makes no attempt twice for that', async () => {
    const held: ServerResponse[] = []
    const receiver = await depot.receiver((response) => held.push(response))
    const consumer = await depot.subscriber({ url: receiver.hook() })
    await depot.message([consumer])
    const courier = depot.courier()
    await receiver.gets(1)
    await depot.place.refuseWrites()
    held[0]?.writeHead(200).end()
    await expect.poll(() => depot.log.lines.length, SOON).toBeGreaterThan(0)
    expect(courier.held).toBe(1)
    await depot.place.acceptWrites()
    await depot.until(JOB.delivered)
    expect(receiver.requests).toHaveLength(1)
  })
})
