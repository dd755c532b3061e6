/** Contract 2 and 4, `/api/history`: what engines did, recorded over HTTP and read back. */
import { beforeAll, describe, expect, it } from 'vitest'
import { keysOf } from '../../world/row-keys.ts'
import { minutes, seconds, us } from '../../world/time.ts'
import { type Desk, type Entry, micros, offices, only, type Page, type Query, stamp, unique } from './bed.ts'

const recordBody = (fields: Record<string, unknown> = {}): Record<string, unknown> => ({
  engine: 'hmac',
  operation: 'rotate',
  status: 'Succeeded',
  durationMs: 12,
  ...fields,
})

const record = (desk: Desk, fields: Record<string, unknown> = {}): Promise<Entry> =>
  desk.ok('POST', '/api/history', { body: recordBody(fields) }, 201)

const pathOf = ({ engine, rowKey }: Entry) => `/api/history/${engine}/${encodeURIComponent(rowKey)}`

async function walk(desk: Desk, query: Query): Promise<Entry[]> {
  const all: Entry[] = []
  let continuationToken: string | undefined
  do {
    const more = continuationToken === undefined ? {} : { continuationToken }
    const page: Page<Entry> = await desk.history({ ...query, ...more })
    all.push(...page.items)
    continuationToken = page.continuationToken ?? undefined
  } while (continuationToken !== undefined)
  return all
}

