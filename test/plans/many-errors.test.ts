/** Numbers that people watch, and lists, do not depend on how many different errors there are or were: judged by what is read for them. */
import { StatementSync } from 'node:sqlite'
import pg from 'pg'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { SystemClock } from '../../src/core/system-clock.ts'
import { listLetters } from '../../src/letters/lists/list.ts'
import { LetterNumbers } from '../../src/letters/numbers/letter-numbers.ts'
import { migrateStore } from '../../src/office.ts'
import { readWebhookGauges } from '../../src/sources/webhooks/numbers/metrics.ts'
import { Status } from '../../src/sources/webhooks/numbers/status.ts'
import type { Database, Statement, Value } from '../../src/store/database.ts'
import { openDatabase } from '../../src/store/open.ts'
import { sizeOf } from '../world/limits.ts'
import { startServer } from '../world/server.ts'
import { type StoreKind, stores } from '../world/stores.ts'
import { type Left, manyErrors } from './many-errors.ts'
import { WatchedPostgres } from './watched-postgres.ts'

/** Of each of twenty consumers. */
const FEW = 10
const ENGINE = { engine: 'webhooks' }
const QUEUE = { originalQueue: 'orders/consumer-1' }
/** What the planner knows of the tables. */
type Known = 'everything' | 'nothing'
/** With fewer the planner reads small tables from end to end. */
const MANY = sizeOf(2_000, 15_000)

/** What was read for each call: rows on PostgreSQL, steps on SQLite. */
type Work = Readonly<Record<string, number>>

afterEach(() => vi.restoreAllMocks())

const callsOf = (db: Database, left: Left): Readonly<Record<string, () => Promise<unknown>>> => {
  const clock = new SystemClock()
  const numbers = new LetterNumbers(db, clock, { checkKnown: async () => {} })
  const status = new Status(db)
  const page = { limit: 10, token: null, now: clock.now() }
  return {
    '/dlq-status': () => status.dead(),
    '/job-status': () => status.jobs(),
    '/metrics': () => Promise.all([numbers.gauges(), numbers.officeGauges(), readWebhookGauges(db, clock)]),
    '/api/counts by place': () => numbers.counts({}, ['source', 'engine', 'originalQueue', 'status']),
    ...(left !== 'all' && {
      '/api/counts': () => numbers.counts(),
      '/api/counts of a queue': () => numbers.counts(QUEUE),
      '/api/signatures': () => numbers.signatures(),
      '/api/signatures of an engine': () => numbers.signatures(ENGINE),
      '/api/signatures of a queue': () => numbers.signatures(QUEUE),
      '/api/dlq of an engine': () => listLetters(db, ENGINE, page),
      '/api/dlq of a queue': () => listLetters(db, QUEUE, page),
      '/api/dlq of a signature': () => listLetters(db, { signature: '1-1' }, page),
      '/api/activity of a signature': () => numbers.activity('24h', { signature: '1-1' }),
    }),
    '/api/overview': () => numbers.overview(),
  }
}

const rowsSeen = async (db: WatchedPostgres, work: () => Promise<unknown>): Promise<number> =>
  (await db.watch(async () => void (await work()))).reduce((sum, { rows }) => sum + rows, 0)

/** Steps of SQLite's machine for what is read in this process meanwhile. */
async function stepsTaken(work: () => Promise<unknown>): Promise<number> {
  let steps = 0
  const { all } = StatementSync.prototype
  const stepsOf = (statement: StatementSync): number =>
    // Counted by Node since version 26; its types do not tell.
    Number(Reflect.apply(Reflect.get(statement, 'stat'), statement, ['vmStep']))
  const watched = vi.spyOn(StatementSync.prototype, 'all').mockImplementation(function (
    this: StatementSync,
    ...values
  ) {
    const before = stepsOf(this)
    const rows = all.apply(this, values)
    steps += stepsOf(this) - before
    return rows
  })
  await work()
  watched.mockRestore()
  return steps
}

