import { describe, expect, it } from 'vitest'
import { barePostgres, freshSqlite, stores } from '../../test/harness/stores.ts'
import { type Integer, sql } from '../db/database.ts'
import { migrate } from '../db/migrations.ts'
import { openDatabase } from '../db/open.ts'
import { MIGRATIONS } from '../migrations.ts'
import { lifeMigration } from './life-schema.ts'

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
})
