/** Numbers that people watch do not depend on how many different errors there are or were: judged by the rows that are read for them. */
import { describe, expect, it } from 'vitest'
import { SystemClock } from '../../src/core/system-clock.ts'
import { Ledger } from '../../src/letters/ledger.ts'
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
/** With fewer the planner reads small tables from end to end. */
const MANY = sizeOf(2_000, 15_000)

/** What is asked for, and the rows that are read for it. */
async function rowsRead(errors: number, left: Left): Promise<Record<string, number>> {
  const place = await freshPostgres()
  try {
    await migrateStore(place.url)
    await query(place.url, `${manyErrors(errors, left)} ANALYZE;`)
    const db = await WatchedPostgres.open(place.url)
    const clock = new SystemClock()
    const ledger = new Ledger(db, clock, { checkKnown: async () => {} })
    const status = new Status(db)
    const calls: Record<string, () => Promise<unknown>> = {
      '/dlq-status': () => status.dead(),
      '/job-status': () => status.jobs(),
      '/metrics': () => Promise.all([ledger.gauges(), ledger.pulse(), readWebhookGauges(db, clock)]),
      '/api/counts by place': () => ledger.counts({}, ['source', 'engine', 'originalQueue', 'status']),
      ...(left !== 'all' && {
        '/api/counts': () => ledger.counts(),
        '/api/signatures': () => ledger.signatures(),
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
  it('cost no more to count than a few', async () => {
    const few = await rowsRead(FEW, left)
    const many = await rowsRead(MANY, left)
    for (const [name, rows] of Object.entries(many))
      expect(rows, name).toBeLessThanOrEqual(2 * (few[name] ?? 0))
  })
})
