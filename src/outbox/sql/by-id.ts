/**
 * Rows that are found by their ids. Conditions on them stand in words that no index has: in those of a partial index, databases
 * would walk all of it for a few ids while it is small, and go on doing so when it has grown.
 */
import type { Dialect, Statement } from '../../db/database.ts'
import type { Layout } from '../layout.ts'

export const isNull = (dialect: Dialect, column: string): string =>
  dialect === 'postgres' ? `num_nulls(${column}) = 1` : `+${column} IS NULL`

export const hasValue = (dialect: Dialect, column: string): string =>
  dialect === 'postgres' ? `num_nulls(${column}) = 0` : `+${column} IS NOT NULL`

/** A list of row ids as a parameter. SQLite compares by type: whole numbers are numbers there. */
export function idList({ dialect, types }: Layout, ids: readonly string[]): string {
  if (dialect === 'postgres') return `{${ids.map((id) => JSON.stringify(id)).join(',')}}`
  return /int/.test(types.id) ? `[${ids.join(',')}]` : JSON.stringify(ids)
}

/** The rows of the list `$1`, by primary key. */
export function inIdList(layout: Layout): string {
  const { id } = layout.c
  return layout.dialect === 'postgres'
    ? `${id} = ANY($1::text[]::${layout.types.id}[])`
    : `${id} IN (SELECT value FROM json_each($1))`
}

/**
 * Updates rows by primary key, each with what is `given` for it: `$1` is a list as `givenList` writes it, of records with an id and
 * these columns. PostgreSQL is told the ids once more, because a join alone may read all messages.
 */
export function updateEach(
  layout: Layout,
  verb: string,
  update: {
    readonly given: Readonly<Record<string, 'text' | 'bigint' | 'boolean'>>
    readonly set: string
    readonly where: string
    readonly returning?: string
  },
): Statement {
  const { sqlTable: table, types } = layout
  const id = `${table}.${layout.c.id}`
  const given = Object.entries(update.given)
  const { set, where, returning = '' } = update
  const columns = given.map(([name, type]) => `${name} ${type}`)
  const values = given.map(([name, type]) => `CAST(value ->> '${name}' AS ${type}) AS ${name}`)
  return layout.statement(verb, {
    postgres: `UPDATE ${table} SET ${set} FROM jsonb_to_recordset($1::jsonb) AS given (id text, ${columns.join(', ')})
      WHERE ${id} = given.id::${types.id} AND ${where}
        AND ${id} = ANY(ARRAY(SELECT each.id::${types.id} FROM jsonb_to_recordset($1::jsonb) AS each (id text))) ${returning}`,
    sqlite: `UPDATE ${table} SET ${set} FROM (
        SELECT CAST(value ->> 'id' AS ${/int/.test(types.id) ? 'INTEGER' : 'TEXT'}) AS id, ${values.join(', ')} FROM json_each($1)) AS given
      WHERE ${id} = given.id AND ${where} ${returning}`,
  })
}

/** The parameter of `updateEach`, in the order of ids: the order in which rows are locked. Bigints are texts, which lose no digits. */
export const givenList = (rows: readonly { readonly id: string }[]): string =>
  JSON.stringify(
    rows.toSorted((a, b) => (a.id < b.id ? -1 : 1)),
    (_, value: unknown) => (typeof value === 'bigint' ? value.toString() : value),
  )
