/** Contract 5: durations, timestamps, ids and strings, seen from outside. */
import pg from 'pg'
import { describe, expect, inject, it } from 'vitest'
import { hours, instantOf, minutes, ms, ZERO_TIME } from '../../world/time.ts'
import { jsonCodec } from '../../world/wire.ts'
import { base64, idsOf, only, promises, textsOf, unique } from './bed.ts'

promises('durations', (bed) => {
  it.each([
    ['1m', '1m0s'],
    ['90s', '1m30s'],
    ['60m', '1h0m0s'],
    ['24h', '24h0m0s'],
    ['1.5h', '1h30m0s'],
    ['1h0.5s', '1h0m0.5s'],
    ['300ms', '300ms'],
    ['1500ms', '1.5s'],
    ['1us', '1µs'],
    ['1\u00b5s', '1µs'],
    ['1\u03bcs', '1µs'],
    ['1000ns', '1µs'],
    ['1500ns', '1.5µs'],
    ['2.5ms', '2.5ms'],
    ['+5m', '5m0s'],
    ['.5s', '500ms'],
    ['1.s', '1s'],
    ['1m1m', '2m0s'],
    ['1s1h', '1h0m1s'],
    ['59m60s', '1h0m0s'],
    ['1.000000001s', '1.000000001s'],
    ['2500h', '2500h0m0s'],
    ['2562047h47m16s', '2562047h47m16s'],
  ])('%j is shown as %j', async (given, shown) => {
    const queue = await bed.queue({ lease_timeout: given, expire_timeout: '2562047h47m16s' })
    expect((await bed.info(queue)).lease_timeout).toBe(shown)
  })

  it.each([
    ['', ''],
    ['x', 'time: invalid duration "x"'],
    ['s', 'time: invalid duration "s"'],
    ['.s', 'time: invalid duration ".s"'],
    ['+', 'time: invalid duration "+"'],
    ['-.', 'time: invalid duration "-."'],
    [' 1s', 'time: invalid duration " 1s"'],
    ['1s 1m', 'time: unknown unit "s " in duration "1s 1m"'],
    ['5', 'time: missing unit in duration "5"'],
    ['5.', 'time: missing unit in duration "5."'],
    ['1s5', 'time: missing unit in duration "1s5"'],
    ['5x', 'time: unknown unit "x" in duration "5x"'],
    ['5d', 'time: unknown unit "d" in duration "5d"'],
    ['5S', 'time: unknown unit "S" in duration "5S"'],
    ['5sm', 'time: unknown unit "sm" in duration "5sm"'],
    ['5x1s', 'time: unknown unit "x" in duration "5x1s"'],
    ['5"', 'time: unknown unit "\\"" in duration "5\\""'],
    ['5\\', 'time: unknown unit "\\\\" in duration "5\\\\"'],
    ['5\n', 'time: unknown unit "\\x0a" in duration "5\\x0a"'],
    ['5\u00e4', 'time: unknown unit "\\xc3\\xa4" in duration "5\\xc3\\xa4"'],
    ['5\u{1f600}', 'time: unknown unit "\\xf0\\x9f\\x98\\x80" in duration "5\\xf0\\x9f\\x98\\x80"'],
    ['9223372036854775808ns', 'time: invalid duration "9223372036854775808ns"'],
    ['2562048h', 'time: invalid duration "2562048h"'],
    ['99999999999999999999s', 'time: invalid duration "99999999999999999999s"'],
    ['1s-1s', 'time: unknown unit "s-" in duration "1s-1s"'],
  ])('%j is refused', async (request_timeout, reason) => {
    const queue_name = await bed.queue()
    await bed.refuses(
      '/v1/queue.produce',
      { queue_name, request_timeout, items: [{}] },
      reason === ''
        ? "request timeout is required; '5m' is recommended, 15m is the maximum"
        : `request timeout is invalid; ${reason} - expected format: 900ms, 5m or 15m`,
    )
  })

  it.each([
    ['9223372036854775807ns', '2562047h47m16.854775807s'],
    ['1000h0.000000001s', '1000h0m0.000000001s'],
    ['15m1ns', '15m0.000000001s'],
  ])('%j is exact to the nanosecond', async (request_timeout, shown) => {
    const queue_name = await bed.queue()
    await bed.refuses(
      '/v1/queue.produce',
      { queue_name, request_timeout, items: [{}] },
      `request timeout is invalid; maximum timeout is '15m' but '${shown}' was requested`,
    )
  })

  it('may be as negative as 64 bits allow', async () => {
    const queue_name = await bed.queue()
    await bed.refuses(
      '/v1/queue.produce',
      { queue_name, request_timeout: '-9223372036854775808ns', items: [{}] },
      "request timeout is invalid; minimum timeout is '10ms' but '-2562047h47m16.854775808s' was requested",
    )
  })

  it('of ages are written like any other', async () => {
    const queue = await bed.queue({ lease_timeout: '2h' })
    await bed.produce(queue, 'a')
    await bed.lease(queue)
    await bed.clock.advance(minutes(1) + ms(2500))
    expect(only((await bed.stats(queue)).partitions)).toMatchObject({
      average_age: '1m2.5s',
      average_leased_age: '1h58m57.5s',
    })
  })
})

