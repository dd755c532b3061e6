import { createHmac } from 'node:crypto'
import fc from 'fast-check'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { message } from '../../../../test/world/outbox-message.ts'
import { type Received, Receiver } from '../../../../test/world/receiver.ts'
import { instant } from '../../../core/clock.ts'
import { TestClock } from '../../../core/test-clock.ts'
import type { OutboxMessage } from '../table/message.ts'
import { type HttpTransportOptions, httpTransport } from './http.ts'

const NEVER = new AbortController().signal
const clock = new TestClock()

let receiver: Receiver
beforeAll(async () => {
  clock.freeze(instant(1_800_000_000_900_000n))
  receiver = await Receiver.start((response) => response.end())
})
afterAll(() => receiver.close())
beforeEach(() => {
  receiver.requests.length = 0
})

/** What arrives of a message. */
async function arrivalOf(
  given: Partial<OutboxMessage>,
  options: Partial<HttpTransportOptions> = {},
): Promise<Received> {
  const transport = httpTransport({ url: receiver.hook(), clock, ...options })
  try {
    await transport.deliver(message(given), NEVER)
  } finally {
    await transport.close?.()
  }
  const last = receiver.requests.at(-1)
  if (last === undefined) throw new Error('nothing arrived')
  return last
}
const headersOf = async (...given: Parameters<typeof arrivalOf>) => (await arrivalOf(...given)).headers

describe('the headers of a delivery', () => {
  it('say which message it is', async () => {
    expect(await headersOf({ correlationId: 'c-1' })).toMatchObject({
      'idempotency-key': 'ba73d97a-5b6f-e712-ae41-f39ca66495e4',
      'x-event-type': 'order.created',
      'x-tenant-id': 'acme',
      'x-correlation-id': 'c-1',
      'user-agent': 'bartleby',
    })
    const plain = await headersOf({})
    expect(plain).not.toHaveProperty('x-correlation-id')
    expect(plain).not.toHaveProperty('webhook-signature')
  })

  it('cannot be split, whatever a tenant is called', async () => {
    const tenantId = 'acme\r\nx-evil: 1\r\n\r\nGET / HTTP/1.1'
    const headers = await headersOf({ tenantId, eventType: 'Bestellung für 100% 🎉', correlationId: ' \0' })
    expect(headers).not.toHaveProperty('x-evil')
    expect(headers['x-tenant-id']).toBe('acme%0D%0Ax-evil:%201%0D%0A%0D%0AGET%20/%20HTTP/1.1')
    expect(headers['x-event-type']).toBe('Bestellung%20f%C3%BCr%20100%25%20%F0%9F%8E%89')
    expect(headers['x-correlation-id']).toBe('%20%00')
    expect(receiver.requests).toHaveLength(1)
  })

  it('give back every text, once decoded', async () => {
    const transport = httpTransport({ url: receiver.hook(), clock })
    const text = fc.string({ unit: 'binary', maxLength: 40 })
    const names = fc.dictionary(fc.string({ unit: 'binary', maxLength: 12 }), text, { maxKeys: 5 })
    await fc.assert(
      fc.asyncProperty(text, text, text, names, async (tenantId, eventType, correlationId, headers) => {
        await transport.deliver(message({ tenantId, eventType, correlationId, headers }), NEVER)
        const arrived = receiver.requests.at(-1)?.headers ?? {}
        const decoded = (name: string) => decodeURIComponent(String(arrived[name]))
        expect(decoded('x-tenant-id')).toBe(tenantId)
        expect(decoded('x-event-type')).toBe(eventType)
        expect(decoded('x-correlation-id')).toBe(correlationId)
      }),
      { numRuns: 300 },
    )
    await transport.close?.()
    expect(receiver.requests).toHaveLength(300)
  })

  it('are those of the message too, as far as they can be sent', async () => {
    const headers = await headersOf({
      headers: {
        TraceParent: '00-ab-cd-01',
        'x-note': 'füüs\nand\thands',
        'x-percent': '100%',
        'ein Name': 'x',
        '': 'nameless',
        'user-agent': 'shop',
        'x-correlation-id': 'from the application',
      },
    })
    expect(headers).toMatchObject({
      traceparent: '00-ab-cd-01',
      'x-note': 'f%C3%BC%C3%BCs%0Aand\thands',
      'x-percent': '100%',
      'ein%20name': 'x',
      'user-agent': 'shop',
      'x-correlation-id': 'from the application',
    })
  })

  it('of the message cannot break the request or pretend', async () => {
    const { headers, body } = await arrivalOf(
      {
        headers: {
          Host: 'elsewhere.example',
          'Content-Length': '3',
          'Transfer-Encoding': 'chunked',
          Connection: 'close, x-a',
          'Keep-Alive': 'timeout=1',
          Upgrade: 'websocket',
          Expect: '100-continue',
          TE: 'trailers',
          'Idempotency-Key': 'forged',
          'X-Tenant-Id': 'forged',
          'x-event-type': 'forged',
          authorization: 'forged',
        },
        correlationId: 'c-1',
      },
      { headers: { Authorization: 'Bearer t' } },
    )
    expect(body.toString()).toBe('{"order":42}')
    expect(headers.host).toBe(`127.0.0.1:${receiver.port}`)
    expect(headers.authorization).toBe('Bearer t')
    expect(JSON.stringify(headers)).not.toContain('forged')
    for (const name of ['transfer-encoding', 'keep-alive', 'upgrade', 'expect', 'te'])
      expect(headers).not.toHaveProperty(name)
  })

  it.each<[string, string | Buffer, string]>([
    ['an object', '{"a":[1,2]}', 'application/json'],
    ['an object with space around it', ' \n{"a":1}\t', 'application/json'],
    ['a text of JSON', '"ü"', 'application/json'],
    ['a number', '-1.5e3', 'application/json'],
    ['a word of JSON', 'null', 'application/json'],
    ['a large list', `[${'1,'.repeat(50_000)}1]`, 'application/json'],
    ['nothing', '', 'application/octet-stream'],
    ['white space', ' \n ', 'application/octet-stream'],
    ['half an object', '{"a":', 'application/octet-stream'],
    ['a sentence', 'no JSON at all', 'application/octet-stream'],
    ['bytes that are not text', Buffer.from([0x22, 0xff, 0x22]), 'application/octet-stream'],
    ['large other bytes', Buffer.alloc(100_000, 0x7b), 'application/octet-stream'],
  ])('name the content type of %s', async (_, payload, type) => {
    expect((await headersOf({ payload: Buffer.from(payload) }))['content-type']).toBe(type)
  })

  it('leave the content type to the message, and then to the operator', async () => {
    const options = { headers: { 'Content-Type': 'application/cloudevents+json' } }
    const named = { headers: { 'CONTENT-TYPE': 'text/csv; charset=utf-8' } }
    expect((await headersOf(named, options))['content-type']).toBe('text/csv; charset=utf-8')
    expect((await headersOf({}, options))['content-type']).toBe('application/cloudevents+json')
    expect((await headersOf({ headers: { 'content-type': ' ' } }))['content-type']).toBe('application/json')
  })
})

