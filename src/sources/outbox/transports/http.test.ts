import type { ServerResponse } from 'node:http'
import { describe, expect, it } from 'vitest'
import { message } from '../../../../test/world/outbox-message.ts'
import { NEVER, textOf, thrownBy, to } from '../../../../test/world/outbox-over-http.ts'
import { answering, closeAfterEach, receiving, receivingRaw } from '../../../../test/world/receiver.ts'
import { PermanentError } from '../../../core/thrown.ts'
import { HttpDeliveryFailed } from '../../../outgoing/exchange.ts'
import { type HttpTransportOptions, httpTransport } from './http.ts'
import { RetryLater } from './transport.ts'

closeAfterEach()

describe('a delivery over HTTP', () => {
  it('is a POST of the payload, byte for byte', async () => {
    const receiver = await answering(200)
    const transport = to(receiver, { url: receiver.hook('/a%20b?token=t') })
    const everyByte = Uint8Array.from({ length: 256 }, (_, byte) => byte)
    const within = new Uint8Array([1, 2, ...everyByte, 3]).subarray(2, 258)
    await transport.deliver(message({ payload: everyByte }), NEVER)
    await transport.deliver(message({ payload: within }), NEVER)
    await transport.deliver(message({ payload: new Uint8Array(0) }), NEVER)

    expect(receiver.requests.map(({ method, path }) => `${method} ${path}`)).toEqual(
      Array(3).fill('POST /a%20b?token=t'),
    )
    const [first, second, third] = receiver.requests
    expect(first?.body.equals(everyByte)).toBe(true)
    expect(second?.body.equals(everyByte)).toBe(true)
    expect(first?.headers['content-length']).toBe('256')
    expect(third?.body).toHaveLength(0)
    expect(third?.headers['content-length']).toBe('0')
  })

  it.each([200, 201, 202, 204, 206, 299])('succeeds when the answer is %i', async (status) => {
    const receiver = await answering(status)
    await to(receiver).deliver(message(), NEVER)
    expect(receiver.requests).toHaveLength(1)
  })

  it.each([400, 401, 403, 404, 405, 409, 410, 413, 418, 422, 431, 451, 499])(
    'fails for good when the answer is %i',
    async (status) => {
      const receiver = await answering(status, { 'retry-after': '5' }, 'no such order')
      const thrown = await thrownBy(to(receiver).deliver(message(), NEVER))
      expect(thrown).toBeInstanceOf(PermanentError)
      expect(textOf(thrown)).toMatch(new RegExp(`answered ${status}\\b.*: no such order$`))
    },
  )

  it.each([408, 425, 429, 500, 501, 502, 503, 504, 507, 599, 600, 999])(
    'fails for now when the answer is %i',
    async (status) => {
      const receiver = await answering(status, {}, 'busy')
      const thrown = await thrownBy(to(receiver).deliver(message(), NEVER))
      expect(thrown).toBeInstanceOf(HttpDeliveryFailed)
      expect(textOf(thrown)).toContain(`answered ${status}`)
    },
  )

  it.each([
    ['7', 7_000],
    ['0', 0],
    [' 120 ', 120_000],
    ['Fri, 15 Jan 2027 08:01:30 GMT', 90_000],
    ['Friday, 15-Jan-27 08:01:30 GMT', 90_000],
    ['Fri Jan 15 08:01:30 2027', 90_000],
    ['Fri, 15 Jan 2027 07:00:00 GMT', 0],
    ['9'.repeat(400), Number.MAX_SAFE_INTEGER],
  ])('waits as long as Retry-After: %s says', async (retryAfter, ms) => {
    const receiver = await answering(429, { 'retry-after': retryAfter })
    const thrown = await thrownBy(to(receiver).deliver(message(), NEVER))
    expect(thrown).toBeInstanceOf(RetryLater)
    expect(thrown).toMatchObject({ retryAfterMs: ms })
  })

  it.each(['soon', '-5', '1.5', '', 'Mon, 99 Nov 2026 99:99:99 GMT', '2027-01-15'])(
    'takes no notice of Retry-After: %j',
    async (retryAfter) => {
      const receiver = await answering(503, { 'retry-after': retryAfter })
      expect(await thrownBy(to(receiver).deliver(message(), NEVER))).toBeInstanceOf(HttpDeliveryFailed)
    },
  )

  it.each([
    [301, PermanentError],
    [308, PermanentError],
    [300, PermanentError],
    [304, PermanentError],
    [302, HttpDeliveryFailed],
    [303, HttpDeliveryFailed],
    [307, HttpDeliveryFailed],
  ])('never follows a redirect: %i', async (status, kind) => {
    const elsewhere = await answering(200)
    const receiver = await answering(status, { location: `${elsewhere.hook('/new')}?secret=s` })
    const thrown = await thrownBy(to(receiver).deliver(message(), NEVER))
    expect(thrown).toBeInstanceOf(kind)
    expect(textOf(thrown)).toContain(`to ${elsewhere.hook('/new')}; redirects are not followed`)
    expect(textOf(thrown)).not.toContain('secret')
    expect(elsewhere.sockets).toHaveLength(0)
  })

  it('does not stumble over a redirect to nowhere', async () => {
    for (const location of ['http://', 'javascript:alert(1)', '/relative', undefined]) {
      const receiver = await answering(301, location === undefined ? {} : { location })
      expect(await thrownBy(to(receiver).deliver(message(), NEVER))).toBeInstanceOf(PermanentError)
    }
  })

  it('says where it went and what came back, in one line and without secrets', async () => {
    const body = `<h1>Order\u0000 42\r\n\tis\u2028 broken</h1>${'x'.repeat(5_000)}`
    const receiver = await answering(500, {}, body)
    const url = `http://127.0.0.1:${receiver.port}/in?apikey=hidden`
    const thrown = await thrownBy(
      to(receiver, { url, headers: { authorization: 'Bearer hidden' } }).deliver(message(), NEVER),
    )
    expect(textOf(thrown)).toMatch(
      /^POST http:\/\/127\.0\.0\.1:\d+\/in answered 500 Internal Server Error: <h1>Order 42 is broken<\/h1>x+…$/,
    )
    expect(textOf(thrown).length).toBeLessThan(700)
    expect(textOf(thrown)).not.toContain('hidden')
  })

  it('describes an answer that is not text', async () => {
    const receiver = await receiving((response) => response.writeHead(500).end(Buffer.alloc(300, 0xff)))
    const thrown = await thrownBy(to(receiver).deliver(message(), NEVER))
    expect(textOf(thrown)).toMatch(/500 Internal Server Error: 300 bytes or more that are not text$/)
  })
})

