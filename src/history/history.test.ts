import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { keysOf } from '../../test/world/row-keys.ts'
import { type FreshStore, stores } from '../../test/world/stores.ts'
import { instant, later } from '../core/clock.ts'
import { TestClock } from '../core/test-clock.ts'
import { MIGRATIONS } from '../migrations.ts'
import { EngineDirectory } from '../queues/engines/engine-directory.ts'
import { type Database, type Integer, sql, type Transaction } from '../store/database.ts'
import { migrate } from '../store/migrations.ts'
import { openDatabase } from '../store/open.ts'
import { History } from './history.ts'
import type { RunReport } from './intake.ts'
import { recordHistory } from './record.ts'
import { FROM_THE_OLDEST, forgetSources, type RemovedHistory, removeHistory } from './retention.ts'

const START = instant(1_800_000_000_000_000n)
const DAY_US = 86_400_000_000n

const countRows = sql(
  'test.history.count',
  'SELECT count(*) AS found FROM bartleby.history WHERE created_at >= $1',
)
const countSources = sql('test.history.sources', 'SELECT count(*) AS found FROM bartleby.history_sources')
const insertLetter = sql(
  'test.history.letter',
  `INSERT INTO bartleby.letters (id, captured_at, first_failure_at, last_failure_at, drawer, version, dequeue_count,
     status, engine, source_id, instance_id, reason, error_class, error_message)
   VALUES ($1, $2, $2, $2, 1, 1, 1, 0, 'hmac', $3, $4, 'failed', '', '')`,
)

