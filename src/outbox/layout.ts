/**
 * A table of messages as it is: its names, and the types that its columns have. Tables of others keep bytes as text or
 * JSON, times with or without a zone, ids of any type; everything that depends on that is said here once.
 */
import { failure } from '../core/errors.ts'
import type { Dialect, Integer, Statement } from '../db/database.ts'
import {
  COLUMN_NAMES,
  type ColumnName,
  nameTable,
  OPTIONAL_COLUMNS,
  quote,
  shortHash,
  type TableNames,
  type TableOptions,
} from './table-names.ts'

/** A row as both stores give it, with the fields of what is made of it. */
export type Stored<Row> = { readonly [Field in keyof Row]: StoredValue<Row[Field]> }
type StoredValue<Value> = Value extends bigint | number
  ? Integer
  : Value extends boolean
    ? boolean | Integer
    : Value

/** Whether a stored boolean is one that is true. */
export const isTrue = (value: boolean | Integer): boolean => value === true || Number(value) === 1

/** Runs a statement and gives its rows: all that is needed of a database to look at it. */
export type RunSql = (
  sql: string,
  parameters: readonly unknown[],
) => Promise<readonly Record<string, unknown>[]>

export interface Layout extends TableNames {
  readonly dialect: Dialect
  /** The types of the columns as the database calls them; on SQLite in lower case. */
  readonly types: Readonly<Record<ColumnName, string>>
  /** The table has a flag beside the time of processing. */
  readonly hasFlag: boolean
  /** The failures before the last one are kept. */
  readonly hasFailures: boolean
  /** Purged keys are kept; and writers can wake dispatchers. */
  readonly hasKeys: boolean
  readonly hasWake: boolean
  /** Distinguishes the statements of this layout from those of others. */
  readonly fingerprint: string
}

const COLUMNS_OF: Readonly<Record<Dialect, string>> = {
  postgres: `SELECT attname AS name, format_type(atttypid, atttypmod) AS type FROM pg_attribute
             WHERE attrelid = to_regclass($1) AND attnum > 0 AND NOT attisdropped`,
  sqlite: 'SELECT name, lower(type) AS type FROM pragma_table_info(?1)',
}

/** The columns that a table has, by name; none when there is no such table. */
export async function columnsOf(
  dialect: Dialect,
  table: { readonly sqlTable: string; readonly plainTable: string },
  run: RunSql,
): Promise<ReadonlyMap<string, string>> {
  const rows = await run(COLUMNS_OF[dialect], [dialect === 'postgres' ? table.sqlTable : table.plainTable])
  return new Map(rows.map(({ name, type }) => [String(name), String(type)]))
}

/** Looks at a table; refuses one that is no outbox, with the columns it lacks. */
export async function readLayout(dialect: Dialect, options: TableOptions, run: RunSql): Promise<Layout> {
  const names = nameTable(options)
  const found = await columnsOf(dialect, names, run)
  if (found.size === 0) throw failure('outbox_table_missing', { table: names.table })
  const missing = COLUMN_NAMES.filter(
    (name) => !found.has(names.columns[name]) && !OPTIONAL_COLUMNS.includes(name),
  )
  if (missing.length > 0) {
    const columns = missing.map((name) => names.columns[name]).join(', ')
    throw failure('outbox_columns_missing', { table: names.table, columns })
  }
  const keys = await columnsOf(
    dialect,
    { sqlTable: names.sqlKeysTable, plainTable: names.plainKeysTable },
    run,
  )
  const wake =
    dialect === 'postgres'
      ? await columnsOf(dialect, { sqlTable: names.sqlWakeTable, plainTable: names.plainWakeTable }, run)
      : new Map()
  // Every column was found that a table cannot do without.
  const types = Object.fromEntries(
    COLUMN_NAMES.map((name) => [name, found.get(names.columns[name]) ?? '']),
  ) as Layout['types']
  const layout = {
    ...names,
    dialect,
    types,
    hasFlag: found.has(names.columns.isProcessed),
    // A column of that name and another type is somebody else's.
    hasFailures: types.earlierFailures === (dialect === 'postgres' ? 'jsonb' : 'text'),
    hasKeys: keys.size > 0,
    hasWake: wake.size > 0,
  }
  return { ...layout, fingerprint: shortHash(JSON.stringify(layout)) }
}

