import { createHash } from 'node:crypto'
import { afterEach, describe, expect, it } from 'vitest'
import { closeServers, type Script } from '../../../../test/world/scripted-server.ts'
import { scriptedWebhooks, settings } from '../../../../test/world/webhooks/scripted.ts'
import { Refused } from '../refusal.ts'

afterEach(closeServers)

describe('who may call', () => {
  const sha256 = (text: string) => createHash('sha256').update(text).digest('hex')
  const tokens = (['viewer', 'operator', 'admin'] as const).map((role) => ({
    name: role,
    role,
    sha256: sha256(role),
  }))
  const statuses = async (script: Script['webhooks'], method: 'GET' | 'PUT' | 'OPTIONS', url: string) => {
    const { app } = await scriptedWebhooks(script, { tokens })
    const asked = [undefined, 'viewer', 'operator', 'admin'].map((name) =>
      app.inject({ method, url, headers: name === undefined ? {} : { authorization: `Bearer ${name}` } }),
    )
    return (await Promise.all(asked)).map(({ statusCode }) => statusCode)
  }

  it('is decided by tokens once there are any', async () => {
    expect(await statuses({}, 'GET', '/channel/c/consumer/k')).toEqual([401, 403, 200, 200])
    expect(await statuses({}, 'PUT', '/channel/c/consumer/k')).toEqual([401, 403, 403, 415])
    expect(await statuses({}, 'GET', '/nope')).toEqual([401, 404, 404, 404])
    expect(await statuses({}, 'OPTIONS', '/producers')).toEqual([401, 200, 200, 200])
  })

  it('is a reader where no tokens are shown', async () => {
    const hidden = { settings: settings({ api: { exposeTokens: false } }) }
    expect(await statuses(hidden, 'GET', '/channel/c')).toEqual([401, 200, 200, 200])
  })

  it('is everyone if so configured, but not for the metrics', async () => {
    const open = { settings: settings({ openManagement: true }) }
    expect(await statuses(open, 'GET', '/channel/c')).toEqual([200, 200, 200, 200])
    expect(await statuses(open, 'PUT', '/channel/c')).toEqual([415, 415, 415, 415])
    expect(await statuses(open, 'GET', '/nope')).toEqual([404, 404, 404, 404])
    const { app } = await scriptedWebhooks(open, { tokens })
    expect((await app.inject('/metrics')).statusCode).toBe(401)
  })

  it('is everyone where a call carries tokens of its own, whatever else it carries', async () => {
    const refuse = async () => {
      throw new Refused('channel_token_wrong')
    }
    const { app } = await scriptedWebhooks({ broadcasts: { authorise: refuse } }, { tokens })
    const headers = { authorization: 'Basic Zm9vOmJhcg==' }
    for (const [method, url] of [
      ['POST', '/channel/c/broadcast'],
      ['GET', '/channel/c/consumer/k/queued-jobs'],
      ['GET', '/channel/c/consumer/k/job/j'],
      ['POST', '/channel/c/consumer/k/job/j'],
      ['DELETE', '/channel/c/consumer/k/job/j'],
      ['POST', '/channel/c/consumer/k/job/j/requeue-dead-job'],
      ['DELETE', '/channel/c/consumer/k/dlq'],
    ] as const) {
      const reply = await app.inject({ method, url, headers })
      expect([url, reply.statusCode, reply.body]).toEqual([url, 403, 'channel token does not match'])
    }
    const requeue = await app.inject({
      method: 'POST',
      url: '/channel/c/consumer/k/dlq',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: 'requeue=wrong',
    })
    expect(requeue.statusCode).toBe(400)
  })

  it('is nobody on the page of another site', async () => {
    const { app } = await scriptedWebhooks()
    const headers = { origin: 'http://evil.example', host: '127.0.0.1' }
    const reply = await app.inject({ url: '/producer/p', headers })
    expect(reply.statusCode).toBe(403)
    expect(reply.headers['content-type']).toBe('text/plain; charset=utf-8')
    expect(reply.headers['x-request-id']).toBeDefined()
  })

  it('does not depend on what `Authorization` says while there are no tokens', async () => {
    const { app } = await scriptedWebhooks()
    const headers = { authorization: 'Basic Zm9vOmJhcg==' }
    expect((await app.inject({ url: '/producer/p', headers })).statusCode).toBe(200)
  })
})

describe('the access log', () => {
  it('has a line for each request, with nothing of what it carried', async () => {
    const { app, logged } = await scriptedWebhooks({}, { logLevel: 'debug' })
    const headers = { 'x-request-id': 'r-1', 'x-broker-channel-token': 'hunter2', cookie: 'hunter3' }
    await app.inject({ url: '/producer/p?token=hunter4', headers })
    await app.inject('/health')
    await app.inject({ method: 'DELETE', url: '/producers' })
    const lines = logged.map((line) => JSON.parse(line)).filter(({ msg }) => msg === 'request')
    expect(lines).toMatchObject([
      { method: 'GET', url: '/producer/p', status: 200, size: 77, requestId: 'r-1' },
      { method: 'DELETE', url: '/producers', status: 405, size: 19 },
    ])
    expect(lines[0].durationMs).toBeGreaterThan(0)
    expect(logged.join('')).not.toMatch(/hunter|tok-en/)
  })

  it('costs nothing where nobody reads it', async () => {
    const { app, logged } = await scriptedWebhooks()
    await app.inject('/producer/p')
    expect(logged).toEqual([])
  })
})
