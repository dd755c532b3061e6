/** Contract 8.1 to 8.6: every refusal has its text; one test per row. The order is in validation-order.test.ts. */
import { describe, expect, it } from 'vitest'
import type { Path } from '../../world/messages.ts'
import type { Json } from '../../world/wire.ts'
import { only, promises, unique } from './bed.ts'

const ID = '2AAAAAAAAAAAAAAAAAAAAAAAAAA'
const TOO_SHORT_ID = 'Valid encoded KSUIDs are 27 characters'
const OUT_OF_BOUNDS_ID =
  'Valid encoded KSUIDs are bounded by 000000000000000000000000000 and aWgEPTl1tmebfsQzFP4bxwgy80V'

const LOOKUPS: Path[] = [
  '/v1/queue.produce',
  '/v1/queue.lease',
  '/v1/queue.complete',
  '/v1/queue.retry',
  '/v1/queue.stats',
  '/v1/queue.clear',
  '/v1/queue.reload',
  '/v1/queues.info',
  '/v1/storage/items.list',
  '/v1/storage/scheduled.list',
  '/v1/storage/items.import',
  '/v1/storage/items.delete',
]

const PARTITIONED: [Path, Json][] = [
  ['/v1/queue.complete', {}],
  ['/v1/queue.retry', {}],
  ['/v1/storage/items.list', { pivot: 'not a KSUID', limit: -1 }],
  ['/v1/storage/scheduled.list', { pivot: 'not a KSUID', limit: -1 }],
  ['/v1/storage/items.import', {}],
  ['/v1/storage/items.delete', {}],
]

promises('8.1 looking up a queue', (bed) => {
  it.each(LOOKUPS)('%s refuses empty, blank and unknown names and the tilde', async (path) => {
    const empty = 'queue name is invalid; queue name cannot be empty'
    await bed.refuses(path, {}, empty)
    await bed.refuses(path, { queue_name: ' \t' }, empty)
    await bed.refuses(
      path,
      { queue_name: 'a~b' },
      "queue name is invalid; 'a~b' cannot contain '~' character",
    )
    for (const queue_name of ['nowhere', 'with space', ' padded ']) {
      await bed.refuses(path, { queue_name }, `queue does not exist; no such queue named '${queue_name}'`)
    }
  })

  it('a name that is too long is unknown', async () => {
    const queue_name = 'x'.repeat(600)
    const text = `queue does not exist; no such queue named '${queue_name}'`
    await bed.refuses('/v1/queues.info', { queue_name }, text)
  })

  it.each(PARTITIONED)('%s refuses a partition out of range before it looks further', async (path, rest) => {
    const queue_name = await bed.queue({ requested_partitions: 2 })
    for (const partition of [2, -1, 2_147_483_647]) {
      const text = `partition is invalid; '${partition}' is not a valid partition`
      await bed.refusesWith(path, { queue_name, partition, ...rest }, text)
    }
  })
})

const REQUEST_TIMEOUTS: [timeout: string, text: string][] = [
  ['', "request timeout is required; '5m' is recommended, 15m is the maximum"],
  ['0', "request timeout is required; '5m' is recommended, 15m is the maximum"],
  ['0s', "request timeout is required; '5m' is recommended, 15m is the maximum"],
  ['0ms', "request timeout is required; '5m' is recommended, 15m is the maximum"],
  ['foo', 'request timeout is invalid; time: invalid duration "foo" - expected format: 900ms, 5m or 15m'],
  ['5', 'request timeout is invalid; time: missing unit in duration "5" - expected format: 900ms, 5m or 15m'],
  [
    '5x',
    'request timeout is invalid; time: unknown unit "x" in duration "5x" - expected format: 900ms, 5m or 15m',
  ],
  ['16m', "request timeout is invalid; maximum timeout is '15m' but '16m0s' was requested"],
  [
    '15m0.000000001s',
    "request timeout is invalid; maximum timeout is '15m' but '15m0.000000001s' was requested",
  ],
]

const TOO_SHORT_TIMEOUTS: [timeout: string, text: string][] = [
  ['10ms', "request timeout is invalid; minimum timeout is '10ms' but '10ms' was requested"],
  ['1us', "request timeout is invalid; minimum timeout is '10ms' but '1µs' was requested"],
  ['-5s', "request timeout is invalid; minimum timeout is '10ms' but '-5s' was requested"],
]

