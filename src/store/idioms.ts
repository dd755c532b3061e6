/**
 * The few ways of writing SQL that are not what comes to mind first, each with its reason. All of them hold whatever PostgreSQL knows
 * about the tables: nothing, that they are empty, small, or how they are (test/plans).
 *
 * - **Rows that go with a statement**, each with values of its own, are `FROM unnest($1::bigint[], $2::text[]) AS given (id, words)`. PostgreSQL takes
 *   their columns as lists and runs once. SQLite runs once for each row, with its values in place of `given.id` and `given.words`: joined with a
 *   list, `UPDATE … FROM` copies whole rows aside first, and took five times as long. The key of what is written comes from the rows alone (`WHERE
 *   letters.id = given.id`): then looking it up by its index is the only way that PostgreSQL has, or reading all where that is less. A condition
 *   beside it, on a column with an index of its own, is another way, and statistics that are not true make it look good.
 * - **Rows with a key of three columns**, which items have, are found by `item.id = ANY($1::bigint[])`, and their values stand in a JSON object under
 *   their serials, declared with `under`. Without statistics PostgreSQL believes that part and shelf are met by a handful of rows, reads all of them
 *   and compares each with the rows given: 33 s for a thousand items of a partition of 200,000, and 8 ms this way. With part and shelf in the
 *   lists as well it reads all items in the first five calls of every connection, 80 to 120 ms each, and is no faster then.
 *   Before version 17 PostgreSQL is told the ends of the list as well, see `forOlderPostgres` in database.ts.
 * - **The first n of each** is a subquery with a LIMIT, `FROM unnest($1::int[]) AS given (part) CROSS JOIN LATERAL (…) AS found`: nothing else stops there.
 * - **The first rows of a range** are asked for as that range of the index, `(a, b) > ($1, $2) AND a <= $1 ORDER BY a, b LIMIT $3`. With `a = $1`
 *   PostgreSQL believes that few rows meet it, fetches all of them and sorts them.
 * - **Flags** that go with such a range are said by what they are not (`leased <> 1`): equality is believed to be met by one row in 200, and a LIMIT
 *   then to be reached only at the end.
 * - **A few rows that are looked for** are filled up to ten with NULL (`filledUp`). Of a list PostgreSQL expects ten values; with fewer a plan for these very values looks cheaper
 *   than the one that it keeps, and it makes one for every call: 0.1 to 0.2 ms each for captures.
 * - **A page of a list** whose first column other indexes begin with, too, or whose index has two directions, is limited by a subquery, `WHERE a = $1
 *   ORDER BY b, c LIMIT (SELECT $2)`. PostgreSQL then expects a tenth of the rows to be wanted, few as it believes they are, and takes them in
 *   the order of the index. Of a range of the index it would sort what another index gives for `a`.
 * - **A state of rows that are known by their keys** is said as no index says it (`state > 3`): `state = 4` would invite the index of all dead jobs.
 * - **Rows of a list that others are joined to** are found by it as well, `JOIN … ON b.id = a.b AND b.id = ANY(ARRAY(SELECT b FROM list))`: of a join
 *   alone PostgreSQL believes that all rows are worth a hash table.
 * - **A look at one row** in a list of columns is a scalar subquery: EXISTS may be answered by reading all rows into a hash table.
 * - **A part of a statement that others begin with** is `AS MATERIALIZED`: it is read once, and what is joined to it is looked up by its keys. PostgreSQL would
 *   put a part that is used once into the join, and begin with the other side when it knows nothing. What takes numbers or locks rows must not run twice either.
 * - **The first rows that go** are `DELETE FROM a WHERE (b, c) IN (SELECT b, c FROM a … LIMIT $1)`. PostgreSQL gets `ctid = ANY(ARRAY(…))`: rows by where they lie, found
 *   first and once. Of a join with its own table it would believe that all rows are worth a hash table.
 * - **A condition that ends the transaction** is a statement that fails, because the commit travels with it and nobody reads the answer first: `SELECT 1 / count(*)` where one
 *   row is wanted, and `SET status = CASE WHEN status IN (0) THEN 1 END` where a column is NOT NULL. In WHERE it would be another way to find the rows, see above.
 * - **A column that SQLite shall not look for** has a plus in front (`+created_at`): the condition holds, and its index is another one's. PostgreSQL gets the column.
 *
 * What is only another word in the other store is translated, see database.ts.
 */
import type { List, Session, Statement, Transaction, Value } from './database.ts'

/** One row by the names of its columns; what it does not have is NULL. */
export type GivenRow = Readonly<Record<string, List[number] | undefined>>

function runsOf(
  { dialect }: Session,
  { given, isUnder }: Statement,
  rows: readonly GivenRow[],
  same: readonly Value[],
): readonly (readonly Value[])[] {
  const columns = given?.[dialect] ?? []
  if (rows.length === 0) return []
  if (dialect === 'sqlite') return rows.map((row) => [...columns.map((name) => row[name] ?? null), ...same])
  if (isUnder) return [[...givenByKey(columns, rows), ...same]]
  // Empty where no row has a value: PostgreSQL fills up with NULL.
  const lists = columns.map((name) =>
    rows.some((row) => row[name] != null) ? rows.map((row) => row[name] ?? null) : [],
  )
  return [[...lists, ...same]]
}

/** The keys of rows, which are their first column, and what goes with each. Instants are texts: JSON numbers would lose the digits beyond 2^53. */
export function givenByKey(
  [key = '', ...columns]: readonly string[],
  rows: readonly GivenRow[],
): readonly [List, string] {
  // An object with these keys first would take twice the time.
  const entries = rows.map((row) => {
    const values = columns.map((name) => {
      const value = row[name] ?? null
      return typeof value === 'bigint' ? `"${value}"` : JSON.stringify(value)
    })
    return `"${row[key]}":[${values.join(',')}]`
  })
  return [rows.map((row) => row[key] ?? null), `{${entries.join(',')}}`]
}

/** Runs a statement with rows; gives how many it changed. What is the same for all comes behind their columns. */
export const runGiven = (
  session: Session,
  statement: Statement,
  rows: readonly GivenRow[],
  ...same: readonly Value[]
): Promise<number> => session.runEach(statement, runsOf(session, statement, rows, same))

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

/** What PostgreSQL expects a list to have. */
const EXPECTED_VALUES = 10

/** Rows to look for, filled up with some that are not there. */
export const filledUp = ({ dialect }: Session, rows: readonly GivenRow[]): readonly GivenRow[] =>
  dialect === 'sqlite' || rows.length === 0 || rows.length >= EXPECTED_VALUES
    ? rows
    : [...rows, ...Array<GivenRow>(EXPECTED_VALUES - rows.length).fill({})]
