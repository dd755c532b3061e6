/** Contract 4, `POST /api/dlq/expire`: all that are too old, and only those that are pending. */
import { expect, it } from 'vitest'
import { hours, us } from '../../world/time.ts'
import { type Desk, type Listed, micros, offices, unique } from './bed.ts'

const days = (n: number): bigint => hours(24 * n)

/** A letter whose last failure is that long ago. */
const aged = (desk: Desk, engine: string, age: bigint): Promise<Listed> =>
  desk.capture({ engine, lastFailureAtUtc: micros(desk.clock.now - age), instanceId: unique('instance') })

const expire = (desk: Desk, body: object): Promise<unknown> => desk.ok('POST', '/api/dlq/expire', { body })

offices('bulk expiry', (desk) => {
  it('expires what is older than that, to the microsecond, and says how many', async () => {
    const old = await aged(desk, 'aged', days(7) + us(1))
    const older = await aged(desk, 'aged', days(100))
    const young = await aged(desk, 'aged', days(7) - us(1))
    expect(await expire(desk, { olderThanDays: 7, engine: 'aged' })).toEqual({ expired: 2 })
    expect((await desk.letter(old)).status).toBe('Expired')
    expect((await desk.letter(older)).status).toBe('Expired')
    expect((await desk.letter(young)).status).toBe('Pending')
    expect(await expire(desk, { olderThanDays: 7, engine: 'aged' })).toEqual({ expired: 0 })
  })

  it('goes by the last failure, not the first', async () => {
    const letter = await desk.capture({
      engine: 'aged',
      firstFailureAtUtc: micros(desk.clock.now - days(500)),
      lastFailureAtUtc: micros(desk.clock.now - days(1)),
    })
    await expire(desk, { olderThanDays: 2, engine: 'aged' })
    expect((await desk.letter(letter)).status).toBe('Pending')
  })

  it('touches pending letters only', async () => {
    const resolved = await aged(desk, 'aged', days(50))
    const expired = await aged(desk, 'aged', days(50))
    await desk.patch(resolved, 'Resolved', 'done')
    await desk.patch(expired, 'Expired', 'let go')
    const before = [await desk.letter(resolved), await desk.letter(expired)]
    await expire(desk, { olderThanDays: 1, engine: 'aged' })
    expect([await desk.letter(resolved), await desk.letter(expired)]).toEqual(before)
  })

  it('touches one engine when it is named, and all when none is', async () => {
    const one = await aged(desk, 'tls', days(20))
    const other = await aged(desk, 'spn', days(20))
    expect(await expire(desk, { olderThanDays: 20 - 1, engine: 'tls' })).toEqual({ expired: 1 })
    expect((await desk.letter(other)).status).toBe('Pending')
    expect(await expire(desk, { olderThanDays: 20 - 1 })).toEqual({ expired: 1 })
    expect((await desk.letter(one)).status).toBe('Expired')
    expect((await desk.letter(other)).status).toBe('Expired')
  })

  it('is in the history of each letter, once; it can be restored', async () => {
    const letter = await aged(desk, 'aged', days(30))
    await expire(desk, { olderThanDays: 3, engine: 'aged' })
    expect(await desk.acts(letter)).toEqual(['capture', 'expire'])
    await desk.patch(letter, 'Pending', 'still wanted')
    expect((await desk.letter(letter)).status).toBe('Pending')
    await desk.patch(letter, 'Resolved', 'tidy up')
  })

  it('expires thousands, in several batches, and counts them right', async () => {
    const { queue, dead } = await desk.pair({ expire_timeout: '1h' })
    for (let request = 0; request < 3; request++) {
      await desk.queues.produce(queue, ...Array.from({ length: 900 }, (_, n) => String(n)))
    }
    await desk.clock.advance(hours(1) + us(1))
    await desk.clock.advance(days(4))
    expect(await expire(desk, { olderThanDays: 3, engine: 'queues' })).toEqual({ expired: 2700 })
    expect((await desk.list({ originalQueue: queue, status: 'Pending' })).items).toEqual([])
    expect(await desk.walk({ originalQueue: queue, status: 'Expired', limit: 100 })).toHaveLength(2700)
    expect(await desk.queues.items(dead)).toEqual([])
  })

  it('by several at once expires each letter once', async () => {
    const { queue } = await desk.pair({ expire_timeout: '1h' })
    await desk.queues.produce(queue, ...Array.from({ length: 500 }, (_, n) => String(n)))
    await desk.clock.advance(hours(1) + us(1))
    await desk.clock.advance(days(4))
    const answers = await Promise.all(
      Array.from({ length: 5 }, () =>
        desk.api('POST', '/api/dlq/expire', { body: { olderThanDays: 3, engine: 'queues' } }),
      ),
    )
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200])
    const expired = answers.map(({ data }) => (data as { expired: number }).expired) // the reply of an expire
    expect(expired.reduce((sum, each) => sum + each, 0)).toBe(500)
    const letters = await desk.walk({ originalQueue: queue, limit: 100 })
    for (const letter of letters.slice(0, 5)) expect(await desk.acts(letter)).toEqual(['capture', 'expire'])
  })

  it.each([undefined, null, 0, -1, 0.5, 1.5, '7', '', [], {}, true, 1e20])(
    'of olderThanDays %j is 400',
    async (olderThanDays) => {
      await desk.refuses('POST', '/api/dlq/expire', { body: { olderThanDays } }, 400, 'olderThanDays')
    },
  )

  it('of a very long time expires nothing, or says it is too long', async () => {
    for (const olderThanDays of [36_500, 1_000_000, 2_147_483_647]) {
      const { status, data } = await desk.api('POST', '/api/dlq/expire', { body: { olderThanDays } })
      expect([200, 400]).toContain(status)
      if (status === 200) expect(data).toEqual({ expired: 0 })
    }
  })

  it('of an unknown engine is 400', async () => {
    await desk.refuses(
      'POST',
      '/api/dlq/expire',
      { body: { olderThanDays: 1, engine: 'nobody' } },
      400,
      'nobody',
      'hmac',
    )
    await desk.refuses('POST', '/api/dlq/expire', { body: { olderThanDays: 1, engine: 5 } }, 400, 'engine')
  })

  it('of a body over 1 MiB is 413', async () => {
    const body = JSON.stringify({ olderThanDays: 1 }).padEnd(1_048_577, ' ')
    await desk.refuses('POST', '/api/dlq/expire', { body }, 413)
  })
})
