/** The file of a store in the hands of others: SQLite as Debian packages it is older than the one that comes with Node. */
import { spawnSync } from 'node:child_process'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { Office } from '../../src/office.ts'
import { describeProgram } from '../world/debian.ts'
import { reportOf } from '../world/report.ts'
import { type FreshStore, freshSqlite } from '../world/stores.ts'

const VIEWS = ['engineDlq', 'engineHistory'] as const

/** Bytes and names that the views have to work on. */
const REPORTS = [
  { payload: Buffer.from('{"plain":true}') },
  { payload: Buffer.from('ünï-🚀'), instanceId: 'a/b\\c#d?e%f' },
  { payload: Buffer.of(0xff, 0xfe, 0x41, 0xc3), instanceId: 'tab\tand\u009f' },
  { payload: Buffer.alloc(1_000, 0x80) },
]

const PYTHON = `
import json, sqlite3, sys
store = sqlite3.connect(sys.argv[1])
store.row_factory = sqlite3.Row
if len(sys.argv) > 3: store.execute("VACUUM INTO ?", (sys.argv[3],))
print(json.dumps([dict(row) for row in store.execute('SELECT * FROM "%s"' % sys.argv[2])]))
`

/** Reads all rows of a view; with `copy`, copies the file there first. */
type Reader = (file: string, view: string, copy?: string) => string

const byCommandLine =
  (sqlite3: string): Reader =>
  (file, view, copy) => {
    const vacuum = copy === undefined ? '' : `VACUUM INTO '${copy}';`
    return outputOf(sqlite3, ['-json', file, `${vacuum} SELECT * FROM "${view}"`])
  }

const byPython =
  (python: string): Reader =>
  (file, view, copy) =>
    outputOf(python, ['-c', PYTHON, file, view, ...(copy === undefined ? [] : [copy])])

function outputOf(program: string, args: readonly string[]): string {
  const { status, stdout, stderr } = spawnSync(program, [...args], { encoding: 'utf8' })
  expect(stderr).toBe('')
  expect(status).toBe(0)
  return stdout
}

for (const [program, reader] of [
  ['sqlite3', byCommandLine],
  ['python3', byPython],
] as const) {
  describeProgram(program, `the file of a store, opened with ${program}`, (path) => {
    let store: FreshStore
    let file: string
    let office: Office

    beforeAll(async () => {
      store = await freshSqlite()
      file = store.url.slice('sqlite:'.length)
      office = await Office.open({ store: store.url })
      for (const [number, report] of REPORTS.entries()) {
        await office.letters.capture(reportOf(number, office.clock.now(), report))
      }
    })
    afterAll(async () => {
      await office?.close()
      await store?.dispose()
    })

    it.each(VIEWS)('shows in %s what a new SQLite shows', (view) => {
      const rows = JSON.parse(reader(path)(file, view))
      expect(rows).toHaveLength(REPORTS.length)
      expect(rows).toEqual(rowsHere(file, view))
    })

    it.each(VIEWS)('gives a copy with all that %s shows, while the office is open', (view) => {
      const copy = `${file}-${view}-copy`
      reader(path)(file, view, copy)
      expect(rowsHere(copy, view)).toEqual(rowsHere(file, view))
      expect(JSON.parse(reader(path)(copy, view))).toHaveLength(REPORTS.length)
    })
  })
}

function rowsHere(file: string, view: string): readonly unknown[] {
  const store = new DatabaseSync(file, { readOnly: true })
  try {
    return store.prepare(`SELECT * FROM "${view}"`).all()
  } finally {
    store.close()
  }
}
