/**
 * The names of a table of messages and its columns. New tables are `outbox_messages` in snake case. Existing ones keep
 * their names, so that their producers go on writing them.
 */
import { createHash } from 'node:crypto'
import type { Dialect } from '../../../store/database.ts'
import { refuse } from '../refusal.ts'

/** A random uuid of version 4, in lower case. */
export const SQLITE_UUID = `lower(hex(randomblob(4)) || '-' || hex(randomblob(2)) || '-4' || substr(hex(randomblob(2)), 2) || '-' ||
  substr('89ab', 1 + (random() & 3), 1) || substr(hex(randomblob(2)), 2) || '-' || hex(randomblob(6)))`

/** The columns of an outbox, and their types when new. Times that only dispatchers write are microseconds on SQLite. */
const TYPES = {
  id: ['bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY', 'INTEGER PRIMARY KEY AUTOINCREMENT'],
  tenantId: ['text NOT NULL', 'TEXT NOT NULL'],
  eventType: ['text NOT NULL', 'TEXT NOT NULL'],
  payload: ['bytea NOT NULL', 'BLOB NOT NULL'],
  createdAt: [
    'timestamptz NOT NULL DEFAULT clock_timestamp()',
    `INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000000 AS INTEGER))`,
  ],
  retryCount: ['integer NOT NULL DEFAULT 0', 'INTEGER NOT NULL DEFAULT 0'],
  idempotencyKey: ['uuid NOT NULL DEFAULT gen_random_uuid()', `TEXT NOT NULL DEFAULT (${SQLITE_UUID})`],
  processedAt: ['timestamptz', 'INTEGER'],
  error: ['text', 'TEXT'],
  /** Failures before the last, as JSON. Tables without it keep the last alone. */
  earlierFailures: ['jsonb', 'TEXT'],
  nextAttemptAt: ['timestamptz', 'INTEGER'],
  claimedUntil: ['timestamptz', 'INTEGER'],
  claimedBy: ['text', 'TEXT'],
  /** Claims since the row was last settled. They give away a message that kills its dispatcher. */
  claimCount: ['integer NOT NULL DEFAULT 0', 'INTEGER NOT NULL DEFAULT 0'],
  deadAt: ['timestamptz', 'INTEGER'],
  orderingKey: ['text', 'TEXT'],
  headers: ['json', 'TEXT'],
  correlationId: ['text', 'TEXT'],
  /** The letter that the row became when it died. */
  letterId: ['bigint', 'INTEGER'],
  /** The office does not know yet that the row died, or arrived after all. */
  letterDue: ['boolean NOT NULL DEFAULT false', 'INTEGER NOT NULL DEFAULT 0'],
} as const satisfies Readonly<Record<string, readonly [postgres: string, sqlite: string]>>

export type ColumnName = keyof typeof TYPES
export const COLUMN_NAMES = Object.keys(TYPES) as readonly ColumnName[]

export const columnType = (dialect: Dialect, name: ColumnName): string =>
  TYPES[name][dialect === 'postgres' ? 0 : 1]

export const OPTIONAL_COLUMNS: readonly ColumnName[] = ['earlierFailures']

/** Adoption adds the others. */
export const NEEDED_COLUMNS = ['id', 'tenantId', 'eventType', 'payload', 'createdAt'] as const

export const NAMINGS = ['snake', 'pascal'] as const
export type Naming = (typeof NAMINGS)[number]

export interface TableOptions {
  /** May name its schema: `sales.outbox_messages`. Default: `outbox_messages` or `OutboxMessages`. */
  readonly table?: string
  readonly naming?: Naming
  /** Single columns with other names. `isProcessed` is a flag that some tables have beside the time. */
  readonly columns?: Readonly<Partial<Record<ColumnName | 'isProcessed', string>>>
}

/** The options that name a table, as far as they are given. */
export const tableOptionsOf = ({
  table,
  naming,
  columns,
}: { readonly [Option in keyof TableOptions]?: TableOptions[Option] | undefined }): TableOptions => ({
  ...(table === undefined ? {} : { table }),
  ...(naming === undefined ? {} : { naming }),
  ...(columns === undefined ? {} : { columns }),
})

/** The plain name, and the one with its schema, quoted for SQL. */
export interface TableName {
  readonly plainTable: string
  readonly sqlTable: string
}

