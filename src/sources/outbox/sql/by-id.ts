/** Many rows by their ids, the primary key. */
import type { Statement, Value } from '../../../store/database.ts'
import type { Layout } from '../table/layout.ts'

/** SQLite compares by type: ids of integer columns are numbers there. */
export const idList = ({ types }: Layout, ids: readonly string[]): readonly (string | bigint)[] =>
  /int/.test(types.id) ? ids.map((id) => (/^-?\d+$/.test(id) ? BigInt(id) : id)) : ids

/** The rows of the list `$1`. */
export const inIdList = ({ c, types }: Layout): string => `${c.id} = ANY($1::text[]::${types.id}[])`

/** Values for each of many rows, beside its id. */
type Given = Readonly<Record<string, 'text' | 'bigint' | 'boolean'>>

/** The given rows as a table. Parameters from `$first` on: lists on PostgreSQL, one JSON of records on SQLite. */
export function givenRows({ dialect, types }: Layout, given: Given, first = 1): string {
  const columns = Object.entries(given)
  if (dialect === 'postgres') {
    const lists = ['text', ...Object.values(given)].map((type, at) => `$${first + at}::${type}[]`)
    const names = Object.keys(given).join(', ')
    return `(SELECT CAST(id AS ${types.id}) AS id, ${names} FROM unnest(${lists.join(', ')}) AS each (id, ${names})) AS given`
  }
  const id = /int/.test(types.id) ? 'INTEGER' : 'TEXT'
  const values = columns.map(([name, type]) => `CAST(value ->> '${name}' AS ${type}) AS ${name}`)
  return `(SELECT CAST(value ->> 'id' AS ${id}) AS id, ${values.join(', ')} FROM json_each($${first})) AS given`
}

/**
 * Joins a row with its given one. PostgreSQL gets the ids as a list too: it fetches rows of a list in the order of
 * their pages, and would fetch those of a join one by one, or read the whole table.
 */
export const isGiven = ({ dialect, types }: Layout, id: string, first = 1): string =>
  `${id} = given.id${dialect === 'postgres' ? ` AND ${id} = ANY($${first}::text[]::${types.id}[])` : ''}`

type GivenRow = { readonly id: string } & Readonly<Record<string, string | number | bigint | boolean | null>>

/**
 * The parameters of `givenRows`, sorted by id: the order in which rows are locked. In JSON bigints are texts, which
 * lose no digits.
 */
export function givenValues({ dialect }: Layout, given: Given, rows: readonly GivenRow[]): Value[] {
  const sorted = rows.toSorted((a, b) => (a.id < b.id ? -1 : 1))
  if (dialect === 'sqlite')
    return [JSON.stringify(sorted, (_, value: unknown) => (typeof value === 'bigint' ? `${value}` : value))]
  const stored = (value: GivenRow[string] | undefined) =>
    typeof value === 'boolean' ? String(value) : (value ?? null)
  return ['id', ...Object.keys(given)].map((name) => sorted.map((row) => stored(row[name])))
}

/** An update of rows by primary key, each with its own values. They follow `others` parameters of the statement. */
export function updateEach(
  layout: Layout,
  verb: string,
  update: {
    readonly given: Given
    readonly others: number
    readonly set: string
    readonly where: string
    readonly returning?: string
  },
): { readonly statement: Statement; values(rows: readonly GivenRow[]): Value[] } {
  const { given, others, set, where, returning = '' } = update
  const statement = layout.statement(
    verb,
    `UPDATE ${layout.sqlTable} SET ${set} FROM ${givenRows(layout, given, others + 1)}
     WHERE ${isGiven(layout, `${layout.sqlTable}.${layout.c.id}`, others + 1)} AND ${where} ${returning}`,
  )
  return { statement, values: (rows) => givenValues(layout, given, rows) }
}