describe('a signed delivery', () => {
  const bytes = [Buffer.alloc(24, 1), Buffer.alloc(64, 2)]
  const [first = '', second = ''] = bytes.map((each) => `whsec_${each.toString('base64')}`)

  /** As a receiver would do it: over what arrived, with nothing of ours. */
  const signatureOf = ({ headers, body }: Received, secret: Buffer | undefined) => {
    const signed = Buffer.concat([
      Buffer.from(`${headers['webhook-id']}.${headers['webhook-timestamp']}.`),
      body,
    ])
    return `v1,${createHmac('sha256', secret ?? '')
      .update(signed)
      .digest('base64')}`
  }

  it('can be checked by its receiver', async () => {
    const payload = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte))
    const arrived = await arrivalOf({ payload }, { secret: first })
    expect(arrived.headers['webhook-id']).toBe(arrived.headers['idempotency-key'])
    expect(arrived.headers['webhook-timestamp']).toBe('1800000000')
    expect(arrived.headers['webhook-signature']).toBe(signatureOf(arrived, bytes[0]))
  })

  it('carries a signature for each secret while one replaces another', async () => {
    const arrived = await arrivalOf({}, { secrets: [first, second] })
    expect(arrived.headers['webhook-signature']).toBe(
      `${signatureOf(arrived, bytes[0])} ${signatureOf(arrived, bytes[1])}`,
    )
  })

  it('cannot be forged by headers of the message', async () => {
    const headers = { 'Webhook-Id': 'forged', 'webhook-timestamp': '1', 'webhook-signature': 'v1,forged' }
    const arrived = await arrivalOf({ headers }, { secret: first })
    expect(arrived.headers['webhook-signature']).toBe(signatureOf(arrived, bytes[0]))
    expect(JSON.stringify(arrived.headers)).not.toContain('forged')
  })
})
