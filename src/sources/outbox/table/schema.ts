/**
 * The tables of an outbox, as text for the application's migrations; `bartleby outbox adopt` makes them too, and adds
 * what an existing table lacks. Columns that change on every message are only in partial indexes over rows that are not
 * done, which stay small whatever was processed.
 */
import type { Dialect } from '../../../store/database.ts'
import { dueOf, quotedColumns } from './layout.ts'
import {
  COLUMN_NAMES,
  columnType,
  nameTable,
  quote,
  SQLITE_UUID,
  type TableNames,
  type TableOptions,
} from './table-names.ts'

export interface IndexDefinition {
  readonly name: string
  readonly unique: boolean
  readonly on: string
}

export function indexesOf(names: TableNames, dialect: Dialect): readonly IndexDefinition[] {
  const { id, tenantId, idempotencyKey, createdAt, retryCount, processedAt, deadAt, orderingKey, letterDue } =
    quotedColumns(names)
  const index = (purpose: string, on: string, unique = false): IndexDefinition => ({
    name: `${names.indexPrefix}_${purpose}`,
    unique,
    on,
  })
  const byDue = `(${dueOf(names, dialect)}, ${createdAt}, ${id})`
  const isPending = `${processedAt} IS NULL AND ${deadAt} IS NULL`
  const line = `${tenantId}, ${orderingKey}, ${deadAt}, ${createdAt}, ${id}`
  return [
    // One message per tenant and key.
    index('tenant_key', `(${tenantId}, ${idempotencyKey})`, true),
    // What is due, in the order of creation.
    index('due', `${byDue} WHERE ${isPending}`),
    // Failed messages that are tried again, to be counted and listed.
    index('failed', `${byDue} WHERE ${retryCount} > 0 AND ${isPending}`),
    // The line of an ordering key; the dead stand apart.
    index('line', `(${line}) WHERE ${orderingKey} IS NOT NULL AND ${processedAt} IS NULL`),
    // Dead messages, the latest last.
    index('dead', `(${deadAt}, ${id}) WHERE ${deadAt} IS NOT NULL AND ${processedAt} IS NULL`),
    // Rows for the clerk.
    index('letter_due', `(${id}) WHERE ${letterDue}`),
    // What can be purged, the oldest first.
    index('processed', `(${processedAt}, ${id}) WHERE ${processedAt} IS NOT NULL`),
  ]
}

/** Built concurrently, it must stand alone outside of any transaction. */
export function indexStatement(
  names: TableNames,
  { name, unique, on }: IndexDefinition,
  options: { readonly concurrently?: boolean } = {},
): string {
  const concurrently = options.concurrently === true ? 'CONCURRENTLY ' : ''
  return `CREATE ${unique ? 'UNIQUE ' : ''}INDEX ${concurrently}IF NOT EXISTS ${quote(name)} ON ${names.sqlTable} ${on}`
}

/** Keys of purged rows, and on PostgreSQL whether a dispatcher waits to be woken. */
export function sideTablesOf(names: TableNames, dialect: Dialect): string {
  const integer = dialect === 'postgres' ? 'bigint' : 'INTEGER'
  const [text, key, bytes] = dialect === 'postgres' ? ['text', 'uuid', 'bytea'] : ['TEXT', 'TEXT', 'BLOB']
  const keys = `
CREATE TABLE IF NOT EXISTS ${names.keys.sqlTable} (
  tenant_id ${text} NOT NULL,
  idempotency_key ${key} NOT NULL,
  message_id ${text} NOT NULL,
  payload_sha256 ${bytes} NOT NULL,
  recorded_at ${integer} NOT NULL,
  PRIMARY KEY (tenant_id, idempotency_key)
);
CREATE INDEX IF NOT EXISTS ${quote(`${names.indexPrefix}_keys_age`)} ON ${names.keys.sqlTable} (recorded_at);`
  if (dialect === 'sqlite') return keys
  return `${keys}
CREATE TABLE IF NOT EXISTS ${names.wake.sqlTable} (one boolean PRIMARY KEY DEFAULT true CHECK (one), waiting boolean NOT NULL)
  WITH (fillfactor = 20);
INSERT INTO ${names.wake.sqlTable} (waiting) VALUES (true) ON CONFLICT DO NOTHING;`
}

/** SQLite has no default that makes a key: a trigger gives one to rows without. */
export function keyTriggerOf(names: TableNames): string {
  const { idempotencyKey } = quotedColumns(names)
  return `
CREATE TRIGGER IF NOT EXISTS ${quote(`${names.indexPrefix}_key`)} AFTER INSERT ON ${names.sqlTable} WHEN NEW.${idempotencyKey} IS NULL
BEGIN
  UPDATE ${names.sqlTable} SET ${idempotencyKey} = ${SQLITE_UUID} WHERE rowid = NEW.rowid;
END;`
}

/** A whole outbox, as a script that can be run again. */
export function outboxSchema(dialect: Dialect, options: TableOptions = {}): string {
  const names = nameTable(options)
  // The payload comes last: SQLite walks all pages of a large column to read one behind it.
  const order = [...COLUMN_NAMES.filter((name) => name !== 'payload'), 'payload'] as const
  const columns = order.map((name) => `  ${quote(names.columns[name])} ${columnType(dialect, name)}`)
  const indexes = indexesOf(names, dialect).map((index) => `${indexStatement(names, index)};`)
  const table = `CREATE TABLE IF NOT EXISTS ${names.sqlTable} (\n${columns.join(',\n')}\n)`
  // Every message is updated twice and leaves the small indexes: pages need room and frequent vacuum.
  const settings =
    dialect === 'postgres' ? ` WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.01)` : ''
  return `${table}${settings};\n${indexes.join('\n')}\n${sideTablesOf(names, dialect).trimStart()}\n`
}