promises('timestamps', (bed) => {
  it.each([
    ['2999-01-01T00:00:00Z', '2999-01-01T00:00:00Z'],
    ['2999-01-01T00:00:00.1Z', '2999-01-01T00:00:00.100Z'],
    ['2999-01-01T00:00:00.000001Z', '2999-01-01T00:00:00.000001Z'],
    ['2999-01-01T00:00:00.0000019Z', '2999-01-01T00:00:00.000001Z'],
    ['2999-01-01T00:00:00.999999999Z', '2999-01-01T00:00:00.999999Z'],
    ['9999-12-31T23:59:59.999999999Z', '9999-12-31T23:59:59.999999Z'],
    ['1970-01-01T00:00:00.000001Z', '1970-01-01T00:00:00.000001Z'],
    ['1969-12-31T23:59:59.9999999Z', '1969-12-31T23:59:59.999999Z'],
    ['1500-06-15T12:00:00.5Z', '1500-06-15T12:00:00.500Z'],
    [ZERO_TIME, ZERO_TIME],
  ])('%s is kept as %s', async (given, kept) => {
    const queue = await bed.queue()
    // Of an item that is not leased the lease deadline is kept as given, whatever it is.
    const reply = await bed.import(queue, [{ lease_deadline: given }])
    expect(only(reply).lease_deadline).toBe(kept)
    expect(await bed.items(queue)).toEqual(reply)
  })

  it('of the year 9999 work as deadlines', async () => {
    const queue = await bed.queue()
    const last = '9999-12-31T23:59:59.999999Z'
    await bed.import(queue, [
      { expire_deadline: last },
      { is_leased: true, lease_deadline: last, expire_deadline: last },
    ])
    await bed.produceItems(queue, [{ enqueue_at: last }])
    await bed.clock.advance(hours(100))
    expect(await bed.items(queue)).toMatchObject([
      { expire_deadline: last },
      { lease_deadline: last, expire_deadline: last, is_leased: true },
    ])
    expect(await bed.scheduled(queue)).toHaveLength(1)
    await bed.stats(queue)
  })
})

promises('ids', (bed) => {
  it('are 27 characters of base62 whose seconds are the present', async () => {
    const queue = await bed.queue()
    await bed.produce(queue, 'a')
    const { id } = only(await bed.items(queue))
    expect(id).toMatch(/^[0-9A-Za-z]{27}$/)
    const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
    const number = [...id].reduce((sum, letter) => sum * 62n + BigInt(alphabet.indexOf(letter)), 0n)
    expect((number >> 128n) + 1_400_000_000n).toBe(bed.clock.now / 1_000_000n)
  })

  it('differ between partitions and queues', async () => {
    const queues = [await bed.queue(), await bed.queue()]
    const ids: string[] = []
    for (const queue of queues) {
      await bed.produce(queue, 'a', 'b')
      ids.push(...idsOf(await bed.items(queue)))
    }
    expect(new Set(ids).size).toBe(4)
  })

  it('are each the next of the one before within a request', async () => {
    const queue = await bed.queue()
    await bed.produce(queue, 'a', 'b', 'c')
    const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
    const numbers = idsOf(await bed.items(queue)).map((id) =>
      [...id].reduce((sum, letter) => sum * 62n + BigInt(alphabet.indexOf(letter)), 0n),
    )
    const [first = 0n] = numbers
    expect(numbers).toEqual([first, first + 1n, first + 2n])
  })

  it('ascend through produce, retry, lease expiry, schedule and import', async () => {
    const queue = await bed.queue({ lease_timeout: '1m' })
    const tails: string[] = []
    const note = async () => tails.push((await bed.items(queue)).at(-1)?.id ?? '')
    await bed.produceItems(queue, [{}, {}, { enqueue_at: bed.clock.at(minutes(5)) }])
    await note()
    const [first, second] = (await bed.lease(queue, 2)).items
    await bed.retry(queue, [{ id: first?.id ?? '' }])
    await note()
    await bed.clock.advance(minutes(1) + ms(11))
    await note()
    expect(tails.at(-1)).not.toBe(second?.id)
    await bed.import(queue, [{}])
    await note()
    await bed.clock.advance(minutes(5))
    await note()
    expect(new Set(tails).size).toBe(5)
    expect(tails).toEqual([...tails].sort())
  })
})

