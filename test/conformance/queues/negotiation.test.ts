/** Contract 2.2: which form a request has and which form its reply gets. */
import { fromBinary, toBinary, toJson } from '@bufbuild/protobuf'
import { describe, expect, it } from 'vitest'
import { message } from '../../world/messages.ts'
import { decode, encode, goCodec, jsonCodec, replyJson } from '../../world/wire.ts'
import { base64, promises, textsOf, unique } from './bed.ts'

const JSON_TYPE = 'application/json'
const BINARY_TYPE = 'application/protobuf'

promises(
  'negotiation',
  (bed) => {
    describe('the content type', () => {
      it.each([
        undefined,
        '*/*',
        'application/*',
        'application/json',
        'application/json; charset=utf-8',
        ' APPLICATION/JSON ;x=y',
        'application/json, application/protobuf',
      ])('%j is JSON', async (type) => {
        const queue_name = await bed.queue()
        const headers = type === undefined ? {} : { 'content-type': type }
        const reply = await bed.wire.raw('/v1/queues.info', { headers, body: JSON.stringify({ queue_name }) })
        expect(replyJson(reply, 'QueueInfo')).toMatchObject({ queue_name })
      })

      it.each([
        'application/protobuf',
        'Application/Protobuf',
        'application/protobuf; x=y',
        'application/protobuf,application/json',
      ])('%j is binary protobuf', async (type) => {
        const queue_name = await bed.queue()
        const body = encode('protobuf', message('QueuesInfoRequest'), { queue_name })
        const reply = await bed.wire.raw('/v1/queues.info', { headers: { 'content-type': type }, body })
        expect(replyJson(reply, 'QueueInfo')).toMatchObject({ queue_name })
      })

      it.each(['text/plain', 'application/x-protobuf', 'application/json+x', 'nonsense'])(
        '%j is refused',
        async (type) => {
          const reply = await bed.wire.raw('/v1/queues.list', {
            headers: { 'content-type': type },
            body: '{}',
          })
          expect(replyJson(reply)).toMatchObject({
            code: 455,
            message: `Content-Type header '${type}' is invalid format or unrecognized content type`,
          })
        },
      )
    })

    describe('the accepted type', () => {
      const ask = async (accept: string | undefined) => {
        const queue_name = await bed.queue()
        const headers = { 'content-type': JSON_TYPE, ...(accept === undefined ? {} : { accept }) }
        return bed.wire.raw('/v1/queues.info', { headers, body: JSON.stringify({ queue_name }) })
      }

      it.each([
        undefined,
        '*/*',
        'application/*',
        'application/json',
        'Application/JSON; q=1',
        'application/json, text/html',
      ])('%j gets JSON', async (accept) => {
        const reply = await ask(accept)
        expect(reply.status).toBe(200)
        expect(reply.headers['content-type']).toBe(JSON_TYPE)
        expect(reply.headers['x-content-type-options']).toBe('nosniff')
        expect(replyJson(reply, 'QueueInfo')).toMatchObject({ namespace: '_system' })
      })

      it.each(['application/protobuf', 'APPLICATION/PROTOBUF', 'application/protobuf;q=1, */*'])(
        '%j gets binary protobuf',
        async (accept) => {
          const reply = await ask(accept)
          expect(reply.status).toBe(200)
          expect(reply.headers['content-type']).toBe(BINARY_TYPE)
          expect(reply.headers['x-content-type-options']).toBe('nosniff')
          expect(decode('protobuf', message('QueueInfo'), reply.bytes)).toMatchObject({
            namespace: '_system',
          })
        },
      )

      it.each(['text/html', 'application/xml'])('%j is refused, in JSON', async (accept) => {
        const reply = await ask(accept)
        expect(reply.headers['content-type']).toBe(JSON_TYPE)
        expect(replyJson(reply)).toEqual({
          code: 455,
          code_text: 'Client Content Error',
          message: `Accept header '${accept}' is invalid format or unrecognized content type, only [application/json,application/protobuf] are supported by this method`,
        })
      })

      it('is the first of several, whatever follows', async () => {
        expect((await ask('text/html, application/json')).status).toBe(455)
      })

      it('decides the form of errors too', async () => {
        const headers = { 'content-type': JSON_TYPE, accept: BINARY_TYPE }
        const reply = await bed.wire.raw('/v1/queues.info', { headers, body: '{}' })
        expect(reply.status).toBe(400)
        expect(reply.headers['content-type']).toBe(BINARY_TYPE)
        expect(decode('protobuf', message('Reply'), reply.bytes)).toEqual({
          code: 400,
          code_text: 'Bad Request',
          message: 'queue name is invalid; queue name cannot be empty',
        })
      })
    })

    describe('a body that cannot be decoded', () => {
      it.each([
        ['nothing at all', ''],
        ['blanks', '   '],
        ['a list', '[]'],
        ['a string', '"queue"'],
        ['cut off', '{"queue_name":"q"'],
        ['two values', '{}{}'],
        ['an unknown field', '{"queue_name":"q","unknown":1}'],
        ['a number for a string', '{"queue_name":7}'],
        ['invalid UTF-8', Buffer.from([0x7b, 0x22, 0x71, 0xff, 0x22, 0x3a, 0x31, 0x7d])],
      ])('is 455 in JSON: %s', async (_, body) => {
        const reply = await bed.wire.raw('/v1/queues.info', { headers: { 'content-type': JSON_TYPE }, body })
        expect(replyJson(reply)).toMatchObject({ code: 455 })
      })

      it.each([
        ['a fraction', 1.5],
        ['a word', 'many'],
        ['beyond 32 bits', 2_147_483_648],
        ['a boolean', true],
      ])('is 455 when an int32 is %s', async (_, batch_size) => {
        const body = JSON.stringify({ queue_name: 'q', batch_size })
        const reply = await bed.wire.raw('/v1/queue.lease', { headers: { 'content-type': JSON_TYPE }, body })
        expect(replyJson(reply)).toMatchObject({ code: 455 })
      })

      it.each([
        ['a field number of zero', [0x00, 0x01]],
        ['a length beyond the end', [0x0a, 0x05, 0x71]],
        ['a tag without a value', [0x10]],
        ['invalid UTF-8 in a string', [0x0a, 0x02, 0xc3, 0x28]],
        ['a lone surrogate in a string', [0x0a, 0x03, 0xed, 0xa0, 0x80]],
      ])('is 455 in binary: %s', async (_, bytes) => {
        const headers = { 'content-type': BINARY_TYPE }
        const reply = await bed.wire.raw('/v1/queues.info', { headers, body: Uint8Array.from(bytes) })
        expect(replyJson(reply)).toMatchObject({ code: 455 })
      })

      it('is 455 for invalid UTF-8 inside an item, and nothing is produced', async () => {
        const queue_name = await bed.queue()
        const schema = message('QueueProduceRequest')
        const request = { queue_name, request_timeout: '1m', items: [{ reference: 'AB' }] }
        const body = Buffer.from(encode('protobuf', schema, request))
        body[body.indexOf('AB')] = 0xff
        const reply = await bed.wire.raw('/v1/queue.produce', {
          headers: { 'content-type': BINARY_TYPE },
          body,
        })
        expect(replyJson(reply)).toMatchObject({ code: 455 })
        expect(await bed.items(queue_name)).toEqual([])
      })
    })

    it('an empty binary body is the message with all defaults', async () => {
      const headers = { 'content-type': BINARY_TYPE }
      const empty = new Uint8Array()
      expect(replyJson(await bed.wire.raw('/v1/queue.produce', { headers, body: empty }))).toMatchObject({
        code: 400,
        message: 'queue name is invalid; queue name cannot be empty',
      })
      expect((await bed.wire.raw('/v1/queues.list', { headers, body: empty })).status).toBe(200)
    })

    it('binary ignores unknown fields', async () => {
      const queue_name = await bed.queue()
      const known = encode('protobuf', message('QueuesInfoRequest'), { queue_name })
      // Field 99 as a varint and field 100 as a string.
      const unknown = [0x98, 0x06, 0x07, 0xa2, 0x06, 0x01, 0x78]
      const body = Buffer.concat([Buffer.from(known), Buffer.from(unknown)])
      const reply = await bed.wire.raw('/v1/queues.info', { headers: { 'content-type': BINARY_TYPE }, body })
      expect(replyJson(reply, 'QueueInfo')).toMatchObject({ queue_name })
    })

    describe('JSON input', () => {
      const send = async (path: string, body: object | string) => {
        const headers = { 'content-type': JSON_TYPE }
        const text = typeof body === 'string' ? body : JSON.stringify(body)
        return bed.wire.raw(path, { headers, body: text })
      }

      it('takes the protobuf names as well', async () => {
        const queueName = unique()
        const settings = { leaseTimeout: '1m', expireTimeout: '2m', requestedPartitions: 1, maxAttempts: 3 }
        expect((await send('/v1/queues.create', { queueName, ...settings })).status).toBe(200)
        expect(await bed.info(queueName)).toMatchObject({ max_attempts: 3, lease_timeout: '1m0s' })
      })

      it('takes null as absent', async () => {
        const queue_name = await bed.queue()
        const items = [{ utf8: 'x', bytes: null, enqueue_at: null, reference: null }]
        expect((await send('/v1/queue.produce', { queue_name, request_timeout: '1m', items })).status).toBe(
          200,
        )
        expect(textsOf(await bed.items(queue_name))).toEqual(['x'])
      })

      it('takes numbers written as strings', async () => {
        const queue_name = await bed.queue()
        await bed.produce(queue_name, 'x')
        const body = { queue_name, batch_size: '1', client_id: 'c', request_timeout: '1m' }
        expect(replyJson(await send('/v1/queue.lease', body), 'QueueLeaseResponse').items).toHaveLength(1)
      })

      it.each(['-_8=', '-_8', '+/8=', '+/8'])('takes the base64 %j', async (bytes) => {
        const queue_name = await bed.queue()
        const body = { queue_name, request_timeout: '1m', items: [{ bytes }] }
        expect((await send('/v1/queue.produce', body)).status).toBe(200)
        expect((await bed.items(queue_name))[0]?.payload).toBe('+/8=')
      })

      it('takes timestamps with an offset', async () => {
        const queue_name = await bed.queue()
        const items = [{ source_id: 's', expire_deadline: '2999-01-01T02:30:00.5+02:30' }]
        await send('/v1/storage/items.import', { queue_name, items })
        expect((await bed.items(queue_name))[0]?.expire_deadline).toBe('2999-01-01T00:00:00.500Z')
      })

      it.each(['2999-01-01', 'tomorrow', '2999-13-01T00:00:00Z', '0000-01-01T00:00:00Z', 12])(
        'refuses the timestamp %j',
        async (enqueue_at) => {
          const body = { queue_name: 'q', request_timeout: '1m', items: [{ enqueue_at }] }
          expect(replyJson(await send('/v1/queue.produce', body))).toMatchObject({ code: 455 })
        },
      )
    })
  },
  { codecs: [jsonCodec], liveClock: true },
)

