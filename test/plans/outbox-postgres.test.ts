/**
 * What is done with an outbox on PostgreSQL costs what is done, and not what the table holds: at every stage of its life, and
 * whatever PostgreSQL knows about it. A plan that was made for an empty table is kept for as long as nobody analyses it.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Layout, readLayout } from '../../src/outbox/layout.ts'
import { sizeOf } from '../harness/limits.ts'
import { barePostgres, type FreshStore } from '../harness/stores.ts'
import { hasNumbers, keysOf, lifeOf, scriptsOf } from './outbox-load.ts'
import { makeTable, tablesOf } from './outbox-tables.ts'
import { BATCH, questionsOf, tour } from './outbox-tour.ts'
import { type Scan, type Sighting, WatchedPostgres } from './watched-postgres.ts'

const LARGEST_BATCH = 1_000
/** Most rows that a statement may meet, and give: those of the largest batch, each with its key. */
const MOST_ROWS = 3 * LARGEST_BATCH
/** A row that is written anew is found by one index, and enters up to six. */
const MOST_PAGES_PER_ROW = 40
const FEW_PAGES = 200

/** Statements that read an index from its beginning, and stop. */
const FROM_THE_BEGINNING = ['firstLine', 'firstLetterDue']

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
  'standingOfLetters',
  'lockStandingOfLetters',
  'unmark',
  'giveUp',
  'layBack',
  'startOver',
  'takeBack',
  'oldest',
  'recordKeys',
  'purge',
  'forgetKeys',
  'add a key that is there (generic)',
  'add many with keys at a time (custom)',
  'inbox: once in vain (generic)',
]

describe.each(tablesOf(sizeOf(80_000, 200_000)))('an outbox in a table of $of, on PostgreSQL', (table) => {
  let place: FreshStore
  let db: WatchedPostgres
  let layout: Layout
  /** The first columns of the indexes. */
  const firstColumns = new Map<string, string>()

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
    const { rows } = await client.query<{ name: string; first: string }>(
      `SELECT relname AS name, pg_get_indexdef(oid, 1, true) AS first FROM pg_class
       WHERE relkind = 'i' AND relnamespace = 'public'::regnamespace`,
    )
    for (const { name, first } of rows) firstColumns.set(name, first)
  })

  afterAll(async () => {
    await db?.close()
    await place?.dispose()
  })

  /** An index of which all is read; a condition that every entry meets leaves it open. */
  const isOpen = ({ index, condition }: Scan): boolean => {
    if (index === null) return false
    const first = firstColumns.get(index)
    return first === undefined || !condition.replaceAll(/\S+ IS NOT NULL/g, '').includes(first)
  }

  /** Tables that may be read as a whole: the one with one row, and that of the inbox while an application sees it small. */
  const mayBeRead = (): readonly string[] => [layout.wake.plainTable, 'inbox_keys']

  const faultsOf = ({ name, scans, sorted, rows, pages }: Sighting): readonly string[] => [
    ...scans
      .filter(({ type, relation }) => type === 'Seq Scan' && !mayBeRead().includes(relation))
      .map(({ relation }) => `${name} reads all of ${relation}`),
    ...scans
      .filter((scan) => isOpen(scan) && !FROM_THE_BEGINNING.includes(name))
      .map(
        ({ index, condition }) =>
          `${name} reads all of ${index}, where ${condition || 'there is no condition'}`,
      ),
    ...(sorted > LARGEST_BATCH ? [`${name} sorts ${sorted} rows`] : []),
    ...(rows > MOST_ROWS ? [`${name} meets ${rows} rows`] : []),
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
      const sightings = await db.watch(() => tour({ ...table, layout, db, application: db.application }))
      const questions: Sighting[] = []
      for (const statement of questionsOf(layout)) questions.push(await db.explain(statement))
      const found = [
        ...sightings.flatMap(faultsOf),
        ...questions.flatMap(({ name, scans }) =>
          scans
            .filter(({ type }) => type === 'Seq Scan')
            .map(({ relation }) => `${name} reads all of ${relation}`),
        ),
      ]
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