offices('a history entry', (desk) => {
  it('is recorded, listed and shown', async () => {
    const correlationId = unique('trace')
    const entry = await record(desk, {
      instanceId: 'i-1',
      correlationId,
      durationMs: 1234,
      input: { key: 'old' },
      output: { key: 'new' },
    })
    const shown = {
      engine: 'hmac',
      rowKey: expect.stringMatching(keysOf(correlationId, stamp(desk.clock.now))),
      instanceId: 'i-1',
      operation: 'rotate',
      status: 'Succeeded',
      durationMs: 1234,
      createdAtUtc: micros(desk.clock.now),
      correlationId,
    }
    expect(entry).toMatchObject(shown)
    const listed = only((await desk.history({ correlationId })).items)
    expect(listed).toMatchObject(shown)
    expect(listed).not.toHaveProperty('input')
    expect(listed).not.toHaveProperty('output')
    const detail = await desk.ok<Entry>('GET', pathOf(entry))
    expect(detail).toMatchObject(shown)
    expect(parsed(detail.input)).toEqual({ key: 'old' })
    expect(parsed(detail.output)).toEqual({ key: 'new' })
  })

  it('of a failure has its error', async () => {
    const entry = await record(desk, { status: 'Failed', error: 'vault closed', instanceId: 'i-2' })
    expect(await desk.ok('GET', pathOf(entry))).toMatchObject({ status: 'Failed', error: 'vault closed' })
  })

  it('has defaults for what is not given', async () => {
    const entry = await record(desk)
    expect(entry).toMatchObject({ instanceId: 'publisher', correlationId: expect.stringMatching(/./) })
    expect(entry.rowKey).toMatch(keysOf(entry.correlationId, stamp(desk.clock.now)))
    const { input, output, error } = await desk.ok<Entry>('GET', pathOf(entry))
    expect([input ?? null, output ?? null, error ?? null]).toEqual([null, null, null])
  })

  it('has a key of its own at the moment it was recorded, however many there are of its correlation id', async () => {
    const correlationId = unique('trace')
    const at = desk.clock.now
    await Promise.all(Array.from({ length: 10 }, () => record(desk, { correlationId })))
    const { items } = await desk.history({ correlationId })
    const keys = items.map(({ rowKey }) => rowKey)
    expect(keys).toEqual([...new Set(keys)].sort().reverse())
    expect(keys).toHaveLength(10)
    expect(new Set(items.map(({ createdAtUtc }) => createdAtUtc))).toEqual(new Set([micros(at)]))
    for (const entry of items) expect((await desk.ok<Entry>('GET', pathOf(entry))).rowKey).toBe(entry.rowKey)
  })

  it('keeps input and output of any JSON, byte for byte where it is text', async () => {
    const inputs = ['plain text', 5, true, ['a', { b: null }], { n: 1.5, deep: { er: ['x'] } }, '', {}]
    for (const input of inputs) {
      const { input: kept } = await desk.ok<Entry>(
        'GET',
        pathOf(await record(desk, { input, output: input })),
      )
      expect([input, JSON.stringify(input)]).toContainEqual(kept)
    }
  })

  it('of every engine and operation of the presets can be recorded', async () => {
    const presets = {
      provisioning: ['webhook-received', 'instance-registered', 'bootstrap-complete'],
      hmac: ['rotate', 'notify'],
      tls: ['renew', 'distribute'],
      spn: ['rotate'],
      'update-publisher': ['evaluate', 'notify'],
      alerts: ['process'],
      ledger: ['post', 'close'],
    }
    for (const [engine, operations] of Object.entries(presets)) {
      for (const operation of operations) {
        const entry = await record(desk, { engine, operation })
        expect(await desk.ok('GET', pathOf(entry))).toMatchObject({ engine, operation })
      }
    }
  })

  it('with a sourceId that is known is not recorded twice', async () => {
    const correlationId = unique('trace')
    const sourceId = unique('source')
    const first = await record(desk, { correlationId, sourceId })
    await desk.clock.advance(us(1))
    const second = await desk.ok<Entry>('POST', '/api/history', {
      body: recordBody({ correlationId, sourceId, durationMs: 99 }),
    })
    expect(second).toMatchObject({ rowKey: first.rowKey, durationMs: 12 })
    const replies = await Promise.all(
      Array.from({ length: 10 }, () =>
        desk.api('POST', '/api/history', { body: recordBody({ correlationId, sourceId }) }),
      ),
    )
    expect(replies.map(({ status }) => status)).toEqual(Array(10).fill(200))
    expect((await desk.history({ correlationId })).items).toHaveLength(1)
  })

  it('that arrives many times at once is recorded once', async () => {
    const body = recordBody({ correlationId: unique('trace'), sourceId: unique('source') })
    const replies = await Promise.all(
      Array.from({ length: 20 }, () => desk.api('POST', '/api/history', { body })),
    )
    expect(replies.map(({ status }) => status).sort()).toEqual([...Array(19).fill(200), 201])
    expect((await desk.history({ correlationId: String(body.correlationId) })).items).toHaveLength(1)
  })

  it('that nobody has: 404; of an unknown engine: 400', async () => {
    for (const rowKey of [
      'nothing',
      `x-${stamp(desk.clock.now)}`,
      '-',
      '\u0000',
      `${'x'.repeat(2000)}-20260101T000000000000Z`,
    ]) {
      await desk.refuses('GET', `/api/history/hmac/${encodeURIComponent(rowKey)}`, {}, 404)
    }
    await desk.refuses('GET', '/api/history/nobody/x', {}, 400, 'nobody', 'hmac')
  })

  it('is not found under another engine', async () => {
    const { rowKey } = await record(desk, { correlationId: unique('trace') })
    await desk.refuses('GET', `/api/history/tls/${encodeURIComponent(rowKey)}`, {}, 404)
  })

  describe('that is recorded wrongly is 400 and names the field', () => {
    const wrong: [field: string, values: unknown[]][] = [
      ['engine', [undefined, null, '', 'nobody', 5]],
      ['operation', [undefined, null, '', 'spin', 5, 'renew']],
      ['status', [undefined, null, '', 'succeeded', 'Pending', 5]],
      ['durationMs', [undefined, null, -1, '5', {}, 1e300]],
      ['instanceId', [5, {}]],
      ['correlationId', [5, {}]],
      ['sourceId', [5, {}, '']],
      ['error', [5, {}]],
    ]
    it.each(wrong)('%s', async (field, values) => {
      for (const value of values) {
        const body = recordBody({ [field]: value })
        const reply = await desk.api('POST', '/api/history', { body })
        expect(reply.status, `${field}: ${JSON.stringify(value)}`).toBe(400)
        expect(JSON.stringify(reply.error), JSON.stringify(value)).toContain(field)
      }
    })

    it('an unknown operation lists those of the engine', async () => {
      await desk.refuses(
        'POST',
        '/api/history',
        { body: recordBody({ operation: 'spin' }) },
        400,
        'rotate',
        'notify',
      )
    })

    it('over 1 MiB is 413', async () => {
      const body = JSON.stringify(recordBody()).padEnd(1_048_577, ' ')
      await desk.refuses('POST', '/api/history', { body }, 413)
      await desk.ok('POST', '/api/history', { body: body.slice(0, 1_048_576) }, 201)
    })
  })
})

