import type { ServerResponse } from 'node:http'
import { describe, expect, it } from 'vitest'
import { message } from '../../../../test/world/outbox-message.ts'
import { frozen, NEVER, textOf, thrownBy, to } from '../../../../test/world/outbox-over-http.ts'
import { answering, closeAfterEach, receiving, receivingRaw } from '../../../../test/world/receiver.ts'
import { PermanentError } from '../../../core/thrown.ts'
import type { Network } from '../../../outgoing/connector.ts'
import { HttpDeliveryFailed } from '../../../outgoing/exchange.ts'
import { httpTransportOver } from './http.ts'

closeAfterEach()

describe('a receiver that behaves badly', () => {
  it('and hangs before it answers is given up in time', async () => {
    const receiver = await receiving(() => {})
    const clock = frozen()
    const transport = to(receiver, { clock, timeoutSeconds: 5, connections: 1 })
    const delivery = thrownBy(transport.deliver(message(), NEVER))
    await receiver.gets(1)
    clock.advance(5_000_000n)
    clock.advance(1n)
    const thrown = await delivery
    expect(thrown).toBeInstanceOf(HttpDeliveryFailed)
    expect(textOf(thrown)).toBe(`POST ${receiver.hook()} got no answer within 5 s`)
    await receiver.allClosed()
  })

  it('and drips its answer byte by byte is given up in time', async () => {
    const receiver = await receivingRaw((socket) => socket.write('HTTP/1.1 200'))
    const clock = frozen()
    const transport = to(receiver, { clock, timeoutSeconds: 0.5 })
    const delivery = thrownBy(transport.deliver(message(), NEVER))
    await receiver.gets(1)
    for (const byte of ' OK\r\nx-slow:') {
      await new Promise((resolve) => receiver.sockets[0]?.write(byte, resolve))
      clock.advance(100_000n)
    }
    expect(textOf(await delivery)).toContain('got no answer within 0.5 s')
    await receiver.allClosed()
  })

  it('and accepts no connection is given up in time', async () => {
    const clock = frozen()
    // A stand-in for the network: no machine can be told to leave a connection unanswered, and none is to be tried.
    const silent: Network = { lookup: async () => [], opener: async () => () => {} }
    const transport = httpTransportOver(silent, { url: 'http://127.0.0.1:9/', clock, timeoutSeconds: 1 })
    const delivery = thrownBy(transport.deliver(message(), NEVER))
    // The pool is opened first, and the alarm set after that.
    await thrownBy(transport.deliver(message(), AbortSignal.abort(new Error('enough'))))
    clock.advance(1_000_001n)
    expect(textOf(await delivery)).toContain('got no connection within 1 s')
    await transport.close?.()
  })

  it('and never ends the body of a success has the message, and loses the connection', async () => {
    const receiver = await receiving((response) => response.writeHead(200).write('and so on'))
    const clock = frozen()
    await to(receiver, { clock }).deliver(message(), NEVER)
    expect(receiver.openConnections).toBe(1)
    clock.advance(1_000_001n)
    await receiver.allClosed()
  })

  it('and never ends the body of a failure is believed the status', async () => {
    const receiver = await receiving((response) =>
      response.writeHead(503, { 'retry-after': '9' }).write('wait'),
    )
    const clock = frozen()
    const delivery = thrownBy(to(receiver, { clock }).deliver(message(), NEVER))
    await receiver.gets(1)
    const ticking = setInterval(() => clock.advance(1_000_001n), 1)
    const thrown = await delivery
    clearInterval(ticking)
    expect(thrown).toMatchObject({ retryAfterMs: 9_000 })
    expect(textOf(thrown)).toContain('answered 503 Service Unavailable')
    await receiver.allClosed()
  })

  it.each([200, 500])('and answers %i with a body without end is not listened to', async (status) => {
    let sent = 0
    const receiver = await receiving((response) => {
      response.writeHead(status)
      const chunk = Buffer.alloc(16_384, 'a')
      const more = (): void => {
        while (!response.destroyed && response.write(chunk)) sent += chunk.length
      }
      response.on('drain', more)
      more()
    })
    const thrown = await thrownBy(to(receiver).deliver(message(), NEVER))
    if (status === 200) expect(thrown).toBe('nothing')
    else expect(textOf(thrown)).toMatch(/answered 500 Internal Server Error: a{500}…$/)
    await receiver.allClosed()
    // What was under way on the connection is lost; more is not taken.
    expect(sent).toBeLessThan(20_000_000)
  })

  it.each([
    ['nothing', ''],
    ['half a line', 'HTTP/1.1 20'],
    ['half of its headers', 'HTTP/1.1 200 OK\r\ncontent-le'],
    ['another protocol', 'SSH-2.0-OpenSSH_9.6\r\n'],
    ['an impossible version', 'HTTP/9.9 200 OK\r\n\r\n'],
    ['no number as status', 'HTTP/1.1 abc OK\r\n\r\n'],
    ['bytes without sense', Buffer.from(Array.from({ length: 999 }, (_, i) => (i * 7_919) % 256))],
    ['two lengths', 'HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab'],
    ['headers without end', `HTTP/1.1 200 OK\r\n${'x-more: and more\r\n'.repeat(5_000)}\r\n`],
    ['a protocol that nobody asked for', 'HTTP/1.1 101 Switching Protocols\r\nupgrade: h2c\r\n\r\n'],
  ])('and sends %s fails for now', async (_, bytes) => {
    const receiver = await receivingRaw((socket) => socket.end(bytes))
    const thrown = await thrownBy(to(receiver).deliver(message(), NEVER))
    expect(thrown).toBeInstanceOf(HttpDeliveryFailed)
    expect(textOf(thrown)).toMatch(/^POST http:.*\/events failed: ./)
  })

  it('and resets the connection fails for now', async () => {
    const receiver = await receivingRaw((socket) => socket.resetAndDestroy())
    expect(await thrownBy(to(receiver).deliver(message(), NEVER))).toBeInstanceOf(HttpDeliveryFailed)
  })

  it('and ends within the body is believed the status', async () => {
    const half = (status: string) => `HTTP/1.1 ${status}\r\ncontent-length: 1000\r\n\r\nthe first half`
    const fine = await receivingRaw((socket) => socket.end(half('201 Created')))
    await to(fine).deliver(message(), NEVER)
    const wrong = await receivingRaw((socket) => socket.end(half('422 No')))
    const thrown = await thrownBy(to(wrong).deliver(message(), NEVER))
    expect(thrown).toBeInstanceOf(PermanentError)
    expect(textOf(thrown)).toMatch(/answered 422 Unprocessable Entity: the first half$/)
  })

  it('and answers early, before it took everything, is believed too', async () => {
    const receiver = await receivingRaw((socket) => {
      socket.write('HTTP/1.1 413 Too Large\r\nconnection: close\r\ncontent-length: 0\r\n\r\n')
    })
    const thrown = await thrownBy(to(receiver).deliver(message({ payload: Buffer.alloc(20_000_000) }), NEVER))
    expect(thrown).toBeInstanceOf(PermanentError)
    await receiver.allClosed()
  })

  it('and says that it processes is waited for', async () => {
    const receiver = await receivingRaw((socket) => {
      socket.write('HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n')
      socket.write('HTTP/1.1 204 No Content\r\n\r\n')
    })
    await to(receiver).deliver(message(), NEVER)
  })

  it('cannot slip a second answer to the next message', async () => {
    const receiver = await receivingRaw((socket) => {
      const answer = 'HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n'
      socket.write(answer + answer)
    })
    const transport = to(receiver, { connections: 1 })
    const first = await thrownBy(transport.deliver(message(), NEVER))
    expect(first === 'nothing' || first instanceof HttpDeliveryFailed).toBe(true)
    const second = await thrownBy(transport.deliver(message(), NEVER))
    expect(second === 'nothing' || second instanceof HttpDeliveryFailed).toBe(true)
    // The second message went over a connection of its own, and was answered there.
    expect(receiver.requests).toHaveLength(2)
  })
})

