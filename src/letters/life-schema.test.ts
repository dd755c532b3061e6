import { describe, expect, it } from 'vitest'
import { barePostgres, freshSqlite, stores } from '../../test/world/stores.ts'
import { MIGRATIONS } from '../migrations.ts'
import { type Integer, sql } from '../store/database.ts'
import { migrate } from '../store/migrations.ts'
import { openDatabase } from '../store/open.ts'
import { endsMigration, lifeMigration } from './schema.ts'

/** A letter of each status, that failed long ago. */
const OLD_LETTERS = [0, 1, 2].map((status) =>
  sql(
    `test.oldLetter.${status}`,
    `INSERT INTO bartleby.letters (id, captured_at, first_failure_at, last_failure_at, drawer, version, dequeue_count, status, engine,
       source_id, reason, error_class, error_message)
     VALUES (${status + 1}, 0, 0, 0, 1, 1, 1, ${status}, 'hmac', 's${status}', 'failed', 'E', 'e')`,
  ),
)
const EXPIRED = sql('test.expiredAt', 'SELECT expired_at FROM bartleby.letters ORDER BY id', {
  bigints: true,
})

/** Letters that a redrive had sent: one is pending again, the others were ended in three ways; and one that a redrive discarded. */
const ENDED_LETTERS = [
  "0, NULL, 'item', NULL",
  "1, 'complete', 'item', 'dead'",
  "1, 'discard', 'item', 'dead'",
  "2, 'expire', NULL, NULL",
  "1, 'discard', NULL, NULL",
].map((ended, i) =>
  sql(
    `test.endedLetter.${i}`,
    `INSERT INTO bartleby.letters (id, captured_at, first_failure_at, last_failure_at, drawer, version, dequeue_count, engine,
       source_id, reason, error_class, error_message, redrive, status, resolution, sent_as, dead_queue)
     VALUES (${i + 1}, 0, 0, 0, 1, 1, 1, 'hmac', 's${i}', 'failed', 'E', 'e', 7, ${ended})`,
  ),
)
const SENT = sql('test.sentAs', 'SELECT sent_as, redrive FROM bartleby.letters ORDER BY id')
interface Sent {
  readonly sent_as: string | null
  readonly redrive: Integer | null
}

describe.each(stores)('a store of an older version on $name', (kind) => {
  it('keeps the letters that are expired by then as if they expired with the upgrade', async () => {
    const place = await (kind.name === 'sqlite' ? freshSqlite() : barePostgres())
    const db = openDatabase(place.url, { poolSize: 2 })
    try {
      await migrate(
        db,
        MIGRATIONS.filter(({ number }) => number < lifeMigration.number),
      )
      await db.transaction('test', async (tx) => {
        for (const letter of OLD_LETTERS) await tx.run(letter)
      })
      const before = Date.now() - 1
      await migrate(db, MIGRATIONS)
      const rows = await db.session('test', (session) =>
        session.rows<{ expired_at: Integer | null }>(EXPIRED),
      )
      const [pending, resolved, expired] = rows.map(({ expired_at }) => expired_at)
      expect([pending, resolved]).toEqual([null, null])
      const expiredMs = Number(expired) / 1_000
      expect(expiredMs).toBeGreaterThan(before)
      expect(expiredMs).toBeLessThanOrEqual(Date.now() + 1)
    } finally {
      await db.close()
      await place.dispose()
    }
  })

  it('forgets the retries of letters that were ended since, whatever the door, and of no others', async () => {
    const place = await (kind.name === 'sqlite' ? freshSqlite() : barePostgres())
    const db = openDatabase(place.url, { poolSize: 2 })
    try {
      await migrate(
        db,
        MIGRATIONS.filter(({ number }) => number < endsMigration.number),
      )
      await db.transaction('test', async (tx) => {
        for (const letter of ENDED_LETTERS) await tx.run(letter)
      })
      await migrate(db, MIGRATIONS)
      const rows = await db.session('test', (session) => session.rows<Sent>(SENT))
      expect(
        rows.map(({ sent_as, redrive }) => [sent_as, redrive === null ? null : Number(redrive)]),
      ).toEqual([
        ['item', 7],
        [null, null],
        [null, null],
        [null, null],
        [null, 7],
      ])
    } finally {
      await db.close()
      await place.dispose()
    }
  })
})
