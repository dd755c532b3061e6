/**
 * Forward-only, numbered migrations. They run under a lock, so any number of servers may start at once; a
 * store that is newer than the program is refused, because an old program could not keep its promises.
 */
import { type Database, type Integer, type Session, sql } from './database.ts'

export interface Migration {
  /** Unique over all modules, never reused. */
  readonly number: number
  readonly name: string
  readonly postgres: string
  readonly sqlite: string
}

export interface MigrationReport {
  readonly from: number
  readonly to: number
}

/**
 * Tables and indexes in the words of SQLite, of those of PostgreSQL: one type of integers, no collations, sequences, deltas of
 * counts (`counter.ts`) and settings of storage. Rows are kept by a number where that is their primary key, else by their primary key;
 * `kind` says otherwise. An index has that number at the end anyway: letters, items and history have it as their id.
 */
export const inSqlite = (postgres: string, kind?: 'STRICT'): string =>
  postgres
    .replace(/^ *--.*\n/gm, '')
    .replace(/^ *CREATE (?:TABLE|INDEX) \S*_deltas[^;]*;\n?/gm, '')
    .replace(/bartleby\.| COLLATE "C"| DEFAULT nextval\([^)]*\)| GENERATED \w+(?: DEFAULT)? AS IDENTITY/g, '')
    .replace(/\b(?:bigint|int|smallint)\b/g, 'INTEGER')
    .replace(/\b(?:text|uuid)\b/g, 'TEXT')
    .replace(/\bbytea\b/g, 'BLOB')
    .replace(/\bdouble precision\b/g, 'REAL')
    .replace(/(CREATE INDEX \w+\s+ON (?:letters|items|history) [^;]*), id\)/g, '$1)')
    .replace(/(CREATE TABLE [^;]*?\))(?: WITH \([^;]*\))?;/g, (_, table: string) => {
      const isNumbered = table.includes(' INTEGER PRIMARY KEY')
      return `${table} ${kind ?? (isNumbered ? 'STRICT' : 'STRICT, WITHOUT ROWID')};`
    })

/** The store was made by a newer version of the program. */
export class StoreTooNew extends Error {
  override readonly name = 'StoreTooNew'

  constructor(found: number, known: number) {
    super(
      `the store is at schema version ${found}, this program knows versions up to ${known}; start the version of Bartleby that last used it, or a newer one`,
    )
  }
}

/** The store has not been brought up to this version, or is none of ours. */
export class StoreTooOld extends Error {
  override readonly name = 'StoreTooOld'
  /** 0 where there is nothing of ours. */
  readonly found: number

  constructor(found: number, known: number) {
    super(
      `the store is at schema version ${found}, this program checks version ${known}; start the server once or run \`bartleby migrate\`, then verify again`,
    )
    this.found = found
  }
}

const BOOTSTRAP = {
  postgres: `
    CREATE SCHEMA IF NOT EXISTS bartleby;
    CREATE TABLE IF NOT EXISTS bartleby.migrations (
      number int PRIMARY KEY, name text NOT NULL, applied_at timestamptz NOT NULL DEFAULT now());`,
  sqlite: `
    CREATE TABLE IF NOT EXISTS migrations (
      number INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP);`,
}

/** Held to the end of the transaction; the key is an arbitrary constant. SQLite's writer lock does the same. */
const MIGRATION_LOCK = 'SELECT pg_advisory_xact_lock(1853001)'

const readVersion = sql('migrations.version', 'SELECT max(number) AS version FROM bartleby.migrations')
const recordMigration = sql(
  'migrations.record',
  'INSERT INTO bartleby.migrations (number, name) VALUES ($1, $2)',
)

/** Brings the store to the newest of `migrations`, in one transaction. */
export async function migrate(db: Database, migrations: readonly Migration[]): Promise<MigrationReport> {
  const ordered = [...migrations].sort((a, b) => a.number - b.number)
  const newest = ordered.at(-1)?.number ?? 0
  return db.transaction('migrate', async (tx) => {
    if (db.dialect === 'postgres') await db.script(tx, MIGRATION_LOCK)
    await db.script(tx, BOOTSTRAP[db.dialect])
    const from = await versionOf(tx)
    if (from > newest) throw new StoreTooNew(from, newest)
    for (const migration of ordered.filter(({ number }) => number > from)) {
      await db.script(tx, migration[db.dialect])
      await tx.run(recordMigration, migration.number, migration.name)
    }
    return { from, to: newest }
  })
}

const findTable = sql('verify.findMigrations', {
  postgres: `SELECT 1 AS found WHERE to_regclass('bartleby.migrations') IS NOT NULL`,
  sqlite: `SELECT 1 AS found FROM sqlite_schema WHERE type = 'table' AND name = 'migrations'`,
})

/** Refuses stores that are not at the newest of `migrations`: only these have the tables that the program knows. */
export async function requireNewest(session: Session, migrations: readonly Migration[]): Promise<void> {
  const known = Math.max(...migrations.map(({ number }) => number))
  const isOurs = (await session.rows(findTable)).length > 0
  const found = isOurs ? await versionOf(session) : 0
  if (found < known) throw new StoreTooOld(found, known)
  if (found > known) throw new StoreTooNew(found, known)
}

async function versionOf(session: Session): Promise<number> {
  const [row] = await session.rows<{ version: Integer | null }>(readVersion)
  return Number(row?.version ?? 0)
}
