import { createHash } from 'node:crypto'
import Fastify, { type FastifyInstance } from 'fastify'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { insistOnDocumentedStatuses } from '../../test/world/documented.ts'
import { keysOf } from '../../test/world/row-keys.ts'
import { type FreshStore, stores } from '../../test/world/stores.ts'
import { serveApi } from '../api/calls.ts'
import { instant } from '../core/clock.ts'
import { TestClock } from '../core/test-clock.ts'
import { gate } from '../http/gate.ts'
import { MIGRATIONS } from '../migrations.ts'
import { EngineDirectory } from '../queues/engines/engine-directory.ts'
import type { Database } from '../store/database.ts'
import { migrate } from '../store/migrations.ts'
import { openDatabase } from '../store/open.ts'
import { History } from './history.ts'
import { recordHistory } from './record.ts'
import { historyCalls } from './routes.ts'

const START = instant(1_800_000_000_000_000n)

const token = (name: string, role: 'viewer' | 'operator') => ({
  name,
  role,
  sha256: createHash('sha256').update(name).digest('hex'),
})

describe.each(stores)('history over HTTP on $name', (store) => {
  let place: FreshStore
  let db: Database
  let app: FastifyInstance
  const clock = new TestClock()

  beforeAll(async () => {
    place = await store.fresh()
    db = openDatabase(place.url, { poolSize: 4 })
    await migrate(db, MIGRATIONS)
    clock.freeze(START)
    app = Fastify({ exposeHeadRoutes: false, routerOptions: { maxParamLength: 2_048 } })
    insistOnDocumentedStatuses(app)
    app.addHook('onRequest', gate([token('look', 'viewer'), token('work', 'operator')], clock))
    const history = new History(db, clock, new EngineDirectory({ context: 'publisher' }))
    serveApi(app, { clock, stopping: () => false }, historyCalls(history))
  })

  afterAll(async () => {
    await app?.close()
    await db?.close()
    await place?.dispose()
  })

  const call = async (
    method: 'GET' | 'POST' | 'DELETE',
    url: string,
    body?: object | string,
    headers: Record<string, string> = {},
    as = 'work',
  ) => {
    const reply = await app.inject({
      method,
      url,
      headers: { authorization: `Bearer ${as}`, ...headers },
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    })
    return { ...reply.json(), status: reply.statusCode, headers: reply.headers }
  }
  const run = { engine: 'hmac', operation: 'rotate', status: 'Succeeded', durationMs: 1_234 }
  const detailOf = async ({ engine, rowKey }: { engine: string; rowKey: string }) =>
    (await call('GET', `/api/history/${engine}/${encodeURIComponent(rowKey)}`)).data

  it('records a run and shows it, as a list item and in full', async () => {
    const recorded = await call('POST', '/api/history', {
      ...run,
      instanceId: 'i-1',
      correlationId: 'first/run',
      input: { a: [1, 2] },
      output: 'done',
      error: 'none \0 at all',
    })
    const item = {
      engine: 'hmac',
      rowKey: expect.stringMatching(keysOf('first%2Frun', '20270115T080000000000Z')),
      instanceId: 'i-1',
      operation: 'rotate',
      status: 'Succeeded',
      durationMs: 1_234,
      createdAtUtc: '2027-01-15T08:00:00.000000Z',
      correlationId: 'first/run',
      actor: 'work',
    }
    expect([recorded.status, recorded.data]).toEqual([201, item])
    const listed = await call('GET', '/api/history?correlationId=first/run')
    expect(listed.data).toEqual({ items: [item], continuationToken: null })
    expect(await detailOf(recorded.data)).toEqual({
      ...item,
      input: '{"a":[1,2]}',
      inputEncoding: 'utf8',
      output: 'done',
      outputEncoding: 'utf8',
      error: 'none \ufffd at all',
      notes: null,
      letter: null,
    })
  })

  it('keeps a value as it was written', async () => {
    const body = `{"engine":"hmac","operation":"rotate","status":"Succeeded","durationMs":0,
      "input": {"n": 9007199254740993, "n": 1.50 }, "output": 1e400, "correlationId": "exact"}`
    const { data } = await call('POST', '/api/history', body)
    expect(await detailOf(data)).toMatchObject({
      input: '{"n": 9007199254740993, "n": 1.50 }',
      output: '1e400',
    })
  })

  it('shows bytes that are no text as base64', async () => {
    await db.transaction('test.bytes', (tx) =>
      recordHistory(tx, [
        {
          engine: 'tls',
          operation: 'renew',
          status: 'Succeeded',
          instanceId: null,
          correlationId: 'bytes',
          createdAt: START,
          durationMs: 0,
          input: Buffer.from([0xff, 0]),
          output: Buffer.from('a\0b'),
        },
      ]),
    )
    const [entry] = (await call('GET', '/api/history?correlationId=bytes')).data.items
    expect(await detailOf(entry)).toMatchObject({
      input: '/wA=',
      inputEncoding: 'base64',
      output: 'a\0b',
      outputEncoding: 'utf8',
      instanceId: 'bytes',
    })
  })

  it('gives a run that names no correlation id that of the request', async () => {
    const { data } = await call('POST', '/api/history', run, { 'x-correlation-id': 'of-the-request' })
    expect(data).toMatchObject({ correlationId: 'of-the-request', instanceId: 'publisher' })
  })

  it('answers a known source id with 200 and the first entry', async () => {
    const first = await call('POST', '/api/history', { ...run, sourceId: 'http-1' })
    const second = await call('POST', '/api/history', { ...run, durationMs: 1, sourceId: 'http-1' })
    expect([first.status, second.status, second.data]).toEqual([201, 200, first.data])
  })

  it('gives the first answer again to the same idempotency key', async () => {
    const headers = { 'idempotency-key': 'once' }
    const first = await call('POST', '/api/history', { ...run, correlationId: 'once' }, headers)
    const again = await call('POST', '/api/history', { ...run, correlationId: 'once' }, headers)
    expect([first.status, again.status, again.data]).toEqual([201, 201, first.data])
    expect((await call('GET', '/api/history?correlationId=once')).data.items).toHaveLength(1)
    await call('POST', '/api/history', { ...run, correlationId: 'once' })
    expect((await call('GET', '/api/history?correlationId=once')).data.items).toHaveLength(2)
  })

  it('walks through pages with the token of each', async () => {
    for (let i = 0; i < 5; i++)
      await call('POST', '/api/history', { ...run, instanceId: 'pages', durationMs: i })
    const durations: number[] = []
    let url = '/api/history?instanceId=pages&limit=2'
    for (;;) {
      const { data } = await call('GET', url)
      durations.push(...data.items.map((item: { durationMs: number }) => item.durationMs))
      if (data.continuationToken === null) break
      url = `/api/history?instanceId=pages&limit=2&continuationToken=${data.continuationToken}`
    }
    expect(durations.sort()).toEqual([0, 1, 2, 3, 4])
  })

  it('filters by all its parameters together', async () => {
    const query =
      'engine=hmac&instanceId=i-1&status=Succeeded&operation=rotate&correlationId=first/run&fromDate=2027-01-15&toDate=2027-01-16'
    expect((await call('GET', `/api/history?${query}`)).data.items).toHaveLength(1)
    const before = query.replace('toDate=2027-01-16', 'toDate=2027-01-15T08:00:00Z')
    expect((await call('GET', `/api/history?${before}`)).data.items).toHaveLength(0)
  })

  it.each([
    ['engine=nope', 'engine_unknown', 'hmac, tls'],
    ['status=Pending', 'status_unknown', 'Succeeded, Failed'],
    ['operation=nope', 'operation_unknown', 'rotate, notify'],
    ['engine=spn&operation=renew', 'operation_unknown', 'rotate, capture'],
    ['fromDate=monday', 'parameter_invalid', 'fromDate'],
    ['toDate=2027-13-01', 'parameter_invalid', 'toDate'],
    ['fromDate=2027-01-02&toDate=2027-01-01', 'parameter_invalid', 'fromDate'],
    ['limit=0', 'parameter_invalid', 'limit'],
    ['limit=101', 'parameter_invalid', 'limit'],
    ['q=x', 'parameter_invalid', 'continuationToken'],
    ['continuationToken=AAAA', 'continuation_token_invalid', 'continuationToken'],
  ])('refuses ?%s', async (query, code, named) => {
    const { status, error } = await call('GET', `/api/history?${query}`)
    expect([status, error.code]).toEqual([400, code])
    expect(error.message).toContain(named)
  })

  it.each([
    [{ engine: undefined }, 'parameter_invalid', 'engine is invalid; it is missing'],
    [{ engine: 'nope' }, 'engine_unknown', 'hmac'],
    [{ operation: 'renew' }, 'operation_unknown', 'rotate, notify'],
    [{ status: 'Pending' }, 'status_unknown', 'Succeeded, Failed'],
    [{ status: 'Failed' }, 'parameter_invalid', 'error is invalid; it is missing'],
    [{ status: 'Failed', error: ' \n' }, 'parameter_invalid', 'error is invalid; it is blank'],
    [{ durationMs: -1 }, 'parameter_invalid', 'durationMs'],
    [{ durationMs: 1.5 }, 'parameter_invalid', 'durationMs'],
    [{ durationMs: '1' }, 'parameter_invalid', 'durationMs'],
    [{ correlationId: 'x'.repeat(257) }, 'parameter_invalid', 'correlationId'],
    [{ instanceId: 'a\0' }, 'parameter_invalid', 'instanceId'],
    [{ sourceId: 7 }, 'parameter_invalid', 'sourceId'],
    [{ error: {} }, 'parameter_invalid', 'error'],
    [{ duration: 5 }, 'parameter_invalid', 'duration'],
  ])('refuses to record %o', async (rest, code, named) => {
    const { status, error } = await call('POST', '/api/history', { ...run, ...rest })
    expect([status, error.code]).toEqual([400, code])
    expect(error.message).toContain(named)
  })

  it('finds a run whose names are as long and as strange as they may be', async () => {
    for (const correlationId of [
      '/'.repeat(256),
      '\u{10ffff}'.repeat(128),
      '\ufffd'.repeat(256),
      ' - %2F ',
      '..',
    ]) {
      const { data } = await call('POST', '/api/history', {
        ...run,
        correlationId,
        instanceId: correlationId,
        sourceId: correlationId,
      })
      expect(await detailOf(data)).toMatchObject({ correlationId })
    }
  })

  it('answers 404 for what is not there', async () => {
    const { status, error } = await call('GET', '/api/history/hmac/nobody-20270115T080000000000Z')
    expect([status, error.code]).toEqual([404, 'history_unknown'])
    expect((await call('GET', '/api/history/hmac/%00')).status).toBe(404)
    expect((await call('GET', '/api/history/nope/x')).status).toBe(400)
  })

  it('lets viewers read and only operators write', async () => {
    expect((await call('GET', '/api/history', undefined, {}, 'look')).status).toBe(200)
    expect((await call('POST', '/api/history', run, {}, 'look')).status).toBe(403)
    const { status, headers } = await call('DELETE', '/api/history')
    expect([status, headers.allow]).toEqual([405, 'GET, POST'])
  })
})
