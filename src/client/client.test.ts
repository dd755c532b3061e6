import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { describe, expect, it } from 'vitest'
import { fromBase64, textOf, toBase64 } from './bytes.ts'
import { QueueClient } from './client.ts'
import { durationMs } from './times.ts'
import type { Fetch } from './transport.ts'

/** A client whose every call gets `reply`; what it sent is kept. */
function clientOf(status: number, reply: unknown) {
  const sent: { url: string; headers: Record<string, string>; body: unknown }[] = []
  const fetch: Fetch = async (url, { headers, body = '{}' }) => {
    sent.push({ url, headers, body: JSON.parse(body) })
    return { status, text: async () => (typeof reply === 'string' ? reply : JSON.stringify(reply)) }
  }
  return { client: new QueueClient({ url: 'http://stub/', token: 'secret', fetch }), sent }
}

describe('a request', () => {
  it('carries the token, the names of the wire and the payload as text or base64', async () => {
    const { client, sent } = clientOf(200, { code: 200 })
    const enqueueAt = new Date('2027-01-01T00:00:00Z')
    await client.produce({
      queueName: 'q',
      items: [{ payload: 'hi', kind: 'k' }, { payload: new Uint8Array([0, 255]), enqueueAt }, {}],
    })
    expect(sent).toEqual([
      {
        url: 'http://stub/v1/queue.produce',
        headers: expect.objectContaining({
          authorization: 'Bearer secret',
          'content-type': 'application/json',
        }),
        body: {
          queue_name: 'q',
          request_timeout: '1m',
          items: [{ utf8: 'hi', kind: 'k' }, { bytes: 'AP8=', enqueue_at: '2027-01-01T00:00:00.000Z' }, {}],
        },
      },
    ])
  })
})

describe('a reply', () => {
  it('gets back the defaults that the wire leaves out', async () => {
    const { client } = clientOf(200, {
      queue_name: 'q',
      items: [{ id: 'x', attempts: 1, lease_deadline: '2027-01-01T00:01:00.123456Z', bytes: 'aGk=' }],
    })
    const batch = await client.lease({ queueName: 'q', clientId: 'c', batchSize: 1 })
    expect(batch).toMatchObject({
      partition: 0,
      items: [{ id: 'x', kind: '', leaseDeadline: new Date('2027-01-01T00:01:00.123Z') }],
    })
    expect(textOf(batch.items[0]?.payload ?? new Uint8Array())).toBe('hi')
  })

  it('shows the zero time as null', async () => {
    const { client } = clientOf(200, {
      items: [
        {
          id: 'x',
          lease_deadline: '0001-01-01T00:00:00Z',
          expire_deadline: '2027-01-02T00:00:00Z',
          created_at: '2027-01-01T00:00:00Z',
        },
      ],
    })
    const [item] = await client.listItems({ queueName: 'q' })
    expect(item).toMatchObject({ leaseDeadline: null, expireDeadline: new Date('2027-01-02T00:00:00Z') })
  })

  it('tells skipped imports by their missing id', async () => {
    const { client } = clientOf(200, { items: [{ id: 'x' }, { source_id: 'known' }] })
    const outcomes = await client.importItems({ queueName: 'q', items: [{}, { sourceId: 'known' }] })
    expect(outcomes.map(({ outcome }) => outcome)).toEqual(['imported', 'existed'])
  })
})