/** A column, quoted. */
export const columnOf = (layout: TableNames, name: ColumnName | 'isProcessed'): string =>
  quote(layout.columns[name])

/** All columns of a layout, quoted, to be put into statements. */
export function quotedColumns(layout: TableNames): Readonly<Record<ColumnName | 'isProcessed', string>> {
  const names = Object.entries(layout.columns).map(([name, column]) => [name, quote(column)])
  // The same keys as before.
  return Object.fromEntries(names) as Record<ColumnName | 'isProcessed', string>
}

/** A text as a value of a column's type; SQLite does not care. */
export const typed = (layout: Layout, column: ColumnName, text: string): string =>
  layout.dialect === 'postgres' ? `${text}::text::${layout.types[column]}` : text

/** A value of any type as text: ids, tenants and keys of others are of any. */
export const asText = (expression: string): string => `CAST(${expression} AS text)`

/** The change of the flag in tables that have one beside the time of processing. */
export const processedFlag = (layout: Layout, value: boolean): string =>
  layout.hasFlag ? `, ${columnOf(layout, 'isProcessed')} = ${value}` : ''

type TimeKind = 'timestamptz' | 'timestamp' | 'micros' | 'text'

function timeKind({ types, dialect }: Layout, column: ColumnName): TimeKind {
  const type = types[column]
  if (type.startsWith('timestamp') && dialect === 'postgres')
    return type.includes('without time zone') ? 'timestamp' : 'timestamptz'
  return /int/.test(type) ? 'micros' : 'text'
}

/** A column of times in microseconds since 1970. Times without a zone are UTC. */
export function microsOf(layout: Layout, column: ColumnName, expression = columnOf(layout, column)): string {
  switch (timeKind(layout, column)) {
    case 'timestamptz':
      return `(extract(epoch FROM ${expression}) * 1000000)::bigint`
    case 'timestamp':
      return `(extract(epoch FROM ${expression} AT TIME ZONE 'UTC') * 1000000)::bigint`
    case 'micros':
      return expression
    case 'text':
      return layout.dialect === 'postgres'
        ? `(extract(epoch FROM ${expression}::timestamptz) * 1000000)::bigint`
        : `CAST(round((julianday(${expression}) - 2440587.5) * 86400000.0) AS INTEGER) * 1000`
  }
}

/** A time in microseconds; null for those at the ends of time, which PostgreSQL has and integers have not. */
export function finiteMicrosOf(layout: Layout, column: ColumnName, expression: string): string {
  const micros = microsOf(layout, column, expression)
  const canBeInfinite = layout.dialect === 'postgres' && layout.types[column].startsWith('timestamp')
  return canBeInfinite ? `CASE WHEN isfinite(${expression}) THEN ${micros} END` : micros
}

/** A parameter in microseconds since 1970 as a value for a column of times. */
export function timeFrom(layout: Layout, column: ColumnName, parameter: string): string {
  const moment = `(timestamptz 'epoch' + ${parameter}::bigint * interval '1 microsecond')`
  switch (timeKind(layout, column)) {
    case 'timestamptz':
      return moment
    case 'timestamp':
      return `(${moment} AT TIME ZONE 'UTC')`
    case 'micros':
      return layout.dialect === 'postgres' ? `${parameter}::bigint` : parameter
    case 'text':
      return layout.dialect === 'postgres'
        ? `${moment}::text`
        : `strftime('%Y-%m-%dT%H:%M:%fZ', ${parameter} / 1000000.0, 'unixepoch')`
  }
}

