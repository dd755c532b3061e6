import { METHODS } from 'node:http'
import { afterEach, describe, expect, it } from 'vitest'
import { closeServers } from '../../../test/world/scripted-server.ts'
import { getAsSent, producer, scriptedWebhooks, settings } from '../../../test/world/webhooks/scripted.ts'
import { failure } from '../../core/errors.ts'
import { WEBHOOK_CALLS } from './routes.ts'

afterEach(closeServers)

describe('an answer', () => {
  it('is JSON without a charset and with one newline, in whole seconds', async () => {
    const { app } = await scriptedWebhooks()
    const reply = await app.inject('/producer/p1')
    expect(reply.body).toBe('{"ID":"p1","Name":"Name","Token":"tok-en","ChangedAt":"2026-11-15T01:18:28Z"}\n')
    expect(reply.headers).toMatchObject({
      'content-type': 'application/json',
      'content-length': String(reply.body.length),
      'last-modified': 'Sun, 15 Nov 2026 01:18:28 GMT',
      'x-request-id': expect.stringMatching(/^[0-9a-v]{19}[0g]$/),
    })
  })

  it('shows no tokens when that is not wanted', async () => {
    const { app } = await scriptedWebhooks({ settings: settings({ api: { exposeTokens: false } }) })
    for (const url of ['/producer/x', '/channel/x', '/channel/x/consumer/y']) {
      expect((await app.inject(url)).json().Token).toBe('')
    }
  })

  it('says nothing of what went wrong inside, and the log says all of it', async () => {
    const fails = async () => {
      throw new Error('relation "webhook_producers" does not exist')
    }
    const { app, logged } = await scriptedWebhooks({ producers: { get: fails } })
    const reply = await app.inject({ url: '/producer/x', headers: { 'x-request-id': 'r-1' } })
    expect([reply.statusCode, reply.body]).toEqual([500, 'internal error'])
    expect(reply.headers['content-type']).toBe('text/plain; charset=utf-8')
    expect(logged).toHaveLength(1)
    expect(logged[0]).toContain('"requestId":"r-1"')
    expect(logged[0]).toContain('webhook_producers')
  })

  it('is that the server ends, once it does', async () => {
    const started = await scriptedWebhooks()
    started.refuseCalls()
    const reply = await started.app.inject('/producer/x')
    expect([reply.statusCode, reply.body]).toEqual([503, 'service is shutting down'])
  })

  it('is that too when the end comes while a call is under way', async () => {
    const purge = async () => {
      throw failure('service_stopping')
    }
    const { app, logged } = await scriptedWebhooks({ bulk: { purge } })
    const tokens = { 'x-broker-channel-token': 'tok-en', 'x-broker-consumer-token': 'tok-en' }
    const reply = await app.inject({ method: 'DELETE', url: '/channel/c/consumer/k/dlq', headers: tokens })
    expect([reply.statusCode, reply.body]).toEqual([503, 'service is shutting down'])
    expect(logged).toEqual([])
  })

  it('to a purge or a requeue tells history whose consumer asked for it', async () => {
    const actors: string[] = []
    const purge = async (_: unknown, actor: string) => actors.push(actor)
    const requeueAll = async (_: unknown, actor: string) => void actors.push(actor)
    const { app } = await scriptedWebhooks({ bulk: { purge, requeueAll } })
    const tokens = { 'x-broker-channel-token': 'tok-en', 'x-broker-consumer-token': 'tok-en' }
    const url = '/channel/c/consumer/k/dlq'
    await app.inject({ method: 'DELETE', url, headers: tokens })
    const form = { 'content-type': 'application/x-www-form-urlencoded' }
    await app.inject({ method: 'POST', url, headers: form, body: 'requeue=tok-en' })
    expect(actors).toEqual(['consumer c/k', 'consumer c/k'])
  })

  it('carries the id of the request if it can be one', async () => {
    const { app } = await scriptedWebhooks()
    const idFor = async (sent: string) =>
      (await app.inject({ url: '/nope', headers: { 'x-request-id': sent } })).headers['x-request-id']
    for (const id of ['mine/1 x', 'x'.repeat(128)]) expect(await idFor(id)).toBe(id)
    for (const id of ['x'.repeat(129), 'caf\xe9', '']) {
      expect(await idFor(id)).toMatch(/^[0-9a-v]{19}[0g]$/)
    }
  })
})

