import { afterEach, describe, expect, it } from 'vitest'
import { closeServers } from '../../../../test/world/scripted-server.ts'
import { consumer, scriptedWebhooks } from '../../../../test/world/webhooks/scripted.ts'
import { Refused } from '../refusal.ts'

afterEach(closeServers)

describe('a job', () => {
  const OWN = { 'x-broker-channel-token': 'tok-en', 'x-broker-consumer-token': 'tok-en' }
  const PATH = '/channel/c/consumer/k'

  it('is moved as its consumer says', async () => {
    const moves: unknown[] = []
    const { app } = await scriptedWebhooks({
      consumers: { get: async (_, id) => consumer(id, 'pull') },
      jobs: {
        move: async (_, id, state, seconds) => void moves.push([id, state, seconds]),
        get: async (_, id) => {
          if (id === 'none') throw new Refused('job_unknown')
          // Only that there is one is looked at.
          return {} as never
        },
      },
    })
    const move = async (id: string, body: string) => {
      const reply = await app.inject({ method: 'POST', url: `${PATH}/job/${id}`, headers: OWN, body })
      return [reply.statusCode, reply.body]
    }
    for (const [body, moved] of [
      ['{"NextState":"INFLIGHT","IncrementalTimeout":10}', ['INFLIGHT', 10]],
      ['{"nextstate":"DEAD","INCREMENTALTIMEOUT":0,"more":1}', ['DEAD', 0]],
      ['{"NextState":null,"IncrementalTimeout":null}', ['', 0]],
      ['{}', ['', 0]],
      ['{"NextState":"INFLIGHT","IncrementalTimeout":2147483647}', ['INFLIGHT', 2_147_483_647]],
    ] as const) {
      expect(await move('j', body)).toEqual([202, ''])
      expect(moves.pop()).toEqual(['j', ...moved])
    }
    for (const body of [
      '{"NextState":"INFLIGHT","IncrementalTimeout":2147483648}',
      '{"NextState":"INFLIGHT","IncrementalTimeout":-5}',
      '{"NextState":"INFLIGHT","IncrementalTimeout":1.5}',
      '{"NextState":"INFLIGHT","IncrementalTimeout":"10"}',
      '{"NextState":5}',
      'notjson',
      '',
      'null',
      '[]',
    ]) {
      expect(await move('j', body)).toEqual([400, 'invalid request body'])
      expect(await move('none', body)).toEqual([404, 'job could not be found'])
    }
    expect(moves).toEqual([])
  })

  it('is listed in the number that is asked for', async () => {
    const limits: number[] = []
    const { app } = await scriptedWebhooks({
      consumers: { get: async (_, id) => consumer(id, 'pull') },
      jobs: {
        queued: async (_, limit) => {
          limits.push(limit)
          return []
        },
      },
    })
    const list = async (query: string) => {
      const reply = await app.inject({ url: `${PATH}/queued-jobs${query}`, headers: OWN })
      return [reply.statusCode, reply.body]
    }
    for (const [query, limit] of [
      ['', 25],
      ['?limit=', 25],
      ['?limit=7&limit=x', 7],
      ['?limit=101', 100],
      ['?limit=99999999999999999999999', 100],
      ['?limit=%2B5', 5],
      ['?limit=0', undefined],
    ] as const) {
      expect(await list(query)).toEqual([200, '{"Result":[]}\n'])
      expect(limits.pop()).toBe(limit)
    }
    for (const limit of ['-1', '1.5', '12abc', '0x10', '+5', '-99999999999999999999999']) {
      expect(await list(`?limit=${limit}`)).toEqual([400, 'invalid query parameter'])
    }
    expect(limits).toEqual([])
  })
})
