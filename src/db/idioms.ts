/**
 * The few ways of writing SQL that are not what comes to mind first, each with its reason. All of them hold whatever PostgreSQL knows
 * about the tables: nothing, that they are empty, small, or how they are (test/plans).
 *
 * - **Values that go with rows** are joined as lists where one column is the key of the rows (`given.ts`). Items have three, and there values travel
 *   as a JSON object under their serials (`changingEach`). Without statistics PostgreSQL believes that part and shelf are met by a handful of
 *   rows, reads all of them and compares each with the list: 33 s for a thousand items of a partition of 200,000, and 8 ms this way. With part
 *   and shelf in the lists as well it reads all items in the first five calls of every connection, 80 to 120 ms each, and is no faster then.
 * - **The first rows of a range** are asked for as that range of the index, `(a, b) > ($1, $2) AND a <= $1 ORDER BY a, b LIMIT $3`. With `a = $1`
 *   PostgreSQL believes that few rows meet it, fetches all of them and sorts them.
 * - **Flags** that go with such a range are said by what they are not (`leased <> 1`): equality is believed to be met by one row in 200, and a LIMIT
 *   then to be reached only at the end.
 * - **A page of a list** whose first column other indexes begin with, too, or whose index has two directions, is limited by a subquery, `WHERE a = $1
 *   ORDER BY b, c LIMIT (SELECT $2)`. PostgreSQL then expects a tenth of the rows to be wanted, few as it believes they are, and takes them in
 *   the order of the index. Of a range of the index it would sort what another index gives for `a`.
 * - **The first n of each** is a LATERAL subquery with a LIMIT: nothing else stops there.
 * - **A state of rows that are known by their keys** is said as no index says it (`state > 3`): `state = 4` would invite the index of all dead jobs.
 * - **Rows of a list that others are joined to** are found by it as well, `JOIN … ON b.id = a.b AND b.id = ANY(ARRAY(SELECT b FROM list))`: of a join
 *   alone PostgreSQL believes that all rows are worth a hash table.
 * - **A look at one row** in a list of columns is a scalar subquery: EXISTS may be answered by reading all rows into a hash table.
 *
 * What is only another word in the other store is translated, see database.ts.
 */
import { type Session, type Statement, sql, type Value } from './database.ts'

/** How a statement names one of its rows, and what goes with it. */
interface OneRow {
  /** The condition that it is this row. */
  readonly is: string
  /** What goes with it at a place; a whole number. */
  given(place: number): string
}

/**
 * A statement about rows that each have values of their own; `same` parameters come first and are the same for all. PostgreSQL runs it once,
 * SQLite once for each row.
 */
export function changingEach(
  name: string,
  same: number,
  key: string,
  text: (row: OneRow) => string,
): Statement {
  const [first, second] = [`$${same + 1}`, `$${same + 2}`]
  return sql(name, {
    postgres: text({
      is: `${key} = ANY(${first}::bigint[])`,
      given: (place) => `(${second}::jsonb -> ${key}::text ->> ${place})::bigint`,
    }),
    sqlite: text({ is: `${key} = ${first}`, given: (place) => `$${same + 2 + place}` }),
  })
}

type Given = readonly (string | number | bigint | null)[]
type Keyed = readonly [key: number | bigint, ...given: Given]

/** Runs such a statement; gives how many rows it changed. */
export async function changeEach(
  session: Session,
  statement: Statement,
  same: readonly Value[],
  rows: readonly Keyed[],
): Promise<number> {
  if (session.dialect === 'postgres')
    return session.run(
      statement,
      ...same,
      rows.map(([key]) => key),
      givenByKey(rows),
    )
  let changed = 0
  for (const row of rows) changed += await session.run(statement, ...same, ...row)
  return changed
}

/** What goes with rows, under their keys. Instants are texts: JSON numbers would lose the digits beyond 2^53. */
export function givenByKey(rows: readonly Keyed[]): string {
  // An object with these keys first would take twice the time.
  const entries = rows.map(([key, ...given]) => {
    const values = given.map((value) => (typeof value === 'bigint' ? `"${value}"` : JSON.stringify(value)))
    return `"${key}":[${values.join(',')}]`
  })
  return `{${entries.join(',')}}`
}
