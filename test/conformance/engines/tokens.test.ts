/** Contract 4: continuation tokens are opaque, URL-safe and bound to their filters. */
import { beforeAll, describe, expect, it } from 'vitest'
import { minutes } from '../../world/time.ts'
import { type Desk, micros, offices, type Query, unique } from './bed.ts'

offices('a continuation token', (desk) => {
  const instanceId = unique('instance')
  const correlationId = unique('trace')
  const paths = ['/api/dlq', '/api/history'] as const

  beforeAll(async () => {
    for (let n = 0; n < 5; n++) {
      await desk.capture({ instanceId, correlationId })
      await desk.ok(
        'POST',
        '/api/history',
        {
          body: {
            engine: 'hmac',
            instanceId,
            operation: 'rotate',
            status: 'Succeeded',
            durationMs: n,
            correlationId,
          },
        },
        201,
      )
    }
  })

  const token = async (path: (typeof paths)[number], query: Query = {}): Promise<string> => {
    const page = await desk.ok<{ continuationToken?: string }>('GET', path, {
      query: { limit: 2, instanceId, ...query },
    })
    return page.continuationToken ?? expect.fail('there is a second page')
  }

  const refused = (path: string, query: Query) =>
    desk.refuses('GET', path, { query }, 400, 'continuationToken')

  describe.each(paths)('of %s', (path) => {
    it('is URL-safe', async () => {
      expect(await token(path)).toMatch(/^[\w.~-]+$/)
    })

    it('goes on with the same filters, with another limit too', async () => {
      const continuationToken = await token(path)
      const rest = await desk.ok<{ items: unknown[] }>('GET', path, {
        query: { instanceId, limit: 100, continuationToken },
      })
      expect(rest.items.length).toBeGreaterThanOrEqual(3)
    })

    it('may be used twice', async () => {
      const query = { instanceId, limit: 2, continuationToken: await token(path) }
      expect(await desk.ok('GET', path, { query })).toEqual(await desk.ok('GET', path, { query }))
    })

    it('is refused with other filters', async () => {
      const continuationToken = await token(path)
      const others: Query[] = [
        {},
        { instanceId: 'another' },
        { instanceId, engine: 'hmac' },
        { instanceId, correlationId },
        { instanceId, status: path === '/api/dlq' ? 'Pending' : 'Succeeded' },
        { instanceId, fromDate: micros(desk.clock.now - minutes(1)) },
        { instanceId, toDate: micros(desk.clock.now + minutes(1)) },
        ...(path === '/api/dlq'
          ? [
              { instanceId, source: 'http' },
              { instanceId, originalQueue: 'hmac-rotation-queue' },
              { instanceId, q: 'failed' },
            ]
          : [{ instanceId, engine: 'hmac', operation: 'rotate' }]),
      ]
      for (const other of others) await refused(path, { ...other, limit: 2, continuationToken })
    })

    it('is refused without a filter it was made with', async () => {
      const continuationToken = await token(path, { engine: 'hmac' })
      await refused(path, { instanceId, limit: 2, continuationToken })
    })

    it('is refused when it is forged', async () => {
      const given = await token(path)
      const swapped = (i: number) =>
        `${given.slice(0, i)}${given[i] === 'A' ? 'B' : 'A'}${given.slice(i + 1)}`
      // Bits beyond the last byte mean nothing, so the last character may have a twin.
      for (let i = 0; i < given.length - 1; i++) {
        await refused(path, { instanceId, limit: 2, continuationToken: swapped(i) })
      }
    })

    it('is refused when it is cut, lengthened or made up', async () => {
      const given = await token(path)
      const wrong = [
        given.slice(0, -4),
        given.slice(0, given.length / 2),
        given.slice(4),
        `${given}AAAA`,
        given + given,
        'x',
        '',
        'null',
        '%00',
        'A'.repeat(4000),
        Buffer.from('{"at":0,"id":0}').toString('base64url'),
        [...given].reverse().join(''),
      ]
      for (const continuationToken of wrong) await refused(path, { instanceId, limit: 2, continuationToken })
    })

    it('is refused by the other list', async () => {
      const other = path === '/api/dlq' ? '/api/history' : '/api/dlq'
      await refused(other, { instanceId, limit: 2, continuationToken: await token(path) })
    })
  })

  it('is not given with the last page', async () => {
    expect(await tokenAfter(desk, { instanceId, limit: 100 })).toBeNull()
    expect(await tokenAfter(desk, { instanceId, limit: 4 })).not.toBeNull()
  })
})

const tokenAfter = async (desk: Desk, query: Query): Promise<string | null> =>
  (await desk.list(query)).continuationToken ?? null
