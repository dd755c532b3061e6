/** A store in trouble while webhooks are delivered: nothing is lost, everything goes on by itself, and the log stays readable. */
import { setTimeout as pause } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { Lane } from '../conformance/webhooks/lane.ts'
import { PATIENCE_MS } from '../world/limits.ts'
import { ServerLog } from '../world/logs.ts'
import { type Door, doorTo } from '../world/proxy.ts'
import { seededRandom } from '../world/random.ts'
import { overlaid } from '../world/server.ts'
import { type FreshStore, freshPostgres, stores } from '../world/stores.ts'
import { Broker, expectRefusal, QUICK } from '../world/webhooks/broker.ts'
import { expectVerified, HeldCalls, statesOf } from './faults-bench.ts'

/** A consumer that is new gets no more at a time. */
const MANY = 8

describe.each(stores)('a $name store that takes no writes for a while', (kind) => {
  let broker: Broker
  let said: ServerLog

  beforeEach(async () => {
    said = new ServerLog('warn')
    const webhooks = overlaid(QUICK, { delivery: { maxRetry: 1 } })
    broker = await Broker.start(kind, { webhooks, log: said.log })
  })
  afterEach(() => broker.stop())

  const settled = () =>
    vi.waitFor(() => expect(broker.office.webhooks.courier.held).toBe(0), {
      timeout: PATIENCE_MS,
    })

  it('gets what came of deliveries when it does, and none is made again', async () => {
    const fine = await Lane.open(broker, 'push')
    const failing = await Lane.open(broker, 'push')
    const doomed = await Lane.open(broker, 'push')
    broker.receiver.answer(doomed.hook, { status: 500 })
    await doomed.broadcast('doomed')
    // Its first attempt is over; a machine that is busy elsewhere looks like a broker at rest.
    await vi.waitFor(() => expect(doomed.callbacks()).toHaveLength(1), { timeout: PATIENCE_MS })
    await settled()
    await broker.settle()
    const calls = [fine, failing, doomed].map((lane) => new HeldCalls(lane))
    for (let i = 0; i < MANY; i++) await fine.broadcast(`${i}`)
    await failing.broadcast('failing')
    await broker.office.advanceClock(1_100_000n)
    for (const [i, count] of [MANY, 1, 1].entries()) await calls[i]?.until(count)

    await broker.place.refuseWrites()
    for (const [i, status] of [204, 500, 500].entries()) calls[i]?.answer(status)
    await vi.waitFor(() => expect(said.lines.length).toBeGreaterThan(0), { timeout: PATIENCE_MS })
    await expectRefusal(500, 'internal error', fine.post('refused', { 'X-Broker-Message-ID': 'refused' }))
    expect((await broker.client.get(`${fine.channelPath}/message/refused`)).status).toBe(404)
    expect((await broker.client.get('/dlq-status')).status).toBe(200)
    // Each result is tried several times in a second, and told of once or together with the others.
    await pause(1_000)
    const told = (text: string) => said.count(text)
    expect(told('the result of a delivery could not be written')).toBeLessThanOrEqual(MANY + 2)
    expect(told('results of deliveries wait for the store')).toBeLessThan(10)
    expect(told('webhook jobs could not be claimed')).toBeLessThan(10)

    await broker.place.acceptWrites()
    await settled()
    expect(await doomed.deadCount()).toBe(1)
    for (const { hook } of [fine, failing]) broker.receiver.answer(hook, { status: 204 })
    await fine.broadcast('accepted')
    await broker.pass(3, 0.5)
    // Claims wait out the outage on the machine's own clock, and a broker that waits looks like one at rest.
    await broker.eventually(() =>
      expect([fine, failing, doomed].map((lane) => lane.callbacks().length)).toEqual([MANY + 1, 2, 2]),
    )
    expect(await statesOf(broker)).toEqual({ DELIVERED: MANY + 2, DEAD: 1 })
    await expectVerified(broker)
  })

  it('for longer than claims last makes deliveries be made again, and none be lost', async () => {
    const lane = await Lane.open(broker, 'push')
    const calls = new HeldCalls(lane)
    const ids: string[] = []
    for (let i = 0; i < MANY; i++) ids.push(await lane.broadcast(`${i}`))
    await calls.until(MANY)
    await broker.place.refuseWrites()
    calls.answer(204)
    await vi.waitFor(() => expect(said.lines.length).toBeGreaterThan(0), { timeout: PATIENCE_MS })
    await broker.office.advanceClock(20_000_000n)
    broker.receiver.answer(lane.hook, { status: 204 })
    await pause(100)
    await broker.place.acceptWrites()
    await settled()
    await broker.within(10, async () => expect(await statesOf(broker)).toEqual({ DELIVERED: MANY }), 0.5)
    // Some may have been written after all: their claims were over, but nobody had ended them.
    for (const id of ids) expect([1, 2]).toContain(lane.callbacks(id).length)
    await expectVerified(broker)
  })
})

