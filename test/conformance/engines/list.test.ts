/** Contract 4, `GET /api/dlq`: what is listed, in which order, by which filters. */
import { beforeAll, describe, expect, it } from 'vitest'
import { minutes, us } from '../../world/time.ts'
import { type Desk, type Listed, micros, offices, only, type Query, unique } from './bed.ts'

const FORBIDDEN = /payload|message$|encoding|headers|input|output|stack|attempts|history/i

offices('a list of letters', (desk) => {
  it('shows the fields of the seed, and no payload', async () => {
    const instanceId = unique('instance')
    const made = await desk.capture({
      instanceId,
      originalMessage: 'the secret payload',
      originalQueue: 'hmac-rotation-queue',
      errorMessage: 'key vault is closed',
      dequeueCount: 5,
      firstFailureAtUtc: '2026-11-01T00:00:00.000001Z',
      lastFailureAtUtc: '2026-11-02T00:00:00.000002Z',
      correlationId: 'trace-1',
    })
    const { items } = await desk.list({ instanceId })
    const item = only(items)
    expect(item).toMatchObject({
      engine: 'hmac',
      rowKey: made.rowKey,
      instanceId,
      originalQueue: 'hmac-rotation-queue',
      errorMessage: 'key vault is closed',
      dequeueCount: 5,
      status: 'Pending',
      firstFailureAtUtc: '2026-11-01T00:00:00.000001Z',
      lastFailureAtUtc: '2026-11-02T00:00:00.000002Z',
      correlationId: 'trace-1',
    })
    expect(item).toEqual(made)
    expect(JSON.stringify(items)).not.toContain('secret payload')
    const names = Object.keys(item).filter((name) => name !== 'errorMessage')
    expect(names.filter((name) => FORBIDDEN.test(name))).toEqual([])
  })

  it('shows when, by whom and with which words a letter was resolved', async () => {
    const instanceId = unique('instance')
    const letter = await desk.capture({ instanceId })
    expect(only((await desk.list({ instanceId })).items).resolvedAtUtc ?? null).toBeNull()
    await desk.patch(letter, 'Resolved', 'not needed any more')
    expect(only((await desk.list({ instanceId })).items)).toMatchObject({
      status: 'Resolved',
      resolutionNotes: 'not needed any more',
      resolvedAtUtc: micros(desk.clock.now),
      resolvedBy: expect.stringMatching(/./),
    })
  })

  it('is empty, with no token, when nothing matches', async () => {
    const { items, continuationToken } = await desk.list({ instanceId: unique('nobody') })
    expect(items).toEqual([])
    expect(continuationToken ?? null).toBeNull()
  })

  it('has the newest failure first', async () => {
    const instanceId = unique('instance')
    const days = ['03', '01', '04', '02', '05']
    for (const day of days) {
      await desk.capture({
        instanceId,
        lastFailureAtUtc: `2026-10-${day}T12:00:00.000000Z`,
        errorMessage: day,
      })
    }
    const { items } = await desk.list({ instanceId })
    expect(items.map(({ errorMessage }) => errorMessage)).toEqual(['05', '04', '03', '02', '01'])
  })

  it('has 50 items unless told otherwise, and 100 at most', async () => {
    const instanceId = unique('instance')
    for (let n = 0; n < 102; n++) await desk.capture({ instanceId })
    expect((await desk.list({ instanceId })).items).toHaveLength(50)
    expect((await desk.list({ instanceId, limit: 100 })).items).toHaveLength(100)
    expect((await desk.list({ instanceId, limit: 1 })).items).toHaveLength(1)
    expect(await desk.walk({ instanceId, limit: 100 })).toHaveLength(102)
  })

  it('gives letters of one microsecond in the same order, however it is cut into pages', async () => {
    const instanceId = unique('instance')
    for (let n = 0; n < 13; n++) await desk.capture({ instanceId, engine: n % 2 ? 'tls' : 'hmac' })
    const keys = async (limit: number) =>
      (await desk.walk({ instanceId, limit })).map(({ engine, rowKey }) => `${engine} ${rowKey}`)
    const whole = await keys(100)
    expect(new Set(whole).size).toBe(13)
    for (const limit of [1, 2, 5, 13]) expect(await keys(limit)).toEqual(whole)
  })

  it('does not change behind a reader while letters are added', async () => {
    const instanceId = unique('instance')
    for (let n = 0; n < 6; n++) await desk.capture({ instanceId, errorMessage: `old ${n}` })
    const before = (await desk.walk({ instanceId })).map(({ rowKey }) => rowKey)
    const first = await desk.list({ instanceId, limit: 3 })
    await desk.clock.advance(us(1))
    for (let n = 0; n < 4; n++) await desk.capture({ instanceId, errorMessage: `new ${n}` })
    const continuationToken = first.continuationToken ?? ''
    const second = await desk.list({ instanceId, limit: 100, continuationToken })
    const walked = [...first.items, ...second.items].map(({ rowKey }) => rowKey)
    expect(walked.filter((rowKey) => before.includes(rowKey))).toEqual(before)
    expect(new Set(walked).size).toBe(walked.length)
  })

  it('does not repeat or skip a letter that changed its status between two pages', async () => {
    const instanceId = unique('instance')
    for (let n = 0; n < 8; n++) {
      await desk.capture({ instanceId })
      await desk.clock.advance(us(1))
    }
    const all = await desk.walk({ instanceId })
    const first = await desk.list({ instanceId, limit: 4 })
    for (const letter of [all[1], all[6]]) {
      if (letter !== undefined) await desk.patch(letter, 'Resolved', 'meanwhile')
    }
    const continuationToken = first.continuationToken ?? ''
    const rest = await desk.list({ instanceId, limit: 100, continuationToken })
    expect([...first.items, ...rest.items].map(({ rowKey }) => rowKey)).toEqual(
      all.map(({ rowKey }) => rowKey),
    )
  })

  it('does not skip a letter that failed anew between two pages', async () => {
    const { queue } = await desk.pair()
    for (let n = 0; n < 6; n++) {
      await desk.death(queue, String(n))
      await desk.clock.advance(us(1))
    }
    const all = await desk.walk({ originalQueue: queue })
    const oldest = all.at(-1) ?? expect.fail('six were made')
    const first = await desk.list({ originalQueue: queue, limit: 3 })
    await desk.retry(oldest)
    const { id } = only((await desk.queues.lease(queue)).items)
    await desk.queues.retry(queue, [{ id, dead: true }])
    const continuationToken = first.continuationToken ?? ''
    const rest = await desk.list({ originalQueue: queue, limit: 100, continuationToken })
    const walked = [...first.items, ...rest.items].map(({ rowKey }) => rowKey).sort()
    expect(walked).toEqual(all.map(({ rowKey }) => rowKey).sort())
  })
})

