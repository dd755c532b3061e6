import { describe, expect, it } from 'vitest'
import { barePostgres, freshSqlite, stores } from '../../test/world/stores.ts'
import { violationsIn } from '../../test/world/verified.ts'
import { xid } from '../core/xid.ts'
import { MIGRATIONS } from '../migrations.ts'
import { Office } from '../office.ts'
import { sql } from '../store/database.ts'
import { migrate } from '../store/migrations.ts'
import { openDatabase } from '../store/open.ts'
import { runMigration } from './schema.ts'

/** One that was under way, and one that was over. */
const RUNS = [
  ['c0000000000000000010', 'requeue', null, 1_700_000_000_000_123n, 'j1', 10, 4],
  ['c000000000000000002g', 'purge', 1_700_000_000_000_005n, 1_700_000_000_000_124n, 'j2', 7, 6],
] as const
const OLD_ROWS = [
  `INSERT INTO bartleby.webhook_channels (id, number, channel_id, name, token, created_at, updated_at)
   VALUES ('c1', 1, 'or"ders', 'n', 't', 0, 0)`,
  `INSERT INTO bartleby.webhook_consumers (id, number, channel, consumer_id, name, token, callback_url, pulls, created_at, updated_at)
   VALUES ('k1', 2, 1, 'billing', 'n', 't', 'http://127.0.0.1:9', 0, 0, 0)`,
].map((text, n) => sql(`test.oldWebhooks.${n}`, text))
const insertOld = sql(
  'test.oldBulkRun',
  `INSERT INTO bartleby.webhook_bulk_runs (id, kind, consumer, actor, started_at, finished_at, last_created_at, last_job,
     next_created_at, next_job, expected, done, owner, owned_until)
   VALUES ($1, $2, 2, 'nell', 1700000000000000, $3, $4, $5, 1600000000000000, 'j0', $6, $7, 'gone', 1700000000000000)`,
)

describe.each(stores)('a store of before there were runs on $name', (kind) => {
  it('goes on with the requeue that was under way, and remembers the purge that was over', async () => {
    const place = await (kind.name === 'sqlite' ? freshSqlite() : barePostgres())
    const db = openDatabase(place.url, { poolSize: 2 })
    try {
      await migrate(
        db,
        MIGRATIONS.filter(({ number }) => number < runMigration.number),
      )
      await db.transaction('test', async (tx) => {
        for (const row of OLD_ROWS) await tx.run(row)
        for (const run of RUNS) await tx.run(insertOld, ...run)
      })
      await migrate(db, MIGRATIONS)
      const office = await Office.open({ store: place.url, carriesOutRedrives: false, webhooks: {} })
      try {
        const who = { consumer: 2, channelId: 'or"ders', consumerId: 'billing' }
        expect(await office.runs.open()).toMatchObject([
          {
            ...{
              id: RUNS[0][0],
              kind: 'webhook-requeue',
              state: 'running',
              about: 'or"ders/billing',
              actor: 'nell',
            },
            subject: { ...who, last: { createdAt: '1700000000000123', id: 'j1' } },
            place: { createdAt: '1600000000000000', id: 'j0' },
            ...{ expected: 10, done: 4, owner: null, resumed: 0 },
          },
        ])
        expect(await office.webhooks.bulk.list(5)).toMatchObject([
          { id: RUNS[1][0], kind: 'purge', ...who, expected: 7, done: 6, finishedAt: RUNS[1][2] },
          { id: RUNS[0][0], kind: 'requeue', ...who, expected: 10, done: 4, finishedAt: null },
        ])
      } finally {
        await office.close()
      }
      const heir = await Office.open({ store: place.url, webhooks: {} })
      try {
        const over = await heir.runs.over(xid(RUNS[0][0]), 60_000_000n)
        expect(over).toMatchObject({ id: RUNS[0][0], state: 'done', done: 4, resumed: 1 })
      } finally {
        await heir.close()
      }
      expect(await violationsIn(db)).toEqual([])
    } finally {
      await db.close()
      await place.dispose()
    }
  })
})