describe('a failure', () => {
  it.each([
    [454, 'request timeout; no items are in the queue, try again', 'lease_timed_out', true],
    [454, 'queue is overloaded; try again later', 'overloaded', true],
    [454, 'internal error, try your request again', 'try_again', true],
    [453, 'queue is shutting down', 'stopping', true],
    [453, "namespace does not exist; 'x' was not found", 'refused', false],
    [400, "queue does not exist; no such queue named 'q'", 'queue_unknown', false],
    [400, "invalid queue; 'q' already exists", 'queue_exists', false],
    [400, "dead_queue does not exist; 'x' was not found, create it first", 'dead_queue_unknown', false],
    [400, "invalid storage id; 'x' does not exist", 'item_unknown', false],
    [400, "item(s) cannot be retried; 'x' is not marked as leased", 'not_leased', false],
    [400, 'items cannot be empty; at least one item is required', 'invalid', false],
    [401, 'unknown token; it may have been revoked', 'unauthorized', false],
    [500, 'Internal Error', 'internal', true],
    [501, 'no such method; /v1/x', 'not_implemented', false],
  ])('of status %i "%s" has the code %s', async (status, message, code, retryable) => {
    const { client } = clientOf(status, { code: status, message })
    await expect(client.info('q')).rejects.toMatchObject({ status, message, code, retryable })
  })

  it('of a proxy names the address and quotes the beginning of its page', async () => {
    const { client } = clientOf(502, '<html>Bad Gateway</html>')
    await expect(client.info('q')).rejects.toMatchObject({
      code: 'unreadable_reply',
      retryable: true,
      message: 'http://stub/v1/queues.info: status 502, not JSON: <html>Bad Gateway</html>',
    })
  })

  it('to connect names the address and the reason', async () => {
    const fetch: Fetch = () =>
      Promise.reject(new TypeError('fetch failed', { cause: new Error('connect ECONNREFUSED') }))
    const client = new QueueClient({ url: 'http://stub', fetch })
    await expect(client.info('q')).rejects.toMatchObject({
      code: 'network',
      status: 0,
      message: 'http://stub/v1/queues.info: connect ECONNREFUSED',
    })
  })

  it('by the caller’s own abort is told apart', async () => {
    const fetch: Fetch = (_url, { signal }) =>
      new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
    const client = new QueueClient({ url: 'http://stub', fetch })
    const abort = new AbortController()
    const call = client.info('q', { signal: abort.signal })
    abort.abort()
    await expect(call).rejects.toMatchObject({ code: 'aborted', retryable: false })
  })
})

describe('bytes and durations', () => {
  it('survive base64 with and without the runtime’s own methods', () => {
    const bytes = Uint8Array.from({ length: 20_000 }, (_, index) => (index * 7) % 256)
    const native = {
      to: Object.getOwnPropertyDescriptor(Uint8Array.prototype, 'toBase64'),
      from: Reflect.get(Uint8Array, 'fromBase64'),
    }
    const expected = Buffer.from(bytes).toString('base64')
    try {
      expect(toBase64(bytes)).toBe(expected)
      expect(fromBase64(expected)).toEqual(bytes)
      Reflect.deleteProperty(Uint8Array.prototype, 'toBase64')
      Reflect.deleteProperty(Uint8Array, 'fromBase64')
      expect(toBase64(bytes)).toBe(expected)
      expect(fromBase64(expected)).toEqual(bytes)
    } finally {
      if (native.to !== undefined) Object.defineProperty(Uint8Array.prototype, 'toBase64', native.to)
      if (native.from !== undefined)
        Object.defineProperty(Uint8Array, 'fromBase64', {
          value: native.from,
          configurable: true,
          writable: true,
        })
    }
  })

  it.each([
    ['1m0s', 60_000],
    ['1h0m0.5s', 3_600_500],
    ['300ms', 300],
    ['1.5µs', 0.0015],
    ['', undefined],
    ['5x', undefined],
  ])('%s is %s ms', (text, ms) => expect(durationMs(text)).toBe(ms))
})

describe('the client’s sources', () => {
  it('import nothing from Node, and of the product nothing but core, which imports nothing from Node for them either, and types of shapes', () => {
    const isSource = (name: string) => name.endsWith('.ts') && !name.includes('.test.')
    const sources = new Set(
      readdirSync(import.meta.dirname)
        .filter(isSource)
        .map((name) => join(import.meta.dirname, name)),
    )
    // Those that are found on the way are visited too.
    for (const source of sources) {
      const imports = readFileSync(source, 'utf8').matchAll(/^(?:im|ex)port (type )?[^']*?from '([^']+)'/gm)
      for (const [, isType, path = ''] of imports) {
        const found = join(dirname(source), path)
        // Types are gone when it runs; with them goes TypeBox, which shapes are made with.
        if (isType !== undefined && /^\.\.\/(?:core\/.*|.*\/shapes)\.ts$/.test(path)) continue
        expect(relative(import.meta.dirname, found), source).toMatch(
          /^[a-z-]+\.ts$|^\.\.\/core\/(work\/)?[a-z-]+\.ts$/,
        )
        sources.add(found)
      }
    }
  })
})
