import { afterEach, describe, expect, it } from 'vitest'
import { closeServers, scriptedServer } from '../http/scripted-server.ts'

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
