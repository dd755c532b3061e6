import { createHash } from 'node:crypto'
import Fastify, { type FastifyInstance } from 'fastify'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { insistOnDocumentedStatuses } from '../../../../test/world/documented.ts'
import { OUTBOX_NOW, PostedOutbox } from '../../../../test/world/outbox-post.ts'
import { freshSqlite, stores } from '../../../../test/world/stores.ts'
import { gate } from '../../../http/gate.ts'
import { healthRoutes } from '../../../observe/health.ts'
import { openDatabase } from '../../../store/open.ts'
import { onDatabase } from '../sql/table.ts'
import { readLayout } from '../table/layout.ts'
import { LIST_REACH } from './list.ts'
import type { OutboxHandle } from './outbox-handle.ts'
import { OutboxReadings, servedOutboxes } from './readings.ts'
import { outboxRoutes } from './routes.ts'

const ago = (seconds: number) => OUTBOX_NOW - BigInt(seconds) * 1_000_000n

describe.each(stores)('outboxes over HTTP on $name', (kind) => {
  let first: PostedOutbox
  let second: PostedOutbox
  let posts: readonly OutboxHandle[]
  let configured: readonly OutboxHandle[]
  let app: FastifyInstance

  beforeAll(async () => {
    first = await PostedOutbox.open(kind)
    second = await PostedOutbox.openAdopted(kind)
    posts = [first.post(), second.post({ name: 'legacy' })]
    configured = posts
    await first.insert(
      { createdAt: ago(50), retryCount: 2, error: 'x'.repeat(500), nextAttemptAt: ago(-10) },
      { createdAt: ago(40), eventType: 'order.paid', orderingKey: 'customer 7' },
      { createdAt: ago(30), deadAt: ago(5), retryCount: 6, error: 'gone', tenantId: 't2' },
      { createdAt: ago(20), processedAt: ago(10) },
    )
    await second.insert({
      id: '7f9c24e8-3b12-4fef-91e0-56a2d5a6b8c3',
      tenantId: 'b06f9f5e-4b0c-4a5f-9d4c-3f8f6a1f0a11',
    })
    app = Fastify({ exposeHeadRoutes: false })
    insistOnDocumentedStatuses(app)
    const sha256 = createHash('sha256').update('look').digest('hex')
    app.addHook('onRequest', gate([{ name: 'look', role: 'viewer', sha256 }], first.clock))
    const readings = new OutboxReadings(() => configured, first.clock)
    await app.register(outboxRoutes, { readings, clock: first.clock, stopping: () => false })
    await app.register(healthRoutes, {
      ping: async () => {},
      sources: [{ name: 'outbox', ...servedOutboxes(() => configured, first.clock) }],
      missingIndexes: async () => [],
      rounds: () => [],
      stopping: () => false,
      clock: first.clock,
    })
  })
  afterAll(async () => {
    await app?.close()
    await first?.close()
    await second?.close()
  })

  const call = async (url: string, method: 'GET' | 'POST' = 'GET') => {
    const reply = await app.inject({ method, url, headers: { authorization: 'Bearer look' } })
    return { ...reply.json(), code: reply.statusCode }
  }
  const ids = async (query: string) => {
    const { code, data, error } = await call(`/api/outbox?${query}`)
    expect(code, JSON.stringify(error)).toBe(200)
    return data.items.map(({ id }: { id: string }) => id)
  }
  /** With other outboxes than usual. */
  const withPosts = async <T>(others: readonly OutboxHandle[], work: () => Promise<T>): Promise<T> => {
    configured = others
    try {
      return await work()
    } finally {
      configured = posts
    }
  }

  it.each(['/api/outbox', '/api/workflow/outbox'])('list messages at %s', async (path) => {
    const { code, status, data } = await call(`${path}?status=pending`)
    expect({ code, status }).toEqual({ code: 200, status: 'Succeeded' })
    expect(data).toEqual({
      outbox: 'orders',
      items: [
        {
          id: '2',
          tenantId: 't1',
          eventType: 'order.paid',
          createdAt: '2027-01-15T07:59:20.000000Z',
          retryCount: 0,
          processedAt: null,
          deadAt: null,
          nextAttemptAt: null,
          status: 'pending',
          idempotencyKey: expect.stringMatching(/^[0-9a-f-]{36}$/),
          orderingKey: 'customer 7',
          lastErrorSnippet: null,
        },
        expect.objectContaining({
          id: '1',
          retryCount: 2,
          status: 'failed',
          nextAttemptAt: '2027-01-15T08:00:10.000000Z',
          lastErrorSnippet: 'x'.repeat(200),
        }),
      ],
      page: 1,
      pageSize: 50,
      total: 2,
      totalIsCapped: false,
    })
  })

  it('list only what is asked for', async () => {
    expect(await ids('')).toEqual(['4', '3', '2', '1'])
    expect(await ids('status=failed')).toEqual(['1'])
    expect(await ids('status=processed')).toEqual(['4'])
    expect(await ids('status=dead')).toEqual(['3'])
    expect(await ids('eventType=order.paid')).toEqual(['2'])
    expect(await ids('tenantId=t2')).toEqual(['3'])
    expect(await ids('tenantId=t2&status=pending')).toEqual([])
    expect(await ids('pageSize=3')).toEqual(['4', '3', '2'])
    expect(await ids('pageSize=3&page=2')).toEqual(['1'])
    expect(await ids('pageSize=200&page=999999999')).toEqual([])
    expect(await ids('outbox=orders&status=dead')).toEqual(['3'])
  })

  it('list those of another outbox, whose names and types are its own', async () => {
    const { data } = await call('/api/outbox?outbox=legacy')
    expect(data).toMatchObject({
      outbox: 'legacy',
      items: [
        {
          id: '7f9c24e8-3b12-4fef-91e0-56a2d5a6b8c3',
          tenantId: 'b06f9f5e-4b0c-4a5f-9d4c-3f8f6a1f0a11',
          createdAt: '2027-01-15T08:00:00.000000Z',
          idempotencyKey: null,
        },
      ],
      total: 1,
    })
  })

  it.each([
    ['status=done', 'status', "'done' is none of pending, failed, processed, dead"],
    ['status=Pending', 'status', "'Pending' is none of pending, failed, processed, dead"],
    ['status=', 'status', 'it is empty'],
    ['status=dead&status=failed', 'status', 'it is given twice'],
    ['page=0', 'page', "'0' is no whole number from 1 to 999999999"],
    ['page=-1', 'page', "'-1' is no whole number from 1 to"],
    ['page=1.5', 'page', "'1.5' is no whole number"],
    ['page=one', 'page', "'one' is no whole number"],
    ['page=9999999999999999999999', 'page', 'is no whole number from 1 to 999999999'],
    ['pageSize=0', 'pageSize', "'0' is no whole number from 1 to 200"],
    ['pageSize=201', 'pageSize', "'201' is no whole number from 1 to 200"],
    ['pageSize=1e2', 'pageSize', "'1e2' is no whole number from 1 to 200"],
    ['pageSize=%F0%9F%98%80', 'pageSize', 'is no whole number from 1 to 200'],
    ['outbox=none', 'outbox', "'none' is none of orders, legacy"],
    ['tenantId=', 'tenantId', 'it is empty'],
    ['eventType=a%00b', 'eventType', 'it holds the null character'],
    ['limit=5', 'limit', 'it is none of status, eventType, tenantId, outbox, page, pageSize'],
  ])('refuse %s', async (query, parameter, reason) => {
    for (const path of ['/api/outbox', '/api/workflow/outbox']) {
      const { code, status, error } = await call(`${path}?${query}`)
      expect({ code, status }).toEqual({ code: 400, status: 'Failed' })
      expect(error).toMatchObject({ code: 'parameter_invalid', details: { parameter } })
      expect(error.message).toContain(reason)
    }
  })

  it('refuse parameters where there are none, other methods, and who is not known', async () => {
    expect(await call('/api/outbox/metrics?x=1')).toMatchObject({
      code: 400,
      error: { code: 'parameter_invalid' },
    })
    expect(await call('/api/outbox', 'POST')).toMatchObject({
      code: 405,
      error: { code: 'method_unknown', details: { allowed: 'GET' } },
    })
    for (const path of ['/api/outbox', '/api/outbox/metrics', '/api/workflow/outbox/health']) {
      expect((await app.inject(path)).statusCode).toBe(401)
    }
  })

  it.each(['/api/outbox', '/api/workflow/outbox'])('tell their metrics at %s/metrics', async (path) => {
    const [post] = posts
    const before = post?.meter.snapshot()
    post?.meter.dispatched(0.004)
    const { code, data } = await call(`${path}/metrics`)
    expect(code).toBe(200)
    expect(data.outboxes).toHaveLength(2)
    const dispatched = (before?.dispatched ?? 0) + 1
    expect(data.outboxes[0]).toMatchObject({
      outbox: 'orders',
      backlog: 2,
      failedPending: 1,
      oldestAgeSeconds: 50,
      dead: 1,
      dispatchedTotal: dispatched,
      failuresTotal: 0,
      duplicatesTotal: 0,
      conflictsTotal: 0,
      windowSeconds: 60,
      throughputPerSecond: dispatched,
      failureRatio: 0,
      dispatchSeconds: { count: dispatched },
      error: null,
    })
    const { buckets } = data.outboxes[0].dispatchSeconds
    expect(buckets.find(({ le }: { le: number }) => le === 0.005)).toEqual({ le: 0.005, count: dispatched })
    expect(buckets.at(-1)).toEqual({ le: null, count: dispatched })
    expect(data.outboxes[1]).toMatchObject({ outbox: 'legacy', backlog: 1 })
  })

  it('tell their health: each, and the worst of them', async () => {
    expect(await call('/api/outbox/health')).toMatchObject({
      code: 200,
      data: {
        status: 'ok',
        reasons: [],
        outboxes: [
          { outbox: 'orders', status: 'ok', reasons: [] },
          { outbox: 'legacy', status: 'ok', reasons: [] },
        ],
      },
    })
    const strict = {
      ...(posts[0]?.thresholds ?? expect.unreachable()),
      backlog: { degraded: 1, unhealthy: 9 },
    }
    await withPosts([first.post({ thresholds: strict }), ...posts.slice(1)], async () => {
      expect(await call('/api/workflow/outbox/health')).toMatchObject({
        code: 200,
        data: {
          status: 'degraded',
          reasons: ['orders: backlog is 2, above 1'],
          outboxes: [{ status: 'degraded', reasons: ['backlog is 2, above 1'] }, { status: 'ok' }],
        },
      })
      const health = await app.inject('/health')
      expect(health.statusCode).toBe(200)
      expect(health.json()).toMatchObject({
        status: 'warn',
        checks: {
          'outbox:orders': [{ status: 'warn', output: 'backlog is 2, above 1' }],
          'outbox:legacy': [{ status: 'pass' }],
        },
      })
    })
  })

  it('say what they can of one whose database is away', async () => {
    const db = openDatabase('postgres://app:secret@127.0.0.1:9/none', { poolSize: 1 })
    const away = first.post({ name: 'away', db, layout: () => readLayout('postgres', {}, onDatabase(db)) })
    try {
      await withPosts([away], async () => {
        expect(await call('/api/outbox')).toMatchObject({ code: 503, status: 'Failed' })
        const { data } = await call('/api/outbox/metrics')
        expect(data.outboxes[0]).toMatchObject({
          outbox: 'away',
          backlog: null,
          oldestAgeSeconds: null,
          dispatchedTotal: 0,
          error: expect.stringMatching(/^its database cannot be read: .*ECONNREFUSED/),
        })
        expect(await call('/api/outbox/health')).toMatchObject({ code: 200, data: { status: 'unhealthy' } })
        const health = await app.inject('/health')
        expect(health.statusCode).toBe(200)
        expect(health.body).toContain('"output":"its database cannot be read"')
        expect(health.body).not.toContain('ECONNREFUSED')
      })
    } finally {
      await db.close()
    }
  })

  it('are none, and well, where none is configured', async () => {
    await withPosts([], async () => {
      expect((await call('/api/outbox?status=failed')).data).toEqual({
        outbox: null,
        items: [],
        page: 1,
        pageSize: 50,
        total: 0,
        totalIsCapped: false,
      })
      expect(await call('/api/outbox?status=done')).toMatchObject({ code: 400 })
      expect(await call('/api/outbox?outbox=orders')).toMatchObject({
        code: 400,
        error: { message: 'outbox is invalid; no outbox is configured, leave it out' },
      })
      expect((await call('/api/outbox/metrics')).data).toEqual({ outboxes: [] })
      expect((await call('/api/outbox/health')).data).toEqual({ status: 'ok', reasons: [], outboxes: [] })
      const { status, checks } = (await app.inject('/health')).json()
      expect([status, Object.keys(checks)]).toEqual(['pass', ['queues:storage']])
    })
  })
})

