/** Contract 2.3, 3.1 and 4: what replies contain, and that they contain nothing else. */
import { describe, expect, it } from 'vitest'
import { message, type Path } from '../../world/messages.ts'
import { ZERO_TIME } from '../../world/time.ts'
import { encode, type Json, jsonCodec, protobufCodec } from '../../world/wire.ts'
import { base64, promises, unique } from './bed.ts'

promises('replies', (bed) => {
  it('calls without a response message answer the code and nothing else', async () => {
    const queue_name = unique()
    const create = { queue_name, lease_timeout: '1m', expire_timeout: '2m', requested_partitions: 1 }
    expect(await bed.ok('/v1/queues.create', create)).toEqual({ code: 200 })
    expect(await bed.ok('/v1/queues.update', { queue_name })).toEqual({ code: 200 })
    await bed.produce(queue_name, 'a', 'b')
    const { items } = await bed.lease(queue_name, 2)
    await bed.complete(queue_name, [items[0]?.id ?? ''])
    await bed.retry(queue_name, [{ id: items[1]?.id ?? '' }])
    expect(await bed.ok('/v1/queue.clear', { queue_name, queue: true })).toEqual({ code: 200 })
    expect(await bed.ok('/v1/queue.reload', { queue_name })).toEqual({ code: 200 })
    const ids = ['000000000000000000000000000']
    expect(await bed.ok('/v1/storage/items.delete', { queue_name, ids })).toEqual({ code: 200 })
    expect(await bed.ok('/v1/queues.delete', { queue_name })).toEqual({ code: 200 })
  })

  it('errors have code, code text and message', async () => {
    expect(await bed.call('/v1/queues.info', { queue_name: 'nowhere' })).toEqual({
      status: 400,
      body: {
        code: 400,
        code_text: 'Bad Request',
        message: "queue does not exist; no such queue named 'nowhere'",
      },
    })
  })

  it('a list without items is the empty message', async () => {
    const queue_name = await bed.queue()
    expect(await bed.ok('/v1/storage/items.list', { queue_name })).toEqual({})
    expect(await bed.ok('/v1/storage/scheduled.list', { queue_name })).toEqual({})
    expect(await bed.ok('/v1/queues.list', { pivot: 'zzzzzzzz' })).toEqual({})
  })

  it('a lease reply has exactly the fields of the contract', async () => {
    const queue_name = await bed.queue({ lease_timeout: '1m' })
    await bed.produceItems(queue_name, [{ kind: 'k', reference: 'r', bytes: base64('hi') }, {}])
    const id = expect.stringMatching(/^[0-9A-Za-z]{27}$/)
    const lease_deadline = bed.clock.at(60_000_000n)
    expect(await bed.lease(queue_name, 2)).toEqual({
      queue_name,
      items: [
        { kind: 'k', reference: 'r', id, attempts: 1, lease_deadline, bytes: base64('hi') },
        { id, attempts: 1, lease_deadline },
      ],
    })
  })

  it('a stats reply has exactly the fields of the contract, with the real partition numbers', async () => {
    const queue_name = await bed.queue({ requested_partitions: 2 })
    await bed.produce(queue_name, 'a')
    expect(await bed.ok('/v1/queue.stats', { queue_name })).toEqual({
      queue_name,
      logicalQueues: [
        {
          partitions: [
            { total: 1, average_age: '0s', average_leased_age: '0s' },
            { partition: 1, average_age: '0s', average_leased_age: '0s' },
          ],
        },
      ],
    })
  })

  it('a stored item shows its lease deadline as the zero time when it has none', async () => {
    const queue_name = await bed.queue({ expire_timeout: '24h' })
    await bed.produceItems(queue_name, [{ bytes: base64('hi') }])
    expect(await bed.ok('/v1/storage/items.list', { queue_name })).toEqual({
      items: [
        {
          id: expect.any(String),
          lease_deadline: ZERO_TIME,
          expire_deadline: bed.clock.at(86_400_000_000n),
          created_at: bed.clock.at(0n),
          payload: base64('hi'),
        },
      ],
    })
  })

  it('a queue shows times, both timeouts and namespace, and never its partitions', async () => {
    const queue_name = await bed.queue({
      lease_timeout: '90s',
      expire_timeout: '1.5h',
      requested_partitions: 3,
    })
    const expected = {
      queue_name,
      created_at: bed.clock.at(0n),
      updated_at: bed.clock.at(0n),
      lease_timeout: '1m30s',
      expire_timeout: '1h30m0s',
      requested_partitions: 3,
      namespace: '_system',
    }
    expect(await bed.info(queue_name)).toEqual(expected)
    expect(await bed.ok('/v1/queues.list', { pivot: queue_name, limit: 1 })).toEqual({ items: [expected] })
  })
})