describe.each(stores)('the history on $name', (store) => {
  let place: FreshStore
  let db: Database
  let clock: TestClock
  let history: History

  beforeAll(async () => {
    place = await store.fresh()
    db = openDatabase(place.url, { poolSize: 8 })
    await migrate(db, MIGRATIONS)
    clock = new TestClock()
    clock.freeze(START)
    history = new History(db, clock, new EngineDirectory({ context: 'publisher' }))
  })

  afterAll(async () => {
    await db?.close()
    await place?.dispose()
  })

  const report = (rest: Partial<RunReport> = {}): RunReport => ({
    engine: 'hmac',
    operation: 'rotate',
    status: 'Succeeded',
    durationMs: 12,
    ...rest,
  })

  describe('an operation on record', () => {
    it('is found under its row key, with everything that was reported', async () => {
      const { entry, created } = await history.record(
        report({
          instanceId: 'i-1',
          correlationId: 'c/1?',
          actor: 'nell',
          status: 'Failed',
          input: Buffer.from([0, 255, 1]),
          output: Buffer.from('{"n":1}'),
          error: 'no',
        }),
      )
      expect(created).toBe(true)
      expect(entry.rowKey).toMatch(keysOf('c%2F1%3F', '20270115T080000000000Z'))
      const detail = await history.get('hmac', entry.rowKey)
      expect(detail).toMatchObject({
        ...entry,
        instanceId: 'i-1',
        correlationId: 'c/1?',
        actor: 'nell',
        status: 'Failed',
        error: 'no',
        notes: null,
        letter: null,
      })
      expect([Buffer.from(detail.input ?? []), Buffer.from(detail.output ?? [])]).toEqual([
        Buffer.from([0, 255, 1]),
        Buffer.from('{"n":1}'),
      ])
    })

    it('says what failed when it failed', async () => {
      for (const error of [undefined, null, '', ' \n'])
        await expect(
          history.record(report({ status: 'Failed', ...(error === undefined ? {} : { error }) })),
        ).rejects.toMatchObject({
          code: 'parameter_invalid',
          message: expect.stringContaining('error is invalid'),
        })
    })

    it('has the publisher as its instance, and a correlation id of its own, unless it names them', async () => {
      const { entry } = await history.record(report())
      expect(entry).toMatchObject({
        instanceId: 'publisher',
        correlationId: expect.stringMatching(/^[\w-]{36}$/),
      })
    })

    it('has a key of its own, also when others of its correlation id have the same time', async () => {
      const keys = []
      for (let i = 0; i < 5; i++) {
        keys.push((await history.record(report({ correlationId: 'same', durationMs: i }))).entry.rowKey)
      }
      expect(new Set(keys).size).toBe(5)
      const durations = await Promise.all(
        keys.map(async (key) => (await history.get('hmac', key)).durationMs),
      )
      expect(durations).toEqual([0, 1, 2, 3, 4])
    })

    it.each([
      ['inputs', { input: { long: 'x'.repeat(6_000_000) } }],
      ['errors', { status: 'Failed', error: 'x'.repeat(6_000_000) }],
    ] as const)('shares no transaction with too many large %s', async (_, large) => {
      let transactions = 0
      db.onCall(({ verb }) => {
        if (verb === 'history.record') transactions++
      })
      await Promise.all(Array.from({ length: 3 }, () => history.record(report(large))))
      expect(transactions).toBeGreaterThanOrEqual(2)
    })

    it('is refused when its input has no JSON, and nobody else with it', async () => {
      const round: Record<string, unknown> = {}
      round.itself = round
      const results = await Promise.allSettled(
        [report({ input: round }), report()].map((one) => history.record(one)),
      )
      expect(results.map(({ status }) => status)).toEqual(['rejected', 'fulfilled'])
    })

    it('is refused when its engine or operation is not defined', async () => {
      const refused = (rest: Partial<RunReport>, code: string) =>
        expect(history.record(report(rest))).rejects.toMatchObject({ code })
      await refused({ engine: 'nope' }, 'engine_unknown')
      await refused({ operation: 'renew' }, 'operation_unknown')
      // Acts on letters are recorded by the office alone.
      await refused({ operation: 'discard' }, 'operation_unknown')
    })
  })

  describe('the same source id', () => {
    it('twice is one entry', async () => {
      const first = await history.record(report({ sourceId: 's-1', durationMs: 1 }))
      clock.advance(1_000n)
      const second = await history.record(report({ sourceId: 's-1', durationMs: 2 }))
      expect(second).toEqual({ entry: first.entry, created: false })
    })

    it('of another engine is another entry', async () => {
      await history.record(report({ sourceId: 's-2' }))
      expect((await history.record(report({ engine: 'spn', sourceId: 's-2' }))).created).toBe(true)
    })

    it('from twenty at once is one entry', async () => {
      const twenty = Array.from({ length: 20 }, (_, i) =>
        history.record(report({ sourceId: 's-3', correlationId: 'twenty', durationMs: i })),
      )
      const recorded = await Promise.all(twenty)
      expect(recorded.filter(({ created }) => created)).toHaveLength(1)
      expect(new Set(recorded.map(({ entry }) => entry.rowKey)).size).toBe(1)
      expect((await history.list({ correlationId: 'twenty' })).items).toHaveLength(1)
    })
  })

  describe('an entry', () => {
    it.each([
      'no key',
      'unknown-20270115T080000000000Z',
      'unknown-20270115T080000000000000000000001Z',
      'nul%00-20270115T080000000000Z',
      `${'x'.repeat(5_000)}-20270115T080000000000Z`,
    ])('that is not there is refused: %s', async (rowKey) => {
      await expect(history.get('hmac', rowKey)).rejects.toMatchObject({ code: 'history_unknown' })
    })

    it('is found only under its own engine', async () => {
      const { entry } = await history.record(report({ correlationId: 'mine' }))
      await expect(history.get('tls', entry.rowKey)).rejects.toMatchObject({ code: 'history_unknown' })
      await expect(history.get('nope', entry.rowKey)).rejects.toMatchObject({ code: 'engine_unknown' })
    })

    it('names the letter that it concerns, as long as there is one', async () => {
      await db.transaction('test.letters', async (tx) => {
        await tx.run(insertLetter, 901, START, 'item-1', null)
        await tx.run(insertLetter, 902, START, 'item-2', 'i/9')
        const base = {
          engine: 'hmac',
          operation: 'capture',
          status: 'Succeeded',
          instanceId: null,
          createdAt: START,
          durationMs: 0,
          letterVersion: 1,
        } as const
        await recordHistory(tx, [
          { ...base, correlationId: 'l-1', letterId: 901n },
          { ...base, correlationId: 'l-2', letterId: 902n },
          { ...base, correlationId: 'l-3', letterId: 903n },
        ])
      })
      const letterOf = async (correlationId: string) => {
        const [entry] = (await history.list({ correlationId })).items
        return (await history.get('hmac', entry?.rowKey ?? '')).letter
      }
      expect(await letterOf('l-1')).toEqual({ engine: 'hmac', rowKey: 'item-1-20270115T080000000000Z' })
      expect(await letterOf('l-2')).toEqual({ engine: 'hmac', rowKey: 'i%2F9-20270115T080000000000Z' })
      expect(await letterOf('l-3')).toBeNull()
    })
  })

  describe('retention', () => {
    const count = async (statement: typeof countRows, ...values: bigint[]) => {
      const [row] = await db.session('test', (session) =>
        session.rows<{ found: Integer }>(statement, ...values),
      )
      return Number(row?.found)
    }

    /** Batch after batch to the end; gives how many each removed. */
    const inBatches = async (batch: (tx: Transaction, from: bigint) => Promise<RemovedHistory>) => {
      const removed: number[] = []
      let from: bigint | null = FROM_THE_OLDEST
      while (from !== null) {
        const start: bigint = from
        const done = await db.transaction('test', (tx) => batch(tx, start))
        removed.push(done.removed)
        from = done.next
      }
      return removed
    }

    it('removes what is older, in small batches, and the source ids', async () => {
      const before = later(START, -DAY_US)
      const old = Array.from({ length: 1_201 }, (_, i) => ({
        ...report({ correlationId: `old-${i}` }),
        input: null,
        output: null,
        correlationId: `old-${i}`,
        instanceId: null,
        createdAt: later(before, -1n - BigInt(i % 7)),
      }))
      await db.transaction('test.old', (tx) => recordHistory(tx, old.slice(0, 1_000)))
      await db.transaction('test.old', (tx) => recordHistory(tx, old.slice(1_000)))
      clock.freeze(later(START, -2n * DAY_US))
      await history.record(report({ sourceId: 'old' }))
      clock.freeze(before)
      await history.record(report({ sourceId: 'just young enough', correlationId: 'young' }))
      const kept = await count(countRows, before)
      const sources = await count(countSources)

      expect(await inBatches((tx, from) => removeHistory(tx, before, from, 500))).toEqual([500, 500, 202])
      expect(await count(countRows, 0n)).toBe(kept)
      expect((await history.list({ correlationId: 'young' })).items).toHaveLength(1)
      expect(await db.transaction('test', (tx) => forgetSources(tx, before, FROM_THE_OLDEST, 500))).toBeNull()
      expect(await count(countSources)).toBe(sources - 1)
      expect(await inBatches((tx, from) => removeHistory(tx, before, from, 500))).toEqual([0])
    })
  })
})
