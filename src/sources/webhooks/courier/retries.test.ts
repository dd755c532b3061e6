import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { type StoreKind, stores } from '../../../../test/world/stores.ts'
import { Depot } from '../../../../test/world/webhooks/couriers.ts'
import { microseconds } from '../../../core/clock.ts'
import { JOB } from '../webhook.ts'

describe.each(stores)('a job that is not delivered, on $name', (store: StoreKind) => {
  let depot: Depot
  beforeAll(async () => {
    depot = await Depot.open(store)
  })
  afterEach(() => depot.clear())
  afterAll(() => depot.close())

  it('is tried again after each delay and never before, and dies with its letter when its attempts are used up', async () => {
    const at: bigint[] = []
    const receiver = await depot.receiver((response) => {
      at.push(depot.clock.now())
      response.writeHead(503).end('not now')
    })
    const consumer = await depot.subscriber({ url: receiver.hook('/hook?key=1') })
    const [id] = await depot.message([consumer], { messageId: 'mine' })
    const begin = depot.clock.now()
    depot.courier({ maxRetry: 3, backoffSeconds: [5, 30] })
    for (const [attempts, delay] of [5, 30, 60].entries()) {
      await receiver.gets(attempts + 1)
      const [job] = await depot.until(JOB.later)
      expect(job).toMatchObject({ attempts: attempts + 1, claim: null, letter: expect.any(BigInt) })
      expect(job?.dueAt).toBe(depot.clock.now() + microseconds(delay))
      depot.clock.advance(microseconds(delay) - 1n)
      await depot.rest()
      expect(receiver.requests).toHaveLength(attempts + 1)
      depot.clock.advance(2n)
    }
    const [dead] = await depot.until(JOB.dead)
    expect(dead).toMatchObject({ attempts: 3, exhausted: true, claim: null })
    expect(at.map((each) => each - begin)).toEqual([0n, 5_000_001n, 35_000_002n, 95_000_003n])
    const error_message = `POST ${receiver.hook('/hook')} answered 503 Service Unavailable: not now`
    expect(await depot.letterRows()).toMatchObject([
      { source_id: id, reason: 'attempts', error_class: 'HttpStatus', error_message, dequeue_count: 4 },
    ])
    expect(await depot.failures()).toEqual(Array(3).fill(`HttpStatus: ${error_message}`))
    expect(await depot.counted(consumer)).toEqual({})
    await depot.passInSteps(200, 20)
    expect(receiver.requests).toHaveLength(4)
  })

  it('dies at its first failure when there are no retries', async () => {
    const receiver = await depot.receiver((response) => void response.writeHead(404).end())
    const consumer = await depot.subscriber({ url: receiver.hook() })
    await depot.message([consumer])
    depot.courier({ maxRetry: 0 })
    expect(await depot.until(JOB.dead)).toMatchObject([{ attempts: 0, exhausted: true }])
    expect(receiver.requests).toHaveLength(1)
  })

  it('leaves nothing of its failures when it is delivered after all', async () => {
    let answers = 0
    const receiver = await depot.receiver(
      (response) => void response.writeHead(answers++ === 0 ? 500 : 200).end(),
    )
    const consumer = await depot.subscriber({ url: receiver.hook() })
    await depot.message([consumer])
    depot.courier()
    await depot.until(JOB.later)
    expect(await depot.failures()).toHaveLength(1)
    depot.clock.advance(5_000_001n)
    expect(await depot.until(JOB.delivered)).toMatchObject([{ attempts: 1 }])
    expect(await depot.failures()).toEqual([])
    expect(await depot.letterRows()).toEqual([])
  })

  it('is delivered by any server when it is due, once', async () => {
    const receiver = await depot.receiver((response) => void response.writeHead(500).end())
    const consumer = await depot.subscriber({ url: receiver.hook() })
    for (let i = 0; i < 10; i++) await depot.message([consumer])
    const delivery = { maxRetry: 2, backoffSeconds: [1], rationalDelaySeconds: 1 }
    depot.courier(delivery)
    depot.courier(delivery, { another: true })
    const later = Array(10).fill(JOB.later)
    await depot.until(...later)
    depot.clock.advance(1_000_001n)
    await receiver.gets(20)
    await depot.until(...later)
    depot.clock.advance(2_000_001n)
    await depot.until(...Array(10).fill(JOB.dead))
    await depot.passInSteps(10, 5)
    expect(receiver.requests).toHaveLength(30)
    expect(await depot.letterRows()).toHaveLength(10)
  })

  it('waits for ever without recovery', async () => {
    const receiver = await depot.receiver((response) => void response.writeHead(500).end())
    const consumer = await depot.subscriber({ url: receiver.hook() })
    await depot.message([consumer])
    depot.courier({}, { recovery: false })
    await depot.until(JOB.later)
    await depot.passInSteps(100, 25)
    expect(receiver.requests).toHaveLength(1)
  })

  it('fits four of them through one worker, each once before the first is due again', async () => {
    const receiver = await depot.receiver((response) => void response.writeHead(500).end())
    const consumer = await depot.subscriber({ url: receiver.hook() })
    for (const payload of ['a', 'b', 'c', 'd']) await depot.message([consumer], { payload })
    depot.courier({ workers: 1, backoffSeconds: [30] })
    await depot.until(...Array(4).fill(JOB.later))
    await depot.passInSteps(25, 5)
    expect(receiver.requests.map(({ body }) => body.toString())).toEqual(['a', 'b', 'c', 'd'])
  })

  describe('because its claim was left', () => {
    const claimed = { state: JOB.inFlight, claim: 'left' } as const

    it('is tried again after a delay and never dies of it, when it is pushed', async () => {
      const receiver = await depot.receiver()
      const consumer = await depot.subscriber({ url: receiver.hook() })
      const dueAt = depot.clock.now() + 10_000_000n
      await depot.message([consumer], { ...claimed, dueAt, attempts: 9 })
      depot.courier({ backoffSeconds: [5] })
      depot.clock.advance(9_999_999n)
      await depot.rest()
      expect(await depot.jobRows()).toMatchObject([{ state: JOB.inFlight }])
      const isIn = (state: number) => async () => (await depot.jobRows())[0]?.state === state
      await depot.passUntil(isIn(JOB.later))
      expect(await depot.until(JOB.later)).toMatchObject([{ attempts: 10, claim: null }])
      expect(await depot.failures()).toEqual([expect.stringContaining('ClaimLapsed: the server')])
      expect(await depot.counted(consumer)).toEqual({ queued: 1 })
      const begin = depot.clock.now()
      await depot.passUntil(isIn(JOB.delivered), 5)
      expect(depot.clock.now() - begin).toBeGreaterThanOrEqual(45_000_000n)
      expect(receiver.requests).toHaveLength(1)
    })

    it('is there again at once, and dies when its attempts are used up, when it is pulled', async () => {
      const consumer = await depot.subscriber({ url: 'http://localhost', type: 'pull' })
      const dueAt = depot.clock.now()
      await depot.message([consumer], { ...claimed, dueAt, attempts: 4 })
      await depot.message([consumer], { ...claimed, dueAt, attempts: 5 })
      await depot.message([consumer])
      depot.courier({ maxRetry: 5 })
      const [back, dead, never] = await depot.until(JOB.ready, JOB.dead, JOB.ready)
      expect(back).toMatchObject({ attempts: 5, claim: null, dueAt: null })
      expect(dead).toMatchObject({ attempts: 5, exhausted: true })
      expect(never).toMatchObject({ attempts: 0 })
      expect(await depot.letterRows()).toMatchObject([{ reason: 'attempts', error_class: 'ClaimLapsed' }])
      expect(await depot.counted(consumer)).toEqual({ queued: 2 })
    })
  })
})