/** Input and output are shown as the JSON they are or as its text. */
const parsed = (value: unknown): unknown => (typeof value === 'string' ? JSON.parse(value) : value)

offices('the filters of history', (desk) => {
  const mark = unique('mark')
  let all: Entry[] = []

  beforeAll(async () => {
    const kinds = [
      ['hmac', 'rotate'],
      ['hmac', 'notify'],
      ['tls', 'renew'],
    ] as const
    for (let n = 0; n < 18; n++) {
      const [engine, operation] = kinds[n % 3] ?? ['hmac', 'rotate']
      await record(desk, {
        engine,
        operation,
        ...(n % 4 === 0 ? { status: 'Failed', error: 'no' } : { status: 'Succeeded' }),
        instanceId: `${mark}-${n % 2}`,
        correlationId: `${mark}-trace-${n % 5}`,
      })
      await desk.clock.advance(seconds(1))
    }
    const recent = await walk(desk, { fromDate: micros(desk.clock.now - minutes(1)), limit: 100 })
    all = recent.filter(({ instanceId }) => instanceId.startsWith(mark))
    expect(all).toHaveLength(18)
  })

  it('show the newest first', () => {
    const times = all.map(({ createdAtUtc }) => createdAtUtc)
    expect(times).toEqual([...times].sort().reverse())
  })

  it('combine with AND, in every combination', async () => {
    const choices: [string, (string | undefined)[]][] = [
      ['engine', [undefined, 'hmac']],
      ['operation', [undefined, 'rotate']],
      ['status', [undefined, 'Failed', 'Succeeded']],
      ['instanceId', [undefined, `${mark}-1`]],
      ['correlationId', [undefined, `${mark}-trace-2`]],
      ['fromDate', [undefined, all[14]?.createdAtUtc]],
      ['toDate', [undefined, all[3]?.createdAtUtc]],
    ]
    const combinations = choices.reduce<Query[]>(
      (made, [name, values]) => made.flatMap((query) => values.map((value) => ({ ...query, [name]: value }))),
      [{}],
    )
    for (const query of combinations) {
      const expected = all.filter((entry) =>
        Object.entries(query).every(([name, value]) => {
          if (value === undefined) return true
          if (name === 'fromDate') return entry.createdAtUtc >= String(value)
          if (name === 'toDate') return entry.createdAtUtc < String(value)
          return entry[name as keyof Entry] === value // every other filter has the name of a field
        }),
      )
      const found = (await walk(desk, { ...query, limit: 8 })).filter(({ instanceId }) =>
        instanceId.startsWith(mark),
      )
      expect(
        found.map(({ rowKey }) => rowKey),
        JSON.stringify(query),
      ).toEqual(expected.map(({ rowKey }) => rowKey))
    }
  })

  it('are cut into pages anywhere', async () => {
    for (const limit of [1, 5, 17, 18]) {
      const keys = (await walk(desk, { instanceId: `${mark}-0`, limit })).map(({ rowKey }) => rowKey)
      expect(keys).toHaveLength(9)
      expect(new Set(keys).size).toBe(9)
    }
  })
})
