import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { noting } from '../../../test/world/counted-statements.ts'
import { LetterStore } from '../../../test/world/letter-store.ts'
import { sizeOf } from '../../../test/world/limits.ts'
import { stores } from '../../../test/world/stores.ts'
import { later } from '../../core/clock.ts'
import { type Integer, sql } from '../../store/database.ts'
import { verifyStore } from '../../verify/verify.ts'
import { inOffice } from '../work.ts'
import { captureReports } from './intake.ts'
import type { FailureReport } from './report.ts'

const AT_ONCE = sizeOf(40, 400)

const readDeadlocks = sql('test.deadlocks', {
  postgres: 'SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()',
  sqlite: '',
})

describe.each(stores)('captures at the same time on $name', (kind) => {
  let store: LetterStore
  let transactions = 0
  beforeAll(async () => {
    store = await LetterStore.open(kind)
    store.db.onCall(({ verb }) => {
      if (verb === 'letters.capture') transactions++
    })
  })
  afterAll(async () => {
    const { invariants } = await verifyStore(store.db, { clock: store.clock })
    await store.close()
    expect(invariants.flatMap(({ violations }) => violations)).toEqual([])
  })

  const reports = (many: number, changes: Partial<FailureReport> = {}) =>
    Array.from({ length: many }, () => store.report(changes))
  const captureAll = (given: readonly FailureReport[]) =>
    Promise.all(given.map((report) => store.letters.capture(report)))

  it('share transactions, and each gets the letter of its own report', async () => {
    const given = reports(AT_ONCE, { instanceId: 'publisher' })
    transactions = 0
    const results = await captureAll(given)
    expect(transactions).toBeLessThan(AT_ONCE / 4)
    expect(results.map(({ letter }) => letter.sourceId)).toEqual(given.map(({ sourceId }) => sourceId))
    expect(results.every(({ created }) => created)).toBe(true)
    // In the order in which they came, which is the one in which they go back.
    const keys = results.map(({ letter }) => letter.rowKey)
    expect(keys).toEqual(keys.toSorted())
  })

  it('are answered with what a list shows of their letters', async () => {
    const long = { errorMessage: `half a \ud800 and a \0 ${'x'.repeat(40_000)}`, errorClass: 'A\0B' }
    const given = [
      ...reports(2, { instanceId: 'site/1', originalQueue: null }),
      ...reports(1, { ...long, firstFailureAt: null, lastFailureAt: null }),
      ...reports(1, { engine: 'tls', correlationId: 'mine', dequeueCount: 7 }),
    ]
    const results = await captureAll(given)
    const { items } = await store.letters.list({}, { limit: 100 })
    const listed = new Map(items.map((letter) => [letter.sourceId, letter]))
    expect(results.map(({ letter }) => letter)).toEqual(given.map(({ sourceId }) => listed.get(sourceId)))
  })

  it.each([
    ['headers', { headers: Buffer.from(`{"long":"${'x'.repeat(6_000_000)}"}`) }],
    ['messages', { errorMessage: 'x'.repeat(6_000_000) }],
    ['stacks', { errorStack: 'x'.repeat(6_000_000) }],
  ])('share no transaction with too many large %s', async (_, large) => {
    transactions = 0
    await captureAll(reports(3, large))
    expect(transactions).toBeGreaterThanOrEqual(2)
  })

  it('of one failure are one look, however many there are', async () => {
    const [report] = reports(1)
    if (report === undefined) throw new Error('there is no report')
    const asked: string[] = []
    const nothing = { known: new Map(), queues: new Map() }
    const desk = { registers: store.registers, sourceOf: () => store.queues.letterSource('http') }
    const captured = await inOffice(store.db, store.clock, 'test', (work) =>
      captureReports(noting(work, asked), desk, Array<FailureReport>(200).fill(report), nothing),
    )
    expect(captured.map(({ created }) => created)).toEqual(captured.map((_, i) => i === 0))
    expect(new Set(captured.map(({ id }) => id)).size).toBe(1)
    expect(asked.length).toBeLessThan(20)
  })

  it.runIf(kind.name === 'sqlite')('let others have their turns meanwhile', async () => {
    const given = reports(1_000)
    const nothing = { known: new Map(), queues: new Map() }
    const desk = { registers: store.registers, sourceOf: () => store.queues.letterSource('http') }
    const again = given.map((report) => ({ ...report, errorMessage: 'it failed again' }))
    await inOffice(store.db, store.clock, 'test', async (work) => {
      let turns = 0
      let next = setImmediate(function turn() {
        turns++
        next = setImmediate(turn)
      })
      await captureReports(work, desk, [...given, ...again], nothing)
      clearImmediate(next)
      expect(turns).toBeGreaterThanOrEqual(8)
    })
  })

  it('of one source id are in transactions of their own after twenty', async () => {
    const [report] = reports(1)
    if (report === undefined) throw new Error('there is no report')
    const at = store.clock.now()
    transactions = 0
    await captureAll(
      Array.from({ length: 60 }, (_, i) => ({ ...report, lastFailureAt: later(at, BigInt(i)) })),
    )
    expect(transactions).toBeGreaterThanOrEqual(3)
    const [letter] = (await captureAll([report])).map((result) => result.letter)
    expect(letter?.dequeueCount).toBeGreaterThan(0)
    const file = await store.letters.get(letter ?? { engine: '', rowKey: '' })
    expect(file.failures).toHaveLength(60)
  })

  it('do not fail with one that cannot be filed', async () => {
    const given = reports(5)
    const [wrong] = reports(1, { dequeueCount: Number.NaN })
    if (wrong === undefined) throw new Error('there is no report')
    const results = await Promise.allSettled(
      [...given.slice(0, 2), wrong, ...given.slice(2)].map((report) => store.letters.capture(report)),
    )
    expect(results.map(({ status }) => status)).toEqual([
      ...['fulfilled', 'fulfilled', 'rejected', 'fulfilled', 'fulfilled', 'fulfilled'],
    ])
  })

  it('of one source id are one letter, with every failure that differs', async () => {
    const [report] = reports(1, { dequeueCount: 1 })
    if (report === undefined) throw new Error('there is no report')
    const second = {
      ...report,
      lastFailureAt: later(store.clock.now(), 1_000_000n),
      errorMessage: 'another one',
    }
    const results = await captureAll([report, report, second, second, report])
    expect(results.map(({ created }) => created)).toEqual([true, false, false, false, false])
    const file = await store.letters.get(results[0]?.letter ?? { engine: '', rowKey: '' })
    expect(file.failures.map(({ errorMessage }) => errorMessage)).toEqual([
      report.errorMessage,
      'another one',
    ])
    expect(file.letter.version).toBe(2)
  })

  it('mix with reports about letters that there are', async () => {
    const known = reports(6)
    await captureAll(known)
    const fresh = reports(6)
    const newer = { lastFailureAt: later(store.clock.now(), 2_000_000n), errorMessage: 'it failed again' }
    const again = known.map((report, i) => (i % 2 === 0 ? report : { ...report, ...newer }))
    const results = await captureAll(again.flatMap((report, i) => [report, fresh[i] ?? report]))
    expect(results.map(({ created }) => created)).toEqual(again.flatMap(() => [false, true]))
    const messages = results.filter((_, i) => i % 2 === 0).map(({ letter }) => letter.errorMessage)
    expect(messages).toEqual(again.map(({ errorMessage }) => errorMessage))
  })

  it('under one key have one effect and one answer', async () => {
    const given = reports(20)
    const key = { scope: 'nell POST /api/dlq', key: 'the same' }
    const answers = await Promise.all(
      given.map((report) =>
        store.letters.captureOnce(key, [report], ([result]) => ({
          status: 201,
          body: result?.letter.sourceId,
        })),
      ),
    )
    expect(new Set(answers.map(({ body }) => body))).toEqual(new Set([given[0]?.sourceId]))
    const filed = await captureAll(given)
    expect(filed.map(({ created }) => created)).toEqual(given.map((_, i) => i > 0))
  })
})

