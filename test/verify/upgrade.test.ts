/** Stores of every earlier schema version, with rows in all of their parts: today's office opens them, ends what was under way, and `verify` finds nothing. */
import { describe, expect, it } from 'vitest'
import { TestClock } from '../../src/core/test-clock.ts'
import { MIGRATIONS } from '../../src/migrations.ts'
import { Office } from '../../src/office.ts'
import { type Integer, sql } from '../../src/store/database.ts'
import { migrate } from '../../src/store/migrations.ts'
import { openDatabase } from '../../src/store/open.ts'
import { bareStores } from '../world/stores.ts'
import { violationsIn } from '../world/verified.ts'
import { lettersAt } from './old-letters.ts'
import { NOW } from './old-rows.ts'
import { fillOldStore } from './old-store.ts'

const VERSIONS = MIGRATIONS.map(({ number }) => number)
  .toSorted((a, b) => a - b)
  .slice(0, -1)
const count = sql('test.lettersAfterwards', 'SELECT count(*) AS letters FROM bartleby.letters')

describe.each(bareStores)('a store on $name', (kind) => {
  it.each(VERSIONS)('of version %i is upgraded with all that is in it', async (version) => {
    const place = await kind.fresh()
    const clock = new TestClock()
    clock.freeze(NOW)
    const db = openDatabase(place.url, { poolSize: 2 })
    try {
      await migrate(
        db,
        MIGRATIONS.filter(({ number }) => number <= version),
      )
      await fillOldStore(db, version)
      const office = await Office.open({ store: place.url, clock, webhooks: {} })
      try {
        await office.redrives.settle()
        const open = await office.runs.open()
        expect(open.map(({ kind, state }) => `${kind} ${state}`)).toEqual(
          version >= 11 ? ['redrive paused'] : [],
        )
      } finally {
        await office.close()
      }
      const [row] = await db.session('test', (session) => session.rows<{ letters: Integer }>(count))
      expect(Number(row?.letters)).toBe(lettersAt(version))
      expect(await violationsIn(db, { clock })).toEqual([])
    } finally {
      await db.close()
      await place.dispose()
    }
  })
})
