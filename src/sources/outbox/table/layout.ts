/**
 * A table of messages as it is: its names and the types of its columns. Tables of applications keep bytes as text or
 * JSON, times with or without a zone, ids of any type. Everything that depends on that is here.
 */
import { failure } from '../../../core/errors.ts'
import {
  type Dialect,
  forPostgres,
  forSqlite,
  type Integer,
  type Statement,
} from '../../../store/database.ts'
import {
  COLUMN_NAMES,
  type ColumnName,
  nameTable,
  OPTIONAL_COLUMNS,
  quote,
  SQLITE_UUID,
  shortHash,
  type TableName,
  type TableNames,
  type TableOptions,
} from './table-names.ts'

/** A row as both stores give it. */
export type Stored<Row> = { readonly [Field in keyof Row]: StoredValue<Row[Field]> }
type StoredValue<Value> = Value extends bigint | number
  ? Integer
  : Value extends boolean
    ? boolean | Integer
    : Value

export const isTrue = (value: boolean | Integer): boolean => value === true || Number(value) === 1

/** Runs a statement and gives its rows. */
export type RunSql = (
  sql: string,
  parameters: readonly unknown[],
) => Promise<readonly Record<string, unknown>[]>

interface TableFacts extends TableNames {
  readonly dialect: Dialect
  /** The types of the columns as the database calls them; on SQLite in lower case. */
  readonly types: Readonly<Record<ColumnName, string>>
  /** A flag stands beside the time of processing. */
  readonly hasFlag: boolean
  readonly hasFailures: boolean
  readonly hasKeys: boolean
  readonly hasWake: boolean
}

export type Layout = ReturnType<typeof layoutOf>

const COLUMNS_OF: Readonly<Record<Dialect, string>> = {
  postgres: `SELECT attname AS name, format_type(atttypid, atttypmod) AS type FROM pg_attribute
             WHERE attrelid = to_regclass($1) AND attnum > 0 AND NOT attisdropped`,
  sqlite: 'SELECT name, lower(type) AS type FROM pragma_table_info(?1)',
}

/** The columns of a table; none when there is no such table. */
export async function columnsOf(
  dialect: Dialect,
  table: TableName,
  run: RunSql,
): Promise<ReadonlyMap<string, string>> {
  const rows = await run(COLUMNS_OF[dialect], [dialect === 'postgres' ? table.sqlTable : table.plainTable])
  return new Map(rows.map(({ name, type }) => [String(name), String(type)]))
}

/** Refuses a table that is no outbox, with the columns it lacks. */
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
  const keys = await columnsOf(dialect, names.keys, run)
  const wake = dialect === 'postgres' ? await columnsOf(dialect, names.wake, run) : new Map()
  // Optional columns alone may be missing.
  const types = Object.fromEntries(
    COLUMN_NAMES.map((name) => [name, found.get(names.columns[name]) ?? '']),
  ) as Layout['types']
  return layoutOf({
    ...names,
    dialect,
    types,
    hasFlag: found.has(names.columns.isProcessed),
    // A column of that name and another type is somebody else's.
    hasFailures: types.earlierFailures === (dialect === 'postgres' ? 'jsonb' : 'text'),
    hasKeys: keys.size > 0,
    hasWake: wake.size > 0,
  })
}

export function quotedColumns({ columns }: TableNames): Readonly<Record<ColumnName | 'isProcessed', string>> {
  const names = Object.entries(columns).map(([name, column]) => [name, quote(column)])
  // The same keys as before.
  return Object.fromEntries(names) as Record<ColumnName | 'isProcessed', string>
}

/** Ids, tenants and keys of applications are of any type. */
export const asText = (expression: string): string => `CAST(${expression} AS text)`

/**
 * When rows are due: since ever; again, by every clock; never, because they wait for the one before. Rows that are
 * released are due again and not since ever: dispatchers look for fresh rows from where they have been, and for
 * suspects only among those due again.
 */
const DUE_BOUNDS = {
  postgres: {
    always: `'-infinity'::timestamptz`,
    again: `'epoch'::timestamptz`,
    never: `'infinity'::timestamptz`,
  },
  sqlite: { always: '0', again: '1', never: '9223372036854775807' },
} as const

/**
 * When a row is due: at the end of its claim or at its next attempt; since ever when it was never touched. The first
 * column of the index that serves dispatchers, so every statement has exactly these words.
 */
export function dueOf(names: TableNames, dialect: Dialect): string {
  const { claimedUntil, nextAttemptAt } = quotedColumns(names)
  return `(coalesce(${claimedUntil}, ${nextAttemptAt}, ${DUE_BOUNDS[dialect].always}))`
}

type TimeKind = 'timestamptz' | 'timestamp' | 'micros' | 'text'

