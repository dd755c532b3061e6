/** Attempts when servers or workers are fewer or more than one would wish: each is made once, and at its time. */
import { describe, expect, it, vi } from 'vitest'
import { later, microseconds } from '../../src/core/clock.ts'
import { Lane } from '../conformance/webhooks/lane.ts'
import { PATIENCE_MS } from '../world/limits.ts'
import { overlaid } from '../world/server.ts'
import { stores } from '../world/stores.ts'
import { Broker, QUICK } from '../world/webhooks/broker.ts'

const SCHEDULED = 30
/** The waits between attempts. */
const DELAYS = [1, 2, 3, 4, 5]

describe.each(stores)('on one $name store', (kind) => {
  it(`two servers dispatch ${SCHEDULED} scheduled messages once, and make six attempts at each`, async () => {
    const webhooks = overlaid(QUICK, { scheduler: { intervalMs: 1_000, minDelayMinutes: 0, batchSize: 10 } })
    const named = (userAgent: string) => ({ webhooks: overlaid(webhooks, { delivery: { userAgent } }) })
    const one = await Broker.start(kind, named('one'))
    const two = await Broker.start(kind, { beside: one, ...named('two') })
    try {
      const lane = await Lane.open(one, 'push')
      one.receiver.answer(lane.hook, { status: 503 })
      const ids: string[] = []
      for (let n = 0; n < SCHEDULED; n++) {
        const headers = { 'X-Broker-Scheduled-For': one.at(2 + (n % 3)) }
        ids.push(await (n % 2 === 0 ? lane : lane.at(two)).broadcast(`${n}`, headers))
      }
      expect(lane.callbacks()).toEqual([])
      await one.within(40, async () => expect(await lane.deadCount()).toBe(SCHEDULED), 0.5)
      await one.pass(10, 1)
      expect(await lane.at(two).deadCount()).toBe(SCHEDULED)
      for (const [n, id] of ids.entries()) {
        const [first, ...others] = lane.callbacks(id).map(({ at }) => at)
        expect(others).toHaveLength(DELAYS.length)
        let before = first ?? 0n
        for (const [i, at] of others.entries()) {
          expect(at - before, `attempt ${i + 2} of ${n}`).toBeGreaterThanOrEqual(microseconds(DELAYS[i] ?? 0))
          before = at
        }
      }
      const status = await two.client.get(`${lane.channelPath}/messages-status`)
      expect(status.json()).toMatchObject({
        counts: { DISPATCHED: { Count: SCHEDULED }, SCHEDULED_DISPATCHED: { Count: SCHEDULED } },
      })
      expect(new Set(lane.callbacks().map(({ headers }) => headers['user-agent'])).size).toBe(2)
    } finally {
      await two.stop()
      await one.stop()
    }
  })

  it('one worker brings four messages to a consumer that fails slowly once each, before the first is due again', async () => {
    const delivery = { workers: 1, backoffSeconds: [30], timeoutSeconds: 10 }
    const broker = await Broker.start(kind, { webhooks: overlaid(QUICK, { delivery }) })
    try {
      const { clock, office, receiver } = broker
      const lane = await Lane.open(broker, 'push')
      let waiting = 0
      receiver.answer(lane.hook, () => {
        const { promise, resolve } = Promise.withResolvers<{ status: number }>()
        waiting += 1
        clock.alarm(later(clock.now(), microseconds(3)), () => {
          waiting -= 1
          resolve({ status: 500 })
        })
        return promise
      })
      const startedAt = clock.now()
      const ids: string[] = []
      for (const body of ['a', 'b', 'c', 'd']) ids.push(await lane.broadcast(body))
      while (clock.now() < later(startedAt, microseconds(25))) {
        // The only worker is never idle as long as there is something to do; only then time passes.
        const isDone = () => lane.callbacks().length === ids.length
        await vi.waitFor(() => expect(waiting > 0 || isDone()).toBe(true), {
          timeout: PATIENCE_MS,
          interval: 2,
        })
        await office.advanceClock(500_000n)
      }
      await broker.settle()
      expect(lane.callbacks().map(({ body }) => body.toString())).toEqual(['a', 'b', 'c', 'd'])
      const [first = 0n, last = 0n] = [lane.callbacks()[0]?.at, lane.callbacks()[3]?.at]
      expect(last - first).toBeLessThan(microseconds(15))
    } finally {
      await broker.stop()
    }
  })
})