/** Letters that differ in everything that a filter can name. */
async function assortment(desk: Desk, mark: string): Promise<Listed[]> {
  const engines = ['hmac', 'tls', 'http'] as const
  const errors = ['connection refused by peer', 'certificate has lapsed']
  for (let n = 0; n < 24; n++) {
    const letter = await desk.capture({
      engine: engines[n % 3],
      instanceId: `${mark}-${n % 2}`,
      originalQueue: `${mark}-queue-${n % 4 < 2 ? 'a' : 'b'}`,
      errorMessage: errors[Math.floor(n / 2) % 2],
      errorClass: `${mark}-Error`,
      correlationId: `${mark}-trace-${n % 5}`,
      originalMessage: `${mark} body ${n % 3 === 0 ? 'walnut' : 'hazelnut'}`,
      lastFailureAtUtc: micros(desk.clock.now - minutes(n)),
    })
    if (n % 6 === 1) await desk.patch(letter, 'Resolved', 'done')
    if (n % 6 === 4) await desk.patch(letter, 'Expired')
  }
  const all = await desk.walk({ fromDate: micros(desk.clock.now - minutes(30)), limit: 100 })
  return all.filter(({ instanceId }) => instanceId.startsWith(mark))
}

offices('the filters of a list', (desk) => {
  const mark = unique('mark')
  let all: Listed[] = []

  beforeAll(async () => {
    all = await assortment(desk, mark)
    expect(all).toHaveLength(24)
  })

  /** What a filter keeps, by what the list itself shows. */
  const keeps = (query: Query, letter: Listed): boolean =>
    Object.entries(query).every(([name, value]) => {
      if (name === 'fromDate') return letter.lastFailureAtUtc >= String(value)
      if (name === 'toDate') return letter.lastFailureAtUtc < String(value)
      return letter[name as keyof Listed] === value // every other filter has the name of a field
    })

  const check = async (query: Query) => {
    const expected = all.filter((letter) => keeps(query, letter)).map(({ rowKey }) => rowKey)
    // Letters of other tests may match too.
    const found = (await desk.walk({ ...query, limit: 7 })).filter(({ instanceId }) =>
      instanceId.startsWith(mark),
    )
    expect(
      found.map(({ rowKey }) => rowKey),
      JSON.stringify(query),
    ).toEqual(expected)
    return expected.length
  }

  const choices = (): Record<string, (string | undefined)[]> => ({
    engine: [undefined, 'hmac', 'http'],
    status: [undefined, 'Pending', 'Resolved', 'Expired'],
    instanceId: [undefined, `${mark}-0`, `${mark}-1`],
    originalQueue: [undefined, `${mark}-queue-a`],
    correlationId: [undefined, `${mark}-trace-2`],
    source: [undefined, all[0]?.source],
    signature: [undefined, all[0]?.signature],
    fromDate: [undefined, all[16]?.lastFailureAtUtc],
    toDate: [undefined, all[5]?.lastFailureAtUtc],
  })

  it.each([
    'engine',
    'status',
    'instanceId',
    'originalQueue',
    'correlationId',
    'source',
    'signature',
    'fromDate',
    'toDate',
  ])('%s alone', async (name) => {
    for (const value of choices()[name] ?? []) {
      if (value !== undefined) expect(await check({ [name]: value })).toBeGreaterThan(0)
    }
  })

  it('any two together', async () => {
    const offered = Object.entries(choices())
    for (const [i, [first, values]] of offered.entries()) {
      for (const [second, others] of offered.slice(i + 1)) {
        await check({ [first]: values.at(-1), [second]: others.at(-1) })
      }
    }
  })

  it('all together, and many at random', async () => {
    const offered = Object.entries(choices())
    const last = Object.fromEntries(offered.map(([name, values]) => [name, values.at(-1)]))
    await check(last)
    for (let n = 0; n < 60; n++) {
      // Every seventh number of a small cycle: different choices, the same in every run.
      const query = offered.map(([name, values], i) => [
        name,
        values[(n * 7 + i * n * 3 + i) % values.length],
      ])
      await check(Object.fromEntries(query.filter(([, value]) => value !== undefined)))
    }
  })

  it('fromDate is included, toDate is not', async () => {
    const at = all[10]?.lastFailureAtUtc ?? ''
    const instanceId = all[10]?.instanceId ?? ''
    const keys = async (query: Query) =>
      (await desk.walk({ instanceId, ...query })).map(({ rowKey }) => rowKey)
    expect(await keys({ fromDate: at })).toContain(all[10]?.rowKey)
    expect(await keys({ toDate: at })).not.toContain(all[10]?.rowKey)
    expect(await keys({ fromDate: at, toDate: at })).toEqual([])
  })

  it('dates may have an offset, and cut what is finer than a microsecond', async () => {
    const at = all[10]?.lastFailureAtUtc ?? ''
    const shifted = new Date(Date.parse(at) + 2 * 3_600_000).toISOString().slice(0, 19)
    const query = { instanceId: all[10]?.instanceId, fromDate: `${shifted}${at.slice(19, 26)}+02:00` }
    expect((await desk.walk(query)).map(({ rowKey }) => rowKey)).toContain(all[10]?.rowKey)
  })

  it('names that nobody has used match nothing', async () => {
    for (const name of ['instanceId', 'originalQueue', 'correlationId', 'signature']) {
      expect((await desk.list({ [name]: 'no such thing' })).items, name).toEqual([])
      expect((await desk.list({ [name]: "' OR 1=1 --" })).items, name).toEqual([])
      await desk.refuses('GET', '/api/dlq', { query: { [name]: 'a\u0000' } }, 400, name)
      expect((await desk.list({ [name]: 'x'.repeat(3000) })).items, name).toEqual([])
    }
  })
})

