/** Forward-only, numbered migrations, under a lock, so that servers may start at once. A store newer than the program is refused. */
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
 * Translates tables and indexes: one integer type, no collations, sequences, deltas of counts (`counter.ts`) or storage settings. Rows are
 * kept by a number where that is the primary key, else by the primary key; `kind` overrides. Indexes end with that number anyway.
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

export class StoreTooNew extends Error {
  override readonly name = 'StoreTooNew'

  constructor(found: number, known: number) {
    super(
      `the store is at schema version ${found}, this program knows versions up to ${known}; start the version of Bartleby that last used it, or a newer one`,
    )
  }
}

/** Not migrated to this version, or none of ours. */
export class StoreTooOld extends Error {
  override readonly name = 'StoreTooOld'
  /** 0: nothing of ours. */
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

/** Held until the transaction ends; an arbitrary constant. SQLite's writer lock does the same. */
const MIGRATION_LOCK = 'SELECT pg_advisory_xact_lock(1853001)'

const readVersion = sql('migrations.version', 'SELECT max(number) AS version FROM bartleby.migrations')
const recordMigration = sql(
  'migrations.record',
  'INSERT INTO bartleby.migrations (number, name) VALUES ($1, $2)',
)

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

/** Throws unless the store is at the newest of `migrations`. */
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
