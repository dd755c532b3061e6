/**
 * What is done with an outbox on PostgreSQL costs what is done, and not what the table holds: at every stage of its life, and
 * whatever PostgreSQL knows about it.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Layout, readLayout } from '../../src/sources/outbox/table/layout.ts'
import { sizeOf } from '../world/limits.ts'
import { barePostgres, type FreshStore } from '../world/stores.ts'
import { JIT_COST } from './explain.ts'
import { hasNumbers, keysOf, lifeOf, scriptsOf } from './outbox-load.ts'
import { makeTable, tablesOf } from './outbox-tables.ts'
import { BATCH, readPages, tour } from './outbox-tour.ts'
import { type Sighting, WatchedPostgres } from './watched-postgres.ts'

const LARGEST_BATCH = 1_000
/** Most rows that a statement may meet, and give: those of the largest batch, each with its key, and what is looked at beside them. */
const MOST_ROWS = 4 * LARGEST_BATCH
/** A table of so many rows has fewer pages than a thousand of its rows take to find. */
const SMALL_TABLE = 20_000
const IN_THOUSANDS = ['recordKeys', 'purge']
/** A row that is written anew is found by one index, and enters up to six. */
const MOST_PAGES_PER_ROW = 40
const FEW_PAGES = 200

/** What dispatchers and the office do; what applications do is told apart by what they call. */
const VERBS = [
  'claim',
  'suspects',
  'renew',
  'processed',
  'unprocessed',
  'release',
  'firstLine',
  'nextLine',
  'waiting',
  'firstLetterDue',
  'nextLetterDue',
  'readForLetters',
  'lockForLetters',
  'goneForLetters',
  'startDead',
  'lockStatesOfLetters',
  'unmark',
  'giveUp',
  'reinstate',
  'startOver',
  'takeBack',
  'oldest',
  'recordKeys',
  'purge',
  'forgetKeys',
  'add a key that is there',
  'add many with keys at a time',
  'inbox: once in vain',
]

describe.each(tablesOf(sizeOf(80_000, 200_000)))('an outbox in a table of $of, on PostgreSQL', (table) => {
  let place: FreshStore
  let db: WatchedPostgres
  let layout: Layout

  beforeAll(async () => {
    place = await barePostgres()
    await makeTable('postgres', place.url, table)
    db = await WatchedPostgres.open(place.url)
    const { client } = db
    layout = await readLayout('postgres', table.options, async (text, values) => {
      return (await client.query(text, [...values])).rows
    })
    // The tables get no statistics behind our back.
    for (const name of [layout.sqlTable, layout.keys.sqlTable, 'inbox_keys'])
      await client.query(`ALTER TABLE ${name} SET (autovacuum_enabled = off)`)
    // Rows that are added by number leave the sequence behind.
    if (hasNumbers(layout))
      await client.query(`SELECT setval(pg_get_serial_sequence('${layout.plainTable}', 'id'), 10000000)`)
  })

  afterAll(async () => {
    await db?.close()
    await place?.dispose()
  })

  const mostRowsOf = (name: string): number =>
    table.size <= SMALL_TABLE && IN_THOUSANDS.includes(name) ? table.size + MOST_ROWS : MOST_ROWS

  const faultsOf = ({ name, sorted, rows, pages, cost }: Sighting): readonly string[] => [
    ...(sorted > LARGEST_BATCH ? [`${name} sorts ${sorted} rows`] : []),
    ...(rows > mostRowsOf(name) ? [`${name} meets ${rows} rows`] : []),
    ...(cost >= JIT_COST ? [`${name} costs ${cost}`] : []),
    ...(pages > FEW_PAGES + rows * MOST_PAGES_PER_ROW
      ? [`${name} touches ${pages} pages for ${rows} rows`]
      : []),
  ]

  it('costs what is done with it at every stage of its life', async () => {
    const life = lifeOf(table.size)
    const scripts = scriptsOf(layout, life)
    const faults: Record<string, readonly string[]> = {}
    const claims: number[] = []
    const seen = new Set<string>()
    for (const [nth, { name, analysed }] of life.entries()) {
      if (scripts[nth] !== '') await db.client.query(scripts[nth] ?? '')
      if (nth === 1) await db.client.query(keysOf(layout, 20_000))
      if (analysed) await db.client.query('VACUUM ANALYZE')
      const toured = { ...table, layout, db, application: db.application }
      const sightings = await db.watch(async () => {
        await readPages(toured)
        await tour(toured)
      })
      const found = sightings.flatMap(faultsOf)
      if (found.length > 0) faults[`${nth}: ${name}`] = [...new Set(found)]
      for (const sighting of sightings) seen.add(sighting.name)
      const claim = sightings.find((sighting) => sighting.name === 'claim')
      if (claim !== undefined && nth > 0) claims.push(claim.pages)
    }
    expect(faults).toEqual({})
    expect([...seen]).toEqual(expect.arrayContaining(VERBS))
    // The first stage with rows has as many to claim as the last.
    expect(Math.max(...claims)).toBeLessThan(BATCH * MOST_PAGES_PER_ROW)
  })
})
