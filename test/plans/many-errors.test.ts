/** Numbers that people watch, and lists, do not depend on how many different errors there are or were: judged by the rows that are read. */
import { describe, expect, it } from 'vitest'
import { SystemClock } from '../../src/core/system-clock.ts'
import { Ledger } from '../../src/letters/ledger.ts'
import { listLetters } from '../../src/letters/list.ts'
import { migrateStore } from '../../src/office.ts'
import { readWebhookGauges } from '../../src/webhooks/gauges.ts'
import { Status } from '../../src/webhooks/status.ts'
import { sizeOf } from '../harness/limits.ts'
import { query } from '../harness/postgres.ts'
import { freshPostgres } from '../harness/stores.ts'
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

/** What is asked for, and the rows that are read for it. */
async function rowsRead(errors: number, left: Left, known: Known): Promise<Record<string, number>> {
  const place = await freshPostgres()
  try {
    await migrateStore(place.url)
    await query(place.url, `${manyErrors(errors, left)} ${known === 'nothing' ? '' : 'ANALYZE;'}`)
    const db = await WatchedPostgres.open(place.url)
    const clock = new SystemClock()
    const ledger = new Ledger(db, clock, { checkKnown: async () => {} })
    const status = new Status(db)
    const page = { limit: 10, token: null, now: clock.now() }
    const calls: Record<string, () => Promise<unknown>> = {
      '/dlq-status': () => status.dead(),
      '/job-status': () => status.jobs(),
      '/metrics': () => Promise.all([ledger.gauges(), ledger.pulse(), readWebhookGauges(db, clock)]),
      '/api/counts by place': () => ledger.counts({}, ['source', 'engine', 'originalQueue', 'status']),
      ...(left !== 'all' && {
        '/api/counts': () => ledger.counts(),
        '/api/counts of a queue': () => ledger.counts(QUEUE),
        '/api/signatures': () => ledger.signatures(),
        '/api/signatures of an engine': () => ledger.signatures(ENGINE),
        '/api/signatures of a queue': () => ledger.signatures(QUEUE),
        '/api/dlq of an engine': () => listLetters(db, ENGINE, page),
        '/api/dlq of a queue': () => listLetters(db, QUEUE, page),
        '/api/dlq of a signature': () => listLetters(db, { signature: '1-1' }, page),
        '/api/activity of a signature': () => ledger.activity('24h', { signature: '1-1' }),
      }),
      '/api/overview': () => ledger.overview(),
    }
    const rows: Record<string, number> = {}
    for (const [name, call] of Object.entries(calls)) {
      const seen = await db.watch(async () => void (await call()))
      rows[name] = seen.reduce((sum, each) => sum + each.rows, 0)
    }
    await db.close()
    return rows
  } finally {
    await place.dispose()
  }
}

describe.each([
  ['that are dead', 'all'],
  ['that were purged', 'none'],
  ['that were purged but for one of each consumer', 'one'],
] as const)('many different errors of jobs %s', (_, left) => {
  it.each(['everything', 'nothing'] as const)(
    'cost no more than a few when the planner knows %s',
    async (known) => {
      const few = await rowsRead(FEW, left, known)
      const many = await rowsRead(MANY, left, known)
      const dearer = Object.entries(many).filter(([name, rows]) => rows > 2 * (few[name] ?? 0))
      expect(dearer.map(([name, rows]) => `${name}: ${rows} rows instead of ${few[name]}`)).toEqual([])
    },
  )
})
