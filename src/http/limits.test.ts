/** How much somebody without a token may take from a server, over real connections from several addresses of loopback. */
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import {
  closeServers,
  received,
  type Script,
  type ScriptedServer,
  scriptedServer,
  unknownQueue,
} from '../../test/world/scripted-server.ts'
import { instant } from '../core/clock.ts'
import { TestClock } from '../core/test-clock.ts'

const sockets: Socket[] = []
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy()
  await closeServers()
})

const token = (name: string) => ({
  name,
  role: 'operator' as const,
  sha256: createHash('sha256').update(name).digest('hex'),
})
const tokens = [token('work'), token('other')]
const HERE = '127.0.0.1'
const THERE = '127.0.0.2'

async function listening(script: Script): Promise<ScriptedServer> {
  const server = await scriptedServer(script)
  await server.app.listen({ host: HERE, port: 0 })
  return server
}

/** A connection from an address of this machine. */
async function dial({ app }: ScriptedServer, localAddress = HERE): Promise<Socket> {
  // It listens on a port, so its address has one.
  const { port } = app.server.address() as AddressInfo
  const socket = connect({ port, host: HERE, localAddress })
  sockets.push(socket)
  socket.on('error', () => {})
  await once(socket, 'connect')
  return socket
}

/** The answer to a request, on a connection that stays open; the text so far when it is closed. */
async function ask(socket: Socket, ...head: readonly string[]): Promise<string> {
  const answered = new Promise<string>((resolve) => {
    let text = ''
    const take = (chunk: Buffer): void => {
      text += chunk
      const length = /\r\ncontent-length: (\d+)\r\n[\s\S]*?\r\n\r\n/i.exec(text)
      if (length === null || text.length < length.index + length[0].length + Number(length[1])) return
      socket.off('data', take).off('close', end)
      resolve(text)
    }
    const end = (): void => resolve(text)
    socket.on('data', take).once('close', end)
  })
  socket.write(`${head.join('\r\n')}\r\nHost: localhost\r\n\r\n`)
  return answered
}
const statusOf = (answer: string): number => Number(answer.split(' ')[1])
const bearer = (text: string) => `Authorization: Bearer ${text}`
const session = (socket: Socket, ...head: readonly string[]) =>
  ask(socket, 'GET /api/session HTTP/1.1', ...head).then(statusOf)
const counts = (socket: Socket, ...head: readonly string[]) =>
  ask(socket, 'GET /api/nothing HTTP/1.1', ...head).then(statusOf)

describe('a body that does not come', () => {
  it.each([
    ['/v1/queue.produce', /^HTTP\/1\.1 408 [\s\S]*"code":408,.*request body took too long; /],
    ['/api/dlq/expire', /^HTTP\/1\.1 408 [\s\S]*"code":"body_late"/],
    ['/channel/c', /^HTTP\/1\.1 408 [\s\S]*request body took too long$/],
  ])('is given up: %s', async (path, expected) => {
    const server = await listening({ http: { bodyTimeoutSeconds: 0.05 } })
    const socket = await dial(server)
    const form = 'Content-Type: application/x-www-form-urlencoded'
    const method = path === '/channel/c' ? 'PUT' : 'POST'
    socket.write(`${method} ${path} HTTP/1.1\r\nHost: localhost\r\n${form}\r\nContent-Length: 9\r\n\r\n{"a`)
    const [answer] = await once(socket, 'data')
    expect(String(answer)).toMatch(expected)
  })

  it('does not hold for a call that waits with its body read', async () => {
    const lease = Promise.withResolvers<never>()
    const begun = Promise.withResolvers<void>()
    const server = await listening({
      http: { bodyTimeoutSeconds: 0.05 },
      queues: {
        lease: () => {
          begun.resolve()
          return lease.promise
        },
      },
    })
    const socket = await dial(server)
    const answer = once(socket, 'data')
    socket.write('POST /v1/queue.lease HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}')
    await begun.promise
    // Another body that begins later is late by now: the first would be too.
    const late = await dial(server)
    const refused = once(late, 'data')
    late.write('POST /v1/queue.lease HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{')
    expect(String(await refused)).toContain(' 408 ')
    lease.reject(await unknownQueue().catch((error: unknown) => error))
    expect(String(await answer)).toContain(' 400 ')
  })
})

