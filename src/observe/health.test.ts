import Fastify from 'fastify'
import { afterEach, describe, expect, it } from 'vitest'
import { closeServers, scriptedServer } from '../../test/world/scripted-server.ts'
import type { SourceHealth } from '../api/source-http.ts'
import { SystemClock } from '../core/system-clock.ts'
import { VERSION } from '../core/version.ts'
import { askSources, healthBody, healthRoutes } from './health.ts'

afterEach(closeServers)

describe('health', () => {
  it('has the body of the contract', async () => {
    const { app } = await scriptedServer()
    const reply = await app.inject('/health')
    expect(reply.statusCode).toBe(200)
    expect(reply.headers['content-type']).toBe('application/health+json')
    expect(reply.json()).toEqual({
      status: 'pass',
      version: expect.any(String),
      checks: {
        'queues:storage': [
          { componentType: 'datastore', status: 'pass', time: expect.stringMatching(/^\d{4}-.*Z$/) },
        ],
      },
    })
  })

  it('fails with the store, while the process stays alive', async () => {
    const { app } = await scriptedServer({ ping: () => Promise.reject(new Error('gone')) })
    const reply = await app.inject('/health')
    expect(reply.statusCode).toBe(503)
    expect(reply.json()).toMatchObject({
      status: 'fail',
      checks: { 'queues:storage': [{ status: 'fail', output: 'storage check failed' }] },
    })
    expect((await app.inject('/health/ready')).statusCode).toBe(503)
    expect((await app.inject('/health/live')).statusCode).toBe(200)
  })
})

describe('health of a store that lacks indexes', () => {
  it('warns and names them, and requests are served', async () => {
    const { app } = await scriptedServer({ missingIndexes: ['index letters_newest'] })
    const reply = await app.inject('/health')
    expect(reply.statusCode).toBe(200)
    expect(reply.json()).toMatchObject({
      status: 'warn',
      checks: { 'store:schema': [{ status: 'warn', output: expect.stringContaining('letters_newest') }] },
    })
    expect((await app.inject('/health/ready')).json()).toEqual({ status: 'pass', degraded: ['schema'] })
  })
})

describe('health of what is done every so often', () => {
  const well = { name: 'a', lastRunAt: null, lastTookMs: 1, failures: 3, isFailing: false, lastError: null }
  const lastError = { errorClass: 'RangeError', errorMessage: 'for eyes with a token', errorStack: null }
  const failing = { ...well, name: 'letters.file', isFailing: true, lastError }

  it('warns of a round that failed, by the class of its error alone', async () => {
    const { app } = await scriptedServer({ rounds: [well, failing] })
    const { status, checks } = (await app.inject('/health')).json()
    expect(status).toBe('warn')
    expect(Object.keys(checks)).toEqual(['queues:storage', 'round:letters.file'])
    expect(checks['round:letters.file']).toMatchObject([
      { componentType: 'component', status: 'warn', output: 'the last round failed: RangeError' },
    ])
  })

  it('says nothing of them while the store is away, with which most of them fail', async () => {
    const ping = () => Promise.reject(new Error('gone'))
    const { app } = await scriptedServer({ rounds: [failing], ping })
    expect(Object.keys((await app.inject('/health')).json().checks)).toEqual(['queues:storage'])
  })
})

describe('health with sources', () => {
  const TIME = '2027-01-15T08:00:00Z'
  const checked = (checks: SourceHealth['checks'] & object) => ({ checks })

  it('is the same to the byte where none has anything to tell', () => {
    expect(JSON.stringify(healthBody(true, TIME, []))).toBe(
      `{"status":"pass","version":"${VERSION}","checks":{"queues:storage":[{"componentType":"datastore","status":"pass","time":"${TIME}"}]}}`,
    )
    expect(JSON.stringify(healthBody(false, TIME))).toBe(
      `{"status":"fail","version":"${VERSION}","checks":{"queues:storage":[{"componentType":"datastore","status":"fail","time":"${TIME}","output":"storage check failed"}]}}`,
    )
  })

  it('has a check for each that they tell, and passes when all are well', () => {
    expect(healthBody(true, TIME, [{}, checked({ 'a:b': { status: 'pass', output: null } })])).toEqual({
      status: 'pass',
      version: VERSION,
      checks: {
        'queues:storage': [{ componentType: 'datastore', status: 'pass', time: TIME }],
        'a:b': [{ componentType: 'component', status: 'pass', time: TIME }],
      },
    })
  })

  it('warns of those that are not well, and fails only with the store', () => {
    const late = checked({ 'a:late': { status: 'warn', output: 'backlog is 2' } })
    const stuck = checked({
      'b:stuck': { status: 'fail', output: 'backlog is 9' },
      'b:well': { status: 'pass', output: null },
    })
    expect(healthBody(true, TIME, [late, stuck])).toMatchObject({
      status: 'warn',
      checks: {
        'a:late': [{ status: 'warn', output: 'backlog is 2' }],
        'b:stuck': [{ status: 'fail', output: 'backlog is 9' }],
        'b:well': [{ status: 'pass' }],
      },
    })
    expect(healthBody(false, TIME, [stuck]).status).toBe('fail')
  })

  it.each([true, false])('names those that do not work to who asks whether it is ready: %s', async (pass) => {
    const app = Fastify()
    await app.register(healthRoutes, {
      ping: () => (pass ? Promise.resolve() : Promise.reject(new Error('gone'))),
      stopping: () => false,
      clock: new SystemClock(),
      sources: [{ name: 'a' }, { name: 'b', isDegraded: () => true }, { name: 'c', isDegraded: () => false }],
      missingIndexes: async () => ['index i'],
      rounds: () => [],
    })
    const reply = await app.inject('/health/ready')
    expect([reply.statusCode, reply.json()]).toEqual([
      pass ? 200 : 503,
      { status: pass ? 'pass' : 'fail', degraded: ['b', 'schema'] },
    ])
  })

  it('takes those for well that tell nothing', async () => {
    const off = async () => ({ state: 'off', note: 'not enabled' }) as const
    const sick = () => Promise.reject(new Error('no'))
    const sources = [{ name: 'a' }, { name: 'b', health: off }, { name: 'c', health: sick }]
    expect([...(await askSources(sources, 1))]).toEqual([
      ['a', { state: 'ok', note: null }],
      ['b', { state: 'off', note: 'not enabled' }],
      ['c', { state: 'fail', note: 'how it is could not be found out' }],
    ])
  })
})
