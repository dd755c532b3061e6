/**
 * Inserts messages in the application's transaction. Nothing fails because a message is there already: on PostgreSQL a
 * unique violation, even a caught one, would end the whole transaction. Every parameter is a text, bytes or null:
 * libraries differ in numbers, JSON and lists.
 *
 * A random key is new, so its insert is a plain one. A given key is looked for among those of purged rows, and meets
 * its twin in the unique index on (tenant, key): of two transactions with the same key the second waits. Rows that were
 * not inserted are not returned.
 */

import { asText, type Layout } from '../table/layout.ts'
import type { ColumnName } from '../table/table-names.ts'
import { makesIds } from '../writing/fit.ts'

export interface InsertShape {
  /** The application gave the key: it may be known already. */
  readonly guarded: boolean
  readonly timed: boolean
}

/** A single insert on PostgreSQL names these only where they have a value. */
export const OPTIONAL_VALUES = ['id', 'orderingKey', 'headers', 'correlationId'] as const

type Assignment = readonly [column: ColumnName | 'isProcessed', expression: string]

/** An assignment to a column of characters checks the length; a cast would cut it. */
export function fromText({ dialect, types }: Layout, column: ColumnName, text: string): string {
  const type = types[column]
  return dialect === 'sqlite' || /^(text|character)/.test(type) ? text : `${text}::${type}`
}

/** Legacy tables may have no defaults. */
const constants = (layout: Layout): readonly Assignment[] =>
  layout.hasFlag
    ? [
        ['retryCount', '0'],
        // Fits a flag of any type.
        ['isProcessed', `'0'`],
      ]
    : [['retryCount', '0']]

/**
 * The insert of a row, or of all rows of a `source`. `isNew`: the key is none of a purged row. The conflict clause also
 * works with an index that leaves out rows without a key.
 */
function insert(
  layout: Layout,
  assignments: readonly Assignment[],
  shape: {
    readonly guarded: boolean
    readonly isNew: string
    readonly source?: string
    readonly returning: string
  },
): string {
  const { c } = layout
  const { guarded, source = '', returning } = shape
  const guard = guarded && layout.hasKeys ? shape.isNew : 'true'
  const columns = assignments.map(([column]) => c[column]).join(', ')
  const values = assignments.map(([, expression]) => expression).join(', ')
  const rows =
    source === '' && guard === 'true' ? `VALUES (${values})` : `SELECT ${values} ${source} WHERE ${guard}`
  const orNothing = `ON CONFLICT (${c.tenantId}, ${c.idempotencyKey}) WHERE ${c.idempotencyKey} IS NOT NULL DO NOTHING`
  return `INSERT INTO ${layout.sqlTable} (${columns}) ${rows} ${guarded ? orNothing : ''} ${returning}`
}

/** Wakes waiting dispatchers once for all rows of the statement, and not at all when there are none. */
const wakeCall = (layout: Layout): string =>
  layout.hasWake
    ? `, (SELECT pg_notify('${layout.channel}', '') FROM ${layout.wake.sqlTable} WHERE waiting)::text AS woken`
    : ''

/** One row on PostgreSQL. Parameters: tenant, type, payload, key, the given `OPTIONAL_VALUES`, the time of creation if given. */
export function insertOnPostgres(
  layout: Layout,
  shape: InsertShape & { readonly given: readonly (typeof OPTIONAL_VALUES)[number][] },
): string {
  let last = 4
  const next = () => `$${++last}::text`
  const tenant = '$1::text'
  const key = '$4::text'
  const assignments: Assignment[] = [
    ['tenantId', fromText(layout, 'tenantId', tenant)],
    ['eventType', fromText(layout, 'eventType', '$2::text')],
    ['payload', layout.keepsBytes ? '$3::bytea' : fromText(layout, 'payload', '$3::text')],
    ['idempotencyKey', fromText(layout, 'idempotencyKey', key)],
    ...constants(layout),
  ]
  for (const column of shape.given) assignments.push([column, fromText(layout, column, next())])
  assignments.push([
    'createdAt',
    shape.timed ? layout.time('createdAt', next()) : layout.presentTime('createdAt'),
  ])
  return insert(layout, assignments, {
    guarded: shape.guarded,
    // Primary key of the purged keys.
    isNew: `NOT EXISTS (SELECT FROM ${layout.keys.sqlTable} WHERE tenant_id = ${tenant} AND idempotency_key = ${key}::uuid)`,
    returning: `RETURNING ${asText(layout.c.id)} AS id${wakeCall(layout)}`,
  })
}

const PRESENT_MICROS = '(extract(epoch FROM statement_timestamp()) * 1000000)::bigint'

/** Lists in the order of the parameters; one that no row needs may be empty. */
const LISTS = ['tenant', 'type', 'key', 'id', 'line', 'headers', 'correlation', 'nth'] as const