describe('connections without a token', () => {
  const http = { connectionsWithoutToken: 3 }

  it('are bounded by address; others have their own, and a token always passes', async () => {
    const server = await listening({ tokens, http })
    for (let i = 0; i < 3; i++) expect(await session(await dial(server))).toBe(200)
    const beyond = await dial(server)
    const answer = await ask(beyond, 'GET /api/session HTTP/1.1')
    expect(answer).toMatch(/^HTTP\/1\.1 429 /)
    expect(answer).toMatch(/\r\nretry-after: \d+\r\n/i)
    expect(answer).toContain('too many connections without a token; your address has 3 of them already')
    await received(beyond)
    expect(await session(await dial(server, THERE))).toBe(200)
    expect(await counts(await dial(server), bearer('work'))).toBe(404)
    expect(statusOf(await ask(await dial(server), 'GET /health/live HTTP/1.1'))).toBe(200)
  })

  it('that sent nothing yet count too, and twice as many are not accepted', async () => {
    const server = await listening({ tokens, http })
    for (let i = 0; i < 6; i++) await dial(server)
    const seventh = await dial(server)
    expect(await received(seventh)).toBe('')
    expect(await session(await dial(server, THERE))).toBe(200)
  })

  it('count no more once they are known or closed', async () => {
    const server = await listening({ tokens, http })
    for (let i = 0; i < 5; i++) expect(await counts(await dial(server), bearer('work'))).toBe(404)
    const three = [await dial(server), await dial(server), await dial(server)]
    expect(await session(await dial(server))).toBe(429)
    for (const socket of three) socket.destroy()
    await expect.poll(async () => session(await dial(server))).toBe(200)
  })

  it('are not bounded where nobody needs one', async () => {
    const server = await listening({ http })
    for (let i = 0; i < 9; i++) expect(await session(await dial(server))).toBe(200)
  })
})

describe('wrong tokens', () => {
  const http = { wrongTokensPerMinute: 3 }
  const start = (trustedProxies: readonly string[] = []) => {
    const clock = new TestClock()
    clock.freeze(instant(1_800_000_000_000_000n))
    return {
      clock,
      server: listening({ tokens, clock, http: { ...http, trustedProxies: [...trustedProxies] } }),
    }
  }

  it('are limited by address on every door, with a time to try again', async () => {
    const { clock, server: starting } = start()
    const server = await starting
    const [here, there] = [await dial(server), await dial(server, THERE)]
    for (let i = 0; i < 3; i++) expect(await counts(here, bearer(`guess ${i}`))).toBe(401)
    const refused = await ask(here, 'POST /v1/queue.stats HTTP/1.1', bearer('guess'), 'Content-Length: 0')
    expect(refused).toMatch(/^HTTP\/1\.1 429 Too Many Requests\r\n[\s\S]*retry-after: 60\r\n/i)
    // A right one would tell that it is right.
    expect(await counts(here, bearer('work'))).toBe(429)
    const signIn = JSON.stringify({ token: 'work' })
    const enter = (socket: Socket) => {
      const head = ['POST /api/session HTTP/1.1', 'Host: localhost', `Content-Length: ${signIn.length}`]
      const answer = once(socket, 'data')
      socket.write(`${head.join('\r\n')}\r\n\r\n${signIn}`)
      return answer.then(([text]) => statusOf(String(text)))
    }
    expect(await enter(here)).toBe(429)
    // Nobody else is kept out.
    expect(await enter(there)).toBe(200)
    expect(await counts(there, bearer('work'))).toBe(404)
    clock.advance(60_000_001n)
    expect(await counts(here, bearer('work'))).toBe(404)
  })

  it('keep nobody out who was in from there', async () => {
    const server = await start().server
    const socket = await dial(server)
    expect(await counts(socket, bearer('work'))).toBe(404)
    for (let i = 0; i < 9; i++) await counts(socket, bearer(`guess ${i}`))
    expect(await counts(socket, bearer('guess'))).toBe(429)
    expect(await counts(socket, bearer('other'))).toBe(429)
    expect(await counts(await dial(server), bearer('work'))).toBe(404)
  })

  it('count for the client that a trusted proxy names, and no proxy else is believed', async () => {
    const server = await start([THERE]).server
    const [proxy, liar] = [await dial(server, THERE), await dial(server, '127.0.0.3')]
    const from = (client: string) => `X-Forwarded-For: 203.0.113.1, ${client}`
    for (let i = 0; i < 4; i++) await counts(proxy, from('198.51.100.7'), bearer('guess'))
    expect(await counts(proxy, from('198.51.100.7'), bearer('work'))).toBe(429)
    expect(await counts(proxy, from('198.51.100.8'), bearer('work'))).toBe(404)
    for (let i = 0; i < 4; i++) await counts(liar, from(`198.51.100.${i}`), bearer('guess'))
    expect(await counts(liar, from('198.51.100.99'), bearer('work'))).toBe(429)
  })
})
