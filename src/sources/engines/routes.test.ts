import { createHash } from 'node:crypto'
import Fastify, { type FastifyInstance } from 'fastify'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { LetterStore } from '../../../test/world/letter-store.ts'
import { stores } from '../../../test/world/stores.ts'
import { later } from '../../core/clock.ts'
import { type HistoryEntry, recordHistory } from '../../history/record.ts'
import { gate } from '../../http/gate.ts'
import { EngineDirectory } from '../../queues/engines/engine-directory.ts'
import { engineRoutes } from './routes.ts'
import { EngineStatistics, type OperationStatistics } from './statistics.ts'

const SECOND = 1_000_000n
const HOUR = 3_600n * SECOND
const TOKENS = [
  { name: 'look', role: 'viewer', sha256: createHash('sha256').update('look').digest('hex') },
] as const

type Item = {
  readonly name: string
  readonly queue: string | null
  readonly pending: number
  readonly operations: readonly OperationStatistics[]
}

describe.each(stores)('engines over HTTP on $name', (store) => {
  let place: LetterStore
  let app: FastifyInstance
  let runs = 0

  beforeAll(async () => {
    place = await LetterStore.open(store)
    const { clock, db, letters } = place
    app = Fastify({ exposeHeadRoutes: false })
    app.addHook('onRequest', gate(TOKENS, clock))
    await app.register(engineRoutes, {
      engines: new EngineDirectory({
        context: 'publisher',
        definitions: { ledger: { queue: 'entries', operations: ['post'] } },
      }),
      statistics: new EngineStatistics(db, clock),
      numbers: letters.numbers,
      clock,
      stopping: () => false,
    })
  })

  afterAll(async () => {
    await app?.close()
    await place?.close()
  })

  const read = async (): Promise<{ readonly items: readonly Item[]; readonly basis: string }> => {
    const reply = await app.inject({ url: '/api/engines', headers: { authorization: 'Bearer look' } })
    expect(reply.statusCode).toBe(200)
    return reply.json().data
  }
  const engine = async (name: string): Promise<Item> => {
    const found = (await read()).items.find((item) => item.name === name)
    if (found === undefined) throw new Error(`there is no engine '${name}'`)
    return found
  }
  const record = (entries: readonly Partial<HistoryEntry>[]) =>
    place.db.transaction('test.record', (tx) =>
      recordHistory(
        tx,
        entries.map((entry) => ({
          engine: 'ledger',
          operation: 'post',
          status: 'Succeeded',
          instanceId: null,
          correlationId: `run-${++runs}`,
          createdAt: place.clock.now(),
          durationMs: 0,
          ...entry,
        })),
      ),
    )

  it('are all there before anything ran, with their own operations', async () => {
    const { items, basis } = await read()
    expect(items.map(({ name }) => name)).toEqual(
      expect.arrayContaining([
        'hmac',
        'ledger',
        'queues',
        'outbox',
        'webhooks',
        'kafka',
        'azure',
        'http',
        'office',
      ]),
    )
    expect(items.find(({ name }) => name === 'ledger')).toEqual({
      name: 'ledger',
      queue: 'entries',
      pending: 0,
      operations: [
        {
          operation: 'post',
          runs: 0,
          succeeded: 0,
          failed: 0,
          successRate: null,
          p50Ms: null,
          p95Ms: null,
          p99Ms: null,
          lastAtUtc: null,
        },
      ],
    })
    expect(items.find(({ name }) => name === 'queues')).toMatchObject({ queue: null, operations: [] })
    expect(basis).toBe('at most the newest 1,000 runs of each operation, of the last 24 hours')
  })

  it('tell how their runs of the last day went, at most every few seconds', async () => {
    const now = place.clock.now()
    await record([
      ...Array.from({ length: 95 }, (_, i) => ({ durationMs: i + 1 })),
      ...Array.from({ length: 5 }, (_, i) => ({ durationMs: 1_000 + i, status: 'Failed' as const })),
      // Too long ago.
      ...Array.from({ length: 7 }, () => ({ createdAt: later(now, -25n * HOUR), durationMs: 9_999 })),
    ])
    expect((await engine('ledger')).operations[0]).toMatchObject({ runs: 0 })
    place.clock.advance(5n * SECOND)
    expect((await engine('ledger')).operations).toEqual([
      {
        operation: 'post',
        runs: 100,
        succeeded: 95,
        failed: 5,
        successRate: 0.95,
        p50Ms: 50,
        p95Ms: 95,
        p99Ms: 1_003,
        lastAtUtc: '2027-01-15T08:00:00.000000Z',
      },
    ])
  })

  it('count their pending letters at once, and show acts on them behind their own operations', async () => {
    await place.letters.capture(place.report({ engine: 'hmac' }))
    expect(await engine('hmac')).toMatchObject({ pending: 1, queue: 'hmac-rotation-queue' })
    place.clock.advance(5n * SECOND)
    const { operations } = await engine('hmac')
    expect(operations.map(({ operation, runs }) => [operation, runs])).toEqual([
      ['rotate', 0],
      ['notify', 0],
      ['capture', 1],
    ])
  })

  it('are shown also when they are defined no more, so that the numbers add up', async () => {
    await record([{ engine: 'retired', operation: 'sing', durationMs: 3 }])
    place.clock.advance(5n * SECOND)
    expect(await engine('retired')).toMatchObject({
      queue: null,
      operations: [{ operation: 'sing', runs: 1, p50Ms: 3, p99Ms: 3 }],
    })
  })

  it('are judged by their newest thousand runs, whatever came of them', async () => {
    const now = place.clock.now()
    // Failures long ago, and a thousand successes since.
    await record(
      Array.from({ length: 20 }, (_, i) => ({
        engine: 'tls',
        operation: 'renew',
        status: 'Failed' as const,
        createdAt: later(now, -HOUR + BigInt(i)),
      })),
    )
    await record(
      Array.from({ length: 995 }, (_, i) => ({
        engine: 'tls',
        operation: 'renew',
        createdAt: later(now, BigInt(i) - 1_000n),
      })),
    )
    place.clock.advance(5n * SECOND)
    expect((await engine('tls')).operations[0]).toMatchObject({ runs: 1_000, succeeded: 995, failed: 5 })
  })
})