offices('a list that is asked for wrongly', (desk) => {
  it.each(['0', '-1', '101', '1.5', 'x', '', '1e1', '999999999999999999999', ' 5', '0x10'])(
    'limit=%s: 400',
    async (limit) => {
      await desk.refuses('GET', '/api/dlq', { query: { limit } }, 400, 'limit')
      await desk.refuses('GET', '/api/history', { query: { limit } }, 400, 'limit')
    },
  )

  it.each([
    'yesterday',
    '2026-13-01T00:00:00Z',
    '2026-02-30T00:00:00Z',
    '2026-01-01T25:00:00Z',
    '',
    '1700000000',
  ])('a date of %j: 400', async (date) => {
    for (const path of ['/api/dlq', '/api/history']) {
      await desk.refuses('GET', path, { query: { fromDate: date } }, 400, 'fromDate')
      await desk.refuses('GET', path, { query: { toDate: date } }, 400, 'toDate')
    }
  })

  it('an unknown engine: 400, with those that are known', async () => {
    const known = ['provisioning', 'hmac', 'tls', 'spn', 'update-publisher', 'alerts', 'ledger', 'mute']
    const ours = ['queues', 'outbox', 'webhooks', 'kafka', 'azure', 'http', 'office']
    await desk.refuses('GET', '/api/dlq', { query: { engine: 'hmacs' } }, 400, 'hmacs', ...known, ...ours)
    await desk.refuses('GET', '/api/history', { query: { engine: 'hmacs' } }, 400, 'hmacs', ...known, ...ours)
  })

  it('an unknown status: 400, with those that are known', async () => {
    for (const status of ['pending', 'Open', 'Done']) {
      await desk.refuses('GET', '/api/dlq', { query: { status } }, 400, 'Pending', 'Resolved', 'Expired')
      await desk.refuses('GET', '/api/history', { query: { status } }, 400, 'Succeeded', 'Failed')
    }
  })

  it('an unknown operation: 400, with those that are known', async () => {
    const query = { engine: 'hmac', operation: 'spin' }
    await desk.refuses('GET', '/api/history', { query }, 400, 'spin', 'rotate', 'notify')
  })

  it('an unknown source: 400', async () => {
    await desk.refuses('GET', '/api/dlq', { query: { source: 'pigeons' } }, 400, 'source')
  })

  describe('a parameter that is given twice', () => {
    it.each(['limit=1&limit=2', 'engine=hmac&engine=tls', 'fromDate=a&fromDate=b', 'q=a&q=b'])(
      '%s: 400',
      async (twice) => {
        await desk.refuses('GET', `/api/dlq?${twice}`, {}, 400, twice.slice(0, twice.indexOf('=')))
      },
    )
  })
})
