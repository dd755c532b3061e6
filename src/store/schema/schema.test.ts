import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { reportOf } from '../../../test/world/report.ts'
import { type FreshStore, stores } from '../../../test/world/stores.ts'
import type { Log } from '../../core/log.ts'
import { migrateStore, Office, repairStore } from '../../office.ts'
import { verifyStore } from '../../verify/verify.ts'
import { openDatabase } from '../open.ts'
import { missingParts } from './parts.ts'

describe.each(stores)('the schema of a store on $name', ({ name, fresh }) => {
  let store: FreshStore
  const own = (table: string) => (name === 'postgres' ? `bartleby.${table}` : table)

  beforeEach(async () => {
    store = await fresh()
    await migrateStore(store.url)
  })
  afterEach(() => store.dispose())

  /** Somebody at work with SQL. */
  const damage = (statement: string) =>
    onStore(store.url, (db) => db.transaction('test', (tx) => db.script(tx, statement)))

  it('is whole after all migrations', async () => {
    expect(await onStore(store.url, (db) => db.session('test', missingParts))).toEqual([])
  })

  it('is served without an index, with a warning that names it, until it is repaired', async () => {
    await damage(`DROP INDEX ${own('letters_newest')}`)
    const warnings: string[] = []
    const office = await Office.open({ store: store.url, log: hearing(warnings) })
    try {
      expect(warnings).toEqual([expect.stringMatching(/lacks index letters_newest.*migrate --repair/)])
      expect(await office.missingIndexes()).toEqual(['index letters_newest'])
      expect(await repairStore(store.url)).toMatchObject({ made: ['index letters_newest'], failed: [] })
      expect(await office.missingIndexes()).toEqual([])
    } finally {
      await office.close()
    }
  })

  it('is refused without a unique index, and repaired', async () => {
    await damage(`DROP INDEX ${own('letters_by_source')}`)
    await expect(Office.open({ store: store.url })).rejects.toThrow(
      'the store lacks unique index letters_by_source; stop all servers and run `bartleby migrate --repair`',
    )
    expect(await repairStore(store.url)).toMatchObject({ made: ['unique index letters_by_source'] })
    await (await Office.open({ store: store.url })).close()
  })

  it('is refused without a column, which no repair brings back', async () => {
    await damage(`ALTER TABLE ${own('drawers')} RENAME COLUMN queue TO queue_was`)
    await expect(Office.open({ store: store.url })).rejects.toThrow(
      /the store lacks column drawers.queue; it cannot be made anew: restore the store from a backup/,
    )
    const { made, failed } = await repairStore(store.url)
    expect(made).toEqual([])
    expect(failed).toContainEqual({ part: 'column drawers.queue', why: 'only a backup has it' })
    expect(await onStore(store.url, (db) => verifyStore(db))).toMatchObject({
      clean: false,
      invariants: [{ invariant: 'S1' }],
    })
  })

  it('keeps a unique index missing where rows are there twice, and says which', async () => {
    const office = await Office.open({ store: store.url })
    for (const number of [1, 2]) await office.letters.capture(reportOf(number, office.clock.now()))
    await office.close()
    await damage(`DROP INDEX ${own('letters_by_source')}; UPDATE ${own('letters')} SET source_id = 'twice'`)
    const { made, failed } = await repairStore(store.url)
    expect({ made, failed }).toEqual({
      made: [],
      failed: [{ part: 'unique index letters_by_source', why: expect.stringMatching(/unique/i) }],
    })
  })
})

async function onStore<T>(
  url: string,
  work: (db: ReturnType<typeof openDatabase>) => Promise<T>,
): Promise<T> {
  const db = openDatabase(url, { poolSize: 1 })
  try {
    return await work(db)
  } finally {
    await db.close()
  }
}

function hearing(warnings: string[]): Log {
  const quiet = () => {}
  return { debug: quiet, info: quiet, error: quiet, warn: (_fields, message) => void warnings.push(message) }
}