promises('strings', (bed) => {
  const STRANGE = [
    'grüße',
    '日本語',
    '\u{1f600}',
    "'; DROP TABLE items; --",
    '\\x00',
    '%s {name} $1',
    '\u202e',
    '\ufeff',
  ]

  it.each(STRANGE)('%j survives in every field of an item', async (text) => {
    const queue = await bed.queue({ reference: text })
    const fields = { encoding: text, kind: text, reference: text }
    await bed.produceItems(queue, [{ ...fields, utf8: text }])
    expect(only((await bed.lease(queue)).items)).toMatchObject({ ...fields, bytes: base64(text) })
    await bed.import(queue, [{ ...fields, source_id: text }])
    expect((await bed.items(queue))[1]).toMatchObject({ ...fields, source_id: text })
    expect((await bed.info(queue)).reference).toBe(text)
  })

  it('with U+0000 survive or are refused, never cut and never a failure', async () => {
    const queue = await bed.queue()
    const text = 'before\u0000after'
    const fields = { encoding: text, kind: text, reference: text }
    const produced = await bed.call('/v1/queue.produce', {
      queue_name: queue,
      request_timeout: '1m',
      items: [{ ...fields, utf8: text }],
    })
    expect([200, 400]).toContain(produced.status)
    if (produced.status === 200) {
      expect(only((await bed.lease(queue)).items)).toMatchObject({ ...fields, bytes: base64(text) })
    } else expect(await bed.items(queue)).toEqual([])

    const other = await bed.queue()
    const imported = await bed.call('/v1/storage/items.import', {
      queue_name: other,
      items: [{ ...fields, source_id: text }],
    })
    expect([200, 400]).toContain(imported.status)
    if (imported.status === 200)
      expect(only(await bed.items(other))).toMatchObject({ ...fields, source_id: text })
    else expect(await bed.items(other)).toEqual([])
  })

  it('with U+0000 in the settings of a queue survive or are refused', async () => {
    const settings = { lease_timeout: '1m', expire_timeout: '1h', requested_partitions: 1 }
    const queue_name = `${unique()}\u0000x`
    const named = await bed.call('/v1/queues.create', { ...settings, queue_name })
    expect([200, 400]).toContain(named.status)
    if (named.status === 200) expect((await bed.info(queue_name)).queue_name).toBe(queue_name)
    const { status } = await bed.call('/v1/queues.info', { queue_name: 'nowhere\u0000x' })
    expect(status).toBe(400)
    const referenced = { ...settings, queue_name: unique(), reference: 'a\u0000b' }
    const answer = await bed.call('/v1/queues.create', referenced)
    expect([200, 400]).toContain(answer.status)
    if (answer.status === 200) expect((await bed.info(referenced.queue_name)).reference).toBe('a\u0000b')
    const listed = await bed.call('/v1/queues.list', { pivot: 'zzz\u0000' })
    expect([200, 400]).toContain(listed.status)
    const dead = await bed.call('/v1/queues.create', {
      ...settings,
      queue_name: unique(),
      dead_queue: 'a\u0000b',
    })
    expect(dead.status).toBe(400)
  })

  it('with U+0000 as a client id are like any other', async () => {
    const queue = await bed.queue()
    await bed.produce(queue, 'a')
    expect(textsOf((await bed.lease(queue, 1, { client_id: 'a\u0000b' })).items)).toEqual(['a'])
  })
})

