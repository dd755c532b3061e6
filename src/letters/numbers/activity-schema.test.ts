import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { barePostgres, type FreshStore, freshSqlite, stores } from '../../../test/world/stores.ts'
import { instant } from '../../core/clock.ts'
import { TestClock } from '../../core/test-clock.ts'
import { MIGRATIONS } from '../../migrations.ts'
import { type Database, sql } from '../../store/database.ts'
import { migrate } from '../../store/migrations.ts'
import { openDatabase } from '../../store/open.ts'
import { readDrawers } from './find-drawers.ts'
import { LetterNumbers } from './letter-numbers.ts'
import { activityMigration } from './schema.ts'

/** Two queues, two signatures; letters of an older version, some of them sent back. */
const OLD_STORE = [
  `INSERT INTO bartleby.signatures (fingerprint, error_class, title, first_seen_at) VALUES ('1-a', 'E', 'a', 0), ('1-b', 'E', 'b', 0)`,
  `INSERT INTO bartleby.drawers (source, engine, queue, signature)
   VALUES ('http', 'hmac', 'north', 1), ('http', 'hmac', 'north', 2), ('http', 'hmac', 'south', 1)`,
  ...[
    [1, 0, null, null],
    [1, 1, 'retry', null],
    [1, 1, 'retry', 5],
    [1, 1, 'discard', null],
    [2, 1, 'retry', null],
    [2, 1, 'retry', null],
    [3, 2, 'expire', null],
  ].map(
    ([drawer, status, resolution, confirmedAt], i) => `
      INSERT INTO bartleby.letters (id, captured_at, first_failure_at, last_failure_at, confirmed_at, drawer, version,
        dequeue_count, status, engine, source_id, reason, error_class, error_message, resolution)
      VALUES (${i + 1}, 0, 0, 0, ${confirmedAt}, ${drawer}, 1, 1, ${status}, 'hmac', 's${i}', 'failed', 'E', 'e',
        ${resolution === null ? null : `'${resolution}'`})`,
  ),
  `INSERT INTO bartleby.letter_totals VALUES (1, 0, 1, 0), (1, 1, 3, 0), (1, 4, 6, 0), (2, 1, 2, 0), (2, 4, 2, 0),
     (3, 2, 1, 0), (3, 4, 1, 0)`,
].map((text, i) => sql(`test.oldStore.${i}`, text))

describe.each(stores)('a store of an older version on $name', (kind) => {
  let place: FreshStore
  let db: Database
  beforeEach(async () => {
    place = await (kind.name === 'sqlite' ? freshSqlite() : barePostgres())
    db = openDatabase(place.url, { poolSize: 2 })
    await migrate(
      db,
      MIGRATIONS.filter(({ number }) => number < activityMigration.number),
    )
  })
  afterEach(async () => {
    await db?.close()
    await place?.dispose()
  })

  it('begins with what its letters tell', async () => {
    await db.transaction('test', async (tx) => {
      for (const statement of OLD_STORE) await tx.run(statement)
    })
    await migrate(db, MIGRATIONS)
    const clock = new TestClock()
    clock.freeze(instant(1_800_000_000_000_000n))
    const numbers = new LetterNumbers(db, clock, { checkKnown: async () => {} })
    expect(await numbers.summary()).toEqual({
      Pending: 1,
      Resolved: 5,
      Expired: 1,
      captured: 9,
      unconfirmed: 3,
    })
    const of = async (signature: string) => (await numbers.signature(signature)).outcomes
    expect(await of('1-a')).toEqual({ retried: 2, confirmed: 1, returned: 0, unconfirmed: 1 })
    expect(await of('1-b')).toEqual({ retried: 2, confirmed: 0, returned: 0, unconfirmed: 2 })
    expect((await numbers.overview()).arrivals).toEqual({ lastHour: 0, usualPerHour: null })
    const drawers = await db.session('test', (session) => readDrawers(session))
    expect(drawers.toSorted((a, b) => a.number - b.number)).toMatchObject([
      { number: 1, place: 1 },
      { number: 2, place: 1 },
      { number: 3, place: 3 },
    ])
  })

  it('may be empty', async () => {
    await migrate(db, MIGRATIONS)
    const numbers = new LetterNumbers(db, new TestClock(), { checkKnown: async () => {} })
    expect(await numbers.summary()).toMatchObject({ captured: 0, unconfirmed: 0 })
    expect(await numbers.overview()).toMatchObject({ oldestPending: null, returnedLastDay: 0 })
  })
})