describe('a delivery that is broken off', () => {
  const reason = new Error('the dispatcher was stopped')

  it('ends at once, with its connection', async () => {
    const receiver = await receiving(() => {})
    const broken = new AbortController()
    const delivery = thrownBy(to(receiver).deliver(message(), broken.signal))
    await receiver.gets(1)
    broken.abort(reason)
    const thrown = await delivery
    expect(thrown).toBeInstanceOf(HttpDeliveryFailed)
    expect(thrown).toMatchObject({ cause: reason })
    expect(textOf(thrown)).toContain('was broken off: the dispatcher was stopped')
    await receiver.allClosed()
  })

  it('is never sent when that was before', async () => {
    const receiver = await answering(200)
    const transport = to(receiver, { connections: 1 })
    expect(await thrownBy(transport.deliver(message(), AbortSignal.abort(reason)))).toBe(reason)
    await transport.deliver(message({ key: 'another' }), NEVER)
    expect(receiver.requests.map(({ headers }) => headers['idempotency-key'])).toEqual(['another'])
  })

  it('leaves the line for a connection, and the others keep their places', async () => {
    const held: ServerResponse[] = []
    const receiver = await receiving((response) => held.push(response))
    const transport = to(receiver, { connections: 1 })
    const first = transport.deliver(message({ key: '1' }), NEVER)
    await receiver.gets(1)
    const broken = new AbortController()
    const second = thrownBy(transport.deliver(message({ key: '2' }), broken.signal))
    const third = transport.deliver(message({ key: '3' }), NEVER)
    broken.abort(reason)
    expect(await second).toBe(reason)
    held[0]?.end()
    await first
    await receiver.gets(2)
    held[1]?.end()
    await third
    expect(receiver.requests.map(({ headers }) => headers['idempotency-key'])).toEqual(['1', '3'])
  })
})
