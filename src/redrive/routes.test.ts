/** `/api/redrives` over the whole office, with a clock that is moved. */
import { createHash } from 'node:crypto'
import Fastify, { type FastifyInstance, type InjectOptions } from 'fastify'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { insistOnDocumentedStatuses } from '../../test/world/documented.ts'
import { redriveAt } from '../../test/world/redrive.ts'
import { closeServers, scriptedServer } from '../../test/world/scripted-server.ts'
import { type FreshStore, stores } from '../../test/world/stores.ts'
import { serveApi } from '../api/calls.ts'
import { instant } from '../core/clock.ts'
import { TestClock } from '../core/test-clock.ts'
import { gate } from '../http/gate.ts'
import { letterCalls } from '../letters/routes.ts'
import { Office } from '../office.ts'
import { redriveRoutes } from './routes/calls.ts'
import { redriveDetail } from './view.ts'

const QUEUE = 'hmac-rotation-queue'
const SECOND = 1_000_000n
const HALF_AN_HOUR = 1_800n * SECOND
const NOBODY = 'c00000000000000000g0'

const token = (name: string, role: 'viewer' | 'operator') => ({
  name,
  role,
  sha256: createHash('sha256').update(name).digest('hex'),
})

afterAll(closeServers)

describe('the OpenAPI document', () => {
  it('has every call on redrives, and what they answer', async () => {
    const { app } = await scriptedServer()
    const { paths } = (await app.inject('/openapi.json')).json()
    const calls = Object.entries<Record<string, { operationId: string }>>(paths)
      .filter(([path]) => path.startsWith('/api/redrives'))
      .flatMap(([path, methods]) =>
        Object.entries(methods).map(([method, { operationId }]) => [operationId, method, path].join(' ')),
      )
    expect(calls.toSorted()).toEqual([
      'redrives.cancel post /api/redrives/{id}/cancel',
      'redrives.get get /api/redrives/{id}',
      'redrives.letters get /api/redrives/{id}/letters',
      'redrives.list get /api/redrives',
      'redrives.pause post /api/redrives/{id}/pause',
      'redrives.plan post /api/redrives',
      'redrives.rate post /api/redrives/{id}/rate',
      'redrives.resume post /api/redrives/{id}/resume',
      'redrives.start post /api/redrives/{id}/start',
    ])
    const detail = { ...redriveAt(), destinations: [], exceptions: [], sample: [] }
    const described = paths['/api/redrives/{id}'].get.responses['200'].content['application/json'].schema
    expect(described.properties.data.required).toEqual(Object.keys(redriveDetail(detail, instant(0n))))
    const planned = paths['/api/redrives'].post.requestBody.content['application/json'].schema
    expect(Object.keys(planned.properties)).toEqual([
      ...['filter', 'signature', 'ids', 'action', 'queue', 'repair'],
      ...['rate', 'canary', 'stopRule', 'order', 'reason'],
    ])
  })
})

describe('a plan that takes longer than a request', () => {
  it('is answered 202, with where to look and how far it is', async () => {
    const standing = redriveAt({ state: 'planning', numbers: { matched: 2_000 }, counts: { planned: 0 } })
    const planning = { ...standing, destinations: [], exceptions: [], sample: [] }
    const { app } = await scriptedServer({ redriveCalls: { plan: async () => planning } })
    const reply = await app.inject({
      ...{ method: 'POST', url: '/api/redrives', headers: { 'content-type': 'application/json' } },
      payload: { filter: {}, action: 'retry' },
    })
    expect([reply.statusCode, reply.headers.location]).toEqual([202, `/api/redrives/${standing.id}`])
    expect(reply.json().data).toMatchObject({
      ...{ id: standing.id, state: 'planning', numbers: { matched: 2_000 } },
      sentence: 'Being planned: 2,000 letters looked at so far.',
    })
  })
})

