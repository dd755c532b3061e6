/** How the office's clients speak HTTP, against a server that can hang up, refuse and answer nonsense. */
import { createServer, type IncomingMessage, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { bytesOf } from './bytes.ts'
import type { WriteOptions } from './envelope.ts'
import { HistoryClient } from './history.ts'
import { LetterClient } from './letters.ts'
import { RedriveClient } from './redrives.ts'

interface Seen {
  readonly method: string | undefined
  readonly url: string | undefined
  readonly headers: IncomingMessage['headers']
  readonly body: string
}

type Answer = { status: number; body: unknown } | 'hang up'

const succeeded = (data: unknown): Answer => ({
  status: 200,
  body: { status: 'Succeeded', correlationId: 'c-1', timestamp: '2027-01-01T00:00:00.000000Z', data },
})

let server: Server
let url: string
let seen: Seen[]
/** Answers to the next requests, in order; the last one stays. */
let answers: Answer[]

beforeAll(async () => {
  server = createServer(async (request, reply) => {
    let body = ''
    for await (const chunk of request) body += chunk
    const answer = answers.length > 1 ? answers.shift() : answers[0]
    seen.push({ method: request.method, url: request.url, headers: request.headers, body })
    if (answer === undefined || answer === 'hang up') return void request.socket.destroy()
    reply.writeHead(answer.status, { 'content-type': 'application/json' })
    reply.end(typeof answer.body === 'string' ? answer.body : JSON.stringify(answer.body))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  // A server that listens on a port has an address with one.
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})

afterAll(() => {
  server.closeAllConnections()
  server.close()
})

beforeEach(() => {
  seen = []
  answers = [succeeded({ items: [] })]
})

const letters = () => new LetterClient({ url: `${url}/`, token: 'secret' })
const key = { engine: 'hmac', rowKey: 'a%2Fb-20270101T000000000000Z' }
const keysSent = () => seen.map(({ headers }) => headers['idempotency-key'])

describe('a read', () => {
  it('is a GET with the token and the filter, and no body', async () => {
    const fromDate = new Date('2027-01-01T00:00:00Z')
    await letters().list({ engine: 'hmac', q: 'a b&c', fromDate, limit: 7 })
    expect(seen).toMatchObject([
      {
        method: 'GET',
        url: '/api/dlq?engine=hmac&q=a+b%26c&fromDate=2027-01-01T00%3A00%3A00.000Z&limit=7',
        headers: { authorization: 'Bearer secret' },
        body: '',
      },
    ])
    expect(keysSent()).toEqual([undefined])
  })

  it('asks for a row by its key, whatever characters that has', async () => {
    await letters().get(key)
    expect(seen[0]?.url).toBe('/api/dlq/hmac/a%252Fb-20270101T000000000000Z')
  })

  it('is repeated when the connection fails', async () => {
    answers = ['hang up', 'hang up', succeeded({ items: [] })]
    await expect(new HistoryClient({ url }).list()).resolves.toEqual({ items: [], continuationToken: null })
    expect(seen).toHaveLength(3)
  })

  it('gives up in the end', async () => {
    answers = ['hang up']
    await expect(letters().counts()).rejects.toMatchObject({ code: 'network', status: 0, retryable: true })
    expect(seen.length).toBeGreaterThan(1)
  })
})

describe('a walk', () => {
  it('follows the tokens to the last page, with the same filter', async () => {
    answers = [
      succeeded({ items: [{ rowKey: 'a' }, { rowKey: 'b' }], continuationToken: 't1' }),
      succeeded({ items: [], continuationToken: 't2' }),
      succeeded({ items: [{ rowKey: 'c' }] }),
    ]
    const found: string[] = []
    for await (const { rowKey } of letters().walk({ status: 'Pending' })) found.push(rowKey)
    expect(found).toEqual(['a', 'b', 'c'])
    expect(seen.map((request) => request.url)).toEqual([
      '/api/dlq?status=Pending&limit=100',
      '/api/dlq?status=Pending&limit=100&continuationToken=t1',
      '/api/dlq?status=Pending&limit=100&continuationToken=t2',
    ])
  })

  it('asks for no page that nobody wants', async () => {
    answers = [succeeded({ items: [{ rowKey: 'a' }], continuationToken: 't1' })]
    for await (const _ of letters().walk()) break
    expect(seen).toHaveLength(1)
  })
})

describe('a change', () => {
  it('carries a new idempotency key, and the same one when the connection failed', async () => {
    answers = ['hang up', succeeded({ messageId: 'm', queue: 'q' })]
    await expect(letters().retry(key)).resolves.toEqual({ messageId: 'm', queue: 'q' })
    await letters().retry(key)
    const [first, repeated, next] = keysSent()
    expect(first).toMatch(/^[0-9a-f]{32}$/)
    expect(repeated).toBe(first)
    expect(next).not.toBe(first)
  })

  it('carries the key that the caller gives', async () => {
    await letters().discard(key, 'seen', { idempotencyKey: 'mine' })
    expect(keysSent()).toEqual(['mine'])
    expect(seen).toMatchObject([
      { method: 'PATCH', body: JSON.stringify({ status: 'Resolved', resolutionNotes: 'seen' }) },
    ])
  })

  it('is made once when the caller wants no key', async () => {
    answers = ['hang up']
    const call = letters().expireOlder({ olderThanDays: 3 }, { idempotencyKey: null })
    await expect(call).rejects.toMatchObject({ code: 'network' })
    expect(keysSent()).toEqual([undefined])
  })

  it('is not repeated when the server has answered', async () => {
    answers = [
      { status: 503, body: { error: { code: 'service_stopping', message: 'service is shutting down' } } },
    ]
    await expect(letters().retry(key)).rejects.toMatchObject({ code: 'service_stopping', retryable: true })
    expect(seen).toHaveLength(1)
  })
})

describe('work that goes on after the answer', () => {
  const goesOn = (data: object): Answer => ({ status: 202, body: { status: 'Succeeded', data } })
  const run = (state: string, done: number) => ({ id: 'r1', state, counts: { done } })

  it('is waited for', async () => {
    answers = [goesOn(run('running', 3)), succeeded(run('done', 5))]
    expect(await letters().expireOlder({ olderThanDays: 3 })).toBe(5)
    expect(seen.map((request) => request.url)).toEqual(['/api/dlq/expire', '/api/runs/r1'])
  })

  it.each(['paused', 'cancelled', 'failed'])('is not waited for once it is %s', async (state) => {
    answers = [goesOn(run(state, 4))]
    await expect(letters().expireOlder({ olderThanDays: 3 })).rejects.toMatchObject({
      code: 'run_broken_off',
      message: expect.stringContaining(`it is ${state} after 4; bartleby runs show r1 says why`),
      details: { id: 'r1', state, done: 4 },
    })
  })

  it('is given as it stands where it is a plan', async () => {
    answers = [goesOn({ id: 'p1', state: 'planning' })]
    const plan = new RedriveClient({ url }).plan({ filter: {}, action: 'retry' })
    expect(await plan).toMatchObject({ id: 'p1', state: 'planning' })
  })
})

describe('a command to a redrive', () => {
  it('carries what it needs and a key, and nothing else', async () => {
    const redrives = new RedriveClient({ url })
    await redrives.start('a/b')
    await redrives.pause('r')
    await redrives.cancel('r', 'wrong')
    await redrives.setRate('r', null)
    expect(seen.map((request) => [request.method, request.url, request.body])).toEqual([
      ['POST', '/api/redrives/a%2Fb/start', '{}'],
      ['POST', '/api/redrives/r/pause', '{}'],
      ['POST', '/api/redrives/r/cancel', '{"reason":"wrong"}'],
      ['POST', '/api/redrives/r/rate', '{"rate":null}'],
    ])
    expect(new Set(keysSent()).size).toBe(4)
    await redrives.list({ states: ['running', 'paused'], limit: 5 })
    expect(seen.at(-1)?.url).toBe('/api/redrives?limit=5&state=running%2Cpaused')
  })
})

describe('a dry run', () => {
  it('says so, and needs no key', async () => {
    await letters().retry(key, { payload: 'x', dryRun: true })
    expect(seen[0]?.url).toMatch(/\/retry\?dryRun=true$/)
    expect(keysSent()).toEqual([undefined])
  })
})

describe('a report', () => {
  const failed = { engine: 'http', sourceId: 's', errorMessage: 'no', originalMessage: 'x' }
  it.each([
    ['one', '/api/dlq', (options?: WriteOptions) => letters().capture(failed, options)],
    ['many', '/api/dlq:batch', (options?: WriteOptions) => letters().captureMany([failed, failed], options)],
  ])('of %s is repeated without a key, and with the one that is given', async (_, path, send) => {
    answers = ['hang up', succeeded({})]
    await send()
    await send({ idempotencyKey: 'mine' })
    expect(keysSent()).toEqual([undefined, undefined, 'mine'])
    expect(new Set(seen.map(({ url }) => url))).toEqual(new Set([path]))
    answers = ['hang up']
    await expect(send({ idempotencyKey: null })).rejects.toMatchObject({ code: 'network' })
  })
})

describe('a report with a time that is none', () => {
  it('is refused like any other failure: by its promise', async () => {
    const failed = { engine: 'http', sourceId: 's', errorMessage: 'no', originalMessage: 'x' }
    const never = { ...failed, lastFailureAtUtc: new Date(Number.NaN) }
    await expect(letters().capture(never)).rejects.toThrow('Invalid time')
    await expect(letters().captureMany([never])).rejects.toThrow('Invalid time')
  })
})

describe('bytes', () => {
  it('travel as base64, text as it is', async () => {
    const failed = { engine: 'http', sourceId: 's', errorMessage: 'no' }
    await letters().capture({ ...failed, originalMessage: new Uint8Array([0, 255]) })
    await letters().capture({ ...failed, originalMessage: 'é' })
    expect(seen.map(({ body }) => JSON.parse(body))).toEqual([
      { ...failed, originalMessage: 'AP8=', originalMessageEncoding: 'base64' },
      { ...failed, originalMessage: 'é' },
    ])
    expect(bytesOf('AP8=', 'base64')).toEqual(new Uint8Array([0, 255]))
    expect(bytesOf('é', 'utf8')).toEqual(new Uint8Array([0xc3, 0xa9]))
  })
})

describe('a failure', () => {
  it('has the code, message, status, details and correlation id of the envelope', async () => {
    const error = { code: 'letter_unknown', message: 'letter does not exist; …', details: { engine: 'hmac' } }
    answers = [{ status: 404, body: { status: 'Failed', correlationId: 'c-9', error } }]
    await expect(letters().get(key)).rejects.toMatchObject({
      ...error,
      name: 'OfficeClientError',
      status: 404,
      correlationId: 'c-9',
      retryable: false,
    })
  })

  it.each([
    [502, '<html>Bad Gateway</html>', 'status 502, not JSON: <html>Bad Gateway</html>'],
    [200, { code: 200 }, 'status 200, not an office’s reply'],
  ])('of something else than an office names the address: %s', async (status, body, reason) => {
    answers = [{ status, body }]
    const message = `${url}/api/signatures: ${reason}`
    await expect(letters().signatures()).rejects.toMatchObject({ code: 'unreadable_reply', message })
  })

  it('by the caller’s own abort is told apart, also between two tries', async () => {
    answers = ['hang up']
    const abort = new AbortController()
    const call = letters().list({}, { signal: abort.signal })
    abort.abort()
    await expect(call).rejects.toMatchObject({ code: 'aborted', retryable: false })
  })

  it('of an address that is none is told at once', () => {
    expect(() => new HistoryClient({ url: 'nonsense' })).toThrow("url 'nonsense' is not a URL")
  })
})
