import { createHash } from 'node:crypto'
import { METHODS } from 'node:http'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Asked, KafkaHttp, TOKEN } from '../../../test/world/kafka/http.ts'
import { closeServers, scriptedServer } from '../../../test/world/scripted-server.ts'
import { freshSqlite } from '../../../test/world/stores.ts'
import { KAFKA_CALLS } from './routes.ts'

const SQLITE = { name: 'sqlite', fresh: freshSqlite } as const
const UUID_V4 = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/
const ID = 'a5e2f3a8-0a3c-4b1e-9c43-a2a4a3c2d1e0'

/** Every call, on names that mean nothing. */
const EVERY_CALL: readonly (readonly [NonNullable<Asked['method']>, string])[] = [
  ['GET', '/kafka/summary'],
  ['GET', '/kafka/nobody'],
  ['GET', '/kafka/rpc/dry-run/nobody'],
  ['POST', '/kafka/nobody'],
  ['DELETE', '/kafka/nobody'],
  ['DELETE', `/kafka/${ID}`],
  ['DELETE', '/kafka/a5e2f3a8-0a3c-1b1e-9c43-a2a4a3c2d1e0'],
  ['GET', '/kafka/nobody/nothing?skip=-1&limit=x'],
  ['POST', '/kafka/nobody/nothing?dry_run=perhaps'],
  ['GET', '/kafka/a/b/c/d'],
  ['PUT', '/kafka/wps'],
  ['GET', '/kafka/rpc/dry-run'],
  ['GET', '/kafka/'],
  ['GET', '/kafka'],
  ['GET', '/kafka/%zz'],
]

const token = (name: string, role: 'viewer' | 'operator' | 'admin') => ({
  name,
  role,
  sha256: createHash('sha256').update(name).digest('hex'),
})

