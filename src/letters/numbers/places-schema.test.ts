import pg from 'pg'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { PATIENCE_MS } from '../../../test/world/limits.ts'
import { barePostgres, type FreshStore, freshSqlite, stores } from '../../../test/world/stores.ts'
import { instant } from '../../core/clock.ts'
import { TestClock } from '../../core/test-clock.ts'
import { MIGRATIONS } from '../../migrations.ts'
import { type Database, sql } from '../../store/database.ts'
import { migrate } from '../../store/migrations.ts'
import { openDatabase } from '../../store/open.ts'
import { verifyStore } from '../../verify/verify.ts'
import { LetterNumbers } from './letter-numbers.ts'
import { placesMigration } from './schema.ts'

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
    const numbers = new LetterNumbers(db, clock, { checkKnown: async () => {} })
    expect(await numbers.summary()).toEqual({
      Pending: 3,
      Resolved: 2,
      Expired: 0,
      captured: 6,
      unconfirmed: 1,
    })
    const place = { source: 'http', engine: 'hmac' }
    expect(await numbers.gauges()).toEqual([
      {
        ...{ ...place, queue: 'north', captured: 5, removed: 1, unconfirmed: 1 },
        letters: { Pending: 2, Resolved: 2, Expired: 0 },
      },
      {
        ...{ ...place, queue: 'south', captured: 1, removed: 0, unconfirmed: 0 },
        letters: { Pending: 1, Resolved: 0, Expired: 0 },
      },
    ])
    expect((await numbers.officeGauges()).outcomes).toMatchObject({ retried: 1, discarded: 1, confirmed: 0 })
    expect((await numbers.signature('1-b')).outcomes).toMatchObject({ retried: 1, unconfirmed: 1 })
    const sum = (numbers: readonly number[]) => numbers.reduce((all, each) => all + each, 0)
    const { series } = await numbers.activity('7d', { originalQueue: 'north' })
    expect([sum(series.arrived), sum(series.retried), sum(series.discarded)]).toEqual([5, 1, 1])
    expect(sum((await numbers.activity('24h')).series.arrived)).toBe(6)
    const { invariants } = await verifyStore(db, { clock })
    const counts = invariants.filter(({ invariant }) => ['I6', 'S1'].includes(invariant))
    expect(counts.flatMap(({ violations }) => violations)).toEqual([])
  })
})

/** What a server of the version before does: it counts a capture, and folds. */
const OLD_CAPTURE =
  'INSERT INTO bartleby.letter_deltas (drawer, status, letters, last_seen_at) VALUES (1, 0, 3, 7), (1, 4, 3, 7)'
const OLD_FOLD = `
  WITH mine AS (
    INSERT INTO bartleby.locks AS held (name, owner, deadline) VALUES ('letters.fold', 'old', 9) RETURNING name
  ), taken AS (
    DELETE FROM bartleby.letter_deltas WHERE EXISTS (SELECT 1 FROM mine) RETURNING *
  )
  INSERT INTO bartleby.letter_totals AS totals (drawer, status, letters, last_seen_at)
  SELECT drawer, status, sum(letters), max(last_seen_at) FROM taken GROUP BY drawer, status
  ON CONFLICT (drawer, status) DO UPDATE SET letters = totals.letters + excluded.letters`
const OLD_DRAWER = `INSERT INTO bartleby.drawers (source, engine, queue, signature) VALUES ('http', 'hmac', 'south', 1)`

describe('a server of the version before, beside the migration', () => {
  let place: FreshStore
  let db: Database
  let old: pg.Client
  beforeEach(async () => {
    place = await barePostgres()
    db = openDatabase(place.url, { poolSize: 2 })
    await migrate(
      db,
      MIGRATIONS.filter(({ number }) => number < placesMigration.number),
    )
    old = new pg.Client({ connectionString: place.url })
    await old.connect()
    await old.query(`
      INSERT INTO bartleby.signatures (fingerprint, error_class, title, first_seen_at) VALUES ('1-a', 'E', 'a', 0);
      INSERT INTO bartleby.drawers (source, engine, queue, signature) VALUES ('http', 'hmac', 'north', 1);
      INSERT INTO bartleby.letter_deltas (drawer, status, letters, last_seen_at) VALUES (1, 0, 5, 7), (1, 4, 5, 7)`)
  })
  afterEach(async () => {
    await old?.end()
    await db?.close()
    await place?.dispose()
  })

  const isAwaited = async (): Promise<boolean> => {
    const { rows } = await old.query(
      'SELECT 1 FROM pg_stat_activity WHERE pg_backend_pid() = ANY(pg_blocking_pids(pid))',
    )
    return rows.length > 0
  }
  const captured = async () => {
    const { rows } = await old.query(
      'SELECT queue, status, letters FROM bartleby.place_totals JOIN bartleby.places ON id = place ORDER BY 1, 2',
    )
    return rows.map(({ queue, status, letters }) => `${queue} ${status}: ${letters}`)
  }

  it.each([
    ['counts a capture', OLD_CAPTURE, 'SELECT 1', ['north 0: 8', 'north 4: 8']],
    ['folds', OLD_FOLD, 'SELECT 1', ['north 0: 5', 'north 4: 5']],
    [
      'opens a drawer and counts into it',
      OLD_DRAWER,
      OLD_CAPTURE.replaceAll('(1,', '(2,'),
      ['north 0: 5', 'north 4: 5', 'south 0: 3', 'south 4: 3'],
    ],
  ])('that %s is waited for, and each letter is counted once', async (_, act, then, expected) => {
    await old.query(`BEGIN; ${act}`)
    const migrated = migrate(db, MIGRATIONS)
    await expect.poll(isAwaited, { timeout: PATIENCE_MS }).toBe(true)
    await old.query(`${then}; COMMIT`)
    await migrated
    expect(await captured()).toEqual(expected)
  })

  it('that is still alive afterwards can neither count nor fold, and takes nothing from places', async () => {
    await migrate(db, MIGRATIONS)
    for (const act of [OLD_CAPTURE, OLD_FOLD, OLD_DRAWER])
      await expect(old.query(act)).rejects.toThrow(pg.DatabaseError)
    expect(await captured()).toEqual(['north 0: 5', 'north 4: 5'])
    const folding = await old.query("SELECT 1 FROM bartleby.locks WHERE name = 'letters.fold'")
    expect(folding.rows).toEqual([])
  })
})