promises('8.3 produce', (bed) => {
  it.each([
    ...REQUEST_TIMEOUTS,
    ...TOO_SHORT_TIMEOUTS,
    ['15m', "request timeout is invalid; maximum timeout is '15m' but '15m0s' was requested"] as [
      string,
      string,
    ],
  ])('refuses the timeout %j', async (request_timeout, text) => {
    const queue_name = await bed.queue()
    await bed.refuses('/v1/queue.produce', { queue_name, request_timeout, items: [{}] }, text)
    expect(await bed.items(queue_name)).toEqual([])
  })

  it.each(['10.000001ms', '14m59.999999999s', '+1m', '.5s', '1.s'])(
    'accepts the timeout %j',
    async (timeout) => {
      const queue_name = await bed.queue()
      await bed.ok('/v1/queue.produce', { queue_name, request_timeout: timeout, items: [{}] })
    },
  )

  it('refuses no items and more than 1000', async () => {
    const request = { queue_name: await bed.queue(), request_timeout: '1m' }
    const none = 'items cannot be empty; at least one item is required'
    await bed.refuses('/v1/queue.produce', request, none)
    await bed.refuses(
      '/v1/queue.produce',
      { ...request, items: Array.from({ length: 1001 }, () => ({})) },
      'items is invalid; max_produce_batch_size is 1000 but received 1001',
    )
  })
})

promises('8.3 lease', (bed) => {
  const request = async () => ({
    queue_name: await bed.queue(),
    client_id: unique('client'),
    batch_size: 1,
    request_timeout: '1m',
  })

  it.each([...REQUEST_TIMEOUTS, ...TOO_SHORT_TIMEOUTS])('refuses the timeout %j', async (timeout, text) => {
    await bed.refuses('/v1/queue.lease', { ...(await request()), request_timeout: timeout }, text)
  })

  it.each(['10.000001ms', '15m', '900s'])('accepts the timeout %j', async (request_timeout) => {
    const body = { ...(await request()), request_timeout }
    await bed.produce(body.queue_name, 'a')
    await bed.ok('/v1/queue.lease', body)
  })

  it.each(['', ' ', '\t\n'])('refuses the client id %j', async (client_id) => {
    const body = { ...(await request()), client_id }
    await bed.refuses('/v1/queue.lease', body, 'invalid client id; cannot be empty')
  })

  it.each([
    [0, 'invalid batch size; must be greater than zero'],
    [-1, 'invalid batch size; must be greater than zero'],
    [1001, 'invalid batch size; max_lease_batch_size is 1000, but 1001 was requested'],
  ])('refuses the batch size %i', async (batch_size, text) => {
    await bed.refuses('/v1/queue.lease', { ...(await request()), batch_size }, text)
  })
})

promises('8.4 complete', (bed) => {
  const request = async () => ({ queue_name: await bed.queue(), request_timeout: '1m', ids: [ID] })

  it.each(REQUEST_TIMEOUTS)('refuses the timeout %j', async (request_timeout, text) => {
    await bed.refuses('/v1/queue.complete', { ...(await request()), request_timeout }, text)
  })

  it.each(['15m', '1ms', '1ns'])('accepts the timeout %j', async (request_timeout) => {
    const body = { ...(await request()), request_timeout }
    await bed.refusesWith('/v1/queue.complete', body, `invalid storage id; '${ID}' does not exist`)
  })

  it('refuses no ids and more than 1000', async () => {
    const body = await request()
    await bed.refusesWith(
      '/v1/queue.complete',
      { ...body, ids: [] },
      'ids is invalid; list of ids cannot be empty',
    )
    await bed.refusesWith(
      '/v1/queue.complete',
      { ...body, ids: Array.from({ length: 1001 }, () => ID) },
      'ids is invalid; max_complete_batch_size is 1000 but received 1001',
    )
  })

  it.each([
    ['', TOO_SHORT_ID],
    ['short', TOO_SHORT_ID],
    [`${ID}A`, TOO_SHORT_ID],
    ['2AAAAAAAAAAAAAAAAAAAAAAAAA-', OUT_OF_BOUNDS_ID],
    ['aWgEPTl1tmebfsQzFP4bxwgy80W', OUT_OF_BOUNDS_ID],
    ['zzzzzzzzzzzzzzzzzzzzzzzzzzz', OUT_OF_BOUNDS_ID],
  ])('refuses the id %j', async (id, reason) => {
    const body = { ...(await request()), ids: [id] }
    await bed.refusesWith('/v1/queue.complete', body, `invalid storage id; '${id}': ${reason}`)
  })
})

promises('8.4 retry', (bed) => {
  it('refuses no items and more than 1000', async () => {
    const queue_name = await bed.queue()
    const none = 'items is invalid; list of items cannot be empty'
    await bed.refusesWith('/v1/queue.retry', { queue_name, items: [] }, none)
    await bed.refuses(
      '/v1/queue.retry',
      { queue_name, items: Array.from({ length: 1001 }, () => ({ id: ID })) },
      'items is invalid; max_complete_batch_size is 1000 but received 1001',
    )
  })

  it.each([
    ['short', TOO_SHORT_ID],
    ['aWgEPTl1tmebfsQzFP4bxwgy80W', OUT_OF_BOUNDS_ID],
  ])('refuses the id %j', async (id, reason) => {
    const body = { queue_name: await bed.queue(), items: [{ id }] }
    await bed.refusesWith('/v1/queue.retry', body, `invalid storage id; '${id}': ${reason}`)
  })
})

