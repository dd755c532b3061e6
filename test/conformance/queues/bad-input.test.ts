/** Whatever the body is: a clear refusal in the contract's shape, never a 5xx, a crash or a half-done change. */
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { CALLS, message, type Path } from '../../world/messages.ts'
import { encode, type Json, jsonCodec, type RawReply, replyJson } from '../../world/wire.ts'
import { type Bed, promises } from './bed.ts'

const PATHS = Object.keys(CALLS) as Path[] // the keys of CALLS are paths by its type

/** Values that look like those of the contract, and some that do not. */
const value: fc.Arbitrary<unknown> = fc.oneof(
  fc.constantFrom(
    null,
    '',
    'q',
    '5m',
    '1s',
    0,
    1,
    -1,
    1e99,
    2_147_483_647,
    true,
    [],
    {},
    '2030-01-01T00:00:00Z',
  ),
  fc.string({ unit: 'binary' }),
  fc.integer(),
  fc.array(fc.constantFrom({}, { id: 'x' }, 'x', 1, null, { utf8: 'x' }), { maxLength: 3 }),
)

// Without client_id, so that no lease is ever valid and waits.
const NAMES = `
  queue_name queueName request_timeout items ids partition batch_size limit pivot namespace lease_timeout
  expire_timeout max_attempts dead_queue force scheduled queue destructive requested_partitions reference
  __proto__ constructor`
  .trim()
  .split(/\s+/)

const bodies = fc.oneof(
  fc.uint8Array({ maxLength: 200 }),
  fc.string({ maxLength: 200 }),
  fc.json(),
  fc.dictionary(fc.constantFrom(...NAMES), value, { maxKeys: 6 }).map((object) => JSON.stringify(object)),
)

const requests = fc.record({
  path: fc.constantFrom(...PATHS),
  type: fc.constantFrom('application/json', 'application/protobuf'),
  body: bodies,
})

function expectClear(reply: RawReply, name: string): void {
  const body = replyJson(reply, reply.status === 200 ? name : 'Reply')
  if (reply.status !== 200) expect(body.message).not.toBe('')
  expect([200, 400, 453, 455]).toContain(reply.status)
}

async function send(bed: Bed, path: Path, type: string, body: string | Uint8Array): Promise<void> {
  expectClear(await bed.wire.raw(path, { headers: { 'content-type': type }, body }), CALLS[path][1])
}

promises(
  'bad input',
  (bed) => {
    it('of ten thousand kinds is refused clearly', async () => {
      const queue = await bed.queue()
      await bed.produce(queue, 'untouched')
      const before = await bed.items(queue)
      const property = fc.asyncProperty(
        fc.array(requests, { minLength: 50, maxLength: 50 }),
        async (batch) => {
          await Promise.all(batch.map(({ path, type, body }) => send(bed, path, type, body)))
        },
      )
      await fc.assert(property, { numRuns: 100, endOnFailure: false })
      expect(await bed.items(queue)).toEqual(before)
    })

    it('cut off at any byte is refused clearly or is another valid message', async () => {
      const queue_name = await bed.queue()
      const request: Json = {
        queue_name,
        request_timeout: '1m',
        items: [{ encoding: 'e', kind: 'k', reference: 'r', enqueue_at: bed.clock.at(1n), bytes: 'aGk=' }],
      }
      const whole = Buffer.from(encode('protobuf', message('QueueProduceRequest'), request))
      for (let length = 0; length < whole.length; length++) {
        await send(bed, '/v1/queue.produce', 'application/protobuf', whole.subarray(0, length))
      }
      expect(await bed.items(queue_name)).toEqual([])
      expect(await bed.scheduled(queue_name)).toEqual([])
    })

    it('with one bit flipped is refused clearly or is another valid message', async () => {
      const queue_name = await bed.queue()
      const request: Json = { queue_name, requested_partitions: 1, lease_timeout: '1m', expire_timeout: '1h' }
      const whole = Buffer.from(encode('protobuf', message('QueueInfo'), request))
      for (let bit = 0; bit < whole.length * 8; bit += 3) {
        const flipped = Buffer.from(whole)
        flipped[bit >> 3] = (flipped[bit >> 3] ?? 0) ^ (1 << (bit & 7))
        await send(bed, '/v1/queues.update', 'application/protobuf', flipped)
      }
    })

    it('nested very deeply is refused', async () => {
      const deep = `${'{"items":['.repeat(20_000)}${']}'.repeat(20_000)}`
      await send(bed, '/v1/queue.produce', 'application/json', deep)
    })

    it.each(['__proto__', 'constructor', 'toString'])('with the field %s is refused', async (name) => {
      const body = `{"queue_name":"q","${name}":{"x":1}}`
      const reply = await bed.wire.raw('/v1/queues.info', {
        headers: { 'content-type': 'application/json' },
        body,
      })
      expect(reply.status).toBe(455)
    })
  },
  { codecs: [jsonCodec] },
)
