/**
 * What is done with an outbox on SQLite follows its indexes at every stage of its life, whatever SQLite knows about it:
 * nothing is read from end to end, and nothing is sorted.
 */
import { DatabaseSync } from 'node:sqlite'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Layout, readLayout } from '../../src/sources/outbox/table/layout.ts'
import { sizeOf } from '../world/limits.ts'
import { type FreshStore, freshSqlite } from '../world/stores.ts'
import { keysOf, lifeOf, scriptsOf } from './outbox-load.ts'
import { makeTable, tablesOf } from './outbox-tables.ts'
import { questionsOf, tour } from './outbox-tour.ts'
import { type SqliteSighting, WatchedSqlite } from './watched-sqlite.ts'

/** Statements that may sort, and why that is little. */
const SORTED: Readonly<Record<string, string>> = {
  firstDead: 'the dead of one line: the first one holds back all that could die after it',
}

/** Statements that begin at the beginning of an index, and stop at a limit. */
const FROM_THE_BEGINNING = ['firstLine', 'firstLetterDue']

/** Lists and rows that a call brings along, and parts of the statement itself. */
const GIVEN = /^SCAN (json_each|\d+-ROW VALUES|CONSTANT ROW|m$|first$|next$|each$|given$|\(subquery)/

/** The index, or what stands for it, that a statement finds its rows by. */
const INDEXES: Readonly<Record<string, readonly string[]>> = {
  _due: ['late', 'fresh', 'suspects'],
  _line: ['front', 'firstDead', 'release', 'firstLine', 'nextLine'],
  _letter_due: ['firstLetterDue', 'nextLetterDue'],
  _processed: ['oldest'],
  _tenant_key: ['add a key that is there', 'add many with keys'],
  _keys_age: ['forgetKeys'],
  inbox_keys_age: ['inbox: forget'],
  id: [
    'take',
    'park',
    'renew',
    'processed',
    'unprocessed',
    'release',
    'readForLetters',
    'lockForLetters',
    'goneForLetters',
    'startDead',
    'lockStatesOfLetters',
    'giveUp',
    'reinstate',
    'startOver',
    'takeBack',
    'recordKeys',
    'purge',
  ],
}

describe.each(tablesOf(sizeOf(80_000, 200_000)))('an outbox in a table of $of, on SQLite', (table) => {
  let place: FreshStore
  let layout: Layout

  beforeAll(async () => {
    place = await freshSqlite()
    await makeTable('sqlite', place.url, table)
  })

  afterAll(() => place?.dispose())

  const run = (script: string) => {
    const file = new DatabaseSync(place.url.slice('sqlite:'.length))
    file.exec(`PRAGMA synchronous = OFF; PRAGMA busy_timeout = 5000; ${script}`)
    file.close()
  }

  const look = async () => {
    const watched = new WatchedSqlite(place.url)
    try {
      layout ??= await readLayout('sqlite', table.options, async (text, values) =>
        // Names of tables.
        watched.file.prepare(text).all(...(values as readonly string[])),
      )
      const { db, application } = watched
      const sightings = await watched.watch(() => tour({ ...table, layout, db, application }))
      return { sightings, questions: questionsOf(layout).map((statement) => watched.explain(statement)) }
    } finally {
      await watched.close()
    }
  }

  const faultsOf = ({ name, steps }: SqliteSighting): readonly string[] =>
    steps
      .filter(
        (step) =>
          (step.startsWith('SCAN ') && !GIVEN.test(step) && !FROM_THE_BEGINNING.includes(name)) ||
          (step.includes('TEMP B-TREE') && !(name in SORTED)) ||
          // A walk over all values of the first columns of an index.
          step.includes('ANY(') ||
          step.includes('AUTOMATIC'),
      )
      .map((step) => `${name}: ${step}`)

  /** How a step names an index. */
  const wordsOf = (index: string): RegExp => {
    if (index === 'id') return /INTEGER PRIMARY KEY \(rowid=|autoindex_\w+_1 \(Id=/
    return new RegExp(`INDEX ${index.startsWith('_') ? layout.indexPrefix : ''}${index}( |$)`)
  }

  it('follows its indexes at every stage of its life', async () => {
    const life = lifeOf(table.size / 4)
    const faults: Record<string, readonly string[]> = {}
    const stepsOf = new Map<string, string[]>()
    let scripts: readonly string[] = []
    for (const [nth, { name, analysed }] of life.entries()) {
      if (nth > 0) run(scripts[nth] ?? '')
      if (nth === 1) run(keysOf(layout, 20_000))
      if (analysed) run('ANALYZE')
      const { sightings, questions } = await look()
      scripts = scriptsOf(layout, life)
      const found = [
        ...sightings.flatMap(faultsOf),
        ...questions.flatMap(({ name, steps }) =>
          steps.filter((step) => step.includes('TEMP B-TREE')).map((step) => `${name}: ${step}`),
        ),
      ]
      if (found.length > 0) faults[`${nth}: ${name}`] = [...new Set(found)]
      for (const { name, steps } of sightings) stepsOf.set(name, [...(stepsOf.get(name) ?? []), ...steps])
    }
    expect(faults).toEqual({})
    const strayed = Object.entries(INDEXES).flatMap(([index, names]) =>
      names
        .filter((name) => !stepsOf.get(name)?.some((step) => wordsOf(index).test(step)))
        .map((name) => `${name} does not use ${index}: ${stepsOf.get(name)?.join('; ')}`),
    )
    expect(strayed).toEqual([])
  })
})
