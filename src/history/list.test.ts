import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type FreshStore, stores } from '../../test/world/stores.ts'
import { type Instant, instant, later } from '../core/clock.ts'
import { TestClock } from '../core/test-clock.ts'
import { MIGRATIONS } from '../migrations.ts'
import { EngineDirectory } from '../queues/engines/engine-directory.ts'
import type { Database } from '../store/database.ts'
import { migrate } from '../store/migrations.ts'
import { openDatabase } from '../store/open.ts'
import type { HistoryFilter } from './entry.ts'
import { History } from './history.ts'
import { type HistoryEntry, recordHistory } from './record.ts'

const START = instant(1_800_000_000_000_000n)

/** A few hundred entries of everything, several of them in the same microsecond. */
function mixedEntries(): HistoryEntry[] {
  const kinds = [
    ['hmac', 'rotate'],
    ['hmac', 'notify'],
    ['tls', 'renew'],
    ['queues', 'capture'],
    ['spn', 'rotate'],
  ] as const
  return Array.from({ length: 600 }, (_, i): HistoryEntry => {
    const [engine, operation] = kinds[(i * 7) % kinds.length] ?? kinds[0]
    return {
      engine,
      operation,
      status: i % 3 === 0 ? 'Failed' : 'Succeeded',
      // Every fourth has no instance: its correlation id stands for it.
      instanceId: i % 4 === 0 ? null : `instance-${i % 5}`,
      correlationId: i % 4 === 0 ? `instance-${i % 3}` : `correlation-${i % 50}`,
      createdAt: later(START, BigInt(Math.floor(i / 6)) * 1_000n),
      durationMs: i,
    }
  })
}