describe.each(stores)('/api/redrives on $name', (kind) => {
  let place: FreshStore
  let office: Office
  let app: FastifyInstance
  const clock = new TestClock()
  let instances = 0

  beforeAll(async () => {
    clock.freeze(instant(1_800_000_000_000_000n))
    place = await kind.fresh()
    office = await Office.open({ store: place.url, clock, engines: { context: 'publisher' } })
    for (const queueName of [QUEUE, 'later'])
      await office.queues.create({
        queueName,
        leaseTimeout: '1m',
        expireTimeout: '240h',
        requestedPartitions: 1,
      })
    app = Fastify({ exposeHeadRoutes: false })
    insistOnDocumentedStatuses(app)
    app.addHook(
      'onRequest',
      gate([token('nell', 'operator'), token('finn', 'operator'), token('guest', 'viewer')], clock),
    )
    const scope = { letters: office.letters, clock, stopping: () => false }
    serveApi(app, scope, letterCalls(office.letters, clock))
    await app.register(redriveRoutes, { ...scope, redrives: office.redrives })
  })
  afterAll(async () => {
    await app?.close()
    await office?.close()
    await place?.dispose()
  })

  const call = async (
    method: 'GET' | 'POST' | 'DELETE',
    url: string,
    body?: unknown,
    headers: Record<string, string> = {},
  ) => {
    const request: InjectOptions = { method, url, headers: { authorization: 'Bearer nell', ...headers } }
    if (body !== undefined) request.body = typeof body === 'string' ? body : JSON.stringify(body)
    const reply = await app.inject(request)
    return { ...reply.json(), code: reply.statusCode, headers: reply.headers }
  }
  const refused = async (answer: ReturnType<typeof call>, code: number, error: string, message = '') => {
    const { code: status, error: given } = await answer
    expect([status, given?.code]).toEqual([code, error])
    expect(given.message).toContain(message)
  }
  const ok = async (answer: ReturnType<typeof call>, code = 200) => {
    const { code: status, data, error } = await answer
    expect([status, error]).toEqual([code, undefined])
    return data
  }
  /** Letters that share an instance with no others; they are found by it. */
  const letters = async (count: number): Promise<{ instanceId: string }> => {
    const instanceId = `instance-${++instances}`
    for (let i = 0; i < count; i++) {
      clock.advance(1n)
      const report = { engine: 'hmac', instanceId, originalMessage: `{"n":${i}}`, errorMessage: 'no key' }
      await ok(call('POST', '/api/dlq', { ...report, sourceId: `${instanceId} ${i}` }), 201)
    }
    return { instanceId }
  }
  const plan = async (body: object) => ok(call('POST', '/api/redrives', { action: 'retry', ...body }), 201)
  const read = async (id: string) => ok(call('GET', `/api/redrives/${id}`))
  const act = (id: string, verb: string, body?: unknown, headers?: Record<string, string>) =>
    call('POST', `/api/redrives/${id}/${verb}`, body, headers)
  /** Those that were not started. */
  const plansOf = async ({ instanceId }: { instanceId: string }) => {
    const { items } = await ok(call('GET', '/api/redrives?state=planned&limit=100'))
    return items.filter(
      (plan: { filter: { instanceId?: string } | null }) => plan.filter?.instanceId === instanceId,
    )
  }
  const finished = async (id: string) => {
    await office.redrives.settle()
    return read(id)
  }
  const completeAll = async (queueName: string) => {
    const { partition, items } = await office.queues.lease({
      queueName,
      clientId: 'consumer',
      batchSize: 100,
      requestTimeout: '1s',
    })
    await office.queues.complete({ queueName, partition, ids: items.map(({ id }) => id) })
    return items
  }

  describe('a redrive', () => {
    it('is planned, looked at, started, and done', async () => {
      const filter = await letters(3)
      const planned = await plan({ filter, repair: { patch: [{ op: 'add', path: '/m', value: 1 }] } })
      expect(planned).toMatchObject({
        state: 'planned',
        sentence: `Send 3 letters back to ${QUEUE}.`,
        action: 'retry',
        queue: null,
        ids: null,
        counts: { planned: 3, sent: 0, skipped: 0, failed: 0, remaining: 3, unconfirmed: 0 },
        numbers: { matched: 3, eligible: 3, inFlight: 0, noDestination: 0, orderBlocked: 0, invalid: 0 },
        rate: null,
        canary: null,
        stopRule: null,
        order: 'key',
        repair: { patch: [{ op: 'add', path: '/m', value: 1 }], version: expect.stringMatching(/^1-/) },
        plannedBy: 'nell',
        isExpired: false,
        startedBy: null,
        endedAtUtc: null,
        resumed: 0,
        destinations: [{ source: 'http', name: QUEUE, planned: 3, sent: 0, remaining: 3 }],
        exceptions: [],
      })
      expect(planned.filter).toMatchObject(filter)
      expect(planned.sample).toHaveLength(3)
      expect(planned.sample[0]).toMatchObject({
        engine: 'hmac',
        ...filter,
        queue: QUEUE,
        payloadEncoding: 'utf8',
        payloadTruncated: false,
        before: { payloadEncoding: 'utf8' },
        refusal: null,
      })
      expect(JSON.parse(planned.sample[0].payload)).toEqual({
        ...JSON.parse(planned.sample[0].before.payload),
        m: 1,
      })
      expect(await read(planned.id)).toEqual(planned)

      const started = await ok(act(planned.id, 'start'))
      expect(started).toMatchObject({ id: planned.id, startedBy: 'nell', sample: [] })
      expect(await finished(planned.id)).toMatchObject({
        state: 'done',
        sentence: `Sent 3 letters back to ${QUEUE}: 3 unconfirmed.`,
        counts: { planned: 3, sent: 3, remaining: 0, unconfirmed: 3 },
        destinations: [{ name: QUEUE, sent: 3, remaining: 0 }],
        note: null,
        rateNow: null,
        secondsLeft: null,
      })
      const sent = await completeAll(QUEUE)
      expect(sent.map(({ payload }) => JSON.parse(Buffer.from(payload).toString()).m)).toEqual([1, 1, 1])
      expect(await read(planned.id)).toMatchObject({
        sentence: `Sent 3 letters back to ${QUEUE}: 3 confirmed.`,
        counts: { sent: 3, confirmed: 3, unconfirmed: 0 },
      })
    })

    it('has letters, each with what became of it, in pages', async () => {
      const filter = await letters(3)
      const { id } = await plan({ filter, order: 'capture' })
      const all = await ok(call('GET', `/api/redrives/${id}/letters`))
      expect(all.continuationToken).toBeNull()
      expect(all.items).toHaveLength(3)
      expect(all.items[0]).toEqual({
        engine: 'hmac',
        rowKey: expect.stringContaining(filter.instanceId),
        destination: QUEUE,
        outcome: 'remaining',
        reason: null,
        detail: null,
      })
      const first = await ok(call('GET', `/api/redrives/${id}/letters?limit=2`))
      const next = encodeURIComponent(first.continuationToken)
      const rest = await ok(call('GET', `/api/redrives/${id}/letters?limit=2&continuationToken=${next}`))
      expect([...first.items, ...rest.items]).toEqual(all.items)
      expect((await ok(call('GET', `/api/redrives/${id}/letters?outcome=failed`))).items).toEqual([])
      const bad = (query: string) => call('GET', `/api/redrives/${id}/letters?${query}`)
      await refused(bad('outcome=lost'), 400, 'parameter_invalid', "outcome is invalid; 'lost' is none of")
      await refused(bad('limit=0'), 400, 'parameter_invalid', 'limit')
      await refused(bad('continuationToken=x'), 400, 'continuation_token_invalid')
      await refused(bad(`outcome=failed&continuationToken=${next}`), 400, 'continuation_token_invalid')
    })

    it('may be for letters that are named, and tells of those that cannot be in it', async () => {
      const { instanceId } = await letters(2)
      const { items } = await ok(call('GET', `/api/dlq?instanceId=${instanceId}`))
      const [a, b] = items
      const ids = [`${a.engine}/${a.rowKey}`, { engine: b.engine, rowKey: b.rowKey }]
      const planned = await plan({ ids: [...ids, ...ids, 'hmac/nonsense', 'nope/nonsense'] })
      expect(planned).toMatchObject({
        filter: null,
        ids: 6,
        numbers: { matched: 6, eligible: 2, duplicate: 2, invalid: 2 },
      })
      const { id } = await plan({
        signature: a.signature,
        filter: { instanceId },
        action: 'move',
        queue: 'later',
      })
      expect(await ok(act(id, 'start'))).toMatchObject({ queue: 'later' })
      expect(await finished(id)).toMatchObject({
        state: 'done',
        sentence: 'Moved 2 letters to later: 2 unconfirmed.',
      })
      expect(await completeAll('later')).toHaveLength(2)
    })

    it('may discard and restore', async () => {
      const filter = await letters(2)
      const discard = await plan({ filter, action: 'discard', reason: 'seen' })
      expect(discard).toMatchObject({ sentence: 'Discard 2 letters.', reason: 'seen' })
      await ok(act(discard.id, 'start'))
      expect(await finished(discard.id)).toMatchObject({ state: 'done', sentence: 'Discarded 2 letters.' })
      const restore = await plan({ filter: { ...filter, status: 'Resolved' }, action: 'restore' })
      await ok(act(restore.id, 'start'))
      expect(await finished(restore.id)).toMatchObject({ state: 'done', sentence: 'Restored 2 letters.' })
      expect(
        (await ok(call('GET', `/api/dlq/total?instanceId=${filter.instanceId}&status=Pending`))).total,
      ).toBe(2)
    })

    it('is paused, resumed, given another rate and cancelled, each where it can be', async () => {
      const filter = await letters(5)
      const { id } = await plan({ filter, rate: 1 })
      await refused(act(id, 'pause'), 409, 'redrive_state_wrong', 'it is planned, and must be')
      await refused(act(id, 'resume'), 409, 'redrive_state_wrong')
      await ok(act(id, 'start'))
      const paused = await ok(act(id, 'pause', { reason: 'lunch' }))
      expect(paused).toMatchObject({
        state: 'paused',
        note: 'lunch',
        sentence: 'Paused: lunch. 0 of 5 letters sent, 5 to go.',
        isHeld: false,
      })
      await refused(act(id, 'pause'), 409, 'redrive_state_wrong', 'it is paused, and must be')
      expect(await ok(act(id, 'rate', { rate: 2.5 }))).toMatchObject({ state: 'paused', rate: 2.5 })
      expect(await ok(act(id, 'resume'))).toMatchObject({ state: 'running', note: null })
      expect(await ok(act(id, 'rate', { rate: null }))).toMatchObject({ rate: null })
      await office.advanceClock(10n * SECOND)
      expect(await read(id)).toMatchObject({ state: 'done', counts: { sent: 5 } })
      for (const verb of ['pause', 'resume', 'cancel'])
        await refused(act(id, verb), 409, 'redrive_state_wrong')
      await refused(act(id, 'rate', { rate: 1 }), 409, 'redrive_state_wrong', 'it is done')
      await completeAll(QUEUE)

      const other = await plan({ filter: await letters(2), rate: 1 })
      await ok(act(other.id, 'start'))
      expect(await ok(act(other.id, 'cancel'))).toMatchObject({
        state: 'cancelled',
        sentence: 'Cancelled by nell. 0 of 2 letters sent; 2 not touched.',
        endedAtUtc: expect.any(String),
      })
      const unstarted = await plan({ filter: await letters(1) })
      expect(await ok(act(unstarted.id, 'cancel', { reason: 'wrong letters' }))).toMatchObject({
        state: 'cancelled',
        sentence: 'Cancelled: wrong letters. It was not started.',
      })
      await refused(act(unstarted.id, 'start'), 409, 'redrive_state_wrong')
    })

    it('is started by one of many who try at once, and the others are told by whom', async () => {
      const { id } = await plan({ filter: await letters(1) })
      const answers = await Promise.all(
        ['nell', 'finn', 'nell', 'finn'].map((name) =>
          act(id, 'start', undefined, { authorization: `Bearer ${name}` }),
        ),
      )
      expect(answers.map(({ code }) => code).toSorted()).toEqual([200, 409, 409, 409])
      const { startedBy, startedAtUtc } = answers.find(({ code }) => code === 200)?.data ?? {}
      for (const { error } of answers.filter(({ code }) => code === 409)) {
        expect(error.code).toBe('redrive_started')
        expect(error.message).toContain(`it was started by ${startedBy} at ${startedAtUtc}, watch it instead`)
      }
      await finished(id)
      await completeAll(QUEUE)
    })

    it('is not started with nothing in it, nor half an hour after it was planned', async () => {
      const empty = await plan({ filter: { instanceId: 'nobody' } })
      expect(empty).toMatchObject({
        sentence: 'No letter matches; there is nothing to do.',
        numbers: { matched: 0 },
        sample: [],
        destinations: [],
      })
      await refused(act(empty.id, 'start'), 409, 'redrive_empty', 'no letter in its plan')
      const { id, validUntilUtc } = await plan({ filter: await letters(1) })
      await office.advanceClock(HALF_AN_HOUR + 1n)
      expect(await read(id)).toMatchObject({ state: 'planned', isExpired: true })
      await refused(
        act(id, 'start'),
        409,
        'redrive_plan_expired',
        `valid until ${validUntilUtc}, plan it again`,
      )
    })
  })

  describe('a list', () => {
    it('has what was started, the newest first, in pages, and plans when asked for', async () => {
      const started: string[] = []
      for (let i = 0; i < 3; i++) {
        await office.advanceClock(SECOND)
        const { id } = await plan({ filter: await letters(1), rate: 0.001 })
        await ok(act(id, 'start'))
        started.unshift(id)
      }
      const waiting = await plan({ filter: await letters(1) })
      const list = (query = '') => ok(call('GET', `/api/redrives?${query}`))
      const idsOf = ({ items }: { items: { id: string }[] }) => items.map(({ id }) => id)
      const running = await list('state=running,canary')
      expect(idsOf(running)).toEqual(started)
      expect(running.continuationToken).toBeNull()
      for (const name of ['sample', 'destinations', 'exceptions'])
        expect(running.items[0]).not.toHaveProperty(name)
      expect(running.items[0]).toMatchObject({ sentence: 'Sending 1 letter back: 0 sent, 1 to go.' })
      const first = await list('state=running&limit=2')
      const next = encodeURIComponent(first.continuationToken)
      const rest = await list(`state=running&limit=2&continuationToken=${next}`)
      expect([idsOf(first), idsOf(rest)]).toEqual([started.slice(0, 2), started.slice(2)])
      const all = await list('limit=100')
      expect(idsOf(all)).not.toContain(waiting.id)
      expect(idsOf(all).slice(0, 3)).toEqual(started)
      expect(idsOf(await list('state=planned'))).toContain(waiting.id)
      const bad = (query: string) => call('GET', `/api/redrives?${query}`)
      await refused(
        bad('state=running,asleep'),
        400,
        'parameter_invalid',
        "state is invalid; 'asleep' is none",
      )
      await refused(bad('state=,'), 400, 'parameter_invalid', 'state')
      await refused(bad('limit=101'), 400, 'parameter_invalid', 'limit')
      await refused(bad(`continuationToken=${next}`), 400, 'continuation_token_invalid')
      await refused(bad('engine=hmac'), 400, 'parameter_invalid', 'engine is invalid')
      for (const id of started) await ok(act(id, 'cancel'))
    })
  })

  describe('a call', () => {
    it('is refused for a redrive that nobody knows', async () => {
      for (const id of [NOBODY, 'nonsense', 'x'.repeat(99)]) {
        await refused(call('GET', `/api/redrives/${id}`), 404, 'redrive_unknown', id.slice(0, 20))
        await refused(call('GET', `/api/redrives/${id}/letters`), 404, 'redrive_unknown')
        for (const verb of ['start', 'pause', 'resume', 'cancel'])
          await refused(act(id, verb), 404, 'redrive_unknown')
        await refused(act(id, 'rate', { rate: 1 }), 404, 'redrive_unknown')
      }
    })

    it('is refused with a body that it does not understand', async () => {
      const bad = (body: unknown) => call('POST', '/api/redrives', body)
      const before = await ok(call('GET', '/api/redrives?state=planned&limit=100'))
      await refused(bad('{"action":'), 400, 'json_malformed')
      await refused(bad('[]'), 400, 'json_malformed', 'a list')
      await refused(call('POST', '/api/redrives'), 400, 'json_malformed', 'empty')
      await refused(bad({}), 400, 'parameter_invalid', 'action is invalid; it is missing')
      await refused(bad({ action: 'retry' }), 400, 'parameter_invalid', 'filter is invalid')
      await refused(bad({ action: 'retry', filter: { engine: 'nope' } }), 400, 'engine_unknown', 'hmac')
      await refused(
        bad({ action: 'retry', filter: {}, rate: 0 }),
        400,
        'parameter_invalid',
        "rate is invalid; it is '0'",
      )
      await refused(bad('{"action":"retry","filter":{},"rate":1e999}'), 400, 'parameter_invalid', 'rate')
      await refused(bad('{"action":"retry","filter":{},"rate":NaN}'), 400, 'json_malformed')
      await refused(bad({ action: 'discard', filter: {} }), 400, 'parameter_invalid', 'reason is invalid')
      await refused(bad({ action: 'move', filter: {}, queue: 'gone' }), 400, 'parameter_invalid', "'gone'")
      expect(await ok(call('GET', '/api/redrives?state=planned&limit=100'))).toEqual(before)

      const { id } = await plan({ filter: await letters(1) })
      await refused(
        act(id, 'start', { rate: 5 }),
        400,
        'parameter_invalid',
        'rate is invalid; this call takes no',
      )
      await refused(act(id, 'resume', { now: true }), 400, 'parameter_invalid', 'now is invalid')
      await refused(act(id, 'pause', { why: 'x' }), 400, 'parameter_invalid', 'why is invalid')
      await refused(act(id, 'cancel', { reason: 5 }), 400, 'parameter_invalid', 'reason is invalid')
      await refused(act(id, 'cancel', { reason: 'x'.repeat(4_001) }), 400, 'parameter_invalid', '4000')
      await refused(act(id, 'rate'), 400, 'json_malformed')
      await refused(act(id, 'rate', {}), 400, 'parameter_invalid', 'rate is invalid; it is missing')
      for (const rate of [0, -1, '5', 1_000_001])
        await refused(act(id, 'rate', { rate }), 400, 'parameter_invalid', 'rate is invalid; it is ')
      expect(await read(id)).toMatchObject({ state: 'planned' })
    })

    it('with an idempotency key has its effect once, and its first answer again', async () => {
      const keyed = { 'idempotency-key': 'k-1' }
      const body = { action: 'retry', filter: await letters(1) }
      const first = await ok(call('POST', '/api/redrives', body, keyed), 201)
      expect(await ok(call('POST', '/api/redrives', body, keyed), 201)).toEqual(first)
      const started = await ok(act(first.id, 'start', undefined, keyed))
      await finished(first.id)
      expect(await ok(act(first.id, 'start', undefined, keyed))).toEqual(started)
      await refused(act(first.id, 'start'), 409, 'redrive_started')
      await completeAll(QUEUE)
    })

    it('has its effect together with the answer that is kept for its key, or not at all', async () => {
      const filter = await letters(1)
      const keyed = (key: string) => ({ 'idempotency-key': key })
      /** The store takes no answer, as when the server ends before it is kept; then the caller asks again. */
      const again = async (url: string, body: object | undefined, key: string, code: number) => {
        await place.refuseWrites('idempotency_keys')
        const lost = await call('POST', url, body, keyed(key)).finally(() => place.acceptWrites())
        expect(lost.code).toBeGreaterThanOrEqual(500)
        const first = await ok(call('POST', url, body, keyed(key)), code)
        expect(await ok(call('POST', url, body, keyed(key)), code)).toEqual(first)
        return first
      }
      const { id } = await again('/api/redrives', { action: 'retry', filter, rate: 0.01 }, 'lost-plan', 201)
      const steps: readonly [string, object | undefined, string][] = [
        ['start', undefined, 'running'],
        ['pause', {}, 'paused'],
        ['rate', { rate: 0.02 }, 'paused'],
        ['resume', undefined, 'running'],
        ['cancel', {}, 'cancelled'],
      ]
      for (const [verb, body, state] of steps)
        expect(await again(`/api/redrives/${id}/${verb}`, body, `lost-${verb}`, 200)).toMatchObject({ state })
      expect(await plansOf(filter)).toEqual([])
    })

    it('makes one plan of two that are asked for with one key at the same moment', async () => {
      const body = { action: 'retry', filter: await letters(1) }
      const keyed = { 'idempotency-key': 'twins' }
      const [one, other] = await Promise.all(
        [1, 2].map(() => ok(call('POST', '/api/redrives', body, keyed), 201)),
      )
      expect(other.id).toBe(one.id)
      expect(await plansOf(body.filter)).toHaveLength(1)
    })

    it('is for operators where it changes something, and for viewers where it does not', async () => {
      const filter = await letters(1)
      const { id } = await plan({ filter })
      const guest = { authorization: 'Bearer guest' }
      for (const path of ['', `/${id}`, `/${id}/letters`])
        await ok(call('GET', `/api/redrives${path}`, undefined, guest))
      const body = { action: 'retry', filter }
      await refused(call('POST', '/api/redrives', body, guest), 403, 'role_insufficient')
      for (const verb of ['start', 'pause', 'resume', 'cancel', 'rate'])
        await refused(act(id, verb, undefined, guest), 403, 'role_insufficient')
      await refused(
        call('GET', '/api/redrives', undefined, { authorization: 'Bearer x' }),
        401,
        'token_unknown',
      )
      expect(await read(id)).toMatchObject({ state: 'planned' })
    })

    it('with another method is told which there are', async () => {
      const answer = await call('DELETE', '/api/redrives')
      expect([answer.code, answer.headers.allow]).toEqual([405, 'POST, GET'])
      expect((await call('GET', `/api/redrives/${NOBODY}/start`)).headers.allow).toBe('POST')
    })
  })
})
