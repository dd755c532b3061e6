/**
 * Rows that go with a statement, each with values of its own: `FROM unnest($1::bigint[], $2::text[]) AS given (id, words)`. PostgreSQL
 * takes their columns as lists and runs once. SQLite runs once for each row, with its values in place of `given.id` and `given.words`:
 * joined with a list, `UPDATE … FROM` copies whole rows aside first, and took five times as long.
 *
 * The key of what is written comes from the rows alone (`WHERE letters.id = given.id`): then looking it up by its index is the only
 * way that PostgreSQL has, or reading all where that is less. A condition beside it, on a column with an index of its own, is another
 * way, and statistics that are not true make it look good.
 */
import type { Session, Statement, Transaction, Value } from './database.ts'

/** One row by the names of its columns; what it does not have is NULL. */
export type GivenRow = Readonly<Record<string, Exclude<Value, readonly unknown[] | boolean> | undefined>>

/** The values of each run. */
function runsOf(
  { dialect }: Session,
  { given }: Statement,
  rows: readonly GivenRow[],
  same: readonly Value[],
): readonly (readonly Value[])[] {
  const columns = given?.[dialect] ?? []
  if (dialect === 'sqlite') return rows.map((row) => [...columns.map((name) => row[name] ?? null), ...same])
  // Empty where no row has a value: PostgreSQL fills up with NULL.
  const lists = columns.map((name) =>
    rows.some((row) => row[name] != null) ? rows.map((row) => row[name] ?? null) : [],
  )
  return rows.length === 0 ? [] : [[...lists, ...same]]
}

/** Runs a statement with rows; gives how many it changed. What is the same for all comes behind their columns. */
export async function runGiven(
  session: Session,
  statement: Statement,
  rows: readonly GivenRow[],
  ...same: readonly Value[]
): Promise<number> {
  let changed = 0
  for (const values of runsOf(session, statement, rows, same))
    changed += await session.run(statement, ...values)
  return changed
}

/** The same with the commit, for writes whose result nobody needs. */
export function runGivenAtCommit(
  tx: Transaction,
  statement: Statement,
  rows: readonly GivenRow[],
  ...same: readonly Value[]
): void {
  for (const values of runsOf(tx, statement, rows, same)) tx.atCommit(statement, ...values)
}

/** The same; gives what it returns. */
export async function rowsGiven<Row>(
  session: Session,
  statement: Statement,
  rows: readonly GivenRow[],
  ...same: readonly Value[]
): Promise<Row[]> {
  const answers: Row[] = []
  for (const values of runsOf(session, statement, rows, same))
    answers.push(...(await session.rows<Row>(statement, ...values)))
  return answers
}
