import { fromBinary } from '@bufbuild/protobuf'
import fc from 'fast-check'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { closeServers, scriptedServer, unknownQueue } from '../../test/world/scripted-server.ts'
import { ReplySchema } from './wire/queues_pb.ts'

afterEach(closeServers)

const error = (code: number, code_text: string, message: string) => ({ code, code_text, message })
const onlyPost = (method: string) =>
  error(400, 'Bad Request', `http method '${method}' not allowed; only POST`)

describe('the order of processing', () => {
  const wrong = { authorization: 'Basic x', 'content-type': 'text/plain', accept: 'text/html' }

  it.each(['GET', 'PUT', 'DELETE', 'OPTIONS', 'PATCH'] as const)(
    'refuses %s before anything else',
    async (method) => {
      const { app } = await scriptedServer()
      const reply = await app.inject({ method, url: '/v1/nothing', headers: wrong })
      expect(reply.statusCode).toBe(400)
      expect(reply.json()).toEqual(onlyPost(method))
    },
  )

  it('refuses HEAD, also where GET is served', async () => {
    const { app } = await scriptedServer()
    for (const url of ['/health', '/v1/queue.lease']) {
      expect((await app.inject({ method: 'HEAD', url })).statusCode).toBe(400)
    }
  })

  it('then looks at the form of the Authorization header, though no tokens are configured', async () => {
    const { app } = await scriptedServer()
    const reply = await app.inject({ method: 'POST', url: '/v1/nothing', headers: wrong })
    expect(reply.statusCode).toBe(401)
    expect(reply.json()).toEqual(error(401, 'Unauthorized', 'invalid authorization header format'))
  })

  it('then at the path, without its query', async () => {
    const { app } = await scriptedServer()
    const headers = { ...wrong, authorization: 'Bearer x' }
    for (const path of ['/v1/nothing', '/v1/queue.lease/', '/v1/users.create', '/v1/test.clock', '/v1/%zz']) {
      const reply = await app.inject({ method: 'POST', url: `${path}?a=b`, headers })
      expect(reply.statusCode).toBe(501)
      expect(reply.json()).toEqual(error(501, 'Not Implemented', `no such method; ${path}`))
    }
  })

  it('then at the size of the body', async () => {
    const { app } = await scriptedServer()
    const headers = { ...wrong, authorization: 'Bearer x' }
    const reply = await app.inject({ method: 'POST', url: '/v1/queue.lease', headers, body: 'x'.repeat(513) })
    expect(reply.statusCode).toBe(400)
    expect(reply.json()).toEqual(error(400, 'Bad Request', 'request body exceeds 512B limit'))
  })

  it('then at the content type, however odd it is', async () => {
    const { app } = await scriptedServer({ queues: { stats: unknownQueue } })
    for (const type of ['text/plain', 'nonsense', '/', 'a/b/c']) {
      const headers = { 'content-type': type, accept: 'text/html' }
      const reply = await app.inject({ method: 'POST', url: '/v1/queue.stats', headers, body: 'x' })
      expect(reply.statusCode).toBe(455)
      expect(reply.json().message).toBe(
        `Content-Type header '${type}' is invalid format or unrecognized content type`,
      )
    }
  })

  it('then decodes the body', async () => {
    const { app } = await scriptedServer({ queues: { stats: unknownQueue } })
    for (const body of ['', '{', 'null', '[]', '{"queue_name":1}', '{"surplus":1}', '{} {}', '"\ud800"']) {
      const headers = { 'content-type': 'application/json', accept: 'text/html' }
      const reply = await app.inject({ method: 'POST', url: '/v1/queue.stats', headers, body })
      expect(reply.json()).toMatchObject({ code: 455, code_text: 'Client Content Error' })
      expect(reply.statusCode).toBe(455)
    }
  })

  it('then does what is asked', async () => {
    const { app } = await scriptedServer({ queues: { stats: unknownQueue } })
    const headers = { 'content-type': 'application/json', accept: 'text/html' }
    const reply = await app.inject({
      method: 'POST',
      url: '/v1/queue.stats',
      headers,
      body: '{"queueName":"q"}',
    })
    expect(reply.statusCode).toBe(400)
    expect(reply.json()).toEqual(error(400, 'Bad Request', "queue does not exist; no such queue named 'q'"))
  })

  it('and last looks at what the client accepts', async () => {
    const { app } = await scriptedServer({ queues: { reload: async () => {} } })
    const reply = await app.inject({
      method: 'POST',
      url: '/v1/queue.reload',
      headers: { accept: 'text/html;q=1' },
      body: '{}',
    })
    expect(reply.statusCode).toBe(455)
    expect(reply.headers['content-type']).toBe('application/json')
    expect(reply.json().message).toBe(
      "Accept header 'text/html' is invalid format or unrecognized content type, only [application/json,application/protobuf] are supported by this method",
    )
  })
})

