/** Signing in, out and being known, as a browser and as other programs see it. */
import { createHash } from 'node:crypto'
import { afterEach, describe, expect, it } from 'vitest'
import { closeServers, type ScriptedServer, scriptedServer } from '../../../test/world/scripted-server.ts'
import { instant } from '../../core/clock.ts'
import { failure } from '../../core/errors.ts'
import { TestClock } from '../../core/test-clock.ts'
import { VERSION } from '../../core/version.ts'

afterEach(closeServers)

const token = (name: string, role: 'viewer' | 'operator' | 'admin') => ({
  name,
  role,
  sha256: createHash('sha256').update(`token of ${name}`).digest('hex'),
})
const tokens = [token('look', 'viewer'), token('work', 'operator')]
/** What a page of the server itself sends. */
const OWN = { host: 'localhost:1853', origin: 'http://localhost:1853' }

const FACE = {
  version: VERSION,
  environment: { name: 'test', colour: 'gray' },
  sources: { outbox: false, webhooks: true, kafka: false },
  navigation: [
    { name: 'queues', title: 'Queues', present: true },
    { name: 'engines', title: 'Engines', present: true },
    { name: 'outbox', title: 'Outbox', present: false },
    { name: 'webhooks', title: 'Webhooks', present: true },
    { name: 'kafka', title: 'Kafka', present: false },
    { name: 'azure', title: 'Azure tables', present: true },
    { name: 'http', title: 'HTTP reports', present: true },
  ],
  demo: null,
}
const NOBODY = { signedIn: false, needsToken: true, name: null, role: null, reach: null, ...FACE }

async function start(clock = new TestClock()): Promise<ScriptedServer> {
  const unknown = async () => {
    throw failure('queue_unknown', { name: 'q' })
  }
  return scriptedServer({ tokens, clock, queues: { stats: unknown, complete: unknown } })
}

const signIn = ({ app }: ScriptedServer, text: unknown, headers: Readonly<Record<string, string>> = OWN) =>
  app.inject({ method: 'POST', url: '/api/session', headers, body: JSON.stringify({ token: text }) })

/** As a browser keeps it. */
async function cookieOf(server: ScriptedServer, name: string): Promise<string> {
  const [set] = [(await signIn(server, `token of ${name}`)).headers['set-cookie']].flat()
  return set?.split(';')[0] ?? ''
}

const session = ({ app }: ScriptedServer, headers: Readonly<Record<string, string>> = {}) =>
  app.inject({ url: '/api/session', headers })

