/** `GET /api/events` over real connections, with a clock that is moved. */
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { get, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { redriveAt } from '../../../test/world/redrive.ts'
import {
  closeServers,
  type Script,
  type ScriptedServer,
  scriptedServer,
} from '../../../test/world/scripted-server.ts'
import { instant } from '../../core/clock.ts'
import { TestClock } from '../../core/test-clock.ts'
import { VERSION } from '../../core/version.ts'
import type { Summary } from '../../letters/numbers/summary.ts'
import type { RedriveStanding } from '../../redrive/redrive.ts'
import { MOST_LISTENERS, MOST_OF_ONE } from './live-counts.ts'

const SECOND = 1_000_001n
const HELLO = `retry: 3000\n\nevent: hello\ndata: {"version":"${VERSION}"}\n\n`
const counts = (standing: Summary) => `event: counts\ndata: ${JSON.stringify(standing)}\n\n`
const redrives = (...items: readonly object[]) => `event: redrives\ndata: ${JSON.stringify({ items })}\n\n`

let clock: TestClock
let standing: Summary
let readings: number
let server: ScriptedServer
let url: string

afterEach(closeServers)

beforeEach(() => {
  clock = new TestClock()
  clock.freeze(instant(1_800_000_000_000_000n))
  standing = { Pending: 3, Resolved: 2, Expired: 1, captured: 6, unconfirmed: 1 }
  readings = 0
})

async function start(script: Script = {}): Promise<void> {
  server = await scriptedServer({
    clock,
    standing: async () => {
      readings += 1
      return standing
    },
    ...script,
  })
  await server.app.listen({ host: '127.0.0.1', port: 0 })
  // It listens on a port, so its address has one.
  const { port } = server.app.server.address() as AddressInfo
  url = `http://127.0.0.1:${port}`
}

interface Stream {
  readonly reply: IncomingMessage
  /** All that came so far. */
  text(): string
  readonly ended: Promise<void>
  leave(): void
}

async function follow(headers: Readonly<Record<string, string>> = {}): Promise<Stream> {
  const request = get(`${url}/api/events`, { headers, agent: false })
  const [reply] = (await once(request, 'response')) as [IncomingMessage]
  let text = ''
  reply.on('data', (chunk) => {
    text += chunk
  })
  // One that is cut off ends too.
  reply.on('error', () => {})
  const ended = new Promise<void>((resolve) => reply.once('close', () => resolve()))
  return { reply, text: () => text, ended, leave: () => request.destroy() }
}

/** Lets a second pass, and what it set off come to its end. */
async function nextLook(): Promise<void> {
  const before = readings
  clock.advance(SECOND)
  await expect.poll(() => readings).toBe(before + 1)
}

describe('a client that listens', () => {
  it('is told the version and the counts at once, and a number that has changed within a second', async () => {
    await start()
    const stream = await follow()
    expect(stream.reply.headers).toMatchObject({
      'content-type': 'text/event-stream',
      'cache-control': 'no-store',
      'x-accel-buffering': 'no',
    })
    const first = HELLO + counts(standing) + redrives()
    await expect.poll(stream.text).toBe(first)
    await nextLook()
    standing = { ...standing, Pending: 4, captured: 7 }
    await nextLook()
    await expect.poll(stream.text).toBe(first + counts(standing))
  })

  it('is told of redrives that are under way, of what changes about them, and of the end of the last', async () => {
    let active: RedriveStanding[] = []
    await start({ redrives: async () => active })
    const stream = await follow()
    await expect.poll(stream.text).toBe(HELLO + counts(standing) + redrives())
    const running = redriveAt({ state: 'running', counts: { sent: 300 }, rateNow: 50, secondsLeft: 19 })
    active = [running]
    await nextLook()
    const news = {
      id: running.id,
      state: 'running',
      sentence: 'Sending 1,204 letters back: 300 sent, 904 to go.',
      action: 'retry',
      counts: running.counts,
      rateNow: 50,
      secondsLeft: 19,
      note: null,
      resumed: 0,
    }
    const begun = HELLO + counts(standing) + redrives() + redrives(news)
    await expect.poll(stream.text).toBe(begun)
    await nextLook()
    standing = { ...standing, Pending: 4 }
    await nextLook()
    await expect.poll(stream.text).toBe(begun + counts(standing))
    const late = await follow()
    await expect.poll(late.text).toBe(HELLO + counts(standing) + redrives(news))
    active = []
    await nextLook()
    await expect.poll(stream.text).toBe(begun + counts(standing) + redrives())
  })

  it('hears that somebody is there every fifteen seconds', async () => {
    await start()
    const stream = await follow()
    clock.advance(15n * SECOND)
    await expect.poll(stream.text).toContain(': still here\n\n')
  })

  it('shares the readings with all others, and what was read last with who comes later', async () => {
    await start()
    const first = await follow()
    await expect.poll(first.text).toContain('event: counts')
    const second = await follow()
    await expect.poll(second.text).toBe(HELLO + counts(standing) + redrives())
    expect(readings).toBe(1)
    await nextLook()
    expect(readings).toBe(2)
  })

  it('leaves nothing behind: without listeners nothing is read', async () => {
    await start()
    const stream = await follow()
    await expect.poll(stream.text).toContain('event: counts')
    stream.leave()
    // Once the last has gone nobody knows what was said: the next is told what is read for it.
    standing = { ...standing, Pending: 9 }
    await expect
      .poll(async () => {
        const next = await follow()
        await expect.poll(next.text).toContain('event: counts')
        next.leave()
        return next.text()
      })
      .toContain('"Pending":9')
    await expect
      .poll(() => {
        const before = readings
        clock.advance(SECOND)
        return readings - before
      })
      .toBe(0)
  })

  it('is told of a store that fails once, and the counts as soon as it answers again', async () => {
    let isAway = false
    await start({
      standing: async () => {
        readings += 1
        if (isAway) throw new Error('no route to the database')
        return standing
      },
    })
    const stream = await follow()
    await expect.poll(stream.text).toContain('event: counts')
    isAway = true
    await nextLook()
    await expect.poll(stream.text).toContain('event: trouble\ndata: {"message":"the counts cannot be read;')
    await nextLook()
    isAway = false
    await nextLook()
    await expect.poll(() => stream.text().split('event: ')).toHaveLength(7)
    expect(stream.text().endsWith(counts(standing) + redrives())).toBe(true)
    expect(stream.text()).not.toContain('no route')
    expect(server.logged.filter((line) => line.includes('no route to the database'))).toHaveLength(1)
  })

  it('is not counted among the requests that took long', async () => {
    await start()
    const stream = await follow()
    stream.leave()
    await stream.ended
    const { body } = await server.app.inject('/metrics')
    expect(body).not.toContain('/api/events')
  })
})

describe('a stream of events', () => {
  it('ends when the server stops, which does not wait for it', async () => {
    await start()
    const stream = await follow()
    server.refuseCalls()
    await stream.ended
    expect(stream.reply.complete).toBe(true)
    await server.idle()
    expect((await server.app.inject('/api/events')).json().error.code).toBe('service_stopping')
  })

  it('ends with the session that it was asked for with', async () => {
    const sha256 = createHash('sha256').update('t').digest('hex')
    await start({ tokens: [{ name: 'look', role: 'viewer', sha256 }] })
    expect((await server.app.inject('/api/events')).statusCode).toBe(401)
    const signedIn = await server.app.inject({ method: 'POST', url: '/api/session', body: '{"token":"t"}' })
    const [cookie = ''] = [signedIn.headers['set-cookie']].flat()
    const stream = await follow({ cookie: cookie.split(';')[0] ?? '' })
    const other = await follow({ authorization: 'Bearer t' })
    clock.advance(12n * 3_600_000_000n)
    await stream.ended
    await nextLook()
    expect(other.reply.readableEnded).toBe(false)
  })

  it('is refused when there are too many', async () => {
    await start()
    const streams = await Promise.all(Array.from({ length: MOST_LISTENERS }, () => follow()))
    const refused = await server.app.inject('/api/events')
    expect([refused.statusCode, refused.json().error.code]).toEqual([503, 'listeners_full'])
    for (const { leave } of streams) leave()
    await expect.poll(async () => (await follow()).reply.statusCode).toBe(200)
  })

  it('is refused when the same caller has too many, and others are not', async () => {
    const tokens = ['one', 'two'].map((name) => ({
      name,
      role: 'viewer' as const,
      sha256: createHash('sha256').update(name).digest('hex'),
    }))
    await start({ tokens })
    const as = (name: string) => ({ authorization: `Bearer ${name}` })
    const streams = await Promise.all(Array.from({ length: MOST_OF_ONE }, () => follow(as('one'))))
    const refused = await server.app.inject({ url: '/api/events', headers: as('one') })
    expect([refused.statusCode, refused.json().error.code]).toEqual([429, 'listeners_of_caller_full'])
    expect((await follow(as('two'))).reply.statusCode).toBe(200)
    for (const { leave } of streams) leave()
    await expect.poll(async () => (await follow(as('one'))).reply.statusCode).toBe(200)
  })

  it('takes no parameters and no other method', async () => {
    await start()
    const parameter = await server.app.inject('/api/events?since=1')
    expect([parameter.statusCode, parameter.json().error.code]).toEqual([400, 'parameter_invalid'])
    const method = await server.app.inject({ method: 'DELETE', url: '/api/events' })
    expect([method.statusCode, method.headers.allow]).toEqual([405, 'GET'])
  })
})