/**
 * Many rows on PostgreSQL. Parameters: `LISTS` as texts; the payloads, as a list or, where the column keeps bytes, in
 * one piece with the lists of starts and sizes; for `timed` rows the creation of the first, or null for now. 1,000 rows
 * take as long as a plain insert with 4,000 parameters; as a list of bytes half as long again, as JSON nearly so.
 *
 * Each row is created as many microseconds after the first as its place says, so rows may be inserted in another order.
 * Purged keys are a subquery: a join could change the order.
 */
export function insertManyOnPostgres(layout: Layout, { guarded, timed }: InsertShape): string {
  const { c } = layout
  const bytes = layout.keepsBytes
  const payloadAt = LISTS.length + 1
  const lists = [
    ...LISTS.map((name, at) => `$${at + 1}::text::${name === 'nth' ? 'bigint' : 'text'}[]`),
    ...(bytes
      ? [`$${payloadAt + 1}::text::integer[]`, `$${payloadAt + 2}::text::integer[]`]
      : [`$${payloadAt}::text::text[]`]),
  ]
  const names = [...LISTS, ...(bytes ? ['start', 'size'] : ['payload'])]
  const payload = bytes
    ? `substring($${payloadAt}::bytea FROM m.start FOR m.size)`
    : fromText(layout, 'payload', 'm.payload')
  const since = `$${payloadAt + (bytes ? 3 : 1)}::text::bigint`
  // Computed once.
  const createdMicros = `((SELECT coalesce(${since}, ${PRESENT_MICROS})) + m.nth)`
  const assignments: Assignment[] = [
    ['tenantId', fromText(layout, 'tenantId', 'm.tenant')],
    ['eventType', fromText(layout, 'eventType', 'm.type')],
    ['payload', payload],
    ['idempotencyKey', fromText(layout, 'idempotencyKey', 'm.key')],
    ...constants(layout),
    ['orderingKey', fromText(layout, 'orderingKey', 'm.line')],
    ['headers', fromText(layout, 'headers', 'm.headers')],
    ['correlationId', fromText(layout, 'correlationId', 'm.correlation')],
    ['createdAt', timed ? layout.time('createdAt', createdMicros) : layout.presentTime('createdAt')],
  ]
  if (makesIds(layout)) assignments.push(['id', fromText(layout, 'id', 'm.id')])
  return insert(layout, assignments, {
    guarded,
    isNew: `(SELECT true FROM ${layout.keys.sqlTable} AS known
      WHERE known.tenant_id = m.tenant AND known.idempotency_key = m.key::uuid) IS NULL`,
    source: `FROM unnest(${lists.join(', ')}) AS m (${names.join(', ')})`,
    returning: `RETURNING ${asText(c.id)} AS id, ${asText(c.idempotencyKey)} AS key${guarded ? `, ${asText(c.tenantId)} AS tenant` : ''}${wakeCall(layout)}`,
  })
}

/** Columns in the order of the parameters. Id and time follow when they are given. */
const SQLITE_COLUMNS = [
  'tenantId',
  'eventType',
  'payload',
  'idempotencyKey',
  'orderingKey',
  'headers',
  'correlationId',
] as const satisfies readonly ColumnName[]

/**
 * Rows on SQLite. RETURNING takes as long as the insert itself: many rows that are all new do without it (`madeOnSqlite`).
 * `hasId`: ids are given.
 */
export function insertOnSqlite(
  layout: Layout,
  { guarded, timed, hasId, rows }: InsertShape & { readonly hasId: boolean; readonly rows: number },
): string {
  const { c } = layout
  const columns: readonly ColumnName[] = hasId ? [...SQLITE_COLUMNS, 'id'] : SQLITE_COLUMNS
  const createdAt = timed
    ? layout.time('createdAt', `CAST(m.column${columns.length + 1} AS INTEGER)`)
    : layout.presentTime('createdAt')
  const assignments = [
    ...columns.map((column, at): Assignment => [column, `m.column${at + 1}`]),
    ['createdAt', createdAt] as const,
    ...constants(layout),
  ]
  const row = `(${Array(columns.length + (timed ? 1 : 0))
    .fill('?')
    .join(', ')})`
  return insert(layout, assignments, {
    guarded,
    isNew: `NOT EXISTS (SELECT 1 FROM ${layout.keys.sqlTable} AS known
      WHERE known.tenant_id = m.column1 AND known.idempotency_key = m.column4)`,
    source: `FROM (VALUES ${Array(rows).fill(row).join(', ')}) AS m`,
    returning:
      guarded || rows === 1
        ? `RETURNING ${asText(c.id)} AS id, ${asText(c.tenantId)} AS tenant, ${c.idempotencyKey} AS "key"`
        : '',
  })
}

/** Id of the last inserted row, and the keys of the first and the last of so many: they show whether another insert came between. */
export function madeOnSqlite(layout: Layout): string {
  const { c } = layout
  const keyAt = (id: string) => `(SELECT ${c.idempotencyKey} FROM ${layout.sqlTable} WHERE ${c.id} = ${id})`
  return `SELECT CAST(m.last AS TEXT) AS last, ${keyAt('m.last - CAST(? AS INTEGER) + 1')} AS "first", ${keyAt('m.last')} AS "key"
    FROM (SELECT last_insert_rowid() AS last) AS m`
}