describe.each(stores)('the same reports by two servers at once on $name', (kind) => {
  it('are one letter each', async () => {
    const place = await kind.fresh()
    const shared = { ...kind, fresh: async () => ({ ...place, dispose: async () => {} }) }
    const [one, other] = [await LetterStore.open(shared), await LetterStore.open(shared)]
    const given = Array.from({ length: AT_ONCE }, () => one.report())
    const answers = await Promise.all(
      [one, other].map((store) => Promise.all(given.map((report) => store.letters.capture(report)))),
    )
    expect(answers.flat().filter(({ created }) => created)).toHaveLength(AT_ONCE)
    expect(answers[0]?.map(({ letter }) => letter.id)).toEqual(answers[1]?.map(({ letter }) => letter.id))
    await one.close()
    await other.close()
    await place.dispose()
  })
})

describe.runIf(stores.some(({ name }) => name === 'postgres'))('batches of one server', () => {
  it('never wait for each other in a circle', async () => {
    const kind = stores.find(({ name }) => name === 'postgres')
    if (kind === undefined) throw new Error('there is no PostgreSQL')
    const store = await LetterStore.open(kind)
    for (let round = 0; round < 5; round++) {
      const given = Array.from({ length: AT_ONCE }, () => store.report())
      const ask = (reports: readonly FailureReport[]) =>
        store.letters.captureOnce(null, reports, (results) => ({
          status: 200,
          body: results.filter(({ created }) => created).length,
        }))
      const first = ask(given)
      // The first is under way.
      await new Promise(setImmediate)
      const answers = await Promise.all([first, ask(given.toReversed())])
      expect(answers.map(({ body }) => body)).toEqual([AT_ONCE, 0])
    }
    const waited = await store.db.session('test', (session) =>
      session.rows<{ deadlocks: Integer }>(readDeadlocks),
    )
    await store.close()
    expect(waited.map(({ deadlocks }) => Number(deadlocks))).toEqual([0])
  })
})
