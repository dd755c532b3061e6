import { afterEach, describe, expect, it } from 'vitest'
import { closeServers, dial, received, scriptedServer } from '../../test/world/scripted-server.ts'

afterEach(closeServers)

describe('a body limit', () => {
  it('lets a body of exactly the limit pass', async () => {
    const { app } = await scriptedServer({ queues: { reload: async () => {} } })
    const body = `{}${' '.repeat(510)}`
    const call = (sent: string) => app.inject({ method: 'POST', url: '/v1/queue.reload', body: sent })
    expect((await call(body)).statusCode).toBe(200)
    expect((await call(`${body} `)).statusCode).toBe(400)
  })

  it('is configurable for produce, and printed', async () => {
    const { app } = await scriptedServer({ maxProduceBytes: 2_048 })
    for (const url of ['/v1/queue.produce', '/v1/queue.produceWithIds']) {
      const reply = await app.inject({ method: 'POST', url, body: ' '.repeat(2_049) })
      expect(reply.json().message).toBe('request body exceeds 2.0KiB limit')
    }
  })

  it('answers a client that sends without end, then closes its connection', async () => {
    const socket = await dial(await scriptedServer())
    const answer = received(socket)
    socket.write('POST /v1/queue.lease HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n')
    const chunk = `10000\r\n${'x'.repeat(65_536)}\r\n`
    const pump = () => {
      while (!socket.destroyed && socket.write(chunk)) {}
    }
    socket.on('drain', pump)
    pump()
    expect(await answer).toContain('request body exceeds 512B limit')
  })

  it('keeps the connection of a client whose rest is small', async () => {
    const started = await scriptedServer({ queues: { reload: async () => {} } })
    const socket = await dial(started)
    const answer = received(socket)
    const head = 'POST /v1/queue.reload HTTP/1.1\r\nHost: localhost\r\n'
    socket.write(`${head}Content-Length: 20000\r\n\r\n${'x'.repeat(20_000)}`)
    socket.write(`${head}Connection: close\r\nContent-Length: 2\r\n\r\n{}`)
    const text = await answer
    expect(text).toContain('request body exceeds 512B limit')
    expect(text).toContain('{"code":200}')
  })
})

describe('a connection', () => {
  it('that closes while its lease waits ends the wait at once', async () => {
    const asked = Promise.withResolvers<AbortSignal | undefined>()
    const dropped = Promise.withResolvers<void>()
    const started = await scriptedServer({
      queues: {
        lease: (_request, signal) => {
          asked.resolve(signal)
          return new Promise((_, reject) => {
            signal?.addEventListener('abort', () => {
              dropped.resolve()
              reject(signal.reason)
            })
          })
        },
      },
    })
    const socket = await dial(started)
    socket.write('POST /v1/queue.lease HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}')
    expect((await asked.promise)?.aborted).toBe(false)
    socket.destroy()
    await dropped.promise
    expect(started.logged.filter((line) => line.includes('"level":50'))).toEqual([])
  })

  it.each([
    ['a request line that is none', 'NONSENSE\r\n\r\n'],
    [
      'headers beyond measure',
      `GET /health HTTP/1.1\r\nHost: localhost\r\nX: ${'y'.repeat(100_000)}\r\n\r\n`,
    ],
  ])('with %s is answered 400, and the server lives on', async (_, bytes) => {
    const started = await scriptedServer()
    const socket = await dial(started)
    const answer = received(socket)
    socket.write(bytes)
    expect(await answer).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n[\s\S]*\{"code":400,/)
    expect((await started.app.inject('/health')).statusCode).toBe(200)
  })

  it('is kept longer than clients keep theirs', async () => {
    const { app } = await scriptedServer()
    expect(app.server.keepAliveTimeout).toBe(240_000)
    expect(app.server.headersTimeout).toBeGreaterThan(240_000)
    expect(app.server.requestTimeout).toBe(0)
    expect(app.server.timeout).toBe(0)
    expect(app.server.maxRequestsPerSocket).toBe(0)
  })
})

describe('a path that nothing serves', () => {
  it('is answered in the shape of its prefix', async () => {
    const { app } = await scriptedServer()
    const envelope = await app.inject('/api/nothing')
    expect(envelope.statusCode).toBe(404)
    expect(envelope.json()).toEqual({
      status: 'Failed',
      correlationId: expect.any(String),
      timestamp: expect.any(String),
      error: { code: 'path_unknown', message: 'no such method; /api/nothing' },
    })
    const kafka = await app.inject('/kafka/nothing')
    expect([kafka.statusCode, kafka.json()]).toEqual([404, { detail: 'Not Found' }])
    const other = await app.inject('/nothing')
    expect([other.statusCode, other.body]).toEqual([404, '404 page not found\n'])
    expect(other.headers['content-type']).toBe('text/plain; charset=utf-8')
  })

  it('is a page for browsers, but never under an API', async () => {
    const { app } = await scriptedServer()
    const headers = { accept: 'text/html,application/xhtml+xml' }
    const page = await app.inject({ url: '/', headers })
    expect(page.statusCode).toBe(200)
    expect(page.body).toContain('href="/docs"')
    expect((await app.inject({ url: '/api/nothing', headers })).statusCode).toBe(404)
    expect((await app.inject({ url: '/v1/nothing', headers })).statusCode).toBe(400)
  })
})
