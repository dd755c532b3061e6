/** Contract 2.1 and 2.4: what is looked at first, and how large a body may be. */
import { Readable } from 'node:stream'
import { describe, expect, it } from 'vitest'
import type { Path } from '../../world/messages.ts'
import { jsonCodec, type RawRequest, replyJson } from '../../world/wire.ts'
import { type Bed, promises, unique } from './bed.ts'

const JSON_TYPE = { 'content-type': 'application/json' }

/** Sends a raw request and gives code and message of its JSON reply. */
async function tell(bed: Bed, path: string, options: RawRequest) {
  const { code, message } = replyJson(await bed.wire.raw(path, options))
  return { code, message }
}

/** A JSON body padded with blanks to exactly `size` bytes. */
const padded = (body: object, size: number) => JSON.stringify(body).padEnd(size, ' ')

const LIMITS: [path: Path, bytes: number, printed: string][] = [
  ['/v1/queue.produce', 5_000_000, '5.0MB'],
  ['/v1/queue.lease', 512, '512B'],
  ['/v1/queue.stats', 512, '512B'],
  ['/v1/queue.clear', 512, '512B'],
  ['/v1/queue.reload', 512, '512B'],
  ['/v1/queues.update', 512_000, '500.0KiB'],
  ['/v1/storage/items.import', 64_000_000, '61.0MiB'],
  ['/v1/queue.complete', 256_000, '250.0KiB'],
  ['/v1/queue.retry', 256_000, '250.0KiB'],
  ['/v1/queues.create', 256_000, '250.0KiB'],
  ['/v1/queues.delete', 256_000, '250.0KiB'],
  ['/v1/queues.list', 256_000, '250.0KiB'],
  ['/v1/queues.info', 256_000, '250.0KiB'],
  ['/v1/storage/items.list', 256_000, '250.0KiB'],
  ['/v1/storage/scheduled.list', 256_000, '250.0KiB'],
  ['/v1/storage/items.delete', 256_000, '250.0KiB'],
]

const NOT_IMPLEMENTED = [
  '/v1/users.create',
  '/v1/roles.list',
  '/v1/rolebindings.create',
  '/v1/apikeys.create',
  '/v1/namespaces.create',
  '/v1/queues.rebalance',
  '/v1/storage/scheduled.add',
  '/v1/storage/scheduled.delete',
  '/v1/queue.unknown',
  '/v1/',
  '/v1/queue.produce/',
  '/v1/Queue.produce',
  '/v1/storage/queue.produce',
]

