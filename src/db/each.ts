/**
 * Questions about each of many: PostgreSQL is asked about all of them at once, with a list for every value and a lateral join; SQLite,
 * which has none, about one after the other.
 */
import { type List, type Session, type Statement, sql, type Value } from './database.ts'

/**
 * Declares a question. `asked` has what it is asked about, with PostgreSQL's types; they are the first parameters of the statement, and
 * `text` is given how each is called in it.
 */
export function eachOf<const Asked extends Readonly<Record<string, string>>>(
  name: string,
  asked: Asked,
  text: (asked: Readonly<Record<keyof Asked, string>>) => string,
): Statement {
  const columns = Object.keys(asked)
  const named = (nameOf: (column: string, at: number) => string) =>
    // The same keys as before.
    Object.fromEntries(columns.map((column, at) => [column, nameOf(column, at)])) as Record<
      keyof Asked,
      string
    >
  const lists = Object.values(asked).map((type, at) => `$${at + 1}::${type}[]`)
  return sql(
    name,
    {
      postgres: `SELECT asked.n, found.* FROM unnest(${lists.join(', ')}) WITH ORDINALITY AS asked (${columns.join(', ')}, n)
        CROSS JOIN LATERAL (${text(named((column) => `asked.${column}`))}) AS found`,
      sqlite: text(named((_, at) => `$${at + 1}`)),
    },
    { bigints: true },
  )
}

/** Which of those that were asked about a row is of; the first is 0. */
interface Answered {
  readonly n: number
}

/** The answers to a question about each of `asked`; `values` are its other parameters. */
export async function rowsOfEach<Row extends object>(
  session: Session,
  statement: Statement,
  asked: readonly List[],
  ...values: readonly Value[]
): Promise<(Row & Answered)[]> {
  if (asked.length === 0) return []
  if (session.dialect === 'postgres') {
    const rows = await session.rows<Row & Answered>(statement, ...columnsOf(asked), ...values)
    return rows.map((row) => ({ ...row, n: Number(row.n) - 1 }))
  }
  const found: (Row & Answered)[] = []
  for (const [n, each] of asked.entries())
    for (const row of await session.rows<Row>(statement, ...each, ...values)) found.push({ ...row, n })
  return found
}

/** A list for every column of some rows. */
const columnsOf = (rows: readonly List[]): List[] =>
  (rows[0] ?? []).map((_, at) => rows.map((row) => row[at] ?? null))
