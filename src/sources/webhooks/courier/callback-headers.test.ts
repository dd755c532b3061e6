import { describe, expect, it } from 'vitest'
import { answering, closeAfterEach, receivingRaw } from '../../../../test/world/receiver.ts'
import { JOB_ID, post } from '../../../../test/world/webhooks/attempts.ts'
import { readWebhookSecret, signWebhook } from '../../../core/standard-webhooks.ts'
import { parseXid } from '../../../core/xid.ts'

closeAfterEach()

describe('a callback', () => {
  it('has the body and exactly the headers that consumers know', async () => {
    const receiver = await receivingRaw((socket) => socket.end('HTTP/1.1 204 No Content\r\n\r\n'))
    const payload = Buffer.from([0, 255, 128, 13, 10])
    const headers = [
      ['traceparent', '00-abc'],
      ['X-Foo', 'b\u00e4r'],
      ['x-broker-consumer-token', 'forged'],
    ] as const
    const result = await post().send({
      url: receiver.hook('/hook?key=1'),
      content: { payload, headers, contentType: 'text/x; charset=a' },
    })
    expect(result).toEqual({ outcome: 'success' })
    const [request] = receiver.requests
    const text = request?.body.toString('latin1') ?? ''
    const [head = '', body] = text.split('\r\n\r\n')
    const [line, ...rest] = head.split('\r\n')
    expect(line).toBe('POST /hook?key=1 HTTP/1.1')
    expect(Buffer.from(body ?? '', 'latin1')).toEqual(payload)
    const id = /X-Request-ID: (\S+)/.exec(head)?.[1] ?? ''
    expect(parseXid(id)).not.toBeNull()
    expect(rest.sort()).toEqual(
      [
        `host: 127.0.0.1:${receiver.port}`,
        'connection: keep-alive',
        'Content-Type: text/x; charset=a',
        'User-Agent: Webhook Message Broker',
        'X-Broker-Channel-ID: orders',
        'X-Broker-Consumer-ID: billing',
        'X-Broker-Message-ID: m1',
        'X-Broker-Consumer-Token: secret-token',
        'X-Broker-Message-Priority: 7',
        `X-Request-ID: ${id}`,
        'X-Broker-Metadata-Headers: X-Foo,traceparent',
        'traceparent: 00-abc',
        'X-Foo: b\u00e4r',
        'content-length: 5',
      ].sort(),
    )
  })

  it('names no metadata headers when there are none, and has names of its own as they are configured', async () => {
    const receiver = await answering(200)
    const delivery = { tokenHeader: 'X-Token', userAgent: 'me' }
    await post().send({ url: receiver.hook(), delivery })
    expect(receiver.requests[0]?.headers).toMatchObject({
      'x-broker-metadata-headers': '',
      'x-token': 'secret-token',
      'user-agent': 'me',
    })
  })

  it('carries ids of any kind in UTF-8 and cannot be split by them', async () => {
    const receiver = await answering(200)
    const consumer = { channelId: 'é%', consumerId: 'a\r\nX-Evil: 1' }
    expect(await post().send({ url: receiver.hook(), consumer })).toEqual({ outcome: 'success' })
    const { headers } = receiver.requests[0] ?? {}
    expect(Buffer.from(String(headers?.['x-broker-channel-id']), 'latin1').toString('utf8')).toBe('é%')
    expect(headers?.['x-broker-consumer-id']).toBe('a%0D%0AX-Evil: 1')
    expect(headers?.['x-evil']).toBeUndefined()
  })

  it('is signed with both secrets while one replaces the other', async () => {
    const receiver = await answering(200)
    const secrets = [`whsec_${'A'.repeat(32)}`, 'B'.repeat(32)]
    await post().send({ url: receiver.hook(), consumer: { secrets } })
    const keys = secrets.flatMap((secret) => {
      const read = readWebhookSecret(secret)
      return read.ok ? [read.key] : []
    })
    const body = Buffer.from('{"a":1}')
    expect(receiver.requests[0]?.headers).toMatchObject(
      signWebhook(keys, { id: JOB_ID, unixSeconds: 1_800_000_000, body }),
    )
    expect(receiver.requests[0]?.headers['webhook-signature']).toMatch(/^v1,\S+ v1,\S+$/)
  })

  it('authorizes itself with what the address says, which no error repeats', async () => {
    const receiver = await answering(404, {}, 'no')
    const url = receiver.hook('/hook?key=hidden').replace('//', '//me:p%40ss@')
    expect(await post().send({ url })).toEqual({
      outcome: 'http_error',
      errorClass: 'HttpStatus',
      errorMessage: `POST ${receiver.hook('/hook')} answered 404 Not Found: no`,
    })
    expect(receiver.requests[0]?.headers.authorization).toBe(`Basic ${btoa('me:p@ss')}`)
  })
})
