import { createHash } from 'node:crypto'
import Fastify, { type FastifyInstance } from 'fastify'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { insistOnDocumentedStatuses } from '../../test/world/documented.ts'
import { LetterStore } from '../../test/world/letter-store.ts'
import { stores } from '../../test/world/stores.ts'
import { serveApi } from '../api/calls.ts'
import { silentLog } from '../core/log.ts'
import { gate } from '../http/gate.ts'
import { StoreUnavailable, sql } from '../store/database.ts'
import { verifyCalls } from './routes.ts'
import { VerifyRun } from './verify-run.ts'

const token = (name: string, role: 'operator' | 'admin') => ({
  name,
  role,
  sha256: createHash('sha256').update(name).digest('hex'),
})

const FORGET = sql('test.forgetCaptures', 'DELETE FROM bartleby.history WHERE letter_version = 1')

describe.each(stores)('verify on a server, on $name', (store) => {
  let place: LetterStore
  let app: FastifyInstance
  let run: VerifyRun
  /** What the next run has to wait for. */
  let waiting: () => Promise<void> = async () => {}
  const logged: string[] = []

  beforeAll(async () => {
    place = await LetterStore.open(store)
    const { clock, db } = place
    run = new VerifyRun({
      lend: async (work) => {
        await waiting()
        return work(db)
      },
      clock,
      log: { ...silentLog, error: (_, message) => logged.push(message) },
    })
    app = Fastify({ exposeHeadRoutes: false })
    insistOnDocumentedStatuses(app)
    app.addHook('onRequest', gate([token('work', 'operator'), token('rule', 'admin')], clock))
    serveApi(app, { clock, stopping: () => false }, verifyCalls(run))
    for (let i = 0; i < 7; i++) await place.letters.capture(place.report())
  })

  afterAll(async () => {
    await run?.stop()
    await app?.close()
    await place?.close()
  })

  const call = async (method: 'GET' | 'POST', as = 'rule') => {
    const reply = await app.inject({ method, url: '/api/verify', headers: { authorization: `Bearer ${as}` } })
    return { ...reply.json(), code: reply.statusCode }
  }
  const ended = () =>
    expect.poll(async () => (await call('GET')).data, { interval: 5 }).not.toMatchObject({ state: 'running' })

  it('has not run before somebody asks for it', async () => {
    expect((await call('GET', 'work')).data).toEqual({
      state: 'never',
      startedAtUtc: null,
      finishedAtUtc: null,
      progress: null,
      error: null,
      checks: [],
    })
  })

  it('is for admins to start', async () => {
    expect((await call('POST', 'work')).code).toBe(403)
    expect((await call('GET')).data.state).toBe('never')
  })

  it('runs one at a time, in the background, and remembers what it found', async () => {
    const { promise, resolve } = Promise.withResolvers<void>()
    waiting = () => promise
    const started = await call('POST')
    expect([started.code, started.data]).toEqual([
      200,
      expect.objectContaining({
        state: 'running',
        startedAtUtc: '2027-01-15T08:00:00.000000Z',
        finishedAtUtc: null,
        progress: { label: expect.any(String), done: 0, expected: 0 },
      }),
    ])
    place.clock.advance(1_000_000n)
    // It is under way already: nothing begins anew.
    expect((await call('POST')).data.startedAtUtc).toBe('2027-01-15T08:00:00.000000Z')
    resolve()
    await ended()
    const { data } = await call('GET', 'work')
    expect(data).toMatchObject({
      state: 'done',
      startedAtUtc: '2027-01-15T08:00:00.000000Z',
      finishedAtUtc: '2027-01-15T08:00:01.000000Z',
      progress: null,
      error: null,
    })
    expect(data.checks.map(({ id }: { id: string }) => id)).toEqual(
      expect.arrayContaining(['I2', 'I6', 'W1', 'K3']),
    )
    expect(data.checks).toEqual(
      data.checks.map(() => expect.objectContaining({ holds: true, findings: 0, samples: [] })),
    )
    expect(logged).toEqual([])
  })

  it('counts what it finds, and shows the first five', async () => {
    await place.db.session('test.break', (session) => session.run(FORGET))
    await call('POST')
    await ended()
    const { state, checks } = (await call('GET')).data
    expect(state).toBe('done')
    const broken = checks.find(({ id }: { id: string }) => id === 'I2')
    expect(broken).toMatchObject({ holds: false, findings: 7 })
    expect(broken.title).toContain('a source id has one letter')
    expect(broken.samples).toHaveLength(5)
    expect(broken.samples[0]).toMatch(
      /^the capture of letter \d+ is not in history \(letter=\d+, engine=hmac, sourceId=/,
    )
    expect(logged).toEqual([expect.stringContaining('the store breaks its promises')])
  })

  it('says that it could not be done when the store fails, and leaves the reason to the log', async () => {
    waiting = () => Promise.reject(new StoreUnavailable('connection to 10.0.0.7 refused'))
    logged.length = 0
    await call('POST')
    await ended()
    const { data } = await call('GET')
    expect(data).toMatchObject({ state: 'failed', checks: [], progress: null })
    expect(data.error).toMatch(/could not be read/)
    expect(data.error).not.toContain('10.0.0.7')
    expect(logged).toEqual(['the store could not be verified'])
  })

  it('ends when the office stops, and does not start again', async () => {
    const { promise, resolve } = Promise.withResolvers<void>()
    waiting = () => promise
    logged.length = 0
    await call('POST')
    const stopped = run.stop()
    resolve()
    await stopped
    expect((await call('POST')).data.state).toBe('failed')
    expect(logged).toEqual([])
  })
})