promises(
  'the bytes of a reply',
  (bed) => {
    const ask = (path: Path, name: string, body: Json) =>
      bed.wire.raw(path, {
        headers: { 'content-type': 'application/protobuf', accept: 'application/protobuf' },
        body: encode('protobuf', message(name), body),
      })

    it('are field 1 with 200 where there is no response message', async () => {
      const queue_name = await bed.queue()
      const reply = await ask('/v1/queue.reload', 'QueueReloadRequest', { queue_name })
      expect(Buffer.from(reply.bytes).toString('hex')).toBe('08c801')
    })

    it('are none for an empty list', async () => {
      const queue_name = await bed.queue()
      const reply = await ask('/v1/storage/items.list', 'StorageItemsListRequest', { queue_name })
      expect(reply).toMatchObject({ status: 200, bytes: new Uint8Array() })
    })

    it('carry the zero time as a negative ten-byte number', async () => {
      const queue_name = await bed.queue()
      await bed.produce(queue_name, 'x')
      const reply = await ask('/v1/storage/items.list', 'StorageItemsListRequest', { queue_name })
      // lease_deadline is field 4; a Timestamp of eleven bytes whose seconds are -62135596800.
      expect(Buffer.from(reply.bytes).toString('hex')).toContain('220b088092b8c398feffffff01')
    })

    it('are compact JSON or at least JSON that parses to the same', async () => {
      const reply = await bed.wire.raw('/v1/queues.info', {
        headers: { 'content-type': 'application/json' },
        body: '{}',
      })
      expect(JSON.parse(Buffer.from(reply.bytes).toString())).toEqual({
        code: 400,
        code_text: 'Bad Request',
        message: 'queue name is invalid; queue name cannot be empty',
      })
    })
  },
  { codecs: [protobufCodec] },
)

promises(
  'health and metrics',
  (bed) => {
    describe('GET /health', () => {
      it('passes when requests can be served', async () => {
        const reply = await bed.wire.raw('/health', { method: 'GET' })
        expect(reply.status).toBe(200)
        expect(reply.headers['content-type']).toBe('application/health+json')
        expect(JSON.parse(Buffer.from(reply.bytes).toString())).toEqual({
          status: 'pass',
          version: expect.stringMatching(/^\d+\.\d+\.\d+/),
          checks: {
            'queues:storage': [
              {
                componentType: 'datastore',
                status: 'pass',
                time: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/),
              },
            ],
          },
        })
      })
    })

    describe('GET /metrics', () => {
      it('has the summary of request durations by path', async () => {
        await bed.queue()
        const reply = await bed.wire.raw('/metrics', { method: 'GET' })
        expect(reply.status).toBe(200)
        const text = Buffer.from(reply.bytes).toString()
        expect(text).toContain('# TYPE http_handler_duration summary')
        const line = (quantile: string) =>
          new RegExp(
            `^http_handler_duration\\{(?=[^}]*path="/v1/queues.create")(?=[^}]*quantile="${quantile}")`,
            'm',
          )
        expect(text).toMatch(line('0.5'))
        expect(text).toMatch(line('0.99'))
        expect(text).toMatch(/^http_handler_duration_count\{[^}]*path="\/v1\/queues.create"/m)
      })
    })
  },
  { codecs: [jsonCodec] },
)
