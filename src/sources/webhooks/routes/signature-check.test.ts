import { createHash, createHmac } from 'node:crypto'
import { afterEach, describe, expect, it } from 'vitest'
import { closeServers, type Script } from '../../../../test/world/scripted-server.ts'
import { getAsSent, ID, scriptedWebhooks, settings } from '../../../../test/world/webhooks/scripted.ts'
import { instant } from '../../../core/clock.ts'
import { TestClock } from '../../../core/test-clock.ts'
import { DEFAULT_WEBHOOK_SETTINGS } from '../settings.ts'

afterEach(closeServers)

describe('the gateway', () => {
  const secret = 'dGVzdC1obWFjLXNlY3JldC1mb3ItaW50ZWdyYXRpb24='
  const NOW = 1_700_000_000
  const sign = (body: string) => {
    const key = Buffer.from(secret, 'base64')
    return `t=${NOW},v1=${createHmac('sha256', key).update(`${NOW}.${body}`).digest('hex')}`
  }
  const signing = (script: Script['webhooks'] = {}, rest: Omit<Script, 'webhooks'> = {}) => {
    const gatewayAuth = { ...DEFAULT_WEBHOOK_SETTINGS.gatewayAuth, mode: 'hmac', secret } as const
    const clock = new TestClock()
    clock.freeze(instant(BigInt(NOW) * 1_000_000n))
    return scriptedWebhooks({ settings: settings({ gatewayAuth }), ...script }, { clock, ...rest })
  }

  it('asks before it tells what is there', async () => {
    const { app } = await signing()
    for (const [method, url] of [
      ['GET', '/producers'],
      ['GET', '/nope'],
      ['GET', '/producers/'],
      ['OPTIONS', '/producers'],
      ['DELETE', '/producers'],
      ['GET', '/metricsfoo'],
      ['GET', '/channel/%20'],
    ] as const) {
      const reply = await app.inject({ method, url, headers: { 'x-request-id': 'r-1' } })
      expect([url, reply.statusCode, reply.body]).toEqual([url, 401, 'missing X-Broker-Signature header'])
      expect(reply.headers['x-request-id']).toBe('r-1')
    }
  })

  it('cannot be walked around', async () => {
    const paths = ['/metrics/../producer/p', '/metrics/%2e%2e/producer/p', '//producer/p', '/%70roducer/p']
    for (const text of await getAsSent(await signing(), paths)) expect(text).toMatch(/^HTTP\/1\.1 401 /)
  })

  it('leaves the rest of the server alone', async () => {
    const { app } = await signing()
    for (const url of ['/health', '/health/live', '/docs', '/openapi.json', '/metrics']) {
      expect([url, (await app.inject(url)).statusCode]).toEqual([url, 200])
    }
    expect((await app.inject({ url: '/', headers: { accept: 'text/html' } })).statusCode).toBe(200)
    const call = { url: '/producer/p', headers: { accept: 'text/html' } }
    expect((await app.inject(call)).statusCode).toBe(401)
    expect((await app.inject('/api/nope')).statusCode).toBe(404)
    expect((await app.inject({ method: 'POST', url: '/v1/nope' })).statusCode).toBe(501)
  })

  it('reads a body once, and hands it on', async () => {
    const payloads: string[] = []
    const { app } = await signing({
      broadcasts: {
        authorise: async () => ({ channel: 1, channelId: 'c', producer: ID }),
        accept: async (_, { content }) => {
          payloads.push(Buffer.from(content.payload).toString())
          return { messageId: 'm', scheduled: false }
        },
      },
    })
    const send = (body: string, signed: string) =>
      app.inject({
        method: 'POST',
        url: '/channel/c/broadcast',
        headers: { 'x-broker-signature': sign(signed) },
        body,
      })
    expect((await send('{"a": 1}', '{"a": 1}')).statusCode).toBe(201)
    expect((await send('{"a":1}', '{"a": 1}')).statusCode).toBe(403)
    expect((await send('', '')).statusCode).toBe(400)
    expect(payloads).toEqual(['{"a": 1}'])
  })

  it('bounds what it reads', async () => {
    const { app } = await signing({}, { http: { maxBodyBytes: 4 } })
    const headers = { 'x-broker-signature': sign('large') }
    const reply = await app.inject({ method: 'POST', url: '/channel/c/broadcast', headers, body: 'large' })
    expect([reply.statusCode, reply.body]).toEqual([413, 'request body too large'])
  })

  it('does not stand in for tokens', async () => {
    const token = {
      name: 'a',
      role: 'admin',
      sha256: createHash('sha256').update('a').digest('hex'),
    } as const
    const { app } = await signing({}, { tokens: [token] })
    const headers = { 'x-broker-signature': sign('') }
    expect((await app.inject({ url: '/producer/p', headers })).statusCode).toBe(401)
    const both = { ...headers, authorization: 'Bearer a' }
    expect((await app.inject({ url: '/producer/p', headers: both })).statusCode).toBe(200)
  })
})