describe('the Kafka API', () => {
  let http: KafkaHttp

  beforeAll(async () => {
    const second = createHash('sha256').update('grüße').digest('hex')
    http = await KafkaHttp.open(SQLITE, {
      settings: { tokenHashes: [createHash('sha256').update(TOKEN).digest('hex'), second] },
      tokens: [token('look', 'viewer'), token('work', 'operator'), token('rule', 'admin')],
    })
  })
  afterAll(() => http.close())

  describe('a request without the right to it', () => {
    it.each(EVERY_CALL)('is refused before all else: %s %s', async (method, url) => {
      const call = async (authorization?: string) => {
        const headers = authorization === undefined ? {} : { authorization }
        const { statusCode, body, headers: sent } = await http.ask(url, { method, token: null, headers })
        expect(sent['x-request-id']).toMatch(UUID_V4)
        return [statusCode, body, sent['www-authenticate']]
      }
      const without = [401, '{"detail":"Not authenticated"}', 'Bearer']
      for (const authorization of [
        undefined,
        '',
        'Bearer',
        'Bearer ',
        `Basic ${TOKEN}`,
        TOKEN,
        `Bearer${TOKEN}`,
      ]) {
        expect(await call(authorization), authorization).toEqual(without)
      }
      const wrong = [401, '{"detail":"Invalid authentication credentials"}', 'Bearer']
      for (const given of [
        'x',
        `${TOKEN}x`,
        `${TOKEN} x`,
        createHash('sha256').update(TOKEN).digest('hex'),
      ]) {
        expect(await call(`Bearer ${given}`), given).toEqual(wrong)
      }
    })

    it('learns that the process lives, and nothing else', async () => {
      const reply = await http.ask('/kafka/health', { token: null })
      expect([reply.statusCode, reply.body]).toEqual([200, '{"status":"OK"}'])
      expect(reply.headers['x-request-id']).toMatch(UUID_V4)
      expect((await http.ask('/kafka/health', { token: null, method: 'HEAD' })).statusCode).toBe(401)
    })
  })

  it('takes the scheme in any case, and each of its tokens, in the bytes that were sent', async () => {
    const status = async (authorization: string) =>
      (await http.ask('/kafka/summary', { token: null, headers: { authorization } })).statusCode
    for (const scheme of ['Bearer', 'bearer', 'BEARER', 'bEaReR '])
      expect(await status(`${scheme} ${TOKEN}`)).toBe(200)
    expect(await status(`Bearer ${Buffer.from('grüße').toString('latin1')}`)).toBe(200)
  })

  it('takes the tokens of the server as far as their role goes', async () => {
    const status = async (method: 'GET' | 'POST' | 'DELETE', name: string) => {
      const reply = await http.ask('/kafka/nobody', { method, token: name })
      return reply.statusCode === 404 ? reply.json().exception_id : [reply.statusCode, reply.body]
    }
    const tooLow = [403, '{"detail":"Not authorized"}']
    expect(await status('GET', 'look')).toBe('unknownServiceError')
    expect(await status('POST', 'look')).toEqual(tooLow)
    expect(await status('DELETE', 'look')).toEqual(tooLow)
    for (const name of ['work', 'rule'])
      for (const method of ['GET', 'POST', 'DELETE'] as const)
        expect(await status(method, name)).toBe('unknownServiceError')
  })

  it('takes the session of a browser in the same way, and changes only from a page of the server', async () => {
    const own = { host: 'localhost:1853', origin: 'http://localhost:1853' }
    const signedIn = await http.ask('/api/session', { method: 'POST', token: null, body: { token: 'look' } })
    const cookie = String(signedIn.headers['set-cookie']).split(';')[0] ?? ''
    const status = async (method: 'GET' | 'POST', url: string, headers: Record<string, string>) =>
      (await http.ask(url, { method, token: null, headers })).statusCode
    expect(await status('GET', '/kafka/nobody', { cookie })).toBe(404)
    expect(await status('GET', '/kafka/nobody', { cookie: `${cookie}x` })).toBe(401)
    const refused = await http.ask('/kafka/nobody', {
      method: 'POST',
      token: null,
      headers: { ...own, cookie },
    })
    expect([refused.statusCode, refused.json()]).toEqual([403, { detail: 'Not authorized' }])
    expect(await status('POST', '/kafka/nobody', { cookie })).toBe(403)
  })

  it('has tokens that are good for nothing else', async () => {
    for (const url of ['/metrics', '/api/dlq', '/api/kafka', '/channels', '/openapi.json'])
      expect([url, (await http.ask(url)).statusCode]).toEqual([url, 401])
  })

  it('refuses pages of other sites', async () => {
    const headers = { origin: 'https://evil.example', host: 'bartleby.localhost' }
    const reply = await http.ask('/kafka/summary', { headers })
    expect([reply.statusCode, Object.keys(reply.json())]).toEqual([403, ['detail']])
    const own = { origin: 'http://bartleby.localhost', host: 'bartleby.localhost' }
    expect((await http.ask('/kafka/summary', { headers: own })).statusCode).toBe(200)
  })

  it('keeps the id of a request when it is a UUID v4, and gives a new one otherwise', async () => {
    const idFor = async (sent: string) =>
      (await http.ask('/kafka/wps', { headers: { 'x-request-id': sent } })).headers['x-request-id']
    expect(await idFor(ID)).toBe(ID)
    expect(await idFor(ID.toUpperCase())).toBe(ID.toUpperCase())
    for (const sent of [
      '',
      'x',
      'a5e2f3a8-0a3c-1b1e-9c43-a2a4a3c2d1e0',
      `${ID}, ${ID}`,
      ID.replaceAll('-', ''),
    ]) {
      const given = await idFor(sent)
      expect(given).toMatch(UUID_V4)
      expect(given).not.toBe(sent)
    }
  })

  it.each([
    ['GET', '/kafka/a/b/c'],
    ['GET', '/kafka/rpc/dry-run'],
    ['POST', '/kafka/rpc/dry-run'],
    ['PUT', '/kafka/rpc/dry-run'],
    ['GET', '/kafka/rpc/dry-run/'],
    ['GET', '/kafka/rpc/dry%2Drun'],
    ['GET', '/kafka/'],
    ['GET', '/kafka'],
    ['GET', '/kafka//orders'],
    ['GET', '/kafka/wps/'],
    ['DELETE', '/kafka/'],
    ['GET', '/kafka/%zz'],
    ['GET', '/kafka/%ff'],
  ] as const)('has nothing at %s %s', async (method, url) => {
    const reply = await http.ask(url, { method })
    expect([reply.statusCode, reply.body]).toEqual([404, '{"detail":"Not Found"}'])
    expect(reply.headers['x-request-id']).toMatch(UUID_V4)
  })

  it.each([
    ['PUT', '/kafka/wps', 'DELETE, GET, POST'],
    ['HEAD', '/kafka/wps', 'DELETE, GET, POST'],
    ['OPTIONS', '/kafka/wps', 'DELETE, GET, POST'],
    ['DELETE', '/kafka/wps/orders', 'GET, POST'],
    ['PATCH', '/kafka/wps/orders', 'GET, POST'],
    ['POST', '/kafka/rpc/dry-run/wps', 'GET'],
  ] as const)('has no %s at %s', async (method, url, allow) => {
    const reply = await http.ask(url, { method })
    expect([reply.statusCode, reply.headers.allow]).toEqual([405, allow])
    expect(reply.body).toBe('{"detail":"Method Not Allowed"}')
  })

  it('refuses every other method, however rare', async () => {
    const known = ['GET', 'POST', 'DELETE', 'HEAD', 'CONNECT', 'QUERY']
    for (const method of METHODS.filter((name) => !known.includes(name))) {
      // Fastify types only the methods that it has routes for.
      const reply = await http.ask('/kafka/wps', { method: method as 'PATCH' })
      expect([method, reply.statusCode]).toEqual([method, 405])
    }
  })

  it('knows no service by the name of a call', async () => {
    for (const [method, url] of [
      ['GET', '/kafka/docs'],
      ['GET', '/kafka/openapi.json'],
      ['GET', '/kafka/rpc'],
      ['POST', '/kafka/summary'],
      ['DELETE', '/kafka/health'],
    ] as const)
      expect((await http.ask(url, { method })).json()).toMatchObject({ exception_id: 'unknownServiceError' })
  })

  it('says nothing of what went wrong inside, and the log says it without secrets', async () => {
    const { store } = http
    await store.dead({ value: '{"secret": "payload"}' })
    const failing = await scriptedServer({
      kafka: {
        calls: {
          settings: store.settings,
          get returnPath(): never {
            throw new Error('relation "kafka_events" does not exist')
          },
          get reader(): never {
            throw new Error('relation "kafka_events" does not exist')
          },
        },
        metrics: () => '',
        status: () => http.standing,
        reassign: () => Promise.reject(new Error('no')),
      },
    })
    const headers = { authorization: `Bearer ${TOKEN}`, 'x-request-id': ID }
    const reply = await failing.app.inject({ url: '/kafka/wps', headers })
    expect(reply.statusCode).toBe(500)
    expect(reply.json()).toEqual({
      description: expect.any(String),
      data: {},
      exception_id: 'internalServerError',
    })
    expect(reply.body).not.toContain('relation')
    expect(reply.headers['x-request-id']).toBe(ID)
    expect(failing.logged).toHaveLength(1)
    expect(failing.logged[0]).toContain(ID)
    expect(failing.logged[0]).toContain('kafka_events')
    expect(failing.logged[0]).not.toContain(TOKEN)
    failing.refuseCalls()
    const stopping = await failing.app.inject({ url: '/kafka/wps', headers })
    expect([stopping.statusCode, stopping.headers['retry-after']]).toEqual([503, '1'])
    expect(stopping.json().exception_id).toBe('kafkaUnavailableError')
    expect((await failing.app.inject({ url: '/kafka/health' })).statusCode).toBe(200)
  })

  it('is described in the OpenAPI document, every call of it', async () => {
    const reply = await http.ask('/openapi.json', { token: 'look' })
    const { paths } = reply.json()
    const ids = KAFKA_CALLS.map(({ method, path }) => {
      const described = paths[path.replace(/:(\w+)/g, '{$1}')]?.[method.toLowerCase()]
      expect(described, `${method} ${path}`).toMatchObject({ summary: expect.any(String), tags: ['kafka'] })
      return described.operationId
    })
    expect(new Set(ids).size).toBe(ids.length)
    const post = paths['/kafka/{service}/{topic}'].post
    expect(Object.keys(post.responses)).toEqual(
      '200 400 401 403 404 408 409 413 421 422 429 500 503 504'.split(' '),
    )
    expect(post.requestBody.content['application/json'].schema.required).toEqual(['dlq_id'])
    expect(paths['/kafka/health'].get.security).toEqual([])
    for (const path of ['/api/kafka', '/api/kafka/events/{dlqId}', '/api/kafka/events/{dlqId}/value'])
      expect(paths[path].get.tags).toEqual(['kafka'])
    expect((await http.ask('/docs', { token: 'look' })).statusCode).toBe(200)
  })
})