describe('connections', () => {
  it('are used again, whatever the answer was', async () => {
    const receiver = await receiving((response) => {
      const failing = receiver.requests.length % 2 === 1
      response.writeHead(failing ? 500 : 200).end('some words'.repeat(1_000))
    })
    const transport = to(receiver)
    for (let i = 0; i < 40; i++) await thrownBy(transport.deliver(message(), NEVER))
    expect(receiver.requests).toHaveLength(40)
    expect(receiver.sockets).toHaveLength(1)
  })

  it('may be few for many deliveries', async () => {
    const receiver = await answering(200)
    const transport = to(receiver, { connections: 3 })
    const keys = Array.from({ length: 300 }, (_, i) => `key-${i}`)
    await Promise.all(keys.map((key) => transport.deliver(message({ key }), NEVER)))
    expect(receiver.sockets.length).toBeLessThanOrEqual(3)
    const arrived = receiver.requests.map(({ headers }) => headers['idempotency-key'])
    expect(arrived).toHaveLength(300)
    expect(new Set(arrived)).toEqual(new Set(keys))
  })

  it('are as many as deliveries when nothing else is said', async () => {
    const held: ServerResponse[] = []
    const receiver = await receiving((response) => held.push(response))
    const transport = to(receiver)
    const deliveries = Array.from({ length: 20 }, () => transport.deliver(message(), NEVER))
    await receiver.gets(20)
    expect(receiver.openConnections).toBe(20)
    for (const response of held) response.end()
    await Promise.all(deliveries)
  })

  it('come free again after every way a delivery can end', async () => {
    const receiver = await receivingRaw((socket) => {
      const ways = [
        () => socket.destroy(),
        () => socket.resetAndDestroy(),
        () => socket.end('garbage\r\n\r\n'),
        () => socket.end('HTTP/1.1 500 No\r\ncontent-length: 9\r\n\r\nhalf'),
        () => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n'),
      ]
      ways[receiver.requests.length % ways.length]?.()
    })
    const transport = to(receiver, { connections: 1 })
    const ends = await Promise.all(
      Array.from({ length: 10 }, () => thrownBy(transport.deliver(message(), NEVER))),
    )
    expect(ends.filter((end) => end === 'nothing')).toHaveLength(2)
    expect(ends.filter((end) => end instanceof HttpDeliveryFailed)).toHaveLength(8)
  })

  it('that the receiver closed meanwhile are replaced, and the message arrives', async () => {
    const receiver = await receivingRaw((socket) => {
      socket.write('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n')
      socket.once('data', () => socket.destroy())
    })
    const transport = to(receiver)
    for (const key of ['1', '2', '3']) await transport.deliver(message({ key }), NEVER)
    expect(receiver.sockets).toHaveLength(3)
    expect(receiver.requests.map(({ body }) => /idempotency-key: (.*)\r/.exec(body.toString())?.[1])).toEqual(
      ['1', '2', '3'],
    )
  })

  it('that are new are not tried a second time', async () => {
    const receiver = await receivingRaw((socket) => socket.destroy())
    expect(await thrownBy(to(receiver).deliver(message(), NEVER))).toBeInstanceOf(HttpDeliveryFailed)
    expect(receiver.sockets).toHaveLength(1)
  })

  it('end with the transport, and nothing is delivered afterwards', async () => {
    const receiver = await receiving(() => {})
    const transport = to(receiver)
    const delivery = thrownBy(transport.deliver(message(), NEVER))
    await receiver.gets(1)
    await transport.close?.()
    expect(textOf(await delivery)).toContain('the transport was closed')
    await receiver.allClosed()
    expect(textOf(await thrownBy(transport.deliver(message(), NEVER)))).toBe('the transport is closed')
    expect(receiver.sockets).toHaveLength(1)
  })

  it('cannot be made to an address where nobody is', async () => {
    const receiver = await answering(200)
    const { port } = receiver
    await receiver.close()
    for (const host of ['127.0.0.1', 'localhost']) {
      const transport = httpTransport({ url: `http://${host}:${port}/events`, connections: 1 })
      for (let tries = 0; tries < 2; tries++) {
        const thrown = await thrownBy(transport.deliver(message(), NEVER))
        expect(thrown).toBeInstanceOf(HttpDeliveryFailed)
        expect(textOf(thrown)).toMatch(/^POST http:.*\/events failed: .*ECONNREFUSED/)
      }
      await transport.close?.()
    }
  })
})

