/**
 * Adoption on SQLite: the same steps. Every change holds the one write lock for a moment; only building an index takes
 * longer, and writers wait for that (their `busy_timeout` must allow it).
 */
import { existsSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { StoreUnavailable } from '../../../../store/database.ts'
import { refuse } from '../../refusal.ts'
import type { Layout, RunSql } from '../../table/layout.ts'
import { indexStatement, keyTriggerOf, outboxSchema, sideTablesOf } from '../../table/schema.ts'
import { quote, type TableNames } from '../../table/table-names.ts'
import { type Filling, fillingOf, fillStep, lackingOf } from '../fill.ts'
import { indexSteps } from '../indexes.ts'
import { type Adoption, type AdoptSettings, type Ground, patiently, type Step } from '../report.ts'
import { addedColumns, addingColumns, noIdIndex, type Target } from '../target.ts'

export async function sqliteGround(path: string, settings: AdoptSettings): Promise<Ground> {
  const { names } = settings
  if (names.schema !== null) refuse('table', 'SQLite has no schemas')
  const file = AdoptFile.open(path, settings)
  return {
    dialect: 'sqlite',
    run: file.run,
    change: (sql) => file.change(sql),
    // Steps exclude each other and can be run twice: two adoptions do no harm.
    async begin() {},
    script: (sql) => file.script(sql),
    create: () => ({
      what: `make the table ${names.table}`,
      sql: short(outboxSchema('sqlite', settings.options).trimEnd()),
      needed: () => true,
    }),
    async plan(adoption) {
      await refuseOtherTables(names, file.run)
      return planOf(file, adoption)
    },
    async close() {
      file.close()
    },
  }
}

async function refuseOtherTables(names: TableNames, run: RunSql): Promise<void> {
  const [table] = await run(
    'SELECT type, wr FROM pragma_table_list WHERE schema = ?1 AND name = ?2 COLLATE NOCASE',
    ['main', names.plainTable],
  )
  const reason =
    table?.type !== 'table' ? 'is no table' : Number(table.wr) === 1 ? 'is a table WITHOUT ROWID' : null
  if (reason !== null) refuse('table', `'${names.table}' ${reason}`)
}

async function planOf(file: AdoptFile, adoption: Adoption): Promise<readonly Step[]> {
  const { layout, run, settings } = adoption
  const { tenantId, idempotencyKey } = layout.columns
  const isUnique = await hasUnique(layout, [tenantId, idempotencyKey], run)
  await noteMissingIdIndex(adoption)
  return [
    columnsStep(adoption),
    await keyTriggerStep(adoption),
    {
      what: `make the table beside it, ${layout.keys.plainTable}`,
      sql: short(sideTablesOf(layout, 'sqlite').trim()),
      needed: () => lacks(run, layout.keys.plainTable),
    },
    fillStep(adoption, sqliteFilling(file, adoption)),
    ...indexSteps(adoption, isUnique, (index) => ({
      what: `build the index ${index.name}; writers wait for it`,
      sql: `${indexStatement(layout, index)};`,
      needed: () => lacks(run, index.name),
    })),
    ...(settings.enforce ? [enforceStep(adoption)] : []),
  ]
}

function columnsStep(target: Target): Step {
  const { layout, missing } = target
  const changes = addedColumns(target).map((column) => `ALTER TABLE ${layout.sqlTable} ADD COLUMN ${column};`)
  return {
    what: addingColumns(target),
    sql: missing.length === 0 ? '' : short(changes.join('\n')),
    needed: () => missing.length > 0,
  }
}

/** A NOT NULL column needs no trigger. */
async function keyTriggerStep({ run, layout }: Adoption): Promise<Step> {
  const [column] = await run('SELECT "notnull" AS given FROM pragma_table_info(?1) WHERE name = ?2', [
    layout.plainTable,
    layout.columns.idempotencyKey,
  ])
  const isGiven = Number(column?.given ?? 0) === 1
  return {
    what: 'give keys to new rows that come without one',
    sql: short(keyTriggerOf(layout).trim()),
    needed: () => !isGiven && lacks(run, `${layout.indexPrefix}_key`),
  }
}

/**
 * SQLite cannot make a column NOT NULL without writing the table anew. The trigger gives keys to rows without, so all
 * that is left to refuse is taking one away.
 */
function enforceStep({ run, layout }: Adoption): Step {
  const name = `${layout.indexPrefix}_key_kept`
  const key = layout.c.idempotencyKey
  return {
    what: 'refuse to take a key away (SQLite cannot make a column NOT NULL afterwards)',
    sql: short(`CREATE TRIGGER IF NOT EXISTS ${quote(name)} BEFORE UPDATE OF ${key} ON ${layout.sqlTable} WHEN NEW.${key} IS NULL
BEGIN
  SELECT RAISE(ABORT, 'NOT NULL constraint failed: the key of a message cannot be taken away');
END;`),
    needed: () => lacks(run, name),
  }
}

/** Whatever its name. */
async function hasUnique(layout: Layout, columns: readonly string[], run: RunSql): Promise<boolean> {
  const indexes = await run(
    `SELECT (SELECT json_group_array(name) FROM (SELECT name FROM pragma_index_info(list.name) ORDER BY name)) AS columns
     FROM pragma_index_list(?1) AS list WHERE list."unique" AND NOT list.partial`,
    [layout.plainTable],
  )
  const wanted = JSON.stringify([...columns].sort())
  return indexes.some((index) => index.columns === wanted)
}

async function noteMissingIdIndex({ layout, run, findings }: Adoption): Promise<void> {
  const { id } = layout.columns
  // An INTEGER PRIMARY KEY is the rowid itself and has no index.
  const [key] = await run(
    `SELECT count(*) AS parts, max(name) AS name FROM pragma_table_info(?1) WHERE pk > 0`,
    [layout.plainTable],
  )
  if (Number(key?.parts) === 1 && key?.name === id) return
  if (await hasUnique(layout, [id], run)) return
  findings.notes.push(noIdIndex(layout, `CREATE UNIQUE INDEX ${quote(`${layout.indexPrefix}_id`)}`))
}

const lacks = async (run: RunSql, name: string): Promise<boolean> =>
  (await run('SELECT 1 AS there FROM sqlite_schema WHERE name = ?1', [name])).length === 0

/** Long enough for a waiting writer to come in. */
const LEAST_PAUSE_MS = 20

/** Fills the rows up to the end that `endStatement` found. */
const chunkStatement = (layout: Layout): string =>
  `UPDATE ${layout.sqlTable} SET ${fillingOf(layout)} WHERE rowid > ?1 AND rowid <= ?2 AND ${lackingOf(layout)}`

/** The end of the next chunk, and its rows. */
const endStatement = (layout: Layout, chunk: number): string =>
  `SELECT max(rowid) AS last, count(*) AS rows, sum(keyless) AS keys FROM (
     SELECT rowid, ${layout.c.idempotencyKey} IS NULL AS keyless FROM ${layout.sqlTable}
     WHERE rowid > ?1 AND ${lackingOf(layout)} ORDER BY rowid LIMIT ${chunk})`

const BEFORE_ALL = -(2n ** 63n)

function sqliteFilling(file: AdoptFile, { layout, settings }: Adoption): Filling<bigint> {
  const end = endStatement(layout, settings.chunk)
  const chunk = chunkStatement(layout)
  return {
    sql: `-- ?1: the last row of the chunk before; ?2: the last of this one\n${short(`${chunk};`)}`,
    holders: async () => '',
    pauseMs: (tookMs) => Math.max(LEAST_PAUSE_MS, tookMs),
    fill: (after) =>
      file.transaction((connection) => {
        const from = after ?? BEFORE_ALL
        const statement = connection.prepare(end)
        statement.setReadBigInts(true)
        const found = statement.get(from)
        const last = typeof found?.last === 'bigint' ? found.last : null
        if (last === null) return { rows: 0, keys: 0, last }
        connection.prepare(chunk).run(from, last)
        return { rows: Number(found?.rows), keys: Number(found?.keys), last }
      }),
  }
}

const SQLITE_BUSY = 5
const SQLITE_LOCKED = 6
/** SQLite's own wait for a busy file. */
const BUSY_MS = 20
const STEP_BACK = { baseMs: 5, factor: 2, maxMs: 200, jitter: 0.5 }

type Parameter = string | number | bigint | Uint8Array | null

/**
 * A file that another program writes. Transactions are short, and who finds it busy steps back and tries again. Waiting
 * never blocks this process: the other writer may live in it.
 */
class AdoptFile {
  readonly #connection: DatabaseSync
  readonly #settings: AdoptSettings

  private constructor(connection: DatabaseSync, settings: AdoptSettings) {
    this.#connection = connection
    this.#settings = settings
  }

  /** The journal stays as its owner has it. A dry run cannot write. */
  static open(path: string, settings: AdoptSettings): AdoptFile {
    if (!existsSync(path)) throw new StoreUnavailable(`there is no database at '${path}'`)
    try {
      const connection = new DatabaseSync(path, { readOnly: settings.dryRun, timeout: BUSY_MS })
      return new AdoptFile(connection, settings)
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error)
      throw new StoreUnavailable(`cannot open '${path}': ${reason}`, { cause: error })
    }
  }

  close(): void {
    this.#connection.close()
  }

  readonly run: RunSql = (text, parameters) =>
    this.#patiently(() => {
      const statement = this.#connection.prepare(text)
      statement.setReadBigInts(true)
      // Values from SQLite, or texts.
      return statement.all(...(parameters as readonly Parameter[]))
    })

  change(text: string): Promise<number> {
    return this.#patiently(() => Number(this.#connection.prepare(text).run().changes))
  }

  script(text: string): Promise<void> {
    return this.#patiently(() => this.#connection.exec(text))
  }

  transaction<T>(work: (connection: DatabaseSync) => T): Promise<T> {
    return this.#patiently(() => {
      this.#connection.exec('BEGIN IMMEDIATE')
      const result = work(this.#connection)
      this.#connection.exec('COMMIT')
      return result
    })
  }

  #patiently<T>(attempt: () => T): Promise<T> {
    return patiently(this.#settings, STEP_BACK, attempt, async (error, tries) => {
      if (this.#connection.isTransaction) this.#connection.exec('ROLLBACK')
      if (!isBusy(error)) return null
      const reason = 'another program holds the file for writing'
      if (tries === 10) this.#settings.onWait(`${reason}; trying again`)
      return reason
    })
  }
}

const short = (text: string): string => `BEGIN IMMEDIATE;\n${text}\nCOMMIT;`

function isBusy(error: unknown): boolean {
  if (!(error instanceof Error) || !('errcode' in error) || typeof error.errcode !== 'number') return false
  // The low byte is the primary code.
  const code = error.errcode & 0xff
  return code === SQLITE_BUSY || code === SQLITE_LOCKED
}