describe.each(stores)('a list of history on $name', (store) => {
  let place: FreshStore
  let db: Database
  let history: History
  let all: Awaited<ReturnType<History['list']>>['items']

  const record = async (entries: readonly HistoryEntry[]) => {
    for (let i = 0; i < entries.length; i += 1_000) {
      await db.transaction('test.record', (tx) => recordHistory(tx, entries.slice(i, i + 1_000)))
    }
  }

  const walk = async (filter: HistoryFilter, limit: number) => {
    const items = []
    let continuationToken: string | null = null
    let pages = 0
    do {
      const page: Awaited<ReturnType<History['list']>> = await history.list(filter, {
        limit,
        continuationToken,
      })
      expect(page.items.length).toBeLessThanOrEqual(limit)
      items.push(...page.items)
      pages += 1
      continuationToken = page.continuationToken
    } while (continuationToken !== null)
    return { items, pages }
  }

  beforeAll(async () => {
    place = await store.fresh()
    db = openDatabase(place.url, { poolSize: 4 })
    await migrate(db, MIGRATIONS)
    const clock = new TestClock()
    clock.freeze(START)
    history = new History(db, clock, new EngineDirectory({ context: 'publisher' }))
    await record(mixedEntries())
    all = (await walk({}, 100)).items
  })

  afterAll(async () => {
    await db?.close()
    await place?.dispose()
  })

  it('has everything once, the newest first', () => {
    expect(all).toHaveLength(600)
    expect(all.map((entry) => entry.durationMs).sort((a, b) => a - b)).toEqual(all.map((_, i) => i))
    const times = all.map((entry) => entry.createdAt)
    expect(times).toEqual([...times].sort((a, b) => (a < b ? 1 : a > b ? -1 : 0)))
  })

  const at = (step: bigint): Instant => later(START, step * 1_000n)
  const filters: HistoryFilter[] = [
    { engine: 'hmac' },
    { operation: 'rotate' },
    { status: 'Failed' },
    { engine: 'hmac', operation: 'rotate', status: 'Succeeded' },
    { engine: 'update-publisher' },
    { instanceId: 'instance-1' },
    { instanceId: 'instance-4', engine: 'hmac' },
    { instanceId: 'instance-0', status: 'Failed', operation: 'capture' },
    { correlationId: 'correlation-7' },
    { correlationId: 'instance-2', instanceId: 'instance-2' },
    { correlationId: 'correlation-7', engine: 'tls', instanceId: 'instance-2' },
    { correlationId: 'nobody' },
    { from: at(20n), to: at(30n) },
    { from: at(20n), to: at(20n) },
    { engine: 'queues', from: at(50n) },
    { instanceId: 'instance-1', to: at(50n) },
  ]

  it.each(filters.flatMap((filter) => [7, 100].map((limit) => [filter, limit] as const)))(
    'with %o in pages of %i shows what matches and nothing else',
    async (filter, limit) => {
      const matching = all.filter(
        (entry) =>
          (filter.engine == null || entry.engine === filter.engine) &&
          (filter.operation == null || entry.operation === filter.operation) &&
          (filter.status == null || entry.status === filter.status) &&
          (filter.instanceId == null || entry.instanceId === filter.instanceId) &&
          (filter.correlationId == null || entry.correlationId === filter.correlationId) &&
          (filter.from == null || entry.createdAt >= filter.from) &&
          (filter.to == null || entry.createdAt < filter.to),
      )
      const { items, pages } = await walk(filter, limit)
      expect(items).toEqual(matching)
      expect(pages).toBe(Math.max(1, Math.ceil(matching.length / limit)))
    },
  )

  it('goes on where it was when newer entries come in', async () => {
    const first = await history.list({ engine: 'hmac' }, { limit: 10 })
    const before = all.filter(({ engine }) => engine === 'hmac')
    await record([
      {
        engine: 'hmac',
        operation: 'rotate',
        status: 'Succeeded',
        instanceId: 'late',
        correlationId: 'late',
        createdAt: later(START, 3_600_000_000n),
        durationMs: 0,
      },
    ])
    const second = await history.list(
      { engine: 'hmac' },
      { limit: 10, continuationToken: first.continuationToken },
    )
    expect([...first.items, ...second.items]).toEqual(before.slice(0, 20))
  })

  it('refuses a token of other filters, and engines and operations that are not defined', async () => {
    const { continuationToken } = await history.list({ engine: 'hmac' }, { limit: 1 })
    const refused = (filter: HistoryFilter, token: string | null, code: string) =>
      expect(history.list(filter, { continuationToken: token })).rejects.toMatchObject({ code })
    await refused({}, continuationToken, 'continuation_token_invalid')
    await refused({ engine: 'hmac', from: START }, continuationToken, 'continuation_token_invalid')
    await refused({ engine: 'nope' }, null, 'engine_unknown')
    await refused({ operation: 'nope' }, null, 'operation_unknown')
    await refused({ engine: 'hmac', operation: 'renew' }, null, 'operation_unknown')
  })

  describe('of which much concerns one instance and one operation', () => {
    const entry = (operation: string, instanceId: string, i: number): HistoryEntry => ({
      engine: 'provisioning',
      operation,
      status: 'Succeeded',
      instanceId,
      correlationId: `${operation}-${instanceId}-${i}`,
      createdAt: later(START, 7_200_000_000n + BigInt(i)),
      durationMs: 1,
    })

    beforeAll(async () => {
      const many = Array.from({ length: 11_500 }, (_, i) => i)
      await record([entry('bootstrap-complete', 'busy', 0), entry('webhook-received', 'rare', 1)])
      await record(many.map((i) => entry('webhook-received', 'busy', i + 2)))
      await record(many.map((i) => entry('instance-registered', 'other', i + 2)))
    })

    it('finds a rare operation of the busy instance on the first page', async () => {
      const { items, continuationToken } = await history.list({
        instanceId: 'busy',
        operation: 'bootstrap-complete',
      })
      expect([items.length, continuationToken]).toEqual([1, null])
    })

    it('finds a rare instance of the busy operation on the first page', async () => {
      const { items, continuationToken } = await history.list({
        instanceId: 'rare',
        operation: 'webhook-received',
      })
      expect([items.length, continuationToken]).toEqual([1, null])
    })

    it('ends a page early rather than look through everything, and the next one goes on', async () => {
      const filter = { instanceId: 'busy', operation: 'instance-registered' }
      const first = await history.list(filter)
      expect([first.items.length, first.continuationToken]).toEqual([0, expect.any(String)])
      expect(await walk(filter, 50)).toEqual({ items: [], pages: 2 })
    })
  })
})