promises(
  'the exchange of the Go client',
  (bed) => {
    it('runs through the life of an item: binary requests, JSON replies', async () => {
      const queue = await bed.queue()
      await bed.produceItems(queue, [{ bytes: base64('hi'), kind: 'k', reference: 'r', encoding: 'e' }])
      const leased = await bed.lease(queue, 10)
      expect(leased).toEqual({
        queue_name: queue,
        items: [
          {
            id: expect.stringMatching(/^[0-9A-Za-z]{27}$/),
            attempts: 1,
            bytes: base64('hi'),
            kind: 'k',
            reference: 'r',
            encoding: 'e',
            lease_deadline: expect.stringMatching(/Z$/),
          },
        ],
      })
      await bed.complete(queue, [leased.items[0]?.id ?? ''])
      expect(await bed.items(queue)).toEqual([])
    })

    it('gets errors in JSON', async () => {
      await bed.refuses('/v1/queue.stats', {}, 'queue name is invalid; queue name cannot be empty')
    })
  },
  { codecs: [goCodec], liveClock: true },
)

describe('the messages of this suite', () => {
  it('put the numbers of the contract on the wire', () => {
    const clear = message('QueueClearRequest')
    const bytes = encode('protobuf', clear, {
      queue_name: 'q',
      scheduled: true,
      queue: true,
      destructive: true,
    })
    expect(Buffer.from(bytes).toString('hex')).toBe('0a0171180120012801')
    const reply = message('Reply')
    expect(
      toJson(reply, fromBinary(reply, toBinary(reply, fromBinary(reply, Buffer.from('08c801', 'hex'))))),
    ).toEqual({ code: 200 })
  })
})