export interface TableNames extends TableName {
  readonly naming: Naming
  /** As people write it. */
  readonly table: string
  readonly schema: string | null
  readonly columns: Readonly<Record<ColumnName | 'isProcessed', string>>
  /** Keys of purged rows. */
  readonly keys: TableName
  /** One row: whether a dispatcher waits to be woken. PostgreSQL only. */
  readonly wake: TableName
  /** Dispatchers listen to it. */
  readonly channel: string
  readonly indexPrefix: string
}

const DEFAULT_TABLES: Readonly<Record<Naming, string>> = {
  snake: 'outbox_messages',
  pascal: 'OutboxMessages',
}
const MAX_NAME_BYTES = 63

/** Refuses what cannot be a name, by the option's name. */
export function nameTable(options: TableOptions = {}): TableNames {
  const naming = options.naming ?? 'snake'
  if (!NAMINGS.includes(naming)) {
    refuse('naming', `it is none of ${NAMINGS.join(', ')}`)
  }
  const table = options.table ?? DEFAULT_TABLES[naming]
  if (typeof table !== 'string') refuse('table', 'it is no text')
  const parts = table.split('.')
  if (parts.length > 2) refuse('table', `'${table}' has more than a schema and a name`)
  for (const part of parts) checkName('table', part)
  const plainTable = parts.at(-1) ?? table
  const schema = parts.length === 2 ? (parts[0] ?? null) : null
  const named = (plain: string): TableName => ({
    plainTable: plain,
    sqlTable: schema === null ? quote(plain) : `${quote(schema)}.${quote(plain)}`,
  })
  return {
    ...named(plainTable),
    naming,
    table,
    schema,
    columns: nameColumns(naming, options.columns ?? {}),
    keys: named(naming === 'snake' ? `${plainTable}_keys` : `${plainTable}Keys`),
    wake: named(naming === 'snake' ? `${plainTable}_wake` : `${plainTable}Wake`),
    channel: `bartleby_outbox_${shortHash(table)}`,
    // Leaves room for the purpose of each index.
    indexPrefix: Buffer.byteLength(plainTable) > 44 ? `outbox_${shortHash(table)}` : plainTable,
  }
}

function nameColumns(naming: Naming, given: NonNullable<TableOptions['columns']>): TableNames['columns'] {
  const known: readonly string[] = [...COLUMN_NAMES, 'isProcessed']
  for (const [name, column] of Object.entries(given)) {
    if (!known.includes(name))
      refuse(`columns.${name}`, `there is no such column; there are ${known.join(', ')}`)
    checkName(`columns.${name}`, column)
  }
  const names = Object.fromEntries(known.map((name) => [name, inNaming(naming, name)]))
  const columns = { ...names, ...given } as TableNames['columns']
  refuseTwins(columns, Object.keys(given))
  return columns
}

/** `tenantId` as `tenant_id` or `TenantId`. */
const inNaming = (naming: Naming, name: string): string =>
  naming === 'snake' ? snakeCase(name) : name.charAt(0).toUpperCase() + name.slice(1)

export const snakeCase = (name: string): string =>
  name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)

/** Two columns of one name would be written in place of each other. */
function refuseTwins(columns: TableNames['columns'], given: readonly string[]): void {
  const owners = new Map<string, string>()
  for (const [name, column] of Object.entries(columns)) {
    const other = owners.get(column)
    owners.set(column, name)
    if (other === undefined) continue
    const [wrong, right] = given.includes(name) ? [name, other] : [other, name]
    refuse(`columns.${wrong}`, `'${column}' is the column of ${right}`)
  }
}

function checkName(option: string, name: unknown): void {
  if (typeof name !== 'string' || name.trim() === '') refuse(option, 'it is empty')
  else if (name.includes('\0')) refuse(option, 'it holds the null character')
  else if (Buffer.byteLength(name) > MAX_NAME_BYTES)
    refuse(option, `it is longer than ${MAX_NAME_BYTES} bytes`)
}

export const quote = (name: string): string => `"${name.replaceAll('"', '""')}"`

/** Enough of a hash to tell tables apart. */
export const shortHash = (text: string): string =>
  createHash('sha256').update(text).digest('hex').slice(0, 12)
