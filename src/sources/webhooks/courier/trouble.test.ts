/** A courier whose store fails it, or that is stopped in the middle of something. */
import type { ServerResponse } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { Gate, type Intercept, intercepted, overriding } from '../../../../test/world/intercepted-database.ts'
import { SOON } from '../../../../test/world/store-world.ts'
import { type StoreKind, stores } from '../../../../test/world/stores.ts'
import { Depot } from '../../../../test/world/webhooks/couriers.ts'
import {
  type Database,
  StoreUnavailable,
  sql,
  type Transaction,
  type Value,
} from '../../../store/database.ts'
import { type Consumer, JOB } from '../webhook.ts'

/** More than a stop may take that has nothing to wait for but the store. */
const STOP_MS = 4_000
const NOT_WRITTEN = 'the result of a delivery could not be written'

describe.each(stores)('a courier, on $name', (store: StoreKind) => {
  let depot: Depot
  beforeAll(async () => {
    depot = await Depot.open(store)
  })
  afterEach(() => depot.clear())
  afterAll(() => depot.close())

  const told = (message: string) => depot.log.lines.filter((line) => line.message === message)

  /** A consumer whose calls wait for their answers. */
  const holding = async (messages: number) => {
    const held: ServerResponse[] = []
    const receiver = await depot.receiver((response) => held.push(response))
    const consumer = await depot.subscriber({ url: receiver.hook() })
    for (let i = 0; i < messages; i++) await depot.message([consumer])
    const answer = () => {
      for (const response of held.splice(0)) response.writeHead(200).end()
    }
    return { receiver, consumer, answer }
  }

  /** The store, and a switch that takes it away. */
  const switched = () => {
    const state = { isAway: false }
    const db = intercepted(depot.db, () => {
      if (state.isAway) throw new StoreUnavailable('it is away')
    })
    return { db, state }
  }

  describe('whose store is away', () => {
    it('writes a result when it is back, however long the claim is over, unless somebody has ended it', async () => {
      const { db, state } = switched()
      const { receiver, answer } = await holding(2)
      const courier = depot.courier({}, { db, recovery: false })
      await receiver.gets(2)
      state.isAway = true
      answer()
      const isToldOf = () => told('results of deliveries wait for the store').length
      await expect.poll(isToldOf, SOON).toBeGreaterThan(0)
      depot.clock.advance(3_600_000_000n)
      const before = isToldOf()
      await expect.poll(isToldOf).toBeGreaterThan(before)
      expect(courier.held).toBe(2)
      state.isAway = false
      expect(await depot.until(JOB.delivered, JOB.delivered)).toMatchObject([
        { attempts: 0 },
        { attempts: 0 },
      ])
      expect(receiver.requests).toHaveLength(2)
    })

    it('stops soon, and leaves what it holds to its claim', async () => {
      const { db, state } = switched()
      const { receiver, answer } = await holding(1)
      const courier = depot.courier({}, { db })
      await receiver.gets(1)
      state.isAway = true
      answer()
      await expect.poll(() => depot.log.lines.length, SOON).toBeGreaterThan(0)
      const startedMs = performance.now()
      await courier.stop()
      expect(performance.now() - startedMs).toBeLessThan(STOP_MS)
      state.isAway = false
      await pause(300)
      expect(await depot.jobRows()).toMatchObject([{ state: JOB.inFlight, claim: expect.any(String) }])
    })

    it('still writes what it can when the store is back before it has stopped', async () => {
      const { db, state } = switched()
      const { receiver, answer } = await holding(1)
      const courier = depot.courier({}, { db })
      await receiver.gets(1)
      state.isAway = true
      answer()
      await expect.poll(() => depot.log.lines.length, SOON).toBeGreaterThan(0)
      const stopped = courier.stop()
      await pause(200)
      state.isAway = false
      await stopped
      expect(await depot.jobRows()).toMatchObject([{ state: JOB.delivered }])
      expect(courier.held).toBe(0)
    })

    it('is not held up for ever by one that does not answer', async () => {
      const gate = new Gate(({ verb }) => verb === 'webhooks.settle')
      const { receiver, answer } = await holding(1)
      const courier = depot.courier({}, { db: intercepted(depot.db, gate.intercept) })
      await receiver.gets(1)
      answer()
      await gate.reached
      const startedMs = performance.now()
      await courier.stop(300)
      expect(performance.now() - startedMs).toBeLessThan(STOP_MS)
      gate.open()
    })
  })

  describe('one of whose results the store does not take', () => {
    /** The store, in which what came of this job cannot be written. */
    const without = (id: string): Database => {
      const isBad = (value: Value): boolean => Array.isArray(value) && value.includes(id)
      const refusing = (tx: Transaction): Transaction =>
        overriding(tx, {
          rows: (statement, ...values) =>
            values.some(isBad) ? Promise.reject(new Error('not this one')) : tx.rows(statement, ...values),
        })
      return overriding(depot.db, {
        transaction: (verb, work) =>
          depot.db.transaction(verb, (tx) => work(verb === 'webhooks.settle' ? refusing(tx) : tx)),
      })
    }

    it('writes the others, tells of it once, and gives it up when its claim is over', async () => {
      const { receiver, consumer, answer } = await holding(4)
      const [bad = ''] = await depot.message([consumer])
      const courier = depot.courier({}, { db: without(bad), recovery: false })
      await receiver.gets(5)
      answer()
      await depot.until(...Array(4).fill(JOB.delivered), JOB.inFlight)
      await pause(300)
      expect(courier.held).toBe(1)
      expect(told(NOT_WRITTEN)).toMatchObject([{ level: 'error', details: { jobId: bad } }])
      depot.clock.advance(60_000_000n)
      await expect.poll(() => courier.held, { interval: 20 }).toBe(0)
      expect(receiver.requests).toHaveLength(5)
    })

    it('stops soon all the same', async () => {
      const { receiver, answer } = await holding(1)
      const [{ id } = { id: '' }] = await depot.jobRows()
      const courier = depot.courier({}, { db: without(id) })
      await receiver.gets(1)
      answer()
      await expect.poll(() => told(NOT_WRITTEN).length, SOON).toBe(1)
      const startedMs = performance.now()
      await courier.stop()
      expect(performance.now() - startedMs).toBeLessThan(STOP_MS)
      expect(await depot.jobRows()).toMatchObject([{ state: JOB.inFlight }])
    })
  })

  it('hands back what it claims while it is being stopped, and begins none of it', async () => {
    const gate = new Gate(({ verb, next }) => verb === 'webhooks.claim' && next === 'committed')
    const { receiver, consumer } = await holding(3)
    const courier = depot.courier({}, { db: intercepted(depot.db, gate.intercept) })
    await gate.reached
    const stopped = courier.stop()
    gate.open()
    await stopped
    const back = { state: JOB.ready, attempts: 0, claim: null, dueAt: null, letter: null }
    expect(await depot.jobRows()).toMatchObject([back, back, back])
    expect(await depot.counted(consumer)).toEqual({ queued: 3 })
    expect(receiver.requests).toHaveLength(0)
    expect(courier.held).toBe(0)
  })

  it('hands back what it cannot read the messages of, and tries again', async () => {
    let failures = 2
    const failing: Intercept = ({ verb }) => {
      if (verb === 'webhooks.contents' && failures-- > 0) throw new Error('it cannot be read')
    }
    const receiver = await depot.receiver()
    const consumer = await depot.subscriber({ url: receiver.hook() })
    await depot.message([consumer])
    depot.courier({}, { db: intercepted(depot.db, failing) })
    expect(await depot.until(JOB.delivered)).toMatchObject([{ attempts: 0, letter: null }])
    expect(told('webhook jobs could not be claimed')).toHaveLength(2)
  })

  it('goes on when jobs can be claimed again', async () => {
    let failures = 2
    const failing: Intercept = ({ verb }) => {
      if (verb === 'webhooks.claim' && failures-- > 0) throw new StoreUnavailable('it is away')
    }
    const receiver = await depot.receiver()
    const consumer = await depot.subscriber({ url: receiver.hook() })
    await depot.message([consumer])
    depot.courier({}, { db: intercepted(depot.db, failing) })
    await depot.until(JOB.delivered)
    expect(told('webhook jobs could not be claimed')).toMatchObject([{ level: 'error' }, { level: 'error' }])
  })

  it('fails a job whose message is gone', async () => {
    const receiver = await depot.receiver()
    const consumer = await depot.subscriber({ url: receiver.hook() })
    await depot.message([consumer])
    await depot.db.session('test', (session) => session.run(eraseMessages))
    depot.courier()
    expect(await depot.until(JOB.later)).toMatchObject([{ attempts: 1 }])
    expect(await depot.failures()).toEqual(['MessageGone: the message of the job does not exist any more'])
    expect(receiver.requests).toHaveLength(0)
  })

  it('fails an attempt when its time is over, or its claim before that', async () => {
    const { receiver } = await holding(1)
    depot.courier({ timeoutSeconds: 3, rationalDelaySeconds: 100, backoffSeconds: [1_000] })
    await receiver.gets(1)
    depot.clock.advance(2_999_999n)
    await depot.rest()
    expect(await depot.jobRows()).toMatchObject([{ state: JOB.inFlight }])
    depot.clock.advance(2n)
    await depot.until(JOB.later)
    expect(await depot.failures()).toEqual([expect.stringContaining('Timeout: POST')])

    const late = await holding(1)
    let stalls = 0
    depot.db.onCall(({ verb }) => {
      // The claim takes so long that less is left of it than an attempt may take.
      if (verb === 'webhooks.claim' && stalls++ === 0) depot.clock.advance(1_500_000n)
    })
    depot.courier({ timeoutSeconds: 3, rationalDelaySeconds: 0.001 }, { another: false, recovery: false })
    await late.receiver.gets(1)
    depot.clock.advance(1_751_003n)
    await depot.until(JOB.later, JOB.later)
  })

  it('takes many jobs with one claim while many attempts are under way', async () => {
    let claims = 0
    const counting: Intercept = ({ verb, next }) => {
      if (verb === 'webhooks.claim' && next === 'committed') claims += 1
    }
    const receiver = await depot.receiver()
    const consumers: Consumer[] = []
    for (let i = 0; i < 4; i++) consumers.push(await depot.subscriber({ url: receiver.hook() }))
    for (let i = 0; i < 100; i++) await depot.message(consumers)
    depot.courier({ workers: 64 }, { db: intercepted(depot.db, counting) })
    await receiver.gets(400)
    expect(claims).toBeLessThan(100)
  })
})

const eraseMessages = sql('test.courier.erase', 'DELETE FROM bartleby.webhook_messages')
