import { createHash } from 'node:crypto'
import Fastify, { type FastifyInstance, type InjectOptions } from 'fastify'
import { afterEach, describe, expect, it } from 'vitest'
import { closeServers, scriptedServer } from '../../test/world/scripted-server.ts'
import { instant } from '../core/clock.ts'
import { failure } from '../core/errors.ts'
import { TestClock } from '../core/test-clock.ts'
import { gate } from '../http/gate.ts'
import { StoreUnavailable } from '../store/database.ts'
import { type ApiCall, type ApiRequest, onceKeyOf, serveApi } from './calls.ts'
import { TEXT } from './shapes.ts'

const clock = new TestClock()
clock.freeze(instant(1_798_761_600_120_000n))

const apps: FastifyInstance[] = []
afterEach(async () => {
  await closeServers()
  for (const app of apps.splice(0)) await app.close()
})

interface Setting {
  readonly stopping?: boolean
  readonly tokens?: readonly { name: string; role: 'viewer' | 'operator' }[]
}

/** A server with one pair of calls on `/api/thing/:name`, which answer with what `answer` gives. */
function thing(answer: (request: ApiRequest) => unknown, setting: Setting = {}): FastifyInstance {
  const app = Fastify({ exposeHeadRoutes: false })
  apps.push(app)
  const tokens = (setting.tokens ?? []).map(({ name, role }) => ({
    name,
    role,
    sha256: createHash('sha256').update(name).digest('hex'),
  }))
  app.addHook('onRequest', gate(tokens, clock))
  const call = (rest: Pick<ApiCall, 'method' | 'role'> & Partial<ApiCall>): ApiCall => ({
    path: '/api/thing/:name',
    operationId: 'thing',
    tag: 'things',
    summary: 'A thing',
    data: {},
    answer: async (request) => ({ status: 201, data: await answer(request) }),
    ...rest,
  })
  serveApi(app, { clock, stopping: () => setting.stopping ?? false }, [
    call({ method: 'GET', role: 'viewer', query: { limit: TEXT, engine: TEXT } }),
    call({ method: 'POST', role: 'operator', body: { properties: {} }, bodyLimit: 64 }),
    call({ method: 'PATCH', role: 'operator', isBodyOptional: true }),
  ])
  return app
}

const post = (body: string | Buffer, headers: Record<string, string> = {}): InjectOptions => ({
  method: 'POST',
  url: '/api/thing/a',
  headers,
  body,
})

describe('an answer of the office API', () => {
  it('is in the envelope, with the time to the microsecond and the correlation id in the header too', async () => {
    const app = thing(({ params, query }) => ({ ...params, limit: query.get('limit') }))
    const headers = { 'x-correlation-id': 'order-66' }
    const reply = await app.inject({ url: '/api/thing/a%2Fb?limit=7', headers })
    expect(reply.statusCode).toBe(201)
    expect(reply.headers).toMatchObject({ 'x-correlation-id': 'order-66', 'cache-control': 'no-store' })
    expect(reply.headers['content-type']).toMatch(/^application\/json/)
    expect(reply.json()).toEqual({
      status: 'Succeeded',
      correlationId: 'order-66',
      timestamp: '2027-01-01T00:00:00.120000Z',
      data: { name: 'a/b', limit: '7' },
    })
  })

  it.each([
    ['x'.repeat(128), true],
    ['x'.repeat(129), false],
    ['two words', false],
    ['', false],
    ['café', false],
  ])('echoes the correlation id %j: %s', async (sent, echoed) => {
    const app = thing(({ correlationId }) => correlationId)
    const reply = await app.inject({ url: '/api/thing/a', headers: { 'x-correlation-id': sent } })
    const { correlationId, data } = reply.json()
    expect(correlationId === sent).toBe(echoed)
    expect(correlationId).toMatch(/^[\x21-\x7e]{1,128}$/)
    expect([data, reply.headers['x-correlation-id']]).toEqual([correlationId, correlationId])
  })

  it.each([
    [
      'without a token that is asked for',
      401,
      [{ name: 'look', role: 'viewer' as const, sha256: '0'.repeat(64) }],
    ],
    ['on a path that nothing serves', 404, []],
  ])('has a correlation id also %s', async (_, status, tokens) => {
    const { app } = await scriptedServer({ tokens })
    const headers = { 'x-correlation-id': 'c-1' }
    for (const [url, method] of [
      ['/api/nothing', 'GET'],
      ['/api/nothing', 'POST'],
    ] as const) {
      const reply = await app.inject({ url, method, headers })
      expect([reply.statusCode, reply.headers['x-correlation-id'], reply.json().correlationId]).toEqual([
        status,
        'c-1',
        'c-1',
      ])
    }
  })

  it('has a correlation id also on a path that cannot be decoded', async () => {
    const { app } = await scriptedServer()
    const reply = await app.inject({ url: '/api/%zz', headers: { 'x-correlation-id': 'c-1' } })
    expect([reply.statusCode, reply.headers['x-correlation-id']]).toEqual([404, 'c-1'])
  })
})

