import { createHash } from 'node:crypto'
import { resolve } from 'node:path'
import Fastify from 'fastify'
import { describe, expect, it } from 'vitest'
import { serveApi } from '../api/calls.ts'
import { instant } from '../core/clock.ts'
import { SystemClock } from '../core/system-clock.ts'
import { gate } from '../http/gate.ts'
import { settingsCall, storePlace } from './settings-routes.ts'

const token = (name: string, role: 'viewer' | 'admin') => ({
  name,
  role,
  sha256: createHash('sha256').update(name).digest('hex'),
})

async function settingsFor(
  authorization: string | undefined,
  tokens = [token('look', 'viewer'), token('rule', 'admin')],
) {
  const clock = new SystemClock()
  const app = Fastify({ exposeHeadRoutes: false })
  app.addHook('onRequest', gate(tokens, clock))
  const settings = {
    startedAt: instant(1_800_000_000_000_000n),
    store: 'postgres://app:secret@db.example:6432/letters?sslmode=require&password=secret',
    retentionDays: 30,
    environment: { name: 'production', colour: 'red' },
    tokens,
  }
  serveApi(app, { clock, stopping: () => false }, [settingsCall(settings)])
  const reply = await app.inject({
    url: '/api/settings',
    headers: authorization === undefined ? {} : { authorization },
  })
  return { code: reply.statusCode, text: reply.body, data: reply.json().data }
}

describe('the settings of a server', () => {
  it('are told without secrets', async () => {
    const { data, text } = await settingsFor('Bearer rule')
    expect(data).toEqual({
      version: expect.stringMatching(/^\d+\.\d+\.\d+/),
      node: process.version,
      startedAtUtc: '2027-01-15T08:00:00.000000Z',
      store: { kind: 'postgres', place: 'db.example:6432/letters' },
      retentionDays: 30,
      environment: { name: 'production', colour: 'red' },
      tokens: [
        { name: 'look', role: 'viewer' },
        { name: 'rule', role: 'admin' },
      ],
      tokensConfigured: true,
    })
    expect(text).not.toMatch(/secret|sha256|app:/)
  })

  it('name the owners of tokens to admins only', async () => {
    expect((await settingsFor('Bearer look')).data).toMatchObject({ tokens: null, tokensConfigured: true })
    expect((await settingsFor(undefined)).code).toBe(401)
  })

  it('say so when there are no tokens', async () => {
    expect((await settingsFor(undefined, [])).data).toMatchObject({ tokens: [], tokensConfigured: false })
  })
})

describe('the place of a store', () => {
  it.each([
    ['sqlite::memory:', 'sqlite', 'in memory'],
    ['sqlite:./data/b.db', 'sqlite', resolve('data/b.db')],
    ['sqlite:/var/b.db', 'sqlite', '/var/b.db'],
    ['postgresql://me:pw@[::1]/letters', 'postgres', '[::1]:5432/letters'],
    ['postgres://me:pw@db', 'postgres', 'db:5432/default database'],
    ['postgres:///letters?host=/run/pg&user=me', 'postgres', 'default host:5432/letters'],
  ])('of %s has neither user nor options', (url, kind, place) => {
    expect(storePlace(url)).toEqual({ kind, place })
  })
})
