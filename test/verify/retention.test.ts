/** What retention removed is not missed; what it may not have removed is. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { instant } from '../../src/core/clock.ts'
import { TestClock } from '../../src/core/test-clock.ts'
import { Office } from '../../src/office.ts'
import { type Database, sql } from '../../src/store/database.ts'
import { openDatabase } from '../../src/store/open.ts'
import { retain } from '../world/retain.ts'
import { type FreshStore, stores } from '../world/stores.ts'
import { violationsIn } from '../world/verified.ts'
import { fillStore, reportAt } from './busy-store.ts'

const DAY_US = 86_400_000_000n
const START = 1_800_000_000_000_000n
const countHistory = sql('test.countHistory', 'SELECT count(*) AS found FROM bartleby.history')
const forgetNewest = sql(
  'test.forgetNewest',
  'DELETE FROM bartleby.history WHERE id = (SELECT max(id) FROM bartleby.history)',
)

describe.each(stores)('a store on $name after retention', (store) => {
  let place: FreshStore
  let db: Database
  let clock: TestClock

  beforeEach(async () => {
    place = await store.fresh()
    db = openDatabase(place.url, { poolSize: 2 })
    clock = new TestClock()
    clock.freeze(instant(START))
  })

  afterEach(async () => {
    await db?.close()
    await place?.dispose()
  })

  const removeAfter = async (days: bigint) => {
    clock.advance(days * DAY_US)
    return retain({ db, clock }, { retentionDays: 90 })
  }
  const broken = async () => {
    return violationsIn(db, { clock })
  }
  /** A letter is reported and, with `changed`, expired. */
  const report = async (sourceId: string, changed: boolean) => {
    const office = await Office.open({ store: place.url, clock })
    const { letter } = await office.letters.capture({ ...reportAt(clock), sourceId })
    if (changed) await office.letters.change(letter, { status: 'Expired', notes: null, actor: 'tester' })
    await office.close()
  }

  it('keeps its promises: what is gone is counted, what is pending stays', async () => {
    await fillStore(place.url)
    expect(await removeAfter(91n)).toMatchObject({ letters: 5 })
    expect(await broken()).toEqual([])
  })

  it('does not miss the history of letters that are older than it', async () => {
    await report('old', false)
    await removeAfter(91n)
    const [row] = await db.session('test', (session) =>
      session.rows<{ found: number | string }>(countHistory),
    )
    // All that is left is the word of retention itself.
    expect(Number(row?.found)).toBe(1)
    expect(await broken()).toEqual([])
    await report('new', true)
    expect(await broken()).toEqual([])
  })

  it('misses a history that was lost whole', async () => {
    await report('fresh', false)
    await db.transaction('test', (tx) => tx.run(forgetNewest))
    expect(await broken()).toMatchObject([{ invariant: 'I2', row: { sourceId: 'fresh' } }])
  })

  it('misses what happened since then', async () => {
    await report('old', false)
    await removeAfter(91n)
    await report('first', true)
    clock.advance(DAY_US)
    await report('second', true)
    expect(await broken()).toEqual([])
    await db.transaction('test', (tx) => tx.run(forgetNewest))
    expect(await broken()).toMatchObject([
      { invariant: 'I3', row: { sourceId: 'second', status: 'Expired', version: '2' } },
    ])
  })
})