describe('a reply', () => {
  it('has exactly the headers of the contract in both formats', async () => {
    const { app } = await scriptedServer({ queues: { reload: async () => {} } })
    const call = (accept: string) =>
      app.inject({ method: 'POST', url: '/v1/queue.reload', headers: { accept }, body: '{}' })

    const json = await call('application/json')
    expect(json.headers['content-type']).toBe('application/json')
    expect(json.headers['x-content-type-options']).toBe('nosniff')
    expect(json.body).toBe('{"code":200}')

    const binary = await call('application/protobuf')
    expect(binary.headers['content-type']).toBe('application/protobuf')
    expect(binary.headers['x-content-type-options']).toBe('nosniff')
    expect(fromBinary(ReplySchema, binary.rawPayload)).toMatchObject({ code: 200, codeText: '', message: '' })
  })

  it('to an error is binary for those who accept binary', async () => {
    const { app } = await scriptedServer()
    const headers = { accept: 'application/protobuf' }
    const reply = await app.inject({ method: 'POST', url: '/v1/nothing', headers })
    expect(fromBinary(ReplySchema, reply.rawPayload)).toMatchObject({
      code: 501,
      codeText: 'Not Implemented',
      message: 'no such method; /v1/nothing',
    })
  })

  it('to a zero-length binary body is that of an all-default message', async () => {
    const info = vi.fn(unknownQueue)
    const { app } = await scriptedServer({ queues: { info } })
    const headers = { 'content-type': 'application/protobuf' }
    await app.inject({ method: 'POST', url: '/v1/queues.info', headers })
    expect(info).toHaveBeenCalledWith('')
  })

  it('to an unexpected failure says nothing about it; the log does', async () => {
    const { app, logged } = await scriptedServer({
      queues: {
        clear: async () => {
          throw new Error('disk on fire')
        },
      },
    })
    const reply = await app.inject({ method: 'POST', url: '/v1/queue.clear', body: '{}' })
    expect(reply.statusCode).toBe(500)
    expect(reply.json()).toEqual(error(500, 'Internal Service Error', 'Internal Error'))
    expect(logged.join()).toContain('disk on fire')
  })
})

describe('a body of random bytes', () => {
  it.each(['application/json', 'application/protobuf'])(
    'as %s is served or clearly refused',
    async (type) => {
      const { app, logged } = await scriptedServer({
        queues: {
          produce: unknownQueue,
          lease: unknownQueue,
          complete: unknownQueue,
          retry: unknownQueue,
          importItems: unknownQueue,
          create: unknownQueue,
        },
      })
      const paths = fc.constantFrom(
        '/v1/queue.produce',
        '/v1/queue.lease',
        '/v1/queue.complete',
        '/v1/queue.retry',
        '/v1/storage/items.import',
        '/v1/queues.create',
      )
      const bytes = fc.uint8Array({ maxLength: 60 }).map((body) => Buffer.from(body))
      const json = fc.json({ maxDepth: 2 }).map((body) => Buffer.from(body))
      await fc.assert(
        fc.asyncProperty(paths, fc.oneof(bytes, json), async (url, body) => {
          const reply = await app.inject({ method: 'POST', url, headers: { 'content-type': type }, body })
          expect([400, 455]).toContain(reply.statusCode)
          expect(reply.json().code).toBe(reply.statusCode)
        }),
        { numRuns: 2_000 },
      )
      expect(logged).toEqual([])
    },
  )
})
