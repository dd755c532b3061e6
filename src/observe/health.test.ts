import { afterEach, describe, expect, it } from 'vitest'
import { closeServers, scriptedServer } from '../../test/harness/scripted-server.ts'
import { instant } from '../core/clock.ts'
import { VERSION } from '../core/version.ts'
import type { IntakeStanding } from '../sources/kafka/ports.ts'
import type { HealthStatus } from '../sources/outbox/health.ts'
import type { OutboxReading } from '../sources/outbox/readings.ts'
import { healthBody, readyBody } from './health.ts'

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

describe('health with outboxes', () => {
  const TIME = '2027-01-15T08:00:00Z'
  const meter: OutboxReading['meter'] = {
    dispatched: 0,
    failures: 0,
    duplicates: 0,
    conflicts: 0,
    windowSeconds: 60,
    throughputPerSecond: 0,
    failureRatio: 0,
    attempts: 0,
    durations: { bounds: [], counts: [0], sum: 0 },
  }
  const backlog = { backlog: 0, failedPending: 0, oldestAgeSeconds: 0, dead: 0 }
  const reading = (outbox: string, status: HealthStatus, reasons: readonly string[] = []): OutboxReading => ({
    outbox,
    looked: { ok: true, backlog },
    meter,
    health: { status, reasons },
  })

  it('is the same to the byte where there are none', () => {
    expect(JSON.stringify(healthBody(true, TIME, []))).toBe(
      `{"status":"pass","version":"${VERSION}","checks":{"queues:storage":[{"componentType":"datastore","status":"pass","time":"${TIME}"}]}}`,
    )
    expect(JSON.stringify(healthBody(false, TIME))).toBe(
      `{"status":"fail","version":"${VERSION}","checks":{"queues:storage":[{"componentType":"datastore","status":"fail","time":"${TIME}","output":"storage check failed"}]}}`,
    )
  })

  it('has a check for each, and passes when all are well', () => {
    expect(healthBody(true, TIME, [reading('orders', 'ok')])).toMatchObject({
      status: 'pass',
      checks: {
        'queues:storage': [{ status: 'pass' }],
        'outbox:orders': [{ componentType: 'component', status: 'pass', time: TIME }],
      },
    })
  })

  it('warns of those that are not well, and fails only with the store', () => {
    const late = reading('late', 'degraded', ['backlog is 2, above 1', 'failureRatio is 0.2, above 0.1'])
    const stuck = reading('stuck', 'unhealthy', ['backlog is 9, above 8'])
    expect(healthBody(true, TIME, [late, stuck, reading('orders', 'ok')])).toMatchObject({
      status: 'warn',
      checks: {
        'outbox:late': [{ status: 'warn', output: 'backlog is 2, above 1; failureRatio is 0.2, above 0.1' }],
        'outbox:stuck': [{ status: 'fail', output: 'backlog is 9, above 8' }],
        'outbox:orders': [{ status: 'pass' }],
      },
    })
    expect(healthBody(false, TIME, [stuck]).status).toBe('fail')
  })

  it('does not tell everybody what a database said', () => {
    const away: OutboxReading = {
      ...reading('orders', 'unhealthy', ['its database cannot be read: no route to 10.0.0.5']),
      looked: { ok: false, trouble: { what: 'its database cannot be read', detail: 'no route to 10.0.0.5' } },
    }
    expect(healthBody(true, TIME, [away]).checks).toMatchObject({
      'outbox:orders': [{ status: 'fail', output: 'its database cannot be read' }],
    })
  })
})

describe('health with webhooks', () => {
  it('warns of paused consumers without naming them, and still serves', () => {
    const body = healthBody(true, '2027-01-15T08:00:00Z', [], 2)
    expect(body).toMatchObject({
      status: 'warn',
      checks: {
        'webhooks:deliveries': [
          {
            status: 'warn',
            output: 'deliveries to 2 consumers are paused, because all of them failed',
          },
        ],
      },
    })
    expect(healthBody(false, '2027-01-15T08:00:00Z', [], 2).status).toBe('fail')
  })
})

describe('health with Kafka', () => {
  const TIME = '2027-01-15T08:00:00Z'
  const well: IntakeStanding = {
    state: 'reading',
    troubles: [],
    missingTopics: [],
    partitions: [],
    since: instant(0n),
  }
  const partition = {
    topic: 'secret_dlq',
    partition: 0,
    committed: 1n,
    end: 1n,
    trouble: 'a batch of secret_dlq',
  }
  const intake = (standing: IntakeStanding) => healthBody(true, TIME, [], 0, standing).checks['kafka:intake']

  it('has a check for intake, and passes when all is well', () => {
    expect(healthBody(true, TIME, [], 0, well).status).toBe('pass')
    expect(intake(well)).toEqual([{ componentType: 'component', status: 'pass', time: TIME }])
    expect(intake({ ...well, state: 'starting' })).toMatchObject([{ status: 'pass' }])
    expect(readyBody(true, well)).toEqual({ status: 'pass' })
    expect(readyBody(true)).toEqual({ status: 'pass' })
  })

  it.each([
    [{ ...well, state: 'degraded' as const }, 'dead events are not taken in as they should'],
    [{ ...well, troubles: ['broker-1:9092 says no'] }, 'dead events are not taken in as they should'],
    [{ ...well, missingTopics: ['secret_dlq'] }, '1 topic does not exist'],
    [
      { ...well, missingTopics: ['secret_dlq', 'b'], partitions: [partition] },
      '2 topics do not exist; 1 partition has trouble',
    ],
  ])('warns of what is wrong without naming anything, and still serves: %#', (standing, output) => {
    expect(healthBody(true, TIME, [], 0, standing).status).toBe('warn')
    expect(intake(standing)).toMatchObject([{ status: 'warn', output }])
    expect(readyBody(true, standing)).toEqual({ status: 'pass', degraded: ['kafka'] })
    expect(readyBody(false, standing)).toEqual({ status: 'fail', degraded: ['kafka'] })
    expect(healthBody(false, TIME, [], 0, standing).status).toBe('fail')
  })
})
