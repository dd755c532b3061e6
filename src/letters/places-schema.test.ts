import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { barePostgres, type FreshStore, freshSqlite, stores } from '../../test/harness/stores.ts'
import { instant } from '../core/clock.ts'
import { TestClock } from '../core/test-clock.ts'
import { type Database, sql } from '../db/database.ts'
import { migrate } from '../db/migrations.ts'
import { openDatabase } from '../db/open.ts'
import { MIGRATIONS } from '../migrations.ts'
import { verifyStore } from '../verify/verify.ts'
import { Ledger } from './ledger.ts'
import { placesMigration } from './places-schema.ts'

const HOUR = 1_799_996_400_000_000
const MINUTE = HOUR + 120_000_000

/** Three drawers of one place, of which the third stood for itself, and one of another. All but the last letter of drawer 1 is folded. */
const OLD_STORE: readonly string[] = [
  `INSERT INTO bartleby.signatures (fingerprint, error_class, title, first_seen_at) VALUES ('1-a', 'E', 'a', 0), ('1-b', 'E', 'b', 0), ('1-c', 'E', 'c', 0)`,
  `INSERT INTO bartleby.drawers (source, engine, queue, signature, origin)
   VALUES ('http', 'hmac', 'north', 1, NULL), ('http', 'hmac', 'north', 2, 1), ('http', 'hmac', 'north', 3, NULL), ('http', 'hmac', 'south', 1, NULL)`,
  ...[
    [1, 0, null],
    [1, 0, null],
    [2, 1, 'retry'],
    [3, 1, 'discard'],
    [4, 0, null],
  ].map(
    ([drawer, status, resolution], i) => `
      INSERT INTO bartleby.letters (id, captured_at, first_failure_at, last_failure_at, resolved_at, drawer, version, dequeue_count, status,
        engine, source_id, reason, error_class, error_message, resolution)
      VALUES (${i + 1}, ${MINUTE}, ${MINUTE}, ${MINUTE}, ${status === 1 ? MINUTE : null}, ${drawer}, 1, 1, ${status}, 'hmac', 's${i}', 'failed',
        'E', 'e', ${resolution === null ? null : `'${resolution}'`})`,
  ),
  `INSERT INTO bartleby.letter_totals VALUES (1, 0, 1, ${MINUTE}), (1, 4, 1, 0), (2, 1, 1, 0), (2, 0, 0, ${MINUTE}), (2, 4, 1, 0), (2, 5, 1, 0),
     (3, 1, 1, 0), (3, 0, 0, ${MINUTE}), (3, 4, 2, 0), (3, 3, 1, 0), (4, 0, 1, ${MINUTE}), (4, 4, 1, 0)`,
  `INSERT INTO bartleby.letter_activity (grain, subject, act, at, letters) VALUES (0, 0, 0, ${MINUTE}, 5), (1, 0, 0, ${HOUR}, 5),
     (1, -1, 0, ${HOUR}, 2), (1, -3, 0, ${HOUR}, 2), (1, -4, 0, ${HOUR}, 1), (1, 1, 0, ${HOUR}, 1), (1, 2, 0, ${HOUR}, 1), (1, 3, 0, ${HOUR}, 2),
     (1, 4, 0, ${HOUR}, 1), (2, 1, 0, 0, 1), (2, 2, 0, 0, 1), (2, 3, 0, 0, 2), (2, 4, 0, 0, 1),
     (0, 0, 1, ${MINUTE}, 1), (1, 0, 1, ${HOUR}, 1), (1, -1, 1, ${HOUR}, 1), (1, 2, 1, ${HOUR}, 1), (2, 2, 1, 0, 1),
     (0, 0, 4, ${MINUTE}, 1), (1, 0, 4, ${HOUR}, 1), (1, -3, 4, ${HOUR}, 1), (1, 3, 4, ${HOUR}, 1), (2, 3, 4, 0, 1)`,
]
const UNFOLDED = {
  postgres: [
    `INSERT INTO bartleby.letter_deltas (drawer, status, letters, last_seen_at) VALUES (1, 0, 1, ${MINUTE}), (1, 4, 1, 0)`,
    `INSERT INTO bartleby.letter_activity_deltas (at, drawer, act, letters) VALUES (${MINUTE}, 1, 0, 1)`,
  ],
  sqlite: [
    `UPDATE letter_totals SET letters = letters + 1 WHERE drawer = 1`,
    `UPDATE letter_activity SET letters = letters + 1
     WHERE act = 0 AND (grain, subject) IN (VALUES (0, 0), (1, 0), (1, -1), (1, 1), (2, 1))`,
  ],
}

describe.each(stores)('a store whose counts were those of drawers, on $name', (kind) => {
  let place: FreshStore
  let db: Database
  beforeEach(async () => {
    place = await (kind.name === 'sqlite' ? freshSqlite() : barePostgres())
    db = openDatabase(place.url, { poolSize: 2 })
    await migrate(
      db,
      MIGRATIONS.filter(({ number }) => number < placesMigration.number),
    )
    await db.transaction('test', async (tx) => {
      for (const [i, text] of [...OLD_STORE, ...UNFOLDED[kind.name]].entries())
        await tx.run(sql(`test.${kind.name}.drawersBefore.${i}`, text))
    })
    await migrate(db, MIGRATIONS)
  })
  afterEach(async () => {
    await db?.close()
    await place?.dispose()
  })

  it('tells the same by place, folded or not', async () => {
    const clock = new TestClock()
    clock.freeze(instant(1_800_000_000_000_000n))
    const ledger = new Ledger(db, clock, { checkKnown: async () => {} })
    expect(await ledger.standing()).toEqual({
      Pending: 3,
      Resolved: 2,
      Expired: 0,
      captured: 6,
      unconfirmed: 1,
    })
    const place = { source: 'http', engine: 'hmac' }
    expect(await ledger.gauges()).toEqual([
      {
        ...{ ...place, queue: 'north', captured: 5, removed: 1, unconfirmed: 1 },
        letters: { Pending: 2, Resolved: 2, Expired: 0 },
      },
      {
        ...{ ...place, queue: 'south', captured: 1, removed: 0, unconfirmed: 0 },
        letters: { Pending: 1, Resolved: 0, Expired: 0 },
      },
    ])
    expect((await ledger.pulse()).outcomes).toMatchObject({ retried: 1, discarded: 1, confirmed: 0 })
    expect((await ledger.signature('1-b')).outcomes).toMatchObject({ retried: 1, unconfirmed: 1 })
    const sum = (numbers: readonly number[]) => numbers.reduce((all, each) => all + each, 0)
    const { series } = await ledger.activity('7d', { originalQueue: 'north' })
    expect([sum(series.arrived), sum(series.retried), sum(series.discarded)]).toEqual([5, 1, 1])
    expect(sum((await ledger.activity('24h')).series.arrived)).toBe(6)
    const { invariants } = await verifyStore(db, { clock })
    const counts = invariants.filter(({ invariant }) => ['I6', 'S1'].includes(invariant))
    expect(counts.flatMap(({ violations }) => violations)).toEqual([])
  })
})
