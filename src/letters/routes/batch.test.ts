import { createHash } from 'node:crypto'
import Fastify, { type FastifyInstance } from 'fastify'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { insistOnDocumentedStatuses } from '../../../test/world/documented.ts'
import { LetterStore } from '../../../test/world/letter-store.ts'
import { stores } from '../../../test/world/stores.ts'
import { serveApi } from '../../api/calls.ts'
import { gate } from '../../http/gate.ts'
import { letterCalls } from '../routes.ts'

const token = (name: string, role: 'viewer' | 'operator') => ({
  name,
  role,
  sha256: createHash('sha256').update(name).digest('hex'),
})

describe.each(stores)('POST /api/dlq:batch on $name', (kind) => {
  let store: LetterStore
  let app: FastifyInstance
  let transactions = 0
  let sources = 0

  beforeAll(async () => {
    store = await LetterStore.open(kind)
    store.db.onCall(({ writes }) => {
      if (writes) transactions++
    })
    app = Fastify({ exposeHeadRoutes: false })
    insistOnDocumentedStatuses(app)
    app.addHook('onRequest', gate([token('nell', 'operator'), token('guest', 'viewer')], store.clock))
    const { letters, clock } = store
    serveApi(app, { clock, stopping: () => false }, letterCalls(letters, clock))
  })
  afterAll(async () => {
    const { counted, real } = await store.statuses()
    await app?.close()
    await store?.close()
    expect(counted).toEqual(real)
  })

  const post = async (body: unknown, headers: Record<string, string> = {}, path = '/api/dlq:batch') => {
    const reply = await app.inject({
      method: 'POST',
      url: path,
      headers: { authorization: 'Bearer nell', 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
    })
    return { ...reply.json(), code: reply.statusCode }
  }
  const report = (changes: object = {}) => ({
    engine: 'hmac',
    originalMessage: '{"rotate":true}',
    errorMessage: 'no key',
    sourceId: `source-${++sources}`,
    ...changes,
  })
  const many = (count: number) => Array.from({ length: count }, () => report())
  const results = (answer: { data: { results: { outcome: string }[] } }) =>
    answer.data.results.map(({ outcome }) => outcome)

  it('files all in one transaction, and tells of each in their order', async () => {
    const letters = many(1_000)
    transactions = 0
    const answer = await post({ letters })
    expect([answer.code, transactions]).toEqual([200, 1])
    expect(answer.data).toMatchObject({ created: 1_000, known: 0, refused: 0 })
    const filed = answer.data.results.map(({ letter }: { letter: { sourceId: string } }) => letter.sourceId)
    expect(filed).toEqual(letters.map(({ sourceId }) => sourceId))
    const [first] = answer.data.results
    expect(first).toEqual({
      outcome: 'created',
      letter: {
        ...{ engine: 'hmac', sourceId: letters[0]?.sourceId, status: 'Pending' },
        rowKey: expect.stringMatching(/^publisher-/),
      },
    })
    // Those of one instance go back in the order of the list.
    const keys: string[] = answer.data.results.map(
      ({ letter }: { letter: { rowKey: string } }) => letter.rowKey,
    )
    expect(keys).toEqual(keys.toSorted())
    const { letter, history } = await store.letters.get({ engine: 'hmac', rowKey: first.letter.rowKey })
    expect(Buffer.from(letter.payload).toString()).toBe('{"rotate":true}')
    expect(history.map(({ operation, actor }) => [operation, actor])).toEqual([['capture', 'nell']])
  })

  it('tells the letters that there are as known, also those of the same batch', async () => {
    const [one, two] = [report(), report()]
    expect((await post(one, {}, '/api/dlq')).code).toBe(201)
    const newer = { ...one, lastFailureAtUtc: '2027-01-15T09:30:00Z', errorMessage: 'still no key' }
    const answer = await post({ letters: [one, two, two, newer] })
    expect(results(answer)).toEqual(['known', 'created', 'known', 'known'])
    expect(answer.data).toMatchObject({ created: 1, known: 3, refused: 0 })
    const [first, second, third, fourth] = answer.data.results
    expect([third.letter, fourth.letter]).toEqual([second.letter, first.letter])
    const { failures } = await store.letters.get(first.letter)
    expect(failures.map(({ errorMessage }) => errorMessage)).toEqual(['no key', 'still no key'])
  })

  it('refuses at their places what cannot be filed, as a call of its own would, and files the others', async () => {
    const wrong = [
      report({ engine: 'unheard-of' }),
      report({ sourceId: undefined }),
      report({ errorClass: null }),
      report({ tpyo: 1 }),
      report({ originalMessage: '***', originalMessageEncoding: 'base64' }),
    ]
    const good = many(2)
    const answer = await post({ letters: [good[0], ...wrong, 'no report', null, good[1]] })
    expect(results(answer)).toEqual(['created', ...Array(7).fill('refused'), 'created'])
    expect(answer.data).toMatchObject({ created: 2, known: 0, refused: 7 })
    const errors = answer.data.results.map(({ error }: { error?: unknown }) => error)
    for (const [i, body] of wrong.entries())
      expect(errors[i + 1]).toEqual((await post(body, {}, '/api/dlq')).error)
    expect(errors[6].code).toBe('parameter_invalid')
  })

  it('has at most 20 different failures of a source id, and any number of repetitions', async () => {
    const one = report()
    const different = Array.from({ length: 22 }, (_, i) => ({ ...one, dequeueCount: i + 1 }))
    const answer = await post({ letters: [...different, ...many(1), one, one] })
    const others = ['refused', 'refused', 'created', 'known', 'known']
    expect(results(answer)).toEqual(['created', ...Array(19).fill('known'), ...others])
    expect(answer.data.results[20].error).toEqual({
      code: 'parameter_invalid',
      message:
        'sourceId is invalid; it has 20 other failures in this batch, which is the most; send this one in another',
      details: expect.anything(),
    })
    expect(results(await post({ letters: different.slice(20) }))).toEqual(['known', 'known'])
    const { failures } = await store.letters.get(answer.data.results[0].letter)
    expect(failures).toHaveLength(22)
  })

  it.each([
    ['none', {}],
    ['null', { letters: null }],
    ['no list', { letters: { engine: 'hmac' } }],
    ['an empty list', { letters: [] }],
    ['one too many', { letters: Array.from({ length: 1_001 }, () => 0) }],
    ['another field', { letters: [{}], engine: 'hmac' }],
  ])('refuses as a whole: %s', async (_, body) => {
    const { code, error } = await post(body)
    expect([code, error.code]).toEqual([400, 'parameter_invalid'])
  })

  it('gives the first answer again under an idempotency key', async () => {
    const body = { letters: [report(), report({ engine: 7 }), report()] }
    const key = { 'idempotency-key': 'batch-1' }
    const first = await post(body, key)
    expect(results(first)).toEqual(['created', 'refused', 'created'])
    const twins = await Promise.all([post(body, key), post(body, key)])
    for (const again of twins) expect([again.code, again.data]).toEqual([200, first.data])
    // Without it they are known.
    expect(results(await post(body))).toEqual(['known', 'refused', 'known'])
  })

  it('is for operators, and takes no other method', async () => {
    const { code } = await post({ letters: many(1) }, { authorization: 'Bearer guest' })
    expect(code).toBe(403)
    const { statusCode, headers } = await app.inject({
      method: 'PUT',
      url: '/api/dlq:batch',
      headers: { authorization: 'Bearer nell' },
    })
    expect([statusCode, headers.allow]).toEqual([405, 'POST'])
  })
})
