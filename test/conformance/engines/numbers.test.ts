/** `GET /api/overview`, `/api/activity`, `/api/dlq/total`: the office in numbers, exact at every moment. */
import { describe, expect, it } from 'vitest'
import { hours, minutes } from '../../world/time.ts'
import { type Desk, micros, offices, only, unique } from './bed.ts'

interface Activity {
  readonly range: string
  readonly bucketSeconds: number
  readonly fromUtc: string
  readonly toUtc: string
  readonly series: Readonly<Record<string, readonly number[]>>
}

interface Overview {
  readonly asOfUtc: string
  readonly letters: Readonly<Record<string, number>>
  readonly oldestPending: {
    readonly engine: string
    readonly rowKey: string
    readonly lastFailureAtUtc: string
  }
  readonly arrivals: { readonly lastHour: number; readonly usualPerHour: number | null }
  readonly returnedLastDay: number
  readonly unconfirmed: number
  readonly sources: readonly Readonly<Record<string, unknown>>[]
}

const overview = (desk: Desk): Promise<Overview> => desk.ok('GET', '/api/overview')
const activity = (desk: Desk, query: Record<string, string>): Promise<Activity> =>
  desk.ok('GET', '/api/activity', { query })
const total = (desk: Desk, query: Record<string, string>): Promise<{ total: number; exact: boolean }> =>
  desk.ok('GET', '/api/dlq/total', { query })

/** What happened to letters of a queue in the last hours. */
async function sums(desk: Desk, originalQueue: string): Promise<Record<string, number>> {
  const { series } = await activity(desk, { range: '24h', originalQueue })
  const summed = Object.entries(series).map(([name, numbers]) => [name, numbers.reduce((a, b) => a + b)])
  return Object.fromEntries(summed.filter(([, sum]) => sum !== 0))
}