describe('a call of the office API', () => {
  it('knows whom it comes from', async () => {
    const tokens = [{ name: 'nell', role: 'operator' as const }]
    const reply = await thing(({ caller }) => caller.name, { tokens }).inject(
      post('{}', { authorization: 'Bearer nell' }),
    )
    expect(reply.json().data).toBe('nell')
    expect((await thing(({ caller }) => caller.name).inject(post('{}'))).json().data).toBe('anyone')
  })

  it('is refused to those whose role does not reach, before its body is read', async () => {
    const app = thing(() => null, { tokens: [{ name: 'look', role: 'viewer' }] })
    expect((await app.inject(post('{', { authorization: 'Bearer look' }))).statusCode).toBe(403)
    expect((await app.inject(post('{'))).statusCode).toBe(401)
  })

  it('with a wrong method names the right ones', async () => {
    const app = thing(() => null)
    for (const method of ['DELETE', 'PUT', 'OPTIONS', 'HEAD'] as const) {
      const reply = await app.inject({ method, url: '/api/thing/a' })
      expect([method, reply.statusCode, reply.headers.allow]).toEqual([method, 405, 'GET, POST, PATCH'])
      if (method !== 'HEAD') expect(reply.json().error.code).toBe('method_unknown')
    }
  })

  it('is refused while the server stops', async () => {
    const reply = await thing(() => null, { stopping: true }).inject(post('{}'))
    expect([reply.statusCode, reply.json().error.code]).toEqual([503, 'service_stopping'])
  })

  it('has an idempotency key that is bound to its caller, method and path', async () => {
    const app = thing((request) => onceKeyOf(request))
    const asked = async (key: string) => (await app.inject(post('{}', { 'idempotency-key': key }))).json()
    expect((await asked('k'.repeat(255))).data).toEqual({
      scope: 'anyone POST /api/thing/a',
      key: 'k'.repeat(255),
    })
    expect((await app.inject(post('{}'))).json().data).toBeNull()
    for (const key of ['', 'k'.repeat(256), 'a b', 'ü']) {
      expect((await asked(key)).error).toMatchObject({
        code: 'parameter_invalid',
        details: { parameter: 'Idempotency-Key' },
      })
    }
  })
})

describe('a failure behind the office API', () => {
  const failing = async (thrown: unknown) => {
    const reply = await thing(() => Promise.reject(thrown)).inject('/api/thing/a')
    return [reply.statusCode, reply.json().error]
  }

  it('says what is wrong, for people and for programs', async () => {
    expect(await failing(failure('engine_unknown', { engine: 'x', known: 'hmac, tls' }))).toEqual([
      400,
      {
        code: 'engine_unknown',
        message: "engine is unknown; 'x' is none of hmac, tls",
        details: { engine: 'x', known: 'hmac, tls' },
      },
    ])
  })

  it('of the store can be tried again', async () => {
    const [status, error] = await failing(new StoreUnavailable('the password is hunter2'))
    expect([status, error.code]).toEqual([503, 'store_write_failed'])
    expect(JSON.stringify(error)).not.toContain('hunter2')
  })

  it('that nobody foresaw says nothing about itself', async () => {
    expect(await failing(new Error('the password is hunter2'))).toEqual([
      500,
      { code: 'internal', message: 'Internal Error' },
    ])
  })
})

describe('a body of the office API', () => {
  const sent = async (body: string | Buffer, headers?: Record<string, string>) => {
    const reply = await thing((request) => request.body.fields).inject(post(body, headers))
    return [reply.statusCode, reply.json().data ?? reply.json().error]
  }

  it('is JSON, whether or not the content type says so', async () => {
    expect(await sent('{"a":1}')).toEqual([201, { a: 1 }])
    expect(await sent('\ufeff{"a":1}', { 'content-type': 'Application/JSON; charset=utf-8' })).toEqual([
      201,
      { a: 1 },
    ])
    expect(await sent('{}', { 'content-type': 'application/merge-patch+json' })).toEqual([201, {}])
  })

  it('of another type is refused', async () => {
    for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'json', 'application/jsonx']) {
      const [status, error] = await sent('{}', { 'content-type': type })
      expect([type, status, error.code]).toEqual([type, 415, 'content_type_unknown'])
    }
  })

  it.each([
    ['{"a":1,}', /position 7/],
    ['{"a":nope}', /nope/],
    ['', /empty/],
    [' \n', /empty/],
    ['[]', /a list/],
    ['null', /null/],
    ['"text"', /a string/],
    [Buffer.from([0x7b, 0xff, 0x7d]), /UTF-8/],
  ])('that is %s is refused, and the answer says why', async (body, reason) => {
    const [status, error] = await sent(body)
    expect([status, error.code]).toEqual([400, 'json_malformed'])
    expect(error.message).toMatch(reason)
  })

  it('is refused beyond its limit, which the answer names', async () => {
    expect(await sent(`{}${' '.repeat(62)}`)).toEqual([201, {}])
    const [status, error] = await sent(`{}${' '.repeat(63)}`)
    expect([status, error]).toMatchObject([413, { code: 'body_too_large', details: { limit: '64B' } }])
  })

  it('may be left out where the call says so', async () => {
    const reply = await thing((request) => request.body.fields).inject({
      method: 'PATCH',
      url: '/api/thing/a',
    })
    expect(reply.json().data).toEqual({})
  })

  it('may have a mebibyte, unless the call says otherwise', async () => {
    const app = thing(() => 'read')
    const patch = (size: number) =>
      app.inject({ method: 'PATCH', url: '/api/thing/a', body: `{}${' '.repeat(size - 2)}` })
    expect((await patch(1_048_576)).json().data).toBe('read')
    const { statusCode, body } = await patch(1_048_577)
    expect([statusCode, JSON.parse(body).error.message]).toEqual([413, 'request body exceeds 1.0MiB limit'])
  })
})
