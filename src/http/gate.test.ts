import { createHash } from 'node:crypto'
import { afterEach, describe, expect, it } from 'vitest'
import { closeServers, scriptedServer } from '../../test/world/scripted-server.ts'
import { failure } from '../core/errors.ts'

afterEach(closeServers)

describe('tokens', () => {
  const token = (name: string, role: 'viewer' | 'operator' | 'admin') => ({
    name,
    role,
    sha256: createHash('sha256').update(name).digest('hex'),
  })
  const tokens = [token('look', 'viewer'), token('work', 'operator'), token('rule', 'admin')]
  const nothing = async () => {
    throw failure('queue_unknown', { name: '' })
  }
  const queues = { stats: nothing, complete: nothing, create: nothing }

  it.each([
    ['/v1/queue.stats', [undefined, 401], ['look', 400], ['work', 400], ['rule', 400]],
    ['/v1/queue.complete', [undefined, 401], ['look', 403], ['work', 400], ['rule', 400]],
    ['/v1/queues.create', [undefined, 401], ['look', 403], ['work', 403], ['rule', 400]],
  ] as const)('decide who may call %s', async (url, ...expected) => {
    const { app } = await scriptedServer({ tokens, queues })
    for (const [name, status] of expected) {
      const headers = name === undefined ? {} : { authorization: `Bearer ${name}` }
      const reply = await app.inject({ method: 'POST', url, headers, body: '{}' })
      expect([name, reply.statusCode, reply.json().code]).toEqual([name, status, status])
    }
  })

  it('are asked for everywhere but at the health of the server and its page', async () => {
    const { app } = await scriptedServer({ tokens })
    for (const url of ['/metrics', '/openapi.json', '/docs', '/nothing', '/api/dlq', '/api/kafka']) {
      expect([url, (await app.inject(url)).statusCode]).toEqual([url, 401])
      const headers = { authorization: 'Bearer look' }
      expect((await app.inject({ url, headers })).statusCode).not.toBe(401)
    }
    for (const url of ['/health', '/health/live', '/health/ready', '/']) {
      expect((await app.inject(url)).statusCode).toBe(200)
    }
  })
})
