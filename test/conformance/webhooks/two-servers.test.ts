/** Two servers on one store: what is tried is tried by one of them, and what is changed at one holds at the other at once. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Broker } from '../../world/webhooks/broker.ts'
import { brokers, expectRefusal, expectStatus, type Headers, Lane } from './bed.ts'

const JOBS = 200
/** The waits between attempts, and how much later than due one starts at the most. */
const DELAYS = [1, 2, 3, 4, 5]
const LATEST_SECONDS = 3
const STEP_SECONDS = 1

brokers('two servers', (ground) => {
  let second: Broker

  beforeAll(async () => {
    second = await Broker.start(ground().kind, { beside: ground(), webhooks: ground().webhooks })
  })
  afterAll(() => second?.stop())

  it(`make six attempts each at ${JOBS} jobs that fail, and none too early`, async () => {
    const lane = await Lane.open(ground(), 'push')
    ground().receiver.answer(lane.hook, { status: 503 })
    const ids = await Promise.all(
      Array.from({ length: JOBS }, (_, n) => (n % 2 === 0 ? lane : lane.at(second)).broadcast(`${n}`)),
    )
    await ground().within(
      40,
      async () => {
        expect(await lane.deadCount()).toBe(JOBS)
      },
      STEP_SECONDS,
    )
    expect(await lane.at(second).deadCount()).toBe(JOBS)
    for (const id of ids) {
      const times = lane.callbacks(id).map(({ at }) => Number(at) / 1e6)
      const gaps = times.slice(1).map((at, i) => at - (times[i] ?? 0))
      expect(gaps).toHaveLength(DELAYS.length)
      for (const [i, gap] of gaps.entries()) {
        expect(gap).toBeGreaterThanOrEqual(DELAYS[i] ?? 0)
        expect(gap).toBeLessThanOrEqual((DELAYS[i] ?? 0) + LATEST_SECONDS + STEP_SECONDS)
      }
    }
    const purged = await Promise.all([lane.purge(), lane.at(second).purge()])
    const counts = purged.map((answer) => answer.json<{ deletedCount: number }>().deletedCount)
    expect(counts.reduce((sum, count) => sum + count)).toBe(JOBS)
    expect([await lane.deadCount(), await lane.at(second).deadCount()]).toEqual([0, 0])
  })

  describe('know at once what was changed at the other:', () => {
    const change = async (path: string, form: Record<string, string>) => {
      const { client } = ground()
      const { headers } = await client.get(path)
      const since = { 'If-Unmodified-Since': headers['last-modified'] ?? '' }
      await expectStatus(200, client.put(path, form, since))
    }

    it('the tokens of those who send', async () => {
      const lane = await Lane.open(ground(), 'pull')
      const there = lane.at(second)
      await expectStatus(201, there.post('x'))
      await change(lane.channelPath, { token: 'new channel token' })
      await expectRefusal(403, 'channel token does not match', there.post('x'))
      const known: Headers = { 'X-Broker-Channel-Token': 'new channel token' }
      await expectStatus(201, there.post('x', known))
      await change(`/producer/${lane.producer}`, { token: 'new producer token' })
      await expectRefusal(403, 'producer token does not match', there.post('x', known))
      await expectStatus(201, there.post('x', { ...known, 'X-Broker-Producer-Token': 'new producer token' }))
    })

    it('who receives, and that somebody does not any more', async () => {
      const lane = await Lane.open(ground(), 'pull')
      await lane.at(second).broadcast('one')
      const late = await lane.beside('pull')
      const messageId = await lane.at(second).broadcast('two')
      await late.at(second).jobOf(messageId)
      await change(lane.path, { token: 'new', type: 'pull', callbackUrl: 'http://127.0.0.1:1/x' })
      const queued = second.client.get(`${lane.path}/queued-jobs`, lane.tokens)
      await expectRefusal(403, 'consumer token does not match', queued)
      const empty = await lane.beside('pull')
      const { headers } = await ground().client.get(empty.path)
      const since = { 'If-Unmodified-Since': headers['last-modified'] ?? '' }
      await expectStatus(204, ground().client.delete(empty.path, since))
      await lane.at(second).broadcast('three')
      await expectRefusal(404, 'Request resource not found', second.client.get(empty.path))
    })

    it('where and how a consumer wants the next attempt', async () => {
      const lane = await Lane.open(ground(), 'push')
      const { receiver } = ground()
      receiver.answer(lane.hook, { status: 500 })
      const messageId = await lane.at(second).broadcast('moving')
      await lane.delivered(messageId)
      const moved = `${lane.hook}/moved`
      receiver.answer(moved, { status: 500 })
      await change(lane.path, { token: 'moved', callbackUrl: receiver.url + moved })
      await ground().within(5, () => {
        expect(receiver.at(moved, messageId)).toHaveLength(1)
      })
      expect(receiver.at(moved)[0]?.headers['x-broker-consumer-token']).toBe('moved')

      // One that pulls gets no more callbacks: its jobs wait for it, due or not.
      await change(lane.path, { token: lane.consumerToken, type: 'pull', callbackUrl: receiver.url + moved })
      await ground().pass(10, STEP_SECONDS)
      expect([lane.callbacks().length, receiver.at(moved).length]).toEqual([1, 1])
      await lane.at(second).jobOf(messageId)

      // One that is called again gets what has waited.
      receiver.answer(moved, { status: 204 })
      await change(lane.path, { token: lane.consumerToken, type: 'push', callbackUrl: receiver.url + moved })
      await ground().within(5, () => {
        expect(receiver.at(moved)).toHaveLength(2)
      })
      await ground().pass(10, STEP_SECONDS)
      expect([lane.callbacks().length, receiver.at(moved).length]).toEqual([1, 2])
    })
  })
})
