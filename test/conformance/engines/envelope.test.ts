/** Contract 4: the envelope of every reply, the correlation id, who answers what no call answers. */
import { describe, expect, it } from 'vitest'
import { instantOf, systemNow } from '../../world/time.ts'
import { captureBody, offices, opened, pathTo, TIME } from './bed.ts'

offices('the envelope', (desk) => {
  const raw = (correlationId?: string, path = '/api/dlq?limit=1') =>
    desk.wire.raw(path, {
      method: 'GET',
      headers: correlationId === undefined ? {} : { 'x-correlation-id': correlationId },
    })

  it('of a success has exactly status, correlationId, timestamp and data', async () => {
    const reply = await raw()
    expect(reply.status).toBe(200)
    expect(Object.keys(JSON.parse(Buffer.from(reply.bytes).toString())).sort()).toEqual([
      'correlationId',
      'data',
      'status',
      'timestamp',
    ])
    opened(reply)
  })

  it('of an error has exactly status, correlationId, timestamp and error', async () => {
    const reply = await raw(undefined, '/api/dlq?limit=0')
    expect(reply.status).toBe(400)
    const body = JSON.parse(Buffer.from(reply.bytes).toString())
    expect(Object.keys(body).sort()).toEqual(['correlationId', 'error', 'status', 'timestamp'])
    opened(reply)
  })

  it("has the server's time, with microseconds", async () => {
    const { timestamp } = JSON.parse(Buffer.from((await raw()).bytes).toString())
    expect(timestamp).toMatch(TIME)
    expect(instantOf(timestamp)).toBe(desk.clock.now)
  })

  it.each([
    ['a word', 'abc'],
    ['every visible ASCII character', '!"#$%&\'()*+,-./09:;<=>?@AZ[\\]^_`az{|}~'],
    ['128 characters', 'c'.repeat(128)],
  ])("echoes the request's correlation id: %s", async (_, correlationId) => {
    expect(opened(await raw(correlationId)).correlationId).toBe(correlationId)
    expect(opened(await raw(correlationId, '/api/dlq?limit=0')).correlationId).toBe(correlationId)
  })

  it.each([
    ['129 characters', 'c'.repeat(129)],
    ['a space inside', 'a b'],
    ['a tab', 'a\tb'],
    ['nothing', ''],
    ['what is no ASCII', 'caf\u00e9'],
  ])('makes one of its own instead of %s', async (_, correlationId) => {
    const reply = opened(await raw(correlationId))
    expect(reply.correlationId).not.toBe(correlationId)
    expect(reply.correlationId).toMatch(/^[!-~]{1,128}$/)
  })

  it('makes a different one for every request', async () => {
    const made = await Promise.all(Array.from({ length: 20 }, async () => opened(await raw()).correlationId))
    expect(new Set(made).size).toBe(20)
  })

  describe('is there whatever was asked', () => {
    it.each([
      '/api/nothing',
      '/api/',
      '/api/dlqs',
      '/api/dlq/hmac',
      '/api/history/hmac',
      '/api/dlq/hmac/a/b/c',
    ])('unknown path %s: 404', async (path) => {
      expect((await desk.api('GET', path)).status).toBe(404)
      expect((await desk.api('POST', path, { body: {} })).status).toBe(404)
    })

    it.each([
      ['PUT', '/api/dlq'],
      ['DELETE', '/api/dlq'],
      ['PATCH', '/api/dlq'],
      ['DELETE', '/api/history'],
      ['PUT', '/api/history'],
      ['GET', '/api/dlq/expire'],
      ['POST', '/api/counts'],
      ['POST', '/api/signatures'],
    ] as const)('wrong method %s %s: refused, not served', async (method, path) => {
      const body = method === 'GET' ? {} : { body: {} }
      expect([404, 405]).toContain((await desk.api(method, path, body)).status)
    })

    it('a path that is not decodable is 4xx', async () => {
      const { status } = await desk.api('GET', '/api/dlq/hmac/%E0%A4%A')
      expect([400, 404]).toContain(status)
    })

    it('bodies that are no JSON objects are 400', async () => {
      for (const body of ['', '{', 'null', '[]', '"text"', '{"engine":"hmac"', '\u0000']) {
        await desk.refuses('POST', '/api/dlq', { body }, 400)
        await desk.refuses('POST', '/api/history', { body }, 400)
        await desk.refuses('POST', '/api/dlq/expire', { body }, 400)
      }
    })

    it('a body of invalid UTF-8 is 400', async () => {
      const body = Buffer.concat([Buffer.from('{"engine":"'), Buffer.from([0xff, 0xfe]), Buffer.from('"}')])
      await desk.refuses('POST', '/api/dlq', { body: new Uint8Array(body) }, 400)
    })
  })

  it('stays what it is under prototype names in bodies and queries', async () => {
    await desk.refuses('POST', '/api/dlq', { body: captureBody({ engine: '__proto__' }) }, 400, 'engine')
    await desk.refuses('GET', '/api/dlq', { query: { engine: 'constructor' } }, 400, 'engine')
    await desk.refuses('GET', pathTo({ engine: 'hmac', rowKey: '__proto__' }), {}, 404)
  })
})

offices(
  'the envelope with a running clock',
  (desk) => {
    it('has the present time', async () => {
      const before = systemNow()
      const reply = await desk.wire.raw('/api/counts', { method: 'GET' })
      const { timestamp } = JSON.parse(Buffer.from(reply.bytes).toString())
      const at = instantOf(timestamp)
      // The server's clock follows its database's, which it knows no better than a round trip on a busy machine tells.
      expect(at).toBeGreaterThan(before - 5_000_000n)
      expect(at).toBeLessThan(systemNow() + 5_000_000n)
    })
  },
  { liveClock: true },
)