promises(
  'transport',
  (bed) => {
    describe('step 1, the method', () => {
      it.each(['GET', 'PUT', 'DELETE', 'PATCH', 'OPTIONS'] as const)('refuses %s', async (method) => {
        expect(await tell(bed, '/v1/queue.produce', { method })).toEqual({
          code: 400,
          message: `http method '${method}' not allowed; only POST`,
        })
      })

      it('refuses HEAD', async () => {
        expect((await bed.wire.raw('/v1/queue.produce', { method: 'HEAD' })).status).toBe(400)
      })

      it('comes before the authorization header and the path', async () => {
        const headers = { authorization: 'Basic eDp5' }
        expect(await tell(bed, '/v1/nowhere', { method: 'GET', headers })).toMatchObject({ code: 400 })
      })
    })

    describe('step 2, the authorization header', () => {
      it.each(['Basic eDp5', 'Bearer', 'bearer', 'abc'])('refuses %j', async (authorization) => {
        const headers = { ...JSON_TYPE, authorization }
        expect(await tell(bed, '/v1/queues.list', { headers, body: '{}' })).toEqual({
          code: 401,
          message: 'invalid authorization header format',
        })
      })

      it.each(['Bearer', 'bearer', 'BEARER'])(
        'accepts any %s token while authentication is off',
        async (scheme) => {
          const headers = { ...JSON_TYPE, authorization: `${scheme} abc` }
          expect((await bed.wire.raw('/v1/queues.list', { headers, body: '{}' })).status).toBe(200)
        },
      )

      it('comes before the path', async () => {
        const headers = { ...JSON_TYPE, authorization: 'Basic eDp5' }
        expect(await tell(bed, '/v1/nowhere', { headers, body: '{}' })).toMatchObject({ code: 401 })
      })
    })

    describe('step 3, the path', () => {
      it.each(NOT_IMPLEMENTED)('answers 501 for %s', async (path) => {
        expect(await tell(bed, path, { headers: JSON_TYPE, body: '{}' })).toEqual({
          code: 501,
          message: `no such method; ${path}`,
        })
      })

      it('ignores the query string', async () => {
        const reply = await bed.wire.raw('/v1/queues.list?limit=-1', { headers: JSON_TYPE, body: '{}' })
        expect(reply.status).toBe(200)
      })

      it('comes before the size of the body', async () => {
        const body = ' '.repeat(300_000)
        expect(await tell(bed, '/v1/nowhere', { headers: JSON_TYPE, body })).toMatchObject({ code: 501 })
      })
    })

    describe('step 4, the body', () => {
      // The largest takes a second each time and says the same about every store.
      const limits = LIMITS.filter(([, bytes]) => bytes < 10_000_000 || bed.store.name === 'sqlite')

      it.each(limits)('of %s may have %i bytes', async (path, limit) => {
        // An unknown field is seen only once the whole body has been read.
        const body = padded({ no_such_field: 1 }, limit)
        expect(await tell(bed, path, { headers: JSON_TYPE, body })).toMatchObject({ code: 455 })
      })

      it.each(limits)('of %s may not have one byte more than %i', async (path, limit, printed) => {
        const body = padded({ no_such_field: 1 }, limit + 1)
        expect(await tell(bed, path, { headers: JSON_TYPE, body })).toEqual({
          code: 400,
          message: `request body exceeds ${printed} limit`,
        })
      })

      it('is measured when no length is announced', async () => {
        async function* chunks() {
          for (let sent = 0; sent < 520; sent += 40) yield new Uint8Array(40).fill(0x20)
        }
        expect(
          await tell(bed, '/v1/queue.stats', { headers: JSON_TYPE, body: Readable.from(chunks()) }),
        ).toEqual({
          code: 400,
          message: 'request body exceeds 512B limit',
        })
      })

      it('is measured before the content type is looked at', async () => {
        const headers = { 'content-type': 'text/plain' }
        expect(await tell(bed, '/v1/queue.stats', { headers, body: ' '.repeat(513) })).toMatchObject({
          code: 400,
        })
      })

      it('of exactly the limit is served', async () => {
        const queue_name = await bed.queue()
        const body = padded({ queue_name }, 512)
        expect((await bed.wire.raw('/v1/queue.stats', { headers: JSON_TYPE, body })).status).toBe(200)
      })

      it('of a queue with a name of almost 512 bytes is too large for a lease', async () => {
        const queue_name = unique('n').padEnd(510, 'n')
        await bed.queue({ queue_name })
        await bed.refuses(
          '/v1/queue.lease',
          { queue_name, batch_size: 1, client_id: 'c', request_timeout: '1m' },
          'request body exceeds 512B limit',
        )
      })
    })

    describe('step 5, decoding', () => {
      it('comes before the operation', async () => {
        const body = JSON.stringify({ queue_name: '', no_such_field: 1 })
        expect(await tell(bed, '/v1/queue.stats', { headers: JSON_TYPE, body })).toMatchObject({ code: 455 })
      })
    })

    describe('a member that is given twice', () => {
      it.each([
        ['/v1/queue.stats', '{"queue_name":"a","queue_name":"b"}', 'queue_name'],
        ['/v1/queue.stats', '{"queue_name":"a","queue\\u005fname":"a"}', 'queue_name'],
        ['/v1/queue.stats', '{"queue_name":"a","queueName":"a"}', 'queue_name'],
        [
          '/v1/queue.produce',
          '{"queue_name":"a","items":[{"utf8":"x"},{"utf8":"x","kind":"k","utf8":"y"}]}',
          'utf8',
        ],
        ['/v1/queue.produce', '{"queue_name":"a","__proto__":1,"__proto__":2}', '__proto__'],
        ['/v1/queue.lease', '{"batch_size":1,"batch_size":1}', 'batch_size'],
        ['/v1/queue.complete', '{"ids":[],"ids":[]}', 'ids'],
        ['/v1/queue.retry', '{"items":[{"id":"1","dead":true,"dead":false}]}', 'dead'],
        ['/v1/queues.create', '{"queue_name":"a","queue_name":"a"}', 'queue_name'],
        ['/v1/queues.list', '{"limit":1,"limit":2}', 'limit'],
        ['/v1/storage/items.import', '{"items":[{"kind":"a","kind":"b"}]}', 'kind'],
      ])('at %s is refused: %s', async (path, body, member) => {
        const told = await tell(bed, path, { headers: JSON_TYPE, body })
        expect(told).toMatchObject({ code: 455, message: expect.stringContaining(`"${member}"`) })
      })

      it('produces nothing, also where it says the same twice', async () => {
        const queue_name = await bed.queue()
        const body = `{"queue_name":"${queue_name}","request_timeout":"1m","items":[{"utf8":"x","utf8":"x"}]}`
        expect(await tell(bed, '/v1/queue.produce', { headers: JSON_TYPE, body })).toMatchObject({
          code: 455,
        })
        expect(await bed.items(queue_name)).toEqual([])
      })
    })

    describe('step 7, the reply', () => {
      it('comes after the operation: what was asked has been done', async () => {
        const queue_name = await bed.queue()
        const headers = { ...JSON_TYPE, accept: 'text/plain' }
        const body = JSON.stringify({ queue_name, request_timeout: '1m', items: [{ utf8: 'x' }] })
        expect(await tell(bed, '/v1/queue.produce', { headers, body })).toMatchObject({ code: 455 })
        expect(await bed.items(queue_name)).toHaveLength(1)
      })
    })

    describe('connections', () => {
      it('are kept for more than the 60 s that the client keeps them', async () => {
        const reply = await bed.wire.raw('/v1/queues.list', { headers: JSON_TYPE, body: '{}' })
        const seconds = /timeout=(\d+)/.exec(String(reply.headers['keep-alive']))?.[1]
        expect(Number(seconds)).toBeGreaterThan(60)
      })
    })
  },
  { codecs: [jsonCodec], liveClock: true },
)

promises(
  'a configured body limit',
  (bed) => {
    it('is what produce accepts and prints', async () => {
      const refusal = { code: 400, message: 'request body exceeds 2.0KiB limit' }
      const send = (size: number) =>
        tell(bed, '/v1/queue.produce', { headers: JSON_TYPE, body: padded({ no_such_field: 1 }, size) })
      expect(await send(2049)).toEqual(refusal)
      expect(await send(2048)).toMatchObject({ code: 455 })
    })
  },
  { codecs: [jsonCodec], liveClock: true, queues: { maxProduceBytes: 2048 } },
)