/** The present time of the database as a value for a column of times. PostgreSQL: of the statement's row, not of its transaction. */
export function presentTime(layout: Layout, column: ColumnName): string {
  if (layout.dialect === 'postgres') {
    const micros = `(extract(epoch FROM clock_timestamp()) * 1000000)`
    return timeKind(layout, column) === 'timestamptz' ? 'clock_timestamp()' : timeFrom(layout, column, micros)
  }
  const micros = `CAST(unixepoch('subsec') * 1000000 AS INTEGER)`
  return timeKind(layout, column) === 'micros' ? micros : `strftime('%Y-%m-%dT%H:%M:%fZ', 'now')`
}

/** Whether the payload is kept as bytes; otherwise it is text or JSON. */
export const keepsBytes = ({ types }: Layout): boolean =>
  /^(bytea|blob)/.test(types.payload) || types.payload === ''

/** Whether the database takes only JSON as payload. */
export const keepsJson = ({ types, dialect }: Layout): boolean =>
  dialect === 'postgres' && /^jsonb?$/.test(types.payload)

/** The payload as bytes. */
export function payloadOf(layout: Layout, expression = columnOf(layout, 'payload')): string {
  if (layout.dialect === 'sqlite') return `CAST(${expression} AS BLOB)`
  return keepsBytes(layout) ? expression : `convert_to(${expression}::text, 'UTF8')`
}

/** A parameter of bytes as a payload. */
export function payloadFrom(layout: Layout, parameter: string): string {
  if (layout.dialect === 'sqlite')
    return keepsBytes(layout) ? `CAST(${parameter} AS BLOB)` : `CAST(${parameter} AS TEXT)`
  return keepsBytes(layout)
    ? `${parameter}::bytea`
    : `convert_from(${parameter}::bytea, 'UTF8')::${layout.types.payload}`
}

/**
 * When a row is due: its claim ends, or its next attempt; a row that was never touched is due since ever. The first
 * column of the index that serves the dispatchers, so it stands in every statement in exactly these words.
 */
export function dueOf(layout: TableNames & { readonly dialect: Dialect }, table = ''): string {
  const { claimedUntil, nextAttemptAt } = quotedColumns(layout)
  const never = layout.dialect === 'postgres' ? `'-infinity'::timestamptz` : '0'
  return `(coalesce(${table}${claimedUntil}, ${table}${nextAttemptAt}, ${never}))`
}

/** Since ever, and never, as times of a row that is due at once, or waits for the one before it. */
export const dueBounds = {
  postgres: { always: `'-infinity'::timestamptz`, never: `'infinity'::timestamptz` },
  sqlite: { always: '0', never: '9223372036854775807' },
} as const

/** A row that is still in the care of its dispatchers. */
export function pendingOf(layout: TableNames, table = ''): string {
  const { processedAt, deadAt } = quotedColumns(layout)
  return `${table}${processedAt} IS NULL AND ${table}${deadAt} IS NULL`
}

/** What is made of a layout, once for each. */
export function perLayout<Made>(make: (layout: Layout) => Made): (layout: Layout) => Made {
  const known = new WeakMap<Layout, Made>()
  return (layout) => {
    const made = known.get(layout) ?? make(layout)
    known.set(layout, made)
    return made
  }
}

/** A statement on a table of messages. Not declared with `sql`: there is one for each layout. */
export function layoutStatement(
  layout: Layout,
  verb: string,
  text: string | Readonly<Record<Dialect, string>>,
  options: { readonly bigints?: boolean } = {},
): Statement {
  const { postgres, sqlite } = typeof text === 'string' ? { postgres: text, sqlite: text } : text
  return {
    name: `outbox.${verb}.${layout.fingerprint}`,
    postgres,
    sqlite: sqlite.replace(/\$(\d+)/g, '?$1'),
    bigints: options.bigints ?? false,
  }
}
