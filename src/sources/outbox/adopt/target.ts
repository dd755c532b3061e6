/**
 * The table to adopt: what it lacks, and the layout it will have. Refuses tables that cannot serve as an outbox before
 * anything is changed.
 */
import { BartlebyError } from '../../../core/errors.ts'
import type { Dialect } from '../../../store/database.ts'
import { refuse } from '../refusal.ts'
import { type Layout, layoutOf } from '../table/layout.ts'
import {
  COLUMN_NAMES,
  type ColumnName,
  columnType,
  NEEDED_COLUMNS,
  quote,
  type TableNames,
  type TableOptions,
} from '../table/table-names.ts'

export interface Target {
  /** Columns to add. */
  readonly missing: readonly ColumnName[]
  readonly layout: Layout
}

export function targetOf(
  dialect: Dialect,
  names: TableNames,
  options: TableOptions,
  found: ReadonlyMap<string, string>,
): Target {
  refuseWithoutNeeded(names, found)
  const flag = options.columns?.isProcessed
  if (flag !== undefined && !found.has(flag))
    refuse('columns.isProcessed', `the table has no column '${flag}'`)
  refuseOtherTypes(dialect, names, found)
  const types = COLUMN_NAMES.map((name) => [
    name,
    found.get(names.columns[name]) ?? plainTypeOf(dialect, name),
  ])
  return {
    missing: COLUMN_NAMES.filter((name) => !found.has(names.columns[name])),
    layout: layoutOf({
      ...names,
      dialect,
      types: Object.fromEntries(types) as Layout['types'],
      hasFlag: found.has(names.columns.isProcessed),
      hasFailures: true,
      hasKeys: true,
      hasWake: dialect === 'postgres',
    }),
  }
}

function refuseWithoutNeeded(names: TableNames, found: ReadonlyMap<string, string>): void {
  const lacks = NEEDED_COLUMNS.filter((name) => !found.has(names.columns[name]))
  if (lacks.length === 0) return
  const columns = lacks.map((name) => names.columns[name]).join(', ')
  // The catalogue's words would advise to adopt the table.
  throw new BartlebyError(
    'outbox_columns_missing',
    `table '${names.table}' cannot be adopted; it lacks ${columns}; ` +
      `say how they are called there: ${lacks.map((name) => `--column ${name}=…`).join(' ')}` +
      (names.naming === 'snake' ? ', or --naming pascal' : ''),
    { table: names.table, columns },
  )
}

interface Wanted {
  readonly pattern: RegExp
  readonly words: string
}

const WHOLE_NUMBER: Wanted = { pattern: /^(smallint|integer|bigint)$/, words: 'a whole number' }
const ZONED: Wanted = { pattern: /^timestamp(\(\d\))? with time zone$/, words: 'timestamptz' }
const BOOLEAN: Wanted = { pattern: /^boolean$/, words: 'boolean' }
/** The outbox's name of up to 64 characters, and a uuid. */
const DISPATCHER: Wanted = {
  pattern: /^(text|character varying(\((10[1-9]|1[1-9]\d|[2-9]\d\d|\d{4,})\))?)$/,
  words: 'text, or have room for 101 characters',
}

/** Types that statements and indexes rely on; other columns may be of any. */
const WANTED_TYPES: Readonly<Record<Dialect, Readonly<Partial<Record<ColumnName | 'isProcessed', Wanted>>>>> =
  {
    postgres: {
      idempotencyKey: { pattern: /^(uuid|text|character varying.*|character\(36\))$/, words: 'uuid or text' },
      retryCount: WHOLE_NUMBER,
      claimCount: WHOLE_NUMBER,
      nextAttemptAt: ZONED,
      claimedUntil: ZONED,
      claimedBy: DISPATCHER,
      letterId: { pattern: /^bigint$/, words: 'bigint' },
      letterDue: BOOLEAN,
      isProcessed: BOOLEAN,
    },
    sqlite: {
      idempotencyKey: { pattern: /^(?!.*blob)/, words: 'TEXT' },
      nextAttemptAt: { pattern: /int/, words: 'INTEGER' },
      claimedUntil: { pattern: /int/, words: 'INTEGER' },
    },
  }

function refuseOtherTypes(dialect: Dialect, names: TableNames, found: ReadonlyMap<string, string>): void {
  for (const [name, wanted] of Object.entries(WANTED_TYPES[dialect])) {
    const column = names.columns[name as ColumnName]
    const type = found.get(column)
    if (type === undefined || wanted.pattern.test(type)) continue
    refuse(
      `columns.${name}`,
      `column '${column}' is of type ${type || 'none'} and has to be ${wanted.words}; name another one for it`,
    )
  }
}

/** The key is empty at first: a default that differs by row would rewrite the table. */
const addedTypeOf = (dialect: Dialect, name: ColumnName): string =>
  name === 'idempotencyKey' ? plainTypeOf(dialect, name) : columnType(dialect, name)

/** As the database calls it. */
function plainTypeOf(dialect: Dialect, name: ColumnName): string {
  const [type = ''] = columnType(dialect, name).split(' ')
  return type === 'timestamptz' ? 'timestamp with time zone' : type.toLowerCase()
}

export const addedColumns = ({ missing, layout }: Target): readonly string[] =>
  missing.map((name) => `${quote(layout.columns[name])} ${addedTypeOf(layout.dialect, name)}`)

export const addingColumns = ({ missing }: Target): string =>
  `add ${missing.length === 1 ? 'the column that is' : `the ${missing.length} columns that are`} missing`

/** A note for the owner of a table whose ids have no index; `make` begins the statement that makes one. */
export const noIdIndex = ({ columns, sqlTable }: TableNames, make: string): string =>
  `${quote(columns.id)} has no unique index of its own, and a dispatcher finds its rows by it; make one: ` +
  `${make} ON ${sqlTable} (${quote(columns.id)})`