describe('an outbox with more messages than a list reaches', () => {
  it('refuses pages behind its reach, with those that it has', async () => {
    const outbox = await PostedOutbox.open({ name: 'sqlite', fresh: freshSqlite })
    const app = Fastify({ exposeHeadRoutes: false })
    try {
      await outbox.execute(
        `INSERT INTO outbox_messages (tenant_id, event_type, payload)
         WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n <= ${LIST_REACH})
         SELECT 't', 'e', x'' FROM numbers`,
      )
      const readings = new OutboxReadings(() => [outbox.post()], outbox.clock)
      app.addHook('onRequest', gate([], outbox.clock))
      await app.register(outboxRoutes, { readings, clock: outbox.clock, stopping: () => false })
      const last = (await app.inject('/api/outbox?pageSize=200&page=500')).json()
      expect(last.data.items).toHaveLength(200)
      expect(last.data).toMatchObject({ total: LIST_REACH, totalIsCapped: true })
      const behind = await app.inject('/api/outbox?pageSize=200&page=501')
      expect(behind.statusCode).toBe(400)
      expect(behind.json().error.message).toBe(
        "page is invalid; '501' lies behind the first 100000 messages; give 1 to 500",
      )
    } finally {
      await app.close()
      await outbox.close()
    }
  })
})