describe('a session', () => {
  it('begins with a token, lasts twelve hours, and is out of reach of scripts and other sites', async () => {
    const server = await start()
    expect((await session(server)).json().data).toEqual(NOBODY)
    const reply = await signIn(server, 'token of work')
    const me = { signedIn: true, needsToken: true, name: 'work', role: 'operator', reach: 'all', ...FACE }
    expect([reply.statusCode, reply.json().data]).toEqual([200, me])
    expect(reply.headers['set-cookie']).toMatch(
      /^bartleby_session=[\w-]+\.[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict; Max-Age=43200$/,
    )
    const cookie = await cookieOf(server, 'work')
    expect((await session(server, { cookie })).json().data).toEqual(me)
  })

  it('is kept to TLS where the page came over it', async () => {
    const headers = { origin: 'https://bartleby.example', host: 'bartleby.example' }
    expect((await signIn(await start(), 'token of work', headers)).headers['set-cookie']).toMatch(/; Secure;/)
  })

  it('ends when asked to', async () => {
    const { app } = await start()
    const reply = await app.inject({ method: 'DELETE', url: '/api/session', headers: OWN })
    expect(reply.json().data).toEqual({ signedIn: false })
    expect(reply.headers['set-cookie']).toBe(
      'bartleby_session=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0',
    )
  })

  it('tells who sent a token as well, and nobody when it is wrong', async () => {
    const server = await start()
    const asked = async (authorization: string) => (await session(server, { authorization })).json().data
    expect(await asked('Bearer token of look')).toMatchObject({
      signedIn: true,
      name: 'look',
      role: 'viewer',
    })
    expect(await asked('Bearer nonsense')).toEqual(NOBODY)
  })

  it('is not needed where there are no tokens', async () => {
    const server = await scriptedServer()
    const everybody = {
      signedIn: true,
      needsToken: false,
      name: 'anyone',
      role: 'admin',
      reach: 'all',
      ...FACE,
    }
    expect((await session(server)).json().data).toEqual(everybody)
    const reply = await signIn(server, 'whatever')
    expect([reply.json().data, reply.headers['set-cookie']]).toEqual([everybody, undefined])
  })
})

describe('a wrong token', () => {
  it('is refused, and neither answer nor log repeat it', async () => {
    const server = await start()
    const reply = await signIn(server, 's3cret')
    expect([reply.statusCode, reply.json().error.code]).toEqual([401, 'token_unknown'])
    expect(reply.headers['set-cookie']).toBeUndefined()
    expect(reply.body + server.logged.join('')).not.toContain('s3cret')
    expect(server.logged.join('')).toContain('a sign-in was refused')
  })

  it.each([
    [{}, 'token is invalid; it is missing'],
    [{ token: 5 }, 'token is invalid; it is a number, give a text'],
    [{ token: '' }, 'token is invalid; it is empty'],
    [{ token: 'x'.repeat(5_000) }, 'token is invalid; it has 5000 characters, at most 4096 are allowed'],
    [{ token: 'x', name: 'y' }, 'name is invalid; it is none of token'],
  ])('that is none is told so: %j', async (body, message) => {
    const { app } = await start()
    const reply = await app.inject({ method: 'POST', url: '/api/session', body: JSON.stringify(body) })
    expect([reply.statusCode, reply.json().error.message]).toEqual([400, message])
  })

  it('ends all attempts from its address for a minute when there were too many', async () => {
    const clock = new TestClock()
    clock.freeze(instant(1_800_000_000_000_000n))
    const server = await start(clock)
    for (let attempt = 1; attempt <= 100; attempt++) {
      expect((await signIn(server, 'guess')).statusCode).toBe(401)
      clock.advance(300_000n)
    }
    const refused = await signIn(server, 'token of work')
    expect([refused.statusCode, refused.json().error]).toEqual([
      429,
      {
        code: 'wrong_tokens_limited',
        message:
          'too many wrong tokens; from your address none but those that it has used before is taken for another 30 s, try again then',
        details: { seconds: 30 },
      },
    ])
    clock.advance(30_000_000n)
    expect((await signIn(server, 'token of work')).statusCode).toBe(200)
  })
})

describe('the cookie of a session', () => {
  it('stands in for the token on every API, with its role', async () => {
    const server = await start()
    const cookie = await cookieOf(server, 'look')
    const get = (url: string) => server.app.inject({ url, headers: { cookie } })
    for (const url of ['/metrics', '/openapi.json', '/docs']) expect((await get(url)).statusCode).toBe(200)
    const post = async (url: string) =>
      (await server.app.inject({ method: 'POST', url, headers: { ...OWN, cookie }, body: '{}' })).statusCode
    expect(await post('/v1/queue.stats')).toBe(400)
    expect(await post('/v1/queue.complete')).toBe(403)
    expect((await get('/api/nothing')).statusCode).toBe(404)
    // A call of the webhook API that changes something asks for more than a viewer.
    const deleted = await server.app.inject({
      method: 'PUT',
      url: '/channel/x',
      headers: { ...OWN, cookie },
    })
    expect(deleted.statusCode).toBe(403)
  })

  it.each([
    ['no origin', {}, 'origin_missing'],
    ['a foreign origin', { origin: 'http://evil.example' }, 'origin_foreign'],
    ['the origin of another port', { origin: 'http://localhost:1854' }, 'origin_foreign'],
    ['a hidden origin', { origin: 'null' }, 'origin_foreign'],
  ])('changes nothing for a request with %s', async (_, headers, code) => {
    const server = await start()
    const cookie = await cookieOf(server, 'work')
    const reply = await server.app.inject({
      method: 'POST',
      url: '/api/dlq/expire',
      headers: { host: OWN.host, cookie, ...headers },
      body: '{}',
    })
    expect([reply.statusCode, reply.json().error.code]).toEqual([403, code])
  })

  it('is not looked at where a token is sent', async () => {
    const server = await start()
    const cookie = await cookieOf(server, 'work')
    const reply = await server.app.inject({
      url: '/api/dlq',
      headers: { cookie, authorization: 'Bearer nonsense' },
    })
    expect([reply.statusCode, reply.json().error.code]).toEqual([401, 'token_unknown'])
  })

  it.each([
    ['forged', async () => 'bartleby_session=x.y'],
    ['of another server', async () => cookieOf(await scriptedServer({ tokens: [token('x', 'admin')] }), 'x')],
  ])('is as none when it is %s', async (_, cookie) => {
    const server = await start()
    const headers = { cookie: await cookie() }
    expect((await session(server, headers)).json().data).toEqual(NOBODY)
    const reply = await server.app.inject({ url: '/api/dlq', headers })
    expect([reply.statusCode, reply.json().error.code]).toEqual([401, 'token_missing'])
  })

  it('is as none when its time is over', async () => {
    const clock = new TestClock()
    clock.freeze(instant(1_800_000_000_000_000n))
    const server = await start(clock)
    const headers = { cookie: await cookieOf(server, 'work') }
    clock.advance(12n * 3_600_000_000n)
    expect((await session(server, headers)).json().data).toEqual(NOBODY)
    expect((await server.app.inject({ url: '/api/dlq', headers })).statusCode).toBe(401)
  })
})