describe('a path', () => {
  it('holds ids as they were sent, decoded once', async () => {
    const ids = [
      'a%b',
      '100%25',
      'a/b',
      '..',
      '.',
      ' ',
      'é',
      'C_',
      'a?b#c',
      '日本',
      'a;b=c',
      '*',
      ':x',
      'a+b',
    ]
    const answers = await getAsSent(
      await scriptedWebhooks(),
      ids.map((id) => `/channel/${encodeURIComponent(id)}`),
    )
    expect(answers.map((text) => JSON.parse(text.split('\r\n\r\n')[1] ?? ''))).toMatchObject(
      ids.map((id) => ({ ID: id, ConsumersURL: `/channel/${encodeURIComponent(id)}/consumers` })),
    )
  })

  it('is not made into another one', async () => {
    const paths = [
      '//producers',
      '/producers//',
      '/./producers',
      '/channel/x/../../producers',
      '/channel//broadcast',
      '/channel/x//consumers',
      '/channel/',
      '/producer/',
      '/channel//',
      '/channel/x/consumer/',
      '/channel/x/consumer//dlq',
      '/channel/x%2Fy/z%2Fconsumers',
      '/PRODUCERS',
      '/channel/%',
      '/channel/%E9',
      '/channel/%zz/consumers',
    ]
    for (const [index, text] of (await getAsSent(await scriptedWebhooks(), paths)).entries()) {
      expect(text, paths[index]).toMatch(/^HTTP\/1\.1 404 Not Found\r\n[\s\S]*\r\n\r\n404 page not found\n$/)
      expect(text).toMatch(/\r\nX-Request-Id: [0-9a-v]{20}\r\n/i)
    }
  })

  it('refuses every method that it does not have, however rare', async () => {
    const { app } = await scriptedWebhooks()
    for (const method of METHODS.filter((name) => !['GET', 'OPTIONS', 'CONNECT', 'QUERY'].includes(name))) {
      // Fastify types only the methods that it has routes for.
      const reply = await app.inject({ method: method as 'PATCH', url: '/producers?x=1' })
      expect([method, reply.statusCode, reply.headers.allow]).toEqual([method, 405, 'GET, OPTIONS'])
    }
  })

  it('with a slash too many keeps its query', async () => {
    const { app } = await scriptedWebhooks()
    const reply = await app.inject('/channel/a%2Fb/messages/?status=102')
    expect([reply.statusCode, reply.headers.location]).toEqual([301, '/channel/a%2Fb/messages?status=102'])
  })

  it('that is a call is a call for browsers too, and the page where there is none', async () => {
    const { app } = await scriptedWebhooks()
    const headers = { accept: 'text/html' }
    expect((await app.inject({ url: '/producer/x', headers })).headers['content-type']).toBe(
      'application/json',
    )
    expect((await app.inject({ url: '/nope', headers })).headers['content-type']).toMatch(/^text\/html/)
    expect((await app.inject({ url: '/nope', headers, method: 'POST' })).statusCode).toBe(404)
  })
})

describe('a form', () => {
  const asked: unknown[] = []
  const open = async () => {
    asked.length = 0
    const { app } = await scriptedWebhooks({
      producers: {
        put: async (id, fields, condition) => {
          asked.push([id, fields, condition])
          return producer(id)
        },
      },
    })
    return async (headers: Record<string, string>, body: string, url = '/producer/p') =>
      (await app.inject({ method: 'PUT', url, headers, body })).statusCode
  }
  const FORM = 'application/x-www-form-urlencoded'

  it('is read from the body alone, and counts by its first values', async () => {
    const put = await open()
    const headers = { 'content-type': `${FORM}; charset=utf-8`, 'if-unmodified-since': 'then' }
    expect(await put(headers, 'token=a%26b+c&token=d', '/producer/p?name=query&token=query')).toBe(200)
    expect(asked).toEqual([['p', { name: null, token: 'a&b c' }, 'then']])
  })

  it('is of its media type only, and not read for ever', async () => {
    const put = await open()
    for (const type of [
      '',
      'application/json',
      `${FORM}x`,
      'Application/X-WWW-Form-Urlencoded',
      `x;${FORM}`,
    ]) {
      expect(await put(type === '' ? {} : { 'content-type': type }, 'token=t')).toBe(415)
    }
    expect(await put({ 'content-type': FORM }, `token=${'x'.repeat(1_048_576)}`)).toBe(413)
    expect(asked).toEqual([])
  })
})

describe('the OpenAPI document', () => {
  it('has every call, with what it takes and what it answers', async () => {
    const { app } = await scriptedWebhooks()
    const { paths } = (await app.inject('/openapi.json')).json()
    for (const { method, path } of WEBHOOK_CALLS) {
      const described = paths[path.replace(/:(\w+)/g, '{$1}')]?.[method.toLowerCase()]
      expect(described, `${method} ${path}`).toMatchObject({
        operationId: expect.any(String),
        summary: expect.any(String),
        tags: ['webhooks'],
      })
    }
    const broadcast = paths['/channel/{channelId}/broadcast'].post
    expect(Object.keys(broadcast.responses)).toEqual('201 400 401 403 404 408 409 412 413 421 429'.split(' '))
    expect(broadcast.requestBody.content).toHaveProperty('*/*')
    expect(broadcast.parameters.map(({ name }: { name: string }) => name)).toContain(
      'X-Broker-Producer-Token',
    )
    const put = paths['/channel/{channelId}/consumer/{consumerId}'].put
    expect(put.description).toBe('Needs the role admin once tokens are configured.')
    const form = put.requestBody.content['application/x-www-form-urlencoded'].schema.properties
    expect(Object.keys(form)).toEqual(['callbackUrl', 'token', 'name', 'type'])
    const ids = WEBHOOK_CALLS.map(
      ({ method, path }) => paths[path.replace(/:(\w+)/g, '{$1}')][method.toLowerCase()].operationId,
    )
    expect(new Set(ids).size).toBe(ids.length)
  })
})