const LONG = 'x'.repeat(513)
const NAMES: [name: string, text: string][] = [
  [LONG, "queue name is invalid; cannot be greater than '512' characters"],
  // 257 letters of two bytes each: sizes are counted in bytes.
  ['ä'.repeat(257), "queue name is invalid; cannot be greater than '512' characters"],
  ['', 'queue name is invalid; queue name cannot be empty'],
  [' ', 'queue name is invalid; queue name cannot be empty'],
  ['a b', "queue name is invalid; 'a b' cannot contain whitespace"],
  ['a\u00a0b', "queue name is invalid; 'a\u00a0b' cannot contain whitespace"],
  ['a\u2003b', "queue name is invalid; 'a\u2003b' cannot contain whitespace"],
  ['a\nb', "queue name is invalid; 'a\nb' cannot contain whitespace"],
  ['a ~b', "queue name is invalid; 'a ~b' cannot contain whitespace"],
  ['a~b', "queue name is invalid; 'a~b' cannot contain '~' character"],
]

/** Refusals that create and update share: the field, the value, the text. */
const SETTINGS: [field: string, value: string | number, text: string][] = [
  ['lease_timeout', '1234567890123.5m', "lease timeout is invalid; cannot be greater than '15' characters"],
  ['expire_timeout', '1234567890123.5m', "expire timeout is invalid; cannot be greater than '15' characters"],
  [
    'expire_timeout',
    'foo',
    'expire timeout is invalid; time: invalid duration "foo" - expected format: 60m, 2h or 24h',
  ],
  [
    'lease_timeout',
    'foo',
    'lease timeout is invalid; time: invalid duration "foo" - expected format: 8m, 15m or 1h',
  ],
  ['namespace', 'n'.repeat(257), "namespace name is invalid; cannot be greater than '256' characters"],
  ['namespace', '  ', 'namespace name is invalid; cannot be empty'],
  ['namespace', 'a b', "namespace name is invalid; 'a b' cannot contain whitespace"],
  ['namespace', 'a~b', "namespace name is invalid; 'a~b' cannot contain '~' character"],
  ['namespace', 'a:b', "namespace name is invalid; 'a:b' cannot contain ':' character"],
  ['reference', 'r'.repeat(2001), "reference field is invalid; cannot be greater than '2000' characters"],
  ['reference', 'ä'.repeat(1001), "reference field is invalid; cannot be greater than '2000' characters"],
  ['max_attempts', 65_537, 'max attempts is invalid; cannot be greater than 65536'],
  ['max_attempts', -1, 'max attempts is invalid; cannot be negative number'],
  ['requested_partitions', -1, 'partitions is invalid; cannot be less than 1'],
  ['lease_timeout', '-1m', 'lease timeout is invalid; cannot be negative'],
  ['expire_timeout', '-1h', 'expire timeout is invalid; cannot be negative'],
]

promises('8.5 create', (bed) => {
  const valid = () => ({
    queue_name: unique(),
    lease_timeout: '1m',
    expire_timeout: '1h',
    requested_partitions: 1,
  })

  it.each(['a\u0001b', '\u001b[2J', 'a\u007f'])(
    'refuses the control characters in %j',
    async (queue_name) => {
      const text = 'queue name is invalid; it cannot contain control characters'
      await bed.refuses('/v1/queues.create', { ...valid(), queue_name }, text)
    },
  )

  it.each(NAMES)('refuses the name %j', async (queue_name, text) => {
    await bed.refuses('/v1/queues.create', { ...valid(), queue_name }, text)
  })

  it.each(SETTINGS)('refuses %s %j', async (field, value, text) => {
    const body = { ...valid(), [field]: value }
    const { body: reply } = await bed.call('/v1/queues.create', body)
    // A negative timeout is also below 1 µs, and that rule comes first: both texts are right.
    const texts = [text, text.replace('cannot be negative', 'cannot be empty')]
    expect(reply).toMatchObject({ code: 400, message: expect.toBeOneOf(texts) })
    await bed.refuses(
      '/v1/queues.info',
      { queue_name: body.queue_name },
      `queue does not exist; no such queue named '${body.queue_name}'`,
    )
  })

  it.each([
    [{ lease_timeout: '' }, 'lease timeout is invalid; cannot be empty'],
    [{ lease_timeout: '0s' }, 'lease timeout is invalid; cannot be empty'],
    [{ lease_timeout: '999ns' }, 'lease timeout is invalid; cannot be empty'],
    [{ expire_timeout: '' }, 'expire timeout is invalid; cannot be empty'],
    [{ expire_timeout: '0' }, 'expire timeout is invalid; cannot be empty'],
    [{ expire_timeout: '999ns' }, 'expire timeout is invalid; cannot be empty'],
    [{ requested_partitions: 0 }, 'partitions is invalid; cannot be less than 1'],
    [
      { lease_timeout: '1h', expire_timeout: '30m' },
      'lease timeout is too long; 1h0m0s cannot be greater than the expire timeout 30m0s',
    ],
  ])('refuses %j', async (settings, text) => {
    await bed.refuses('/v1/queues.create', { ...valid(), ...settings }, text)
  })

  it('refuses a name that exists', async () => {
    const queue_name = await bed.queue()
    await bed.refuses(
      '/v1/queues.create',
      { ...valid(), queue_name },
      `invalid queue; '${queue_name}' already exists`,
    )
  })

  it('accepts timeouts of exactly 15 characters', async () => {
    const queue = await bed.queue({ lease_timeout: '000000000000.5m', expire_timeout: '00000000000060m' })
    expect(await bed.info(queue)).toMatchObject({ lease_timeout: '30s', expire_timeout: '1h0m0s' })
  })
})