describe('options that are wrong', () => {
  const secret = `whsec_${Buffer.alloc(32).toString('base64')}`
  const url = 'http://127.0.0.1/'

  it.each<[string, unknown, string]>([
    ['nothing', undefined, 'option transport is invalid; it has no options'],
    ['no url', {}, 'option url is invalid; undefined is no address'],
    ['a url that is none', { url: 'example.com/x?apikey=hidden' }, 'option url is invalid; it is no address'],
    ['another protocol', { url: 'ftp://example.com' }, 'option url is invalid; it begins with ftp://'],
    ['a password', { url: 'http://me:hidden@example.com' }, 'option url is invalid; it holds a user name'],
    ['a typing error', { url, timeout: 5 }, 'option timeout is invalid; there is no such option'],
    ['no time', { url, timeoutSeconds: 0 }, 'option timeoutSeconds is invalid; 0 is not'],
    ['no number', { url, timeoutSeconds: '5' }, "option timeoutSeconds is invalid; '5' is not"],
    ['no sense', { url, timeoutSeconds: Number.NaN }, 'option timeoutSeconds is invalid; NaN is not'],
    ['no connections', { url, connections: 0 }, 'option connections is invalid; 0 is not'],
    ['half a connection', { url, connections: 1.5 }, 'option connections is invalid; 1.5 is not'],
    ['headers in a list', { url, headers: ['a'] }, 'option headers is invalid; must be a mapping'],
    ['a header for the connection', { url, headers: { Host: 'a' } }, 'option headers.Host is invalid'],
    [
      'a header of each message',
      { url, headers: { 'X-Tenant-Id': 'a' } },
      'option headers.X-Tenant-Id is invalid; it is set for each message',
    ],
    ['a name with a space', { url, headers: { 'a b': 'c' } }, 'option headers.a b is invalid'],
    ['a number as header', { url, headers: { a: 1 } }, 'option headers.a is invalid; the value (not shown)'],
    ['a split header', { url, headers: { a: 'hidden\r\nb: c' } }, 'option headers.a is invalid; its value'],
    ['a poor secret', { url, secret: 'hidden' }, 'option secret is invalid; it is not base64'],
    ['a secret of nothing', { url, secret: 5 }, 'option secret is invalid; the value (not shown)'],
    ['secrets twice', { url, secret, secrets: [secret] }, 'option secret is invalid; secrets is given too'],
    ['no secrets', { url, secrets: [] }, 'option secrets is invalid; it names none'],
    [
      'one poor secret',
      { url, secrets: [secret, 'aGlkZGVu'] },
      'option secrets.1 is invalid; it has 6 bytes',
    ],
  ])('are refused by name: %s', (_, options, text) => {
    // What a user of plain JavaScript may write.
    const make = () => httpTransport(options as HttpTransportOptions)
    expect(make).toThrow(expect.objectContaining({ code: 'outbox_option_invalid' }))
    expect(make).toThrow(text)
    expect(make).not.toThrow('hidden')
  })
})
