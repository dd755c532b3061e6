/**
 * SQL that is not what comes to mind first, each with its reason. All hold whatever PostgreSQL knows about its tables: nothing, that they
 * are empty or small, or the truth (test/plans).
 *
 * - **Rows that go with a statement** are `FROM unnest($1::bigint[], $2::text[]) AS given (id, words)`. PostgreSQL takes lists and runs once.
 *   SQLite runs once per row, with values for `given.id`: joined with a list, `UPDATE … FROM` copies whole rows first and took five times as
 *   long. Written rows are found by the given key alone (`WHERE letters.id = given.id`): any condition on another indexed column is another
 *   way to find them, which untrue statistics make look good.
 * - **Rows with a key of three columns**, such as items, are found by `item.id = ANY($1::bigint[])`, with their values in a JSON object under
 *   their serials, declared with `under`. Without statistics PostgreSQL expects a handful of rows per part and shelf, reads them all and
 *   compares each: 33 s for a thousand items of 200,000, against 8 ms. With part and shelf in the lists it reads all items in the first five
 *   calls of every connection, 80 to 120 ms each. Before version 17 it also needs the ends of the list (`forOlderPostgres` in database.ts).
 * - **The first n of each** is `FROM unnest($1::int[]) AS given (part) CROSS JOIN LATERAL (… LIMIT n) AS found`: nothing else stops there.
 * - **The first rows of a range** are a range of the index, `(a, b) > ($1, $2) AND a <= $1 ORDER BY a, b LIMIT $3`. With `a = $1` PostgreSQL
 *   expects few rows, fetches all and sorts them.
 * - **Flags** in such a range are negated (`leased <> 1`): equality is expected for one row in 200, so that a LIMIT seems far away.
 * - **A few rows to look for** are filled up to ten with NULL (`filledUp`). PostgreSQL expects ten values in a list; with fewer, a plan for these
 *   very values looks cheaper than the kept one, and it plans every call: 0.1 to 0.2 ms each for captures.
 * - **A page of a list** whose first column begins other indexes too, or whose index has two directions, has its limit in a subquery, `WHERE
 *   a = $1 ORDER BY b, c LIMIT (SELECT $2)`. PostgreSQL then expects a tenth of the rows and reads in the order of the index; of a range it
 *   would sort what another index gives for `a`.
 * - **A state of rows known by their keys** is a comparison that no index has (`state > 3`): `state = 4` invites the index of all dead jobs.
 * - **Rows joined to a list** are found by it as well, `JOIN … ON b.id = a.b AND b.id = ANY(ARRAY(SELECT b FROM list))`: for a join alone
 *   PostgreSQL hashes the whole table.
 * - **A look at one row** among columns is a scalar subquery: EXISTS may read all rows into a hash table.
 * - **A part that others begin with** is `AS MATERIALIZED`: read once, with joins looked up by key. PostgreSQL would merge it into the join and
 *   may begin at the other side. Parts that take numbers or locks must not run twice either.
 * - **The first rows to delete** are `DELETE FROM a WHERE (b, c) IN (SELECT b, c FROM a … LIMIT $1)`. PostgreSQL gets `ctid = ANY(ARRAY(…))`: rows
 *   found once, instead of a hash join of the table with itself.
 * - **A condition that ends the transaction** is a statement that fails, because the commit travels with it: `SELECT 1 / count(*)` where one row
 *   is wanted, `SET status = CASE WHEN status IN (0) THEN 1 END` where a column is NOT NULL.
 * - **A column that SQLite shall not seek by** has a plus (`+created_at`). PostgreSQL gets the bare column.
 *
 * Mere differences of words are translated, see database.ts.
 */
import type { List, Session, Statement, Transaction, Value } from './database.ts'

/** By column; absent ones are NULL. */
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

/** Keys of rows (their first column) and the values under each. Instants are texts: JSON numbers lose digits beyond 2^53. */
export function givenByKey(
  [key = '', ...columns]: readonly string[],
  rows: readonly GivenRow[],
): readonly [List, string] {
  // Building an object first takes twice the time.
  const entries = rows.map((row) => {
    const values = columns.map((name) => {
      const value = row[name] ?? null
      return typeof value === 'bigint' ? `"${value}"` : JSON.stringify(value)
    })
    return `"${row[key]}":[${values.join(',')}]`
  })
  return [rows.map((row) => row[key] ?? null), `{${entries.join(',')}}`]
}

/** Runs a statement with rows; returns how many changed. Shared values come behind the columns. */
export const runGiven = (
  session: Session,
  statement: Statement,
  rows: readonly GivenRow[],
  ...same: readonly Value[]
): Promise<number> => session.runEach(statement, runsOf(session, statement, rows, same))

/** With the commit, for writes whose result nobody needs. */
export function runGivenAtCommit(
  tx: Transaction,
  statement: Statement,
  rows: readonly GivenRow[],
  ...same: readonly Value[]
): void {
  for (const values of runsOf(tx, statement, rows, same)) tx.atCommit(statement, ...values)
}

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

/** The length of list that PostgreSQL expects. */
const EXPECTED_VALUES = 10

export const filledUp = ({ dialect }: Session, rows: readonly GivenRow[]): readonly GivenRow[] =>
  dialect === 'sqlite' || rows.length === 0 || rows.length >= EXPECTED_VALUES
    ? rows
    : [...rows, ...Array<GivenRow>(EXPECTED_VALUES - rows.length).fill({})]
