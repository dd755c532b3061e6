import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { keysOf } from '../../test/world/row-keys.ts'
import { bareStores, type FreshStore } from '../../test/world/stores.ts'
import { instant } from '../core/clock.ts'
import { getHistory, historyOfLetter } from '../history/get.ts'
import { recordHistory } from '../history/record.ts'
import { MIGRATIONS } from '../migrations.ts'
import { type Database, sql } from '../store/database.ts'
import { migrate } from '../store/migrations.ts'
import { openDatabase } from '../store/open.ts'
import { readLetter } from './lists/detail.ts'
import { keyMigration } from './schema.ts'

const AT = instant(1_800_000_000_000_000n)
const TIME = '20270115T080000000000Z'

/** As earlier versions write them. */
const letter = (id: number, names: string) =>
  sql(
    `test.keys.letter.${id}`,
    `INSERT INTO bartleby.letters (id, captured_at, first_failure_at, last_failure_at, drawer, version, dequeue_count, status, reason,
       error_class, error_message, engine, source_id, instance_id, correlation_id)
     VALUES (${id}, ${AT}, 0, 0, 1, 1, 1, 0, 'failed', 'E', 'e', ${names})`,
  )
const seriesOf = (engine: string) => `(SELECT id FROM bartleby.history_series WHERE engine = '${engine}')`
const record = (name: string, row: string) =>
  sql(
    `test.keys.record.${name}`,
    `INSERT INTO bartleby.history (created_at, duration_ms, series, letter_id, letter_version, correlation_id) VALUES (${row})`,
  )
const OLD_ROWS = [
  sql(
    'test.keys.series',
    `INSERT INTO bartleby.history_series (engine, operation, status) VALUES ('hmac', 'rotate', 0)`,
  ),
  letter(5, `'hmac', 's-5', 'i/1', 'c-1'`),
  letter(6, `'queues', 'item-6', NULL, NULL`),
  record('first', `${AT}, 0, ${seriesOf('hmac')}, 5, 1, 'c-1'`),
  record('second', `${AT} + 1, 0, ${seriesOf('hmac')}, 5, 2, 'c-1'`),
  record('plain', `${AT}, 0, ${seriesOf('queues')}, 6, 1, NULL`),
]
const OLD_KEYS = {
  letters: [
    ['hmac', `i%2F1-${TIME}`],
    ['queues', `item-6-${TIME}`],
  ],
  history: [
    ['hmac', `c-1-${TIME}`],
    ['hmac', 'c-1-20270115T080000000001Z'],
    ['queues', `item-6-${TIME}`],
  ],
} as const

describe.each(bareStores)('a store from before row keys had numbers, on $name,', (kind) => {
  let place: FreshStore
  let db: Database

  beforeAll(async () => {
    place = await kind.fresh()
    db = openDatabase(place.url, { poolSize: 2 })
    await migrate(
      db,
      MIGRATIONS.filter(({ number }) => number < keyMigration.number),
    )
    await db.transaction('test', async (tx) => {
      for (const row of OLD_ROWS) await tx.run(row)
    })
    await migrate(db, MIGRATIONS)
  })
  afterAll(async () => {
    await db?.close()
    await place?.dispose()
  })

  const letterAt = (engine: string, rowKey: string) =>
    db.session('test', (session) => readLetter(session, engine, rowKey))
  const entryAt = (engine: string, rowKey: string) =>
    db.session('test', (session) => getHistory(session, engine, rowKey))

  it('keeps the keys of its letters and of its history, and finds them', async () => {
    for (const [engine, rowKey] of OLD_KEYS.letters)
      expect(await letterAt(engine, rowKey)).toMatchObject({ engine, rowKey })
    for (const [engine, rowKey] of OLD_KEYS.history)
      expect(await entryAt(engine, rowKey)).toMatchObject({ engine, rowKey })
    expect((await entryAt('hmac', `c-1-${TIME}`)).letter?.rowKey).toBe(`i%2F1-${TIME}`)
    expect((await entryAt('queues', `item-6-${TIME}`)).letter?.rowKey).toBe(`item-6-${TIME}`)
    const events = await db.session('test', (session) => historyOfLetter(session, 5n, 10))
    expect(events.map(({ rowKey }) => rowKey)).toEqual(['c-1-20270115T080000000001Z', `c-1-${TIME}`])
  })

  it('finds none of them by its number', async () => {
    const numbered = (rowKey: string, number: number) =>
      rowKey.replace(/Z$/, `${String(number).padStart(12, '0')}Z`)
    expect(await letterAt('hmac', numbered(`i%2F1-${TIME}`, 5))).toBeNull()
    for (const number of [1, 2, 3])
      await expect(entryAt('hmac', numbered(`c-1-${TIME}`, number))).rejects.toMatchObject({
        code: 'history_unknown',
      })
  })

  it('gives new rows of the same name and microsecond keys of their own', async () => {
    const [row] = await db.transaction('test', (tx) =>
      recordHistory(tx, [
        {
          ...{ engine: 'hmac', operation: 'rotate', status: 'Succeeded', instanceId: null, durationMs: 0 },
          ...{ correlationId: 'c-1', createdAt: AT, letterId: 5n },
        },
      ]),
    )
    expect(row?.createdAt).toBe(AT)
    const events = await db.session('test', (session) => historyOfLetter(session, 5n, 10))
    const keys = events.map(({ rowKey }) => rowKey)
    expect(new Set(keys).size).toBe(3)
    expect(keys.filter((rowKey) => keysOf('c-1', TIME).test(rowKey))).toHaveLength(1)
    for (const rowKey of keys) expect(await entryAt('hmac', rowKey)).toMatchObject({ rowKey })
  })

  it('takes what a server of the version before still writes under the keys that it tells', async () => {
    await db.transaction('test', async (tx) => {
      await tx.run(letter(7, `'hmac', 's-7', 'i-7', 'c-7'`))
      await tx.run(record('late', `${AT} + 2, 0, ${seriesOf('hmac')}, 7, 1, 'c-1'`))
    })
    expect(await letterAt('hmac', `i-7-${TIME}`)).toMatchObject({ id: 7n, rowKey: `i-7-${TIME}` })
    const rowKey = 'c-1-20270115T080000000002Z'
    expect(await entryAt('hmac', rowKey)).toMatchObject({ rowKey })
    // Who loses such a key is run again, as before.
    const twin = db.transaction('test', (tx) => tx.run(letter(8, `'hmac', 's-8', 'i-7', 'c-8'`)))
    await expect(twin).rejects.toThrow(/unique/i)
  })
})