offices('the office in numbers', (desk) => {
  describe('activity', () => {
    it.each([
      ['1h', 60, 60],
      ['24h', 900, 96],
      ['7d', 3_600, 168],
      ['30d', 21_600, 120],
    ])('of %s has buckets of %d s, the last of which lasts still', async (range, bucketSeconds, buckets) => {
      await desk.capture()
      const { fromUtc, toUtc, series, ...told } = await activity(desk, { range })
      expect(told).toEqual({ range, bucketSeconds })
      expect(Object.keys(series).sort()).toEqual(
        ['arrived', 'confirmed', 'discarded', 'expired', 'retried', 'returned'].sort(),
      )
      for (const numbers of Object.values(series)) expect(numbers).toHaveLength(buckets)
      expect(series.arrived?.at(-1)).toBeGreaterThan(0)
      const [from, to, now] = [fromUtc, toUtc, micros(desk.clock.now)].map(
        (time) => Date.parse(time) / 1_000,
      ) as [
        // As many as there are times.
        number,
        number,
        number,
      ]
      expect(to - from).toBe(bucketSeconds * buckets)
      expect(now < to && now >= to - bucketSeconds).toBe(true)
      expect(from % bucketSeconds).toBe(0)
    })

    it('follows every act', async () => {
      const queue = await desk.queues.queue()
      const letter = await desk.capture({ originalQueue: queue, lastFailureAtUtc: '2020-01-01T00:00:00Z' })
      expect(await sums(desk, queue)).toEqual({ arrived: 1 })
      await desk.retry(letter)
      await desk.queues.retry(queue, [{ id: only((await desk.queues.lease(queue)).items).id, dead: true }])
      expect(await sums(desk, queue)).toEqual({ arrived: 1, retried: 1, returned: 1 })
      await desk.retry(letter)
      await desk.queues.complete(queue, [only((await desk.queues.lease(queue)).items).id])
      expect(await sums(desk, queue)).toEqual({ arrived: 1, retried: 2, returned: 1, confirmed: 1 })
      await desk.patch(letter, 'Pending')
      await desk.patch(letter, 'Resolved', 'x')
      await desk.patch(letter, 'Pending')
      await desk.patch(letter, 'Expired')
      expect(await sums(desk, queue)).toEqual({
        ...{ arrived: 1, retried: 2, returned: 1, confirmed: 1 },
        ...{ discarded: 1, expired: 1 },
      })
    })

    it('counts what dies in queues, and not what consumers of dead queues are done with', async () => {
      const { queue, dead } = await desk.pair()
      for (const text of ['a', 'b', 'c']) await desk.death(queue, text)
      const { items } = await desk.queues.lease(dead, 2)
      await desk.queues.complete(
        dead,
        items.map(({ id }) => id),
      )
      await desk.queues.ok('/v1/queue.clear', { queue_name: dead, queue: true, destructive: true })
      expect(await sums(desk, queue)).toEqual({ arrived: 3, discarded: 1 })
    })

    it('lies in the bucket of its time, by the hour where there is a filter', async () => {
      const originalQueue = unique('queue')
      const { signature } = await desk.capture({ originalQueue, errorClass: unique('E') })
      await desk.clock.advance(hours(2))
      await desk.capture({ originalQueue })
      const { bucketSeconds, series } = await activity(desk, { range: '24h', originalQueue })
      expect([bucketSeconds, series.arrived?.slice(-4)]).toEqual([3_600, [0, 1, 0, 1]])
      const { series: ofSignature } = await activity(desk, { range: '24h', originalQueue, signature })
      expect(ofSignature.arrived?.slice(-4)).toEqual([0, 1, 0, 0])
      const hour = await activity(desk, { range: '1h', originalQueue })
      expect([hour.bucketSeconds, hour.series.arrived]).toEqual([3_600, [0, 1]])
      const { trend } = await desk.ok<{ trend: number[] }>('GET', `/api/signatures/${signature}`)
      expect([trend.length, trend.slice(-3)]).toEqual([24, [1, 0, 0]])
    })

    it('refuses what it does not know', async () => {
      await desk.refuses('GET', '/api/activity', { query: { range: '2h' } }, 400, 'range', '2h', '24h')
      await desk.refuses('GET', '/api/activity', { query: { engine: 'nobody' } }, 400, 'nobody', 'hmac')
      await desk.refuses('GET', '/api/activity', { query: { source: 'mars' } }, 400, 'mars', 'kafka')
      await desk.refuses('GET', '/api/activity', { query: { status: 'Pending' } }, 400, 'status')
      const { series } = await activity(desk, { originalQueue: unique('nowhere') })
      expect(
        Object.values(series)
          .flat()
          .every((number) => number === 0),
      ).toBe(true)
    })
  })

  describe('the overview', () => {
    it('agrees with the letters', async () => {
      const queue = await desk.queues.queue()
      const oldest = await desk.capture({ originalQueue: queue, lastFailureAtUtc: '2001-01-01T00:00:00Z' })
      const before = await overview(desk)
      expect(before).toMatchObject({
        asOfUtc: micros(desk.clock.now),
        oldestPending: {
          engine: oldest.engine,
          rowKey: oldest.rowKey,
          lastFailureAtUtc: oldest.lastFailureAtUtc,
        },
        arrivals: { usualPerHour: null },
      })
      await desk.capture()
      await desk.retry(oldest)
      const after = await overview(desk)
      expect(after.letters).toEqual({
        Pending: before.letters.Pending,
        Resolved: Number(before.letters.Resolved) + 1,
        Expired: before.letters.Expired,
      })
      expect(after.unconfirmed).toBe(before.unconfirmed + 1)
      expect(after.arrivals.lastHour).toBe(before.arrivals.lastHour + 1)
      expect(after.oldestPending.rowKey).not.toBe(oldest.rowKey)
      await desk.queues.retry(queue, [{ id: only((await desk.queues.lease(queue)).items).id, dead: true }])
      const back = await overview(desk)
      expect([back.unconfirmed, back.returnedLastDay]).toEqual([
        before.unconfirmed,
        before.returnedLastDay + 1,
      ])
      await desk.clock.advance(minutes(61))
      expect((await overview(desk)).arrivals.lastHour).toBe(0)
    })

    it('has every source, and whether it is well', async () => {
      const { sources } = await overview(desk)
      expect(sources.map(({ source, health }) => [source, health])).toEqual([
        ['queues', 'ok'],
        ['engines', 'ok'],
        ['outbox', 'off'],
        ['webhooks', 'ok'],
        ['kafka', 'off'],
        ['azure', 'off'],
        ['http', 'ok'],
      ])
    })
  })

  describe('a total', () => {
    it('is exact for what is counted, and for little of anything', async () => {
      const originalQueue = await desk.queues.queue()
      const letters = []
      for (const dequeueCount of [1, 2, 3]) letters.push(await desk.capture({ originalQueue, dequeueCount }))
      const [first, second] = letters
      if (first === undefined || second === undefined) return expect.fail('three were made')
      await desk.retry(first)
      await desk.patch(second, 'Resolved', 'x')
      const of = async (query: Record<string, string>) => {
        const { total: found, exact } = await total(desk, { originalQueue, ...query })
        expect(exact).toBe(true)
        expect((await desk.walk({ originalQueue, ...query, limit: 1 })).length).toBe(found)
        return found
      }
      expect(await of({})).toBe(3)
      expect(await of({ status: 'Resolved' })).toBe(2)
      expect(await of({ source: 'http', engine: 'hmac', status: 'Pending' })).toBe(1)
      expect(await of({ outcome: 'unconfirmed' })).toBe(1)
      expect(await of({ outcome: 'unconfirmed', status: 'Pending' })).toBe(0)
      expect(await of({ outcome: 'confirmed' })).toBe(0)
      expect(await of({ minAttempts: '2' })).toBe(2)
      expect(await of({ minAttempts: '2', status: 'Pending' })).toBe(1)
      expect(await of({ instanceId: first.instanceId })).toBe(3)
      await desk.queues.complete(originalQueue, [only((await desk.queues.lease(originalQueue)).items).id])
      expect(await of({ outcome: 'confirmed' })).toBe(1)
      expect(await of({ outcome: 'unconfirmed' })).toBe(0)
      const { outcomes } = await desk.ok<{ outcomes: object }>('GET', `/api/signatures/${first.signature}`)
      expect(outcomes).toMatchObject({ unconfirmed: 0 })
    })

    it('refuses filters that lists refuse, and pages', async () => {
      for (const path of ['/api/dlq', '/api/dlq/total']) {
        await desk.refuses('GET', path, { query: { minAttempts: '0' } }, 400, 'minAttempts')
        await desk.refuses('GET', path, { query: { minAttempts: '1.5' } }, 400, 'minAttempts', '1.5')
        await desk.refuses('GET', path, { query: { outcome: 'lost' } }, 400, 'outcome', 'lost', 'unconfirmed')
        await desk.refuses('GET', path, { query: { engine: 'nobody' } }, 400, 'nobody')
        await desk.refuses('GET', path, { query: { q: 'ab' } }, 400, 'q')
      }
      await desk.refuses('GET', '/api/dlq/total', { query: { limit: '5' } }, 400, 'limit')
    })
  })
})