/** The table in SQL. */
export function layoutOf(facts: TableFacts) {
  const { dialect, types } = facts
  const isPostgres = dialect === 'postgres'
  const c = quotedColumns(facts)
  const keepsBytes = /^(bytea|blob)/.test(types.payload) || types.payload === ''
  const fingerprint = shortHash(JSON.stringify(facts))

  function timeKind(column: ColumnName): TimeKind {
    const type = types[column]
    if (type.startsWith('timestamp') && isPostgres)
      return type.includes('without time zone') ? 'timestamp' : 'timestamptz'
    return /int/.test(type) ? 'micros' : 'text'
  }

  /** Microseconds since 1970. Times without a zone are UTC. */
  function micros(column: ColumnName, expression = c[column]): string {
    switch (timeKind(column)) {
      case 'timestamptz':
        return `(extract(epoch FROM ${expression}) * 1000000)::bigint`
      case 'timestamp':
        return `(extract(epoch FROM ${expression} AT TIME ZONE 'UTC') * 1000000)::bigint`
      case 'micros':
        return expression
      case 'text':
        return isPostgres
          ? `(extract(epoch FROM ${expression}::timestamptz) * 1000000)::bigint`
          : `CAST(round((julianday(${expression}) - 2440587.5) * 86400000.0) AS INTEGER) * 1000`
    }
  }

  /** Microseconds since 1970 as a value for a column of times. */
  function time(column: ColumnName, parameter: string): string {
    const moment = `(timestamptz 'epoch' + ${parameter}::bigint * interval '1 microsecond')`
    switch (timeKind(column)) {
      case 'timestamptz':
        return moment
      case 'timestamp':
        return `(${moment} AT TIME ZONE 'UTC')`
      case 'micros':
        return isPostgres ? `${parameter}::bigint` : parameter
      case 'text':
        return isPostgres
          ? `${moment}::text`
          : `strftime('%Y-%m-%dT%H:%M:%fZ', ${parameter} / 1000000.0, 'unixepoch')`
    }
  }

  return {
    ...facts,
    /** The columns, quoted. */
    c,
    /** False: text or JSON. */
    keepsBytes,
    keepsJson: isPostgres && /^jsonb?$/.test(types.payload),
    due: dueOf(facts, dialect),
    dueBounds: DUE_BOUNDS[dialect],
    /** Neither processed nor dead. */
    pending: `${c.processedAt} IS NULL AND ${c.deadAt} IS NULL`,
    micros,
    time,

    /** A text for clients; SQLite needs no cast. */
    text: (expression: string): string => (isPostgres ? asText(expression) : expression),

    /** A text as a value of the column's type. */
    typed: (column: ColumnName, text: string): string =>
      isPostgres ? `${text}::text::${types[column]}` : text,

    processedFlag: (value: boolean): string => (facts.hasFlag ? `, ${c.isProcessed} = ${value}` : ''),

    /** Null for PostgreSQL's infinities, which integers do not have. */
    finiteMicros(column: ColumnName, expression: string): string {
      const canBeInfinite = isPostgres && types[column].startsWith('timestamp')
      const finite = micros(column, expression)
      return canBeInfinite ? `CASE WHEN isfinite(${expression}) THEN ${finite} END` : finite
    },

    /** The database's present time. PostgreSQL: of the row, not of the transaction. */
    presentTime(column: ColumnName): string {
      const kind = timeKind(column)
      if (isPostgres) {
        const present = `(extract(epoch FROM clock_timestamp()) * 1000000)`
        return kind === 'timestamptz' ? 'clock_timestamp()' : time(column, present)
      }
      const present = `CAST(unixepoch('subsec') * 1000000 AS INTEGER)`
      return kind === 'micros' ? present : `strftime('%Y-%m-%dT%H:%M:%fZ', 'now')`
    },

    payloadBytes(expression = c.payload): string {
      if (!isPostgres) return `CAST(${expression} AS BLOB)`
      return keepsBytes ? expression : `convert_to(${expression}::text, 'UTF8')`
    },

    payloadFrom(parameter: string): string {
      if (!isPostgres) return `CAST(${parameter} AS ${keepsBytes ? 'BLOB' : 'TEXT'})`
      return keepsBytes
        ? `${parameter}::bytea`
        : `convert_from(${parameter}::bytea, 'UTF8')::${types.payload}`
    },

    bytesOfHex: (text: string): string => (isPostgres ? `decode(${text}, 'hex')` : `unhex(${text})`),

    /** Not declared with `sql`: there is one for each layout. */
    statement(
      verb: string,
      text: string | Readonly<Record<Dialect, string>>,
      { bigints = false }: { readonly bigints?: boolean } = {},
    ): Statement {
      const { postgres, sqlite } = typeof text === 'string' ? { postgres: text, sqlite: text } : text
      return {
        name: `outbox.${verb}.${fingerprint}`,
        postgres: forPostgres(postgres),
        sqlite: forSqlite(sqlite),
        bigints,
      }
    },
  }
}

/** A new key as a value of the column's type. */
export function newKeyOf({ dialect, types }: Layout): string {
  if (dialect === 'sqlite') return SQLITE_UUID
  return types.idempotencyKey === 'uuid' ? 'gen_random_uuid()' : 'gen_random_uuid()::text'
}

/** Remembers what was made for each layout. */
export function perLayout<Made>(make: (layout: Layout) => Made): (layout: Layout) => Made {
  const known = new WeakMap<Layout, Made>()
  return (layout) => {
    const made = known.get(layout) ?? make(layout)
    known.set(layout, made)
    return made
  }
}