// The clock of PostgreSQL is the system clock at microsecond grain, read by another process. It is a fair
// judge only on the same machine.
const judge = ['127.0.0.1', 'localhost', '[::1]'].includes(new URL(inject('postgresUrl')).hostname)

promises(
  'the clock of the server',
  (bed) => {
    it.runIf(judge)(
      'lies strictly between readings of the system clock before and after a call',
      async () => {
        const client = new pg.Client({ connectionString: inject('postgresUrl') })
        await client.connect()
        const read = async () => {
          const sql =
            'SELECT to_char(clock_timestamp() AT TIME ZONE \'UTC\', \'YYYY-MM-DD"T"HH24:MI:SS.US"Z"\') AS now'
          return instantOf(String((await client.query({ name: 'now', text: sql })).rows[0]?.now))
        }
        try {
          for (let round = 0; round < 20; round++) {
            const before = await read()
            const queue = await bed.queue({ lease_timeout: '1m', expire_timeout: '1h' })
            const between = await read()
            await bed.ok('/v1/queues.update', { queue_name: queue })
            await bed.produce(queue, 'a')
            const { items } = await bed.lease(queue)
            const after = await read()
            const info = await bed.info(queue)
            const created = instantOf(info.created_at)
            const updated = instantOf(info.updated_at)
            const stored = only(await bed.items(queue))
            const order = [before, created, between, updated, after]
            expect(order).toEqual([...new Set(order)].sort((a, b) => (a < b ? -1 : 1)))
            const produced = instantOf(stored.created_at)
            const leased = instantOf(only(items).lease_deadline) - minutes(1)
            expect(instantOf(stored.expire_deadline) - hours(1)).toBe(produced)
            expect(produced > between && produced < leased && leased < after).toBe(true)
          }
        } finally {
          await client.end()
        }
      },
    )

    it('has microseconds', async () => {
      const queue = await bed.queue()
      for (let index = 0; index < 20; index++) await bed.produce(queue, 'a')
      const fractions = (await bed.items(queue)).map((item) => instantOf(item.created_at) % 1000n)
      expect(fractions.some((fraction) => fraction !== 0n)).toBe(true)
    })

    describe('when it runs', () => {
      it('times a lease out by itself', async () => {
        const queue = await bed.queue()
        await bed.refuses(
          '/v1/queue.lease',
          { queue_name: queue, client_id: 'c', batch_size: 1, request_timeout: '11ms' },
          'request timeout; no items are in the queue, try again',
          454,
        )
      })

      it('offers an item again by itself when its lease is over, not before', async () => {
        const queue = await bed.queue({ lease_timeout: '50ms', expire_timeout: '1h' })
        await bed.produce(queue, 'a')
        const first = only((await bed.lease(queue)).items)
        const second = only((await bed.lease(queue, 1, { request_timeout: '1m' })).items)
        const leasedAgainAt = instantOf(second.lease_deadline) - ms(50)
        expect(leasedAgainAt - instantOf(first.lease_deadline) >= ms(5)).toBe(true)
      })

      it('brings scheduled items by itself', async () => {
        const queue = await bed.queue()
        const now = instantOf((await bed.info(queue)).created_at)
        const dueMs = Number(now / 1000n) + 250
        await bed.produceItems(queue, [{ utf8: 'x', enqueue_at: new Date(dueMs).toISOString() }])
        const { items } = await bed.lease(queue, 1, { request_timeout: '1m' })
        expect(textsOf(items)).toEqual(['x'])
        const leasedAt = instantOf(only(items).lease_deadline) - minutes(1)
        expect(leasedAt >= BigInt(dueMs) * 1000n).toBe(true)
      })

      it('does not fire far deadlines at once', async () => {
        const queue = await bed.queue({ lease_timeout: '2000h', expire_timeout: '3000h' })
        await bed.produceItems(queue, [{ utf8: 'x' }, { enqueue_at: '2200-01-01T00:00:00Z' }])
        await bed.lease(queue)
        await bed.ok('/v1/queue.reload', { queue_name: queue })
        expect(only(await bed.items(queue))).toMatchObject({ is_leased: true })
        expect(await bed.scheduled(queue)).toHaveLength(1)
      })
    })
  },
  { codecs: [jsonCodec], liveClock: true },
)
