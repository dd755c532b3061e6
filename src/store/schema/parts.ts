/**
 * Parts of a store's schema, and those that a live store lacks, compared with docs/schema.*.sql, which the package carries. A failed restore
 * leaves a store without indexes: it is refused where a promise is in danger, reported where it is only slow, and repaired without loss.
 */
import { readFileSync } from 'node:fs'
import { type Database, type Dialect, type Session, StoreUnavailable, sql } from '../database.ts'
import { SqliteDatabase } from '../sqlite.ts'

/** A key is a primary key or a unique constraint. */
type PartKind = 'extension' | 'sequence' | 'table' | 'column' | 'key' | 'unique index' | 'index' | 'trigger'

export interface SchemaPart {
  readonly kind: PartKind
  /** Unique within its kind: `letters.id` for a column, `letters PRIMARY KEY (id)` for a key. */
  readonly name: string
  /** Makes it without loss; null: only a backup can. */
  readonly statement: string | null
}

/** Without these the office is slow or cannot search; without others it could break a promise. */
const DISPENSABLE: readonly PartKind[] = ['extension', 'index']

const isDispensable = ({ kind }: SchemaPart): boolean => DISPENSABLE.includes(kind)

export const partName = ({ kind, name }: SchemaPart): string => `${kind} ${name}`

/** Invalid indexes, left by interrupted builds, do not count. */
const readPartsOfPostgres = `
  SELECT 'extension' AS kind, extname::text AS name, NULL AS statement FROM pg_extension
  UNION ALL SELECT CASE relkind WHEN 'S' THEN 'sequence' ELSE 'table' END, relname::text, NULL FROM pg_class
    WHERE relnamespace = to_regnamespace('bartleby') AND relkind IN ('r', 'p', 'S')
  UNION ALL SELECT 'column', relname || '.' || attname, NULL FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid
    WHERE relnamespace = to_regnamespace('bartleby') AND relkind IN ('r', 'p') AND attnum > 0 AND NOT attisdropped
  UNION ALL SELECT 'key', relname || ' ' || pg_get_constraintdef(pg_constraint.oid), NULL
    FROM pg_constraint JOIN pg_class ON pg_class.oid = conrelid
    WHERE connamespace = to_regnamespace('bartleby') AND contype IN ('p', 'u')
  UNION ALL SELECT CASE WHEN indisunique THEN 'unique index' ELSE 'index' END, relname::text, NULL
    FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid
    WHERE relnamespace = to_regnamespace('bartleby') AND indisvalid`

/** Keys are part of their table. */
const readPartsOfSqlite = `
  SELECT CASE WHEN type <> 'index' THEN type
      WHEN (SELECT "unique" FROM pragma_index_list(tbl_name) AS listed WHERE listed.name = sqlite_schema.name) THEN 'unique index'
      ELSE 'index' END AS kind, name, CASE WHEN type = 'table' THEN NULL ELSE sql END AS statement
    FROM sqlite_schema WHERE type IN ('table', 'index', 'trigger') AND sql IS NOT NULL AND name NOT LIKE 'sqlite%'
  UNION ALL SELECT 'column', owner.name || '.' || owned.name, NULL
    FROM sqlite_schema AS owner JOIN pragma_table_info(owner.name) AS owned
    WHERE owner.type = 'table' AND owner.name NOT LIKE 'sqlite%'`

const readParts = sql('schema.parts', { postgres: readPartsOfPostgres, sqlite: readPartsOfSqlite })

/** The store must have been migrated. */
export async function missingParts(session: Session): Promise<readonly SchemaPart[]> {
  const found = new Set((await session.rows<SchemaPart>(readParts)).map(partName))
  const expected = await expectedParts(session.dialect)
  const tables = new Set(expected.filter(({ kind }) => kind === 'table').map(({ name }) => name))
  // A missing table stands for its columns and keys.
  const isOfMissing = ({ kind, name }: SchemaPart) => {
    const table = /^\w+/.exec(name)?.[0] ?? ''
    return (kind === 'column' || kind === 'key') && tables.has(table) && !found.has(`table ${table}`)
  }
  return expected.filter((part) => !found.has(partName(part)) && !isOfMissing(part))
}

/** S1. A failed restore leaves a store that works, is slow, and lets in what unique indexes keep out. */
export const wholeSchema = {
  id: 'S1',
  promise: 'the store has every table, column, key and index of this version',
  async *check({ session }: { readonly session: Session }) {
    for (const part of await missingParts(session)) {
      const remedy = part.statement === null ? 'only a backup has it' : '`bartleby migrate --repair` makes it'
      yield { what: `${partName(part)} is missing; ${remedy}`, row: { kind: part.kind, name: part.name } }
    }
  },
}

/** Without all tables and columns nothing else can be checked. */
export const hasBody = async (session: Session): Promise<boolean> =>
  !(await missingParts(session)).some(({ kind }) => kind === 'table' || kind === 'column')

const known = new Map<Dialect, Promise<readonly SchemaPart[]>>()

function expectedParts(dialect: Dialect): Promise<readonly SchemaPart[]> {
  const parts =
    known.get(dialect) ?? (dialect === 'postgres' ? partsOfDocument(documentOf(dialect)) : partsOfScratch())
  known.set(dialect, parts)
  return parts
}

