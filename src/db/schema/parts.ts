/**
 * The parts of a store's schema, and which of them a live store lacks. What must be there is docs/schema.*.sql, which the package
 * carries: the end state of all migrations. A restore that went wrong halfway leaves a store that looks like one and lacks indexes.
 */
import { readFileSync } from 'node:fs'
import { type Dialect, type Session, sql } from '../database.ts'
import { SqliteDatabase } from '../sqlite.ts'

/** A key is a primary key or a unique constraint. */
export type PartKind =
  | 'extension'
  | 'sequence'
  | 'table'
  | 'column'
  | 'key'
  | 'unique index'
  | 'index'
  | 'trigger'

export interface SchemaPart {
  readonly kind: PartKind
  /** Unique within its kind: `letters.id` for a column, `letters PRIMARY KEY (id)` for a key. */
  readonly name: string
  /** What makes it anew without loss; null where only a backup can. */
  readonly statement: string | null
}

/** Without these the office is slow, or cannot search; without any other it could break a promise. */
const DISPENSABLE: readonly PartKind[] = ['extension', 'index']

export const isDispensable = ({ kind }: SchemaPart): boolean => DISPENSABLE.includes(kind)

export const partName = ({ kind, name }: SchemaPart): string => `${kind} ${name}`

/** Invalid indexes, which an interrupted build leaves, are none. */
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

/** What the store lacks of the schema of this program; it must have been migrated. */
export async function missingParts(session: Session): Promise<readonly SchemaPart[]> {
  const found = new Set((await session.rows<SchemaPart>(readParts)).map(partName))
  const expected = await expectedParts(session.dialect)
  const tables = new Set(expected.filter(({ kind }) => kind === 'table').map(({ name }) => name))
  // Of a table that is missing as a whole its columns and keys are not worth a word.
  const isOfMissing = ({ kind, name }: SchemaPart) => {
    const table = /^\w+/.exec(name)?.[0] ?? ''
    return (kind === 'column' || kind === 'key') && tables.has(table) && !found.has(`table ${table}`)
  }
  return expected.filter((part) => !found.has(partName(part)) && !isOfMissing(part))
}

const known = new Map<Dialect, Promise<readonly SchemaPart[]>>()

/** Everything that a store of this program has. */
function expectedParts(dialect: Dialect): Promise<readonly SchemaPart[]> {
  const parts =
    known.get(dialect) ?? (dialect === 'postgres' ? partsOfDocument(documentOf(dialect)) : partsOfScratch())
  known.set(dialect, parts)
  return parts
}

const documentOf = (dialect: Dialect): string =>
  readFileSync(new URL(`../../../docs/schema.${dialect}.sql`, import.meta.url), 'utf8')

/** SQLite is its own best reader of its statements. */
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
    // The pattern allows only these; a sequence that is made anew would give numbers a second time.
    const made = kind.toLowerCase() as PartKind
    parts.push({ kind: made, name, statement: made === 'sequence' ? null : statement })
  }
  for (const [, table = '', lines = ''] of text.matchAll(TABLE)) {
    parts.push({ kind: 'table', name: table, statement: null })
    for (const line of lines.split('\n')) parts.push(...partOfLine(table, line.trim().replace(/,$/, '')))
  }
  return parts
}

/** A line within a table: a key, a column, or a condition, which is never lost without its table. */
function partOfLine(table: string, line: string): readonly SchemaPart[] {
  if (/^(?:FOREIGN KEY|CHECK|EXCLUDE) /.test(line)) return []
  if (/^(?:PRIMARY KEY|UNIQUE) /.test(line)) {
    return [{ kind: 'key', name: `${table} ${line}`, statement: `ALTER TABLE bartleby.${table} ADD ${line}` }]
  }
  const column = /^\w+/.exec(line)?.[0]
  return column === undefined ? [] : [{ kind: 'column', name: `${table}.${column}`, statement: null }]
}