/** What is read on PostgreSQL in this process meanwhile. */
async function questionsOf(
  work: () => Promise<unknown>,
): Promise<readonly (readonly [Statement, Value[]])[]> {
  const watched = vi.spyOn(pg.Client.prototype, 'query')
  await work()
  const asked: readonly unknown[] = watched.mock.calls.map(([question]) => question)
  watched.mockRestore()
  return asked.flatMap((question) => {
    const { text = '', values = [] } = question as { readonly text?: string; readonly values?: Value[] }
    const isRead = /^\s*(SELECT|WITH)\b/.test(text) && !/pg_backend_pid|nextval|FOR UPDATE/.test(text)
    return isRead ? [[{ name: 'asked', postgres: text, sqlite: '', bigints: false }, values] as const] : []
  })
}

/** A store with so many errors, and what `look` says of it. */
async function withErrors<T>(
  store: StoreKind,
  [errors, left, known]: readonly [errors: number, left: Left, known: Known],
  look: (url: string) => Promise<T>,
): Promise<T> {
  const place = await store.fresh()
  try {
    await migrateStore(place.url)
    const script = `${manyErrors(errors, left)} ${known === 'nothing' ? '' : 'ANALYZE;'}`
    const db = openDatabase(place.url, { poolSize: 1 })
    await db.transaction('test.fill', (tx) =>
      db.script(tx, store.name === 'sqlite' ? script.replaceAll('bartleby.', '') : script),
    )
    await db.close()
    return await look(place.url)
  } finally {
    await place.dispose()
  }
}

const inProcess = (store: StoreKind, errors: number, left: Left, known: Known): Promise<Work> =>
  withErrors(store, [errors, left, known], async (url) => {
    const db = store.name === 'sqlite' ? openDatabase(url, { poolSize: 1 }) : await WatchedPostgres.open(url)
    const work: Record<string, number> = {}
    for (const [name, call] of Object.entries(callsOf(db, left)))
      work[name] = db instanceof WatchedPostgres ? await rowsSeen(db, call) : await stepsTaken(call)
    await db.close()
    return work
  })

/** The least of some calls: a server has other things to do meanwhile. */
const CALLS = 3

const overHttp = (store: StoreKind, errors: number): Promise<Work> =>
  withErrors(store, [errors, 'none', 'nothing'], async (url) => {
    const server = await startServer({ store: url })
    const work: Record<string, number> = {}
    try {
      for (const path of ['/dlq-status', '/job-status', '/metrics', '/api/counts']) {
        const call = async () => expect((await fetch(`${server.url}${path}`)).status).toBe(200)
        const each: number[] = []
        for (let i = 0; i < CALLS; i++) {
          if (store.name === 'sqlite') each.push(await stepsTaken(call))
          else {
            const asked = await questionsOf(call)
            const db = await WatchedPostgres.open(url)
            const replay = (statement: Statement, values: readonly Value[]) =>
              db.session('test', (session) => session.rows(statement, ...values))
            each.push(
              await rowsSeen(db, async () => {
                for (const [statement, values] of asked) await replay(statement, values)
              }),
            )
            await db.close()
          }
        }
        work[path] = Math.min(...each)
      }
    } finally {
      await server.stop()
    }
    return work
  })

/**
 * Above a thousand drawers those that hold letters are found by leaps, place by place: 4,600 steps for twenty places, of 40,000 drawers
 * as of 300,000.
 */
const LEAPS = { sqlite: 5_000, postgres: 0 }

const dearer = ({ name: store }: StoreKind, few: Work, many: Work): readonly string[] =>
  Object.entries(many)
    .filter(([name, work]) => !(work > 0 && work <= 2 * (few[name] ?? 0) + LEAPS[store]))
    .map(([name, work]) => `${name}: ${work} instead of ${few[name]}`)

describe.each(stores)('many different errors on $name', (store) => {
  describe.each([
    ['that are dead', 'all'],
    ['that were purged', 'none'],
    ['that were purged but for one of each consumer', 'one'],
  ] as const)('of jobs %s', (_, left) => {
    it.each(['everything', 'nothing'] as const)(
      'cost no more than a few when the planner knows %s',
      async (known) => {
        const few = await inProcess(store, FEW, left, known)
        const many = await inProcess(store, MANY, left, known)
        expect(dearer(store, few, many)).toEqual([])
      },
    )
  })

  it('cost no more than a few for who asks a server', async () => {
    expect(dearer(store, await overHttp(store, FEW), await overHttp(store, MANY))).toEqual([])
  })
})