promises('8.5 update', (bed) => {
  it.each(NAMES)('refuses the name %j', async (queue_name, text) => {
    await bed.refuses('/v1/queues.update', { queue_name }, text)
  })

  it.each(SETTINGS)('refuses %s %j', async (field, value, text) => {
    const queue_name = await bed.queue()
    await bed.refuses('/v1/queues.update', { queue_name, [field]: value }, text)
  })

  it('refuses an unknown queue', async () => {
    const text = "queue does not exist; no such queue named 'nowhere'"
    await bed.refuses('/v1/queues.update', { queue_name: 'nowhere' }, text)
  })
})

promises('8.6 other calls', (bed) => {
  it.each(NAMES)('queues.delete refuses the name %j', async (queue_name, text) => {
    await bed.refuses('/v1/queues.delete', { queue_name }, text)
  })

  it('queues.delete refuses an unknown queue', async () => {
    const text = "queue does not exist; no such queue named 'nowhere'"
    await bed.refuses('/v1/queues.delete', { queue_name: 'nowhere' }, text)
  })

  it.each([
    [{ limit: -1 }, 'limit is invalid; limit cannot be negative'],
    [{ limit: 65_537 }, 'limit is invalid; cannot be greater than 65536'],
    [{ pivot: 'a~b' }, "pivot is invalid; 'a~b' cannot contain '~' character"],
    [{ limit: -1, pivot: 'a~b' }, 'limit is invalid; limit cannot be negative'],
    [{ limit: 65_537, pivot: 'a~b' }, 'limit is invalid; cannot be greater than 65536'],
  ])('queues.list refuses %j', async (body, text) => {
    await bed.refuses('/v1/queues.list', body, text)
  })

  it.each(['/v1/storage/items.list', '/v1/storage/scheduled.list'] as const)(
    '%s refuses a bad pivot, then a bad limit',
    async (path) => {
      const queue_name = await bed.queue()
      await bed.refusesWith(
        path,
        { queue_name, pivot: 'x', limit: -1 },
        `invalid storage id; 'x': ${TOO_SHORT_ID}`,
      )
      await bed.refuses(path, { queue_name, limit: -1 }, 'limit is invalid; limit cannot be negative')
    },
  )

  it('items.import refuses no items', async () => {
    const body = { queue_name: await bed.queue() }
    await bed.refusesWith('/v1/storage/items.import', body, 'items is invalid; cannot be empty')
  })

  it('items.delete refuses no ids and malformed ones', async () => {
    const queue_name = await bed.queue()
    await bed.refusesWith('/v1/storage/items.delete', { queue_name }, 'ids is invalid; cannot be empty')
    await bed.refusesWith(
      '/v1/storage/items.delete',
      { queue_name, ids: [ID, 'aWgEPTl1tmebfsQzFP4bxwgy80W'] },
      `invalid storage id; 'aWgEPTl1tmebfsQzFP4bxwgy80W': ${OUT_OF_BOUNDS_ID}`,
    )
  })

  describe('queue.clear', () => {
    it.each([{}, { destructive: true }])('refuses %j', async (body) => {
      const queue_name = await bed.queue()
      await bed.produce(queue_name, 'a')
      await bed.refuses(
        '/v1/queue.clear',
        { queue_name, ...body },
        "invalid clear request; one of 'queue', 'scheduled' must be true",
      )
      only(await bed.items(queue_name))
    })
  })
})
