import { createHash } from 'node:crypto'
import Fastify, { type FastifyInstance, type InjectOptions } from 'fastify'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { insistOnDocumentedStatuses } from '../../test/world/documented.ts'
import { LetterStore } from '../../test/world/letter-store.ts'
import { keysOf } from '../../test/world/row-keys.ts'
import { stores } from '../../test/world/stores.ts'
import { serveApi } from '../api/calls.ts'
import { later } from '../core/clock.ts'
import { formatMicros } from '../core/timestamp.ts'
import { gate } from '../http/gate.ts'
import { letterCalls } from './routes.ts'

const DAY = 86_400_000_000n
const sha256 = (bytes: string | Uint8Array) => createHash('sha256').update(bytes).digest('hex')
const token = (name: string, role: 'viewer' | 'operator') => ({ name, role, sha256: sha256(name) })

describe.each(stores)('/api/dlq on $name', (kind) => {
  let store: LetterStore
  let app: FastifyInstance
  let stopping = false
  let sources = 0

  beforeAll(async () => {
    store = await LetterStore.open(kind)
    await store.createQueue('hmac-rotation-queue')
    app = Fastify({ exposeHeadRoutes: false, routerOptions: { maxParamLength: 4_096 } })
    insistOnDocumentedStatuses(app)
    app.addHook('onRequest', gate([token('nell', 'operator'), token('guest', 'viewer')], store.clock))
    serveApi(app, { clock: store.clock, stopping: () => stopping }, letterCalls(store.letters, store.clock))
  })
  afterAll(async () => {
    await app?.close()
    await store?.close()
  })

  const call = async (
    method: 'GET' | 'POST' | 'PATCH' | 'PUT' | 'DELETE',
    url: string,
    body?: unknown,
    headers: Record<string, string> = {},
  ) => {
    const request: InjectOptions = { method, url, headers: { authorization: 'Bearer nell', ...headers } }
    if (body !== undefined) request.body = typeof body === 'string' ? body : JSON.stringify(body)
    const reply = await app.inject(request)
    return { ...reply.json(), code: reply.statusCode, headers: reply.headers }
  }
  const report = (changes: object = {}) => ({
    engine: 'hmac',
    originalMessage: '{"rotate":true}',
    errorMessage: 'no key',
    sourceId: `source-${++sources}`,
    ...changes,
  })
  const capture = async (changes: object = {}) => {
    const answer = await call('POST', '/api/dlq', report(changes))
    expect(answer.code, JSON.stringify(answer.error)).toBe(201)
    return answer.data
  }
  const pathOf = ({ engine, rowKey }: { engine: string; rowKey: string }) =>
    `/api/dlq/${engine}/${encodeURIComponent(rowKey)}`
  const refused = async (answer: ReturnType<typeof call>, code: number, error: string, message = '') => {
    const { code: status, error: given, correlationId, ...envelope } = await answer
    expect([status, given?.code]).toEqual([code, error])
    expect(given.message).toContain(message)
    expect(envelope).toMatchObject({ status: 'Failed' })
    expect(correlationId).not.toBe('')
  }

  describe('POST /api/dlq', () => {
    it('answers 201 with the fields of lists, and 200 with the first letter for a known source id', async () => {
      const body = report({ instanceId: 'eu-1', errorClass: 'KeyError' })
      const first = await call('POST', '/api/dlq', body, { 'x-correlation-id': 'my-own' })
      expect([first.code, first.status, first.correlationId]).toEqual([201, 'Succeeded', 'my-own'])
      expect(first.headers['x-correlation-id']).toBe('my-own')
      expect(first.data).toMatchObject({
        engine: 'hmac',
        instanceId: 'eu-1',
        originalQueue: 'hmac-rotation-queue',
        errorMessage: 'no key',
        dequeueCount: 1,
        status: 'Pending',
        firstFailureAtUtc: '2027-01-15T08:00:00.000000Z',
        lastFailureAtUtc: '2027-01-15T08:00:00.000000Z',
        correlationId: 'my-own',
        source: 'http',
        sourceId: body.sourceId,
        errorClass: 'KeyError',
        resolvedAtUtc: null,
      })
      expect(first.data.rowKey).toMatch(keysOf('eu-1', '20270115T080000000000Z'))
      expect(first.data).not.toHaveProperty('originalMessage')
      const second = await call('POST', '/api/dlq', body)
      expect([second.code, second.data]).toEqual([200, first.data])
    })

    it('answers 200 with a pending letter when a letter that was sent back failed again, and with a key the same again', async () => {
      const body = report({ lastFailureAtUtc: '2027-01-15T07:00:00Z', dequeueCount: 2 })
      const { data: letter } = await call('POST', '/api/dlq', body)
      const sendBack = () => call('POST', `${pathOf(letter)}/retry`)
      expect((await sendBack()).code).toBe(200)
      expect((await call('POST', '/api/dlq', body)).data).toMatchObject({ status: 'Resolved' })

      const newer = { ...body, lastFailureAtUtc: '2027-01-15T07:30:00Z', errorMessage: 'still no key' }
      const key = { 'idempotency-key': `again-${body.sourceId}` }
      const reopened = await call('POST', '/api/dlq', newer, key)
      expect(reopened).toMatchObject({
        code: 200,
        data: {
          rowKey: letter.rowKey,
          status: 'Pending',
          errorMessage: 'still no key',
          dequeueCount: 4,
          lastFailureAtUtc: '2027-01-15T07:30:00.000000Z',
          resolvedAtUtc: null,
          resolvedBy: null,
          resolutionNotes: null,
        },
      })
      const { data: detail } = await call('GET', pathOf(letter))
      expect(detail.attempts.map(({ errorMessage }: { errorMessage: string }) => errorMessage)).toEqual([
        'no key',
        'still no key',
      ])
      expect(detail.history.map(({ operation }: { operation: string }) => operation)).toEqual([
        'reopen',
        'retry',
        'capture',
      ])
      expect((await sendBack()).code).toBe(200)
      const { code, data } = await call('POST', '/api/dlq', newer, key)
      expect([code, data]).toEqual([200, reopened.data])
      expect((await call('GET', pathOf(letter))).data).toMatchObject({ status: 'Resolved', version: 4 })
    })

    it('refuses bodies that are malformed, incomplete or too large', async () => {
      await refused(call('POST', '/api/dlq', '{"engine":'), 400, 'json_malformed')
      await refused(call('POST', '/api/dlq', '[]'), 400, 'json_malformed', 'a list')
      await refused(call('POST', '/api/dlq'), 400, 'json_malformed', 'empty')
      await refused(call('POST', '/api/dlq', {}), 400, 'parameter_invalid', 'engine is invalid')
      await refused(
        call('POST', '/api/dlq', report({ engine: 'nope' })),
        400,
        'engine_unknown',
        'provisioning',
      )
      await refused(call('POST', '/api/dlq', report({ sourceId: '' })), 400, 'parameter_invalid', 'sourceId')
      await refused(call('POST', '/api/dlq', report({ lastFailureAtUtc: 'x' })), 400, 'parameter_invalid')
      const large = report({ originalMessage: 'x'.repeat(10_485_760) })
      await refused(call('POST', '/api/dlq', large), 413, 'body_too_large', '10')
      await refused(
        call('POST', '/api/dlq', 'a=b', { 'content-type': 'application/x-www-form-urlencoded' }),
        415,
        'content_type_unknown',
      )
    })

    it.each([
      ['nothing', Buffer.alloc(0)],
      ['bytes that are no UTF-8', Buffer.of(0, 255, 254, 10)],
      ['a null character', Buffer.from('a\0b')],
      ['numbers above 2^53 and double keys', Buffer.from('{"n":9007199254740993,"n":1.10}')],
      ['seven megabytes', Buffer.alloc(7_000_000, 0xf1)],
    ])('keeps, shows and sends back %s, byte for byte', async (_, payload) => {
      const letter = await capture({
        originalMessage: payload.toString('base64'),
        originalMessageEncoding: 'base64',
      })
      const { data } = await call('GET', pathOf(letter))
      expect(data.originalMessageSha256).toBe(sha256(payload))
      expect(Buffer.from(data.originalMessage, data.originalMessageEncoding).equals(payload)).toBe(true)
      await call('POST', `${pathOf(letter)}/retry`)
      const { partition, items } = await store.lease('hmac-rotation-queue')
      const sent = items.find(({ payload: bytes }) => sha256(bytes) === sha256(payload))
      expect(sent).toBeDefined()
      await store.queues.complete({
        queueName: 'hmac-rotation-queue',
        partition,
        ids: items.map(({ id }) => id),
      })
    })

    it('takes errors of a megabyte, with control characters, and cuts them where it says', async () => {
      const letter = await capture({ errorMessage: `a\0b${'\u0007x'.repeat(500_000)}` })
      expect(Buffer.byteLength(letter.errorMessage)).toBeLessThanOrEqual(32_768)
      expect(letter.errorMessage).toMatch(/… \[cut\]$/)
    })
  })

  describe('GET /api/dlq', () => {
    it('combines filters, newest first, and walks in pages', async () => {
      const made: { engine: string; rowKey: string }[] = []
      for (let i = 0; i < 5; i++) {
        store.clock.advance(1_000n)
        made.unshift(await capture({ engine: 'spn', instanceId: `spn-${i % 2}`, errorClass: 'ListError' }))
      }
      const found = await call('GET', '/api/dlq?engine=spn&status=Pending&source=http&limit=100')
      expect(found.data.items).toEqual(made)
      expect(found.data.continuationToken).toBeNull()
      const some = await call('GET', '/api/dlq?engine=spn&instanceId=spn-1')
      expect(some.data.items).toEqual([made[1], made[3]])
      const walked: unknown[] = []
      let token: string | null = null
      do {
        const next: string = token === null ? '' : `&continuationToken=${encodeURIComponent(token)}`
        const { data } = await call('GET', `/api/dlq?engine=spn&limit=2${next}`)
        walked.push(...data.items)
        token = data.continuationToken
      } while (token !== null)
      expect(walked).toEqual(made)
    })

    it('refuses what it does not understand, by name', async () => {
      const list = (query: string) => call('GET', `/api/dlq?${query}`)
      await refused(list('engine=nope'), 400, 'engine_unknown', 'hmac')
      await refused(list('status=Dead'), 400, 'status_unknown', 'Pending, Resolved, Expired')
      await refused(list('source=mars'), 400, 'source_unknown', 'queues, engines')
      for (const limit of ['0', '101', '-1', 'x', '1.5']) {
        await refused(list(`limit=${limit}`), 400, 'parameter_invalid', 'limit is invalid')
      }
      await refused(list('fromDate=yesterday'), 400, 'parameter_invalid', 'fromDate is invalid')
      await refused(list('toDate=2027-13-01'), 400, 'parameter_invalid', 'toDate is invalid')
      await refused(list('fromDate=2027-01-02&toDate=2027-01-01'), 400, 'parameter_invalid', 'fromDate')
      await refused(list('colour=red'), 400, 'parameter_invalid', 'colour is invalid')
      await refused(list('continuationToken=forged'), 400, 'continuation_token_invalid')
      const { data } = await list('limit=1')
      await refused(
        list(`limit=1&engine=hmac&continuationToken=${data.continuationToken}`),
        400,
        'continuation_token_invalid',
      )
    })
  })

  describe('GET /api/dlq/{engine}/{rowKey}', () => {
    it('shows everything', async () => {
      const letter = await capture({
        instanceId: 'a/b?c#d%',
        originalMessage: 'hi',
        errorClass: 'E',
        errorStack: 'at rotate',
        dequeueCount: 5,
        headers: { trace: 'abc' },
      })
      expect(letter.rowKey).toMatch(/^a%2Fb%3Fc%23d%25-/)
      const { code, data } = await call('GET', pathOf(letter))
      expect(code).toBe(200)
      expect(data).toMatchObject({
        ...letter,
        originalMessage: 'hi',
        originalMessageEncoding: 'utf8',
        editedMessage: null,
        headers: { trace: 'abc' },
        headersEncoding: 'json',
        errorStack: 'at rotate',
        failedBy: 'nell',
        version: 1,
        leased: false,
        sentAs: null,
        attempts: [{ number: 1, errorClass: 'E', errorMessage: 'no key', errorStack: 'at rotate' }],
        history: [{ operation: 'capture', status: 'Succeeded', actor: 'nell', letterVersion: 1 }],
      })
    })

    it('finds names of any length that a report may have', async () => {
      const letter = await capture({ instanceId: '☃'.repeat(256) })
      expect((await call('GET', pathOf(letter))).data.instanceId).toBe('☃'.repeat(256))
    })

    it('answers 404 for an unknown row and 400 for an unknown engine', async () => {
      await refused(call('GET', '/api/dlq/hmac/x-20270115T080000000000Z'), 404, 'letter_unknown', 'hmac')
      await refused(call('GET', '/api/dlq/hmac/nonsense'), 404, 'letter_unknown', 'nonsense')
      await refused(call('GET', '/api/dlq/nope/nonsense'), 400, 'engine_unknown')
    })
  })

  describe('PATCH /api/dlq/{engine}/{rowKey}', () => {
    it('says until when a letter can be restored', async () => {
      const letter = await capture({ lastFailureAtUtc: '2020-01-01T00:00:00Z' })
      const shown = async () => {
        const { expiredAtUtc, restorableUntilUtc } = (await call('GET', pathOf(letter))).data
        return { expiredAtUtc, restorableUntilUtc }
      }
      const nothing = { expiredAtUtc: null, restorableUntilUtc: null }
      const inNinetyDays = formatMicros(later(store.clock.now(), 90n * DAY))
      expect(await shown()).toEqual(nothing)
      const expired = await call('PATCH', pathOf(letter), { status: 'Expired' })
      expect(expired.data).toMatchObject({ status: 'Expired', resolvedAtUtc: null })
      const expiredAtUtc = formatMicros(store.clock.now())
      expect(await shown()).toEqual({ expiredAtUtc, restorableUntilUtc: inNinetyDays })
      await call('PATCH', pathOf(letter), { status: 'Pending' })
      expect(await shown()).toEqual(nothing)
      await call('PATCH', pathOf(letter), { status: 'Resolved', resolutionNotes: 'test' })
      expect(await shown()).toEqual({ expiredAtUtc: null, restorableUntilUtc: inNinetyDays })
      await call('PATCH', pathOf(letter), { status: 'Pending' })
      expect((await call('POST', '/api/dlq/expire', { olderThanDays: 1_000 })).data).toEqual({ expired: 1 })
      expect(await shown()).toEqual({ expiredAtUtc, restorableUntilUtc: inNinetyDays })
    })

    it('discards, restores and expires, in the name of the caller', async () => {
      const letter = await capture()
      const discarded = await call('PATCH', pathOf(letter), { status: 'Resolved', resolutionNotes: 'test' })
      expect(discarded.data).toMatchObject({
        status: 'Resolved',
        resolution: 'discard',
        resolutionNotes: 'test',
        resolvedBy: 'nell',
      })
      expect(discarded.data.resolvedAtUtc).toMatch(/Z$/)
      const restored = await call('PATCH', pathOf(letter), { status: 'Pending' })
      expect(restored.data).toEqual(letter)
      const expired = await call('PATCH', pathOf(letter), { status: 'Expired', resolutionNotes: null })
      expect(expired.data).toMatchObject({ status: 'Expired', resolvedBy: 'nell', resolvedAtUtc: null })
    })

    it('refuses what is not one of its transitions', async () => {
      const letter = await capture()
      const patch = (body: unknown) => call('PATCH', pathOf(letter), body)
      await refused(patch({}), 400, 'parameter_invalid', 'status is invalid; it is missing')
      await refused(patch({ status: 'Done' }), 400, 'status_unknown', 'Pending, Resolved, Expired')
      await refused(patch({ status: 5 }), 400, 'parameter_invalid', 'status')
      const notes = 'x'.repeat(4_001)
      await refused(patch({ status: 'Resolved', resolutionNotes: notes }), 400, 'parameter_invalid', '4000')
      await refused(patch({ status: 'Expired', resolvedBy: 'me' }), 400, 'parameter_invalid', 'resolvedBy')
      await refused(patch('{'), 400, 'json_malformed')
      await refused(patch({ status: 'Pending' }), 409, 'letter_status_wrong', 'it is Pending')
      await refused(
        patch({ status: 'Expired', resolutionNotes: 'x'.repeat(1_048_576) }),
        413,
        'body_too_large',
      )
      expect((await patch({ status: 'Resolved', resolutionNotes: 'x'.repeat(4_000) })).code).toBe(200)
      await refused(patch({ status: 'Expired' }), 409, 'letter_status_wrong', 'it is Resolved')
      const unknown = call('PATCH', '/api/dlq/hmac/nonsense', { status: 'Expired' })
      await refused(unknown, 404, 'letter_unknown')
    })
  })

  describe('POST /api/dlq/{engine}/{rowKey}/retry', () => {
    it('answers with the message id and the queue', async () => {
      const letter = await capture()
      const { code, data } = await call('POST', `${pathOf(letter)}/retry`)
      expect(code).toBe(200)
      expect(data).toEqual({ messageId: expect.any(String), queue: 'hmac-rotation-queue' })
      const { data: after } = await call('GET', pathOf(letter))
      expect(after).toMatchObject({
        status: 'Resolved',
        resolution: 'retry',
        resolutionNotes: 'Retried',
        resolvedBy: 'nell',
        sentAs: data.messageId,
        sentTo: 'hmac-rotation-queue',
      })
      await refused(call('POST', `${pathOf(letter)}/retry`, {}), 409, 'letter_status_wrong', 'it is Resolved')
    })

    it('shows with dryRun what it would send, and writes nothing', async () => {
      const letter = await capture({ originalMessage: 'old' })
      const before = await call('GET', pathOf(letter))
      const dry = (body?: object) => call('POST', `${pathOf(letter)}/retry?dryRun=true`, body)
      expect((await dry()).data).toEqual({
        dryRun: true,
        queue: 'hmac-rotation-queue',
        payload: 'old',
        payloadEncoding: 'utf8',
        payloadSha256: sha256('old'),
        encoding: '',
        kind: '',
        reference: '',
        correlationId: letter.correlationId,
        edited: false,
      })
      expect((await dry({ payload: '/w==', payloadEncoding: 'base64' })).data).toMatchObject({
        payload: '/w==',
        payloadEncoding: 'base64',
        payloadSha256: sha256(Buffer.of(255)),
        edited: true,
      })
      expect((await call('GET', pathOf(letter))).data).toEqual(before.data)
    })

    it('sends what was edited', async () => {
      const letter = await capture({ originalMessage: 'old' })
      const edit = { payload: 'new', notes: 'mended' }
      expect((await call('POST', `${pathOf(letter)}/retry?dryRun=false`, edit)).code).toBe(200)
      const { data } = await call('GET', pathOf(letter))
      expect(data).toMatchObject({
        originalMessage: 'old',
        editedMessage: 'new',
        editedMessageEncoding: 'utf8',
        resolutionNotes: 'mended',
      })
    })

    it('refuses what it cannot send', async () => {
      const letter = await capture()
      const retry = (body: unknown, query = '') => call('POST', `${pathOf(letter)}/retry${query}`, body)
      await refused(retry({}, '?dryRun=yes'), 400, 'parameter_invalid', 'dryRun is invalid')
      await refused(retry({}, '?dry=true'), 400, 'parameter_invalid', 'dry is invalid')
      await refused(retry({ payload: 5 }), 400, 'parameter_invalid', 'payload is invalid')
      await refused(retry({ payload: '*', payloadEncoding: 'base64' }), 400, 'parameter_invalid', 'base64')
      await refused(retry({ payload: 'a', payloadEncoding: 'rot13' }), 400, 'parameter_invalid')
      await refused(retry({ payloadEncoding: 'utf8' }), 400, 'parameter_invalid', 'without payload')
      await refused(retry({ notes: 'x'.repeat(4_001) }), 400, 'parameter_invalid', 'notes is invalid')
      await refused(retry({ notes: 'a\0b' }), 400, 'parameter_invalid', 'null character')
      await refused(retry({ payoad: 'x' }), 400, 'parameter_invalid', 'payoad is invalid')
      await refused(retry('nonsense'), 400, 'json_malformed')
      await refused(retry({ payload: 'x'.repeat(1_048_576) }), 413, 'body_too_large')
      await refused(call('POST', '/api/dlq/hmac/nonsense/retry'), 404, 'letter_unknown')
      await refused(call('POST', '/api/dlq/nope/nonsense/retry'), 400, 'engine_unknown')
      const nowhere = await capture({ engine: 'update-publisher' })
      await refused(call('POST', `${pathOf(nowhere)}/retry`), 409, 'letter_without_queue', 'update-publisher')
      const gone = await capture({ originalQueue: 'gone' })
      await refused(call('POST', `${pathOf(gone)}/retry`), 409, 'letter_queue_gone', 'gone')
      await refused(call('POST', `${pathOf(gone)}/retry?dryRun=true`), 409, 'letter_queue_gone')
      expect((await call('GET', pathOf(gone))).data).toMatchObject({ status: 'Pending', version: 1 })
    })
  })

  describe('POST /api/dlq/expire', () => {
    it('expires the old pending letters of an engine, and then of all', async () => {
      const tls = await capture({ engine: 'tls' })
      await capture({ engine: 'alerts' })
      store.clock.advance(3n * DAY)
      const fresh = await capture({ engine: 'tls' })
      const one = await call('POST', '/api/dlq/expire', { olderThanDays: 2, engine: 'tls' })
      expect([one.code, one.data]).toEqual([200, { expired: 1 }])
      const all = await call('POST', '/api/dlq/expire', { olderThanDays: 2 })
      expect(all.data.expired).toBeGreaterThan(0)
      expect((await call('GET', pathOf(tls))).data).toMatchObject({ status: 'Expired', resolvedBy: 'nell' })
      expect((await call('GET', pathOf(fresh))).data.status).toBe('Pending')
    })

    it('refuses anything but a whole number of days and a known engine', async () => {
      for (const olderThanDays of [0, -1, 1.5, '7', null, undefined]) {
        await refused(
          call('POST', '/api/dlq/expire', { olderThanDays }),
          400,
          'parameter_invalid',
          'olderThanDays is invalid',
        )
      }
      await refused(
        call('POST', '/api/dlq/expire', { olderThanDays: 1, engine: 'nope' }),
        400,
        'engine_unknown',
      )
      await refused(
        call('POST', '/api/dlq/expire', { olderThanDays: 1, Engine: 'tls' }),
        400,
        'parameter_invalid',
      )
      await refused(call('POST', '/api/dlq/expire'), 400, 'json_malformed')
    })
  })

  describe('an Idempotency-Key', () => {
    const keyed = (key: string, method: 'POST' | 'PATCH', url: string, body?: unknown, as = 'nell') =>
      call(method, url, body, { 'idempotency-key': key, authorization: `Bearer ${as}` })

    it('gives the first answer of a retry again, to a hundred at once', async () => {
      const letter = await capture()
      const answers = await Promise.all(
        Array.from({ length: 100 }, () => keyed('k-1', 'POST', `${pathOf(letter)}/retry`)),
      )
      expect(new Set(answers.map(({ code }) => code))).toEqual(new Set([200]))
      expect(new Set(answers.map(({ data }) => data.messageId)).size).toBe(1)
    })

    it('gives the first answer of a capture again, with its status', async () => {
      const body = report()
      const first = await keyed('k-2', 'POST', '/api/dlq', body)
      const second = await keyed('k-2', 'POST', '/api/dlq', body)
      expect([first.code, second.code]).toEqual([201, 201])
      expect(second.data).toEqual(first.data)
    })

    it('gives the first answer of a change and of an expiry again', async () => {
      const letter = await capture()
      const body = { status: 'Resolved', resolutionNotes: 'once' }
      const first = await keyed('k-3', 'PATCH', pathOf(letter), body)
      expect((await keyed('k-3', 'PATCH', pathOf(letter), body)).data).toEqual(first.data)
      const old = await keyed('k-3', 'POST', '/api/dlq/expire', { olderThanDays: 1 })
      await capture({ lastFailureAtUtc: '2020-01-01T00:00:00Z' })
      expect((await keyed('k-3', 'POST', '/api/dlq/expire', { olderThanDays: 1 })).data).toEqual(old.data)
    })

    it('keeps nothing of a refusal', async () => {
      const letter = await capture()
      await refused(keyed('k-4', 'PATCH', pathOf(letter), { status: 'Pending' }), 409, 'letter_status_wrong')
      expect((await keyed('k-4', 'PATCH', pathOf(letter), { status: 'Expired' })).code).toBe(200)
    })

    it('is forgotten after a day', async () => {
      const body = report()
      await keyed('k-5', 'POST', '/api/dlq', body)
      store.clock.advance(DAY + 1n)
      expect((await keyed('k-5', 'POST', '/api/dlq', body)).code).toBe(200)
    })

    it('is not looked at by a dry run', async () => {
      const letter = await capture()
      const dry = () => keyed('k-6', 'POST', `${pathOf(letter)}/retry?dryRun=true`)
      expect((await dry()).data.dryRun).toBe(true)
      expect((await keyed('k-6', 'POST', `${pathOf(letter)}/retry`)).data.messageId).toBeDefined()
      await refused(dry(), 409, 'letter_status_wrong')
    })

    it('must be one', async () => {
      await refused(keyed('a b', 'POST', '/api/dlq', report()), 400, 'parameter_invalid', 'Idempotency-Key')
    })
  })

  describe('who may do what', () => {
    it('lets viewers look and operators act', async () => {
      const letter = await capture()
      const guest = { authorization: 'Bearer guest' }
      expect((await call('GET', '/api/dlq', undefined, guest)).code).toBe(200)
      expect((await call('GET', pathOf(letter), undefined, guest)).code).toBe(200)
      await refused(call('POST', '/api/dlq', report(), guest), 403, 'role_insufficient')
      await refused(call('PATCH', pathOf(letter), { status: 'Expired' }, guest), 403, 'role_insufficient')
      await refused(call('POST', `${pathOf(letter)}/retry`, undefined, guest), 403, 'role_insufficient')
      const dryRun = call('POST', `${pathOf(letter)}/retry?dryRun=true`, undefined, guest)
      await refused(dryRun, 403, 'role_insufficient')
      await refused(call('POST', '/api/dlq/expire', { olderThanDays: 1 }, guest), 403, 'role_insufficient')
      await refused(call('GET', '/api/dlq', undefined, { authorization: 'Bearer x' }), 401, 'token_unknown')
    })

    it('tells the methods that a path has', async () => {
      const answer = await call('DELETE', '/api/dlq')
      expect([answer.code, answer.error.code, answer.headers.allow]).toEqual([
        405,
        'method_unknown',
        'GET, POST',
      ])
    })

    it('refuses everything while the server stops', async () => {
      stopping = true
      await refused(call('GET', '/api/dlq'), 503, 'service_stopping')
      stopping = false
    })
  })
})