describe('a PostgreSQL that goes away while webhooks are delivered', () => {
  const MESSAGES = 100
  const CUTS_MS = [20, 200, 1_500]
  let place: FreshStore
  let door: Door
  let broker: Broker
  let said: ServerLog

  beforeEach(async () => {
    place = await freshPostgres()
    door = await doorTo(place.url)
    said = new ServerLog('warn')
    const throughTheDoor = { name: 'postgres' as const, fresh: async () => ({ ...place, url: door.url }) }
    const delivery = { backoffSeconds: [0.3], rationalDelaySeconds: 0.3, timeoutSeconds: 1.5 }
    const options = { liveClock: true, log: said.log, webhooks: overlaid(QUICK, { delivery }) }
    broker = await Broker.start(throughTheDoor, options)
  })
  afterEach(async () => {
    door.open()
    await broker.stop()
    await door.close()
  })

  /** Sends until it is accepted, or was before. Gives what it was answered besides. */
  async function persist(lane: Lane, id: string): Promise<readonly string[]> {
    for (const refusals: string[] = []; ; ) {
      const { status, text } = await lane.post(`bytes of ${id}`, { 'X-Broker-Message-ID': id })
      if (status === 201 || (status === 409 && refusals.length > 0)) return refusals
      refusals.push(`${status} ${text}`)
      await pause(20)
    }
  }

  it('is waited for: all that was accepted arrives, and no job is left in anybody’s hands', async () => {
    const random = seededRandom()
    const lanes = [await Lane.open(broker, 'push')]
    if (lanes[0] !== undefined) lanes.push(await lanes[0].beside('push'))
    for (const { hook } of lanes)
      broker.receiver.answer(hook, async () => {
        await pause(random.whole(0, 60))
        return { status: random.chance(0.1) ? 500 : 204 }
      })
    const [lane] = lanes
    if (lane === undefined) return expect.fail('there are two')
    const ids = Array.from({ length: MESSAGES }, (_, i) => `m-${i}`)
    const left = [...ids]
    const refusals: string[] = []
    const send = async () => {
      for (let id = left.pop(); id !== undefined; id = left.pop()) {
        refusals.push(...(await persist(lane, id)))
        await pause(random.whole(0, 60))
      }
    }
    const sending = Promise.all(Array.from({ length: 4 }, send))
    for (const cutMs of CUTS_MS) {
      const seen = broker.receiver.requests.length
      await vi.waitFor(() => expect(broker.receiver.requests.length).toBeGreaterThan(seen + 10), {
        timeout: PATIENCE_MS,
      })
      door.shut()
      await pause(cutMs)
      door.open()
    }
    await sending
    expect(new Set(refusals)).toEqual(new Set(['500 internal error']))
    // Beside calls that failed: everybody who looks for something says once in each round that it could not.
    const told = said.lines.length - said.count('call failed')
    expect(told, JSON.stringify([...said.counts])).toBeLessThan(100)
    expect(said.count('call failed')).toBe(refusals.length)
    const done = { DELIVERED: MESSAGES * lanes.length }
    await vi.waitFor(async () => expect(await statesOf(broker)).toEqual(done), {
      timeout: PATIENCE_MS,
      interval: 100,
    })
    // A commit is seen before whoever made it hears of it.
    await vi.waitFor(() => expect(broker.office.webhooks.courier.held).toBe(0), {
      timeout: PATIENCE_MS,
    })
    for (const each of lanes)
      for (const id of ids) {
        const calls = each.callbacks(id)
        expect(calls.length, id).toBeGreaterThan(0)
        for (const { body } of calls) expect(body.toString()).toBe(`bytes of ${id}`)
      }
    await expectVerified(broker)
  })
})