const documentOf = (dialect: Dialect): string =>
  readFileSync(new URL(`../../../docs/schema.${dialect}.sql`, import.meta.url), 'utf8')

/** SQLite reads its own statements best. */
async function partsOfScratch(): Promise<readonly SchemaPart[]> {
  const scratch = new SqliteDatabase(':memory:')
  try {
    await scratch.transaction('schema.scratch', (tx) => scratch.script(tx, documentOf('sqlite')))
    return await scratch.session('schema.parts', (session) => session.rows<SchemaPart>(readParts))
  } finally {
    await scratch.close()
  }
}

const TABLE = /^CREATE (?:UNLOGGED )?TABLE bartleby\.(\w+) \(\n((?:.|\n)*?)\n\)/gm
const OTHERS = /^CREATE (EXTENSION|SEQUENCE|UNIQUE INDEX|INDEX) (?:bartleby\.)?(\w+).*$/gm

async function partsOfDocument(text: string): Promise<readonly SchemaPart[]> {
  const parts: SchemaPart[] = []
  for (const [statement, kind = '', name = ''] of text.matchAll(OTHERS)) {
    // The pattern allows only these. A new sequence would give numbers a second time.
    const made = kind.toLowerCase() as PartKind
    parts.push({ kind: made, name, statement: made === 'sequence' ? null : statement })
  }
  for (const [, table = '', lines = ''] of text.matchAll(TABLE)) {
    parts.push({ kind: 'table', name: table, statement: null })
    for (const line of lines.split('\n')) parts.push(...partOfLine(table, line.trim().replace(/,$/, '')))
  }
  return parts
}

/** A key or a column; conditions are never lost without their table. */
function partOfLine(table: string, line: string): readonly SchemaPart[] {
  if (/^(?:FOREIGN KEY|CHECK|EXCLUDE) /.test(line)) return []
  if (/^(?:PRIMARY KEY|UNIQUE) /.test(line)) {
    return [{ kind: 'key', name: `${table} ${line}`, statement: `ALTER TABLE bartleby.${table} ADD ${line}` }]
  }
  const column = /^\w+/.exec(line)?.[0]
  return column === undefined ? [] : [{ kind: 'column', name: `${table}.${column}`, statement: null }]
}

const REPAIR = 'stop all servers and run `bartleby migrate --repair`'

class StoreIncomplete extends Error {
  override readonly name = 'StoreIncomplete'

  constructor(missing: readonly SchemaPart[]) {
    const lost = missing.filter(({ statement }) => statement === null)
    const remedy =
      lost.length === 0
        ? REPAIR
        : 'it cannot be made anew: restore the store from a backup (docs/operations.md)'
    super(`the store lacks ${listed(lost.length === 0 ? missing : lost)}; ${remedy}`)
  }
}

export function requireComplete(missing: readonly SchemaPart[]): void {
  const needed = missing.filter((part) => !isDispensable(part))
  if (needed.length > 0) throw new StoreIncomplete(needed)
}

export const slowBecause = (missing: readonly SchemaPart[]): string =>
  `the store lacks ${listed(missing)}, and is slow without; ${REPAIR}`

const MOST = 10

function listed(parts: readonly SchemaPart[]): string {
  const names = parts.slice(0, MOST).map(partName)
  const others = parts.length - names.length
  return names.join(', ') + (others > 0 ? ` and ${others} more` : '')
}

export interface RepairReport {
  /** For example `unique index letters_by_source`. */
  readonly made: readonly string[]
  readonly failed: readonly { readonly part: string; readonly why: string }[]
}

/** Extensions before the indexes that need them, keys before the rest. */
const ORDER: readonly SchemaPart['kind'][] = ['extension', 'key', 'unique index', 'index', 'trigger']

/** Left by interrupted builds. */
const findInvalid = sql('schema.invalid', {
  postgres: `SELECT relname AS name FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid
             WHERE relnamespace = to_regnamespace('bartleby') AND NOT indisvalid`,
  sqlite: `SELECT name FROM sqlite_schema WHERE false`,
})

/** Makes each missing part in a transaction of its own. Servers should be stopped: building an index blocks writers of its table. */
export async function repairSchema(db: Database): Promise<RepairReport> {
  const missing = await db.session('schema.parts', missingParts)
  const made: string[] = []
  const failed: { part: string; why: string }[] = []
  for (const part of missing.toSorted((a, b) => ORDER.indexOf(a.kind) - ORDER.indexOf(b.kind))) {
    try {
      await makePart(db, part)
      made.push(partName(part))
    } catch (error) {
      if (error instanceof StoreUnavailable) throw error
      failed.push({ part: partName(part), why: whyOf(error) })
    }
  }
  return { made, failed }
}

async function makePart(db: Database, { name, statement }: SchemaPart): Promise<void> {
  if (statement === null) throw new Error('only a backup has it')
  await db.transaction('schema.repair', async (tx) => {
    const invalid = await tx.rows<{ name: string }>(findInvalid)
    if (invalid.some((index) => index.name === name)) await db.script(tx, `DROP INDEX bartleby."${name}"`)
    await db.script(tx, statement)
  })
}

/** PostgreSQL names the offending row in a detail. */
function whyOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const detail = 'detail' in error && typeof error.detail === 'string' ? `: ${error.detail}` : ''
  return `${error.message}${detail}`
}
