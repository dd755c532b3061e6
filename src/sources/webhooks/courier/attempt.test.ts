import { describe, expect, it } from 'vitest'
import { answering, closeAfterEach, receiving, receivingRaw } from '../../../../test/world/receiver.ts'
import { post } from '../../../../test/world/webhooks/attempts.ts'
import { AttemptTimedOut } from './attempt.ts'

closeAfterEach()

describe('an attempt', () => {
  it.each([200, 202, 204, 299])('that is answered %i has succeeded', async (status) => {
    const receiver = await answering(status)
    expect(await post().send({ url: receiver.hook() })).toEqual({ outcome: 'success' })
  })

  it.each([300, 304, 400, 404, 410, 429, 500, 503, 599])('that is answered %i has failed', async (status) => {
    const receiver = await answering(status, { 'retry-after': '9' })
    expect(await post().send({ url: receiver.hook() })).toMatchObject({
      outcome: 'http_error',
      errorClass: 'HttpStatus',
      errorMessage: expect.stringContaining(`answered ${status}`),
    })
  })

  it.each([301, 302, 303, 307, 308])('never follows a redirect with %i', async (status) => {
    const other = await answering(200)
    const receiver = await answering(status, { location: other.hook('/other?secret=1') })
    const result = await post().send({ url: receiver.hook() })
    expect(result).toMatchObject({ outcome: 'http_error' })
    expect(JSON.stringify(result)).not.toContain('secret')
    expect(other.requests).toHaveLength(0)
    expect(receiver.requests).toHaveLength(1)
  })

  it('has failed when its time is over, and its connection is gone', async () => {
    const receiver = await receiving(() => {})
    const ends = new AbortController()
    const delivery = { timeoutSeconds: 3 }
    const result = post().send({ url: receiver.hook('/hook?key=1'), delivery, signal: ends.signal })
    await receiver.gets(1)
    ends.abort(new AttemptTimedOut())
    expect(await result).toEqual({
      outcome: 'timeout',
      errorClass: 'Timeout',
      errorMessage: `POST ${receiver.hook('/hook')} got no answer within 3 s`,
    })
    await receiver.allClosed()
  })

  it('has failed when nobody listens', async () => {
    const receiver = await answering(200)
    const url = receiver.hook()
    await receiver.close()
    expect(await post().send({ url })).toEqual({
      outcome: 'network',
      errorClass: 'NetworkError',
      errorMessage: expect.stringMatching(/^POST http:\S+ failed: .*ECONNREFUSED/),
    })
  })

  it('has failed when the name of the host leads nowhere', async () => {
    expect(await post().send({ url: 'http://no-such-host.invalid/' })).toMatchObject({ outcome: 'network' })
  })

  it('has succeeded as soon as the headers say so, whatever the body does', async () => {
    const receiver = await receiving((response) => void response.writeHead(200).write('slowly'))
    const { clock, send } = post()
    expect(await send({ url: receiver.hook() })).toEqual({ outcome: 'success' })
    clock.advance(1_000_001n)
    await receiver.allClosed()
  })

  it('reads little of a body without end and shows less', async () => {
    const receiver = await receiving((response) => {
      response.writeHead(500)
      const chunk = Buffer.alloc(16_384, 'a\u0007')
      const more = (): void => {
        while (!response.destroyed && response.write(chunk));
      }
      response.on('drain', more)
      more()
    })
    const result = await post().send({ url: receiver.hook() })
    expect(result).toMatchObject({
      errorMessage: expect.stringMatching(/answered 500 Internal Server Error: (a )+a?…$/),
    })
    expect(JSON.stringify(result).length).toBeLessThan(400)
    await receiver.allClosed()
  })

  it('is made once more when a kept connection turns out to be closed', async () => {
    let resets = 0
    const receiver = await receiving((response, request) => {
      // The second request on the first connection meets a receiver that has given the connection up.
      if (request.body.toString() === 'again' && response.socket === receiver.sockets[0]) {
        resets += 1
        response.socket?.resetAndDestroy()
      } else response.writeHead(200).end()
    })
    const { send } = post()
    expect(await send({ url: receiver.hook() })).toEqual({ outcome: 'success' })
    expect(await send({ url: receiver.hook(), content: { payload: Buffer.from('again') } })).toEqual({
      outcome: 'success',
    })
    expect(resets).toBe(1)
    expect(receiver.sockets).toHaveLength(2)
  })

  it('is not made once more when a new connection is closed', async () => {
    const receiver = await receivingRaw((socket) => socket.resetAndDestroy())
    expect(await post().send({ url: receiver.hook() })).toMatchObject({ outcome: 'network' })
    expect(receiver.requests).toHaveLength(1)
  })

  it('can be cut short, which says nothing about the consumer', async () => {
    const receiver = await receiving(() => {})
    const ends = new AbortController()
    const result = post().send({ url: receiver.hook(), signal: ends.signal })
    await receiver.gets(1)
    ends.abort(new Error('enough'))
    expect(await result).toEqual({ outcome: 'cut' })
    await receiver.allClosed()
  })

  it.each(['127.0.0.1', 'localhost', '[::ffff:127.0.0.1]', '2130706433'])(
    'never connects to %s when that is refused',
    async (host) => {
      const receiver = await answering(200)
      const url = receiver.hook().replace('127.0.0.1', host)
      expect(await post().send({ url, delivery: { refusedAddresses: ['loopback'] } })).toMatchObject({
        outcome: 'network',
        errorClass: 'AddressRefused',
      })
      expect(receiver.sockets).toHaveLength(0)
    },
  )
})

describe('connections', () => {
  it('are kept between attempts and closed when an origin is not used any more', async () => {
    const receiver = await answering(200)
    const { clock, send, sweep } = post()
    for (let i = 0; i < 3; i++) await send({ url: receiver.hook(`/${i}`) })
    expect(receiver.sockets).toHaveLength(1)
    await sweep()
    expect(receiver.openConnections).toBe(1)
    clock.advance(10_000_000n)
    await sweep()
    await receiver.allClosed()
  })
})