describe('the Kafka API that wants ids of requests', () => {
  it('refuses those that have none, after it has asked who they are', async () => {
    const http = await KafkaHttp.open(SQLITE, { settings: { generateCorrelationId: false } })
    try {
      const ask = async (sent: string | null, given: string | null = TOKEN) => {
        const headers = sent === null ? {} : { 'x-request-id': sent }
        const reply = await http.ask('/kafka/nobody', { headers, token: given })
        return [reply.statusCode, reply.json().exception_id]
      }
      expect(await ask(null)).toEqual([400, 'invalidCorrelationId'])
      expect(await ask('x')).toEqual([400, 'invalidCorrelationId'])
      expect(await ask(ID)).toEqual([404, 'unknownServiceError'])
      expect(await ask(null, null)).toEqual([401, undefined])
      const refused = await http.ask('/kafka/nobody')
      expect(refused.json()).toEqual({
        description: expect.any(String),
        data: {},
        exception_id: 'invalidCorrelationId',
      })
      expect((await http.ask('/kafka/health', { token: null })).statusCode).toBe(200)
    } finally {
      await http.close()
    }
  })
})

describe('the Kafka API of a server that has none', () => {
  it('is not there, for nobody', async () => {
    const { app } = await scriptedServer({ tokens: [token('look', 'viewer')] })
    for (const [method, url] of [...EVERY_CALL, ['GET', '/kafka/health']] as const)
      for (const headers of [{}, { authorization: 'Bearer look' }, { authorization: 'Basic x' }]) {
        const reply = await app.inject({ method, url, headers })
        expect([url, reply.statusCode, reply.body]).toEqual([url, 404, '{"detail":"Not Found"}'])
      }
    await closeServers()
  })
})
