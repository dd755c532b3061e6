/**
 * The few ways of writing SQL that are not what comes to mind first, each with its reason. All of them hold whatever PostgreSQL knows
 * about the tables: nothing, that they are empty, small, or how they are (test/plans).
 *
 * - **Values that go with rows** travel as a JSON object under the keys of the rows (`givenWith`). The plain way is a join with the unnested arrays;
 *   without statistics PostgreSQL believes that the other columns of the key are met by a handful of rows, reads all of them and compares
 *   each with the list: 33 s for a thousand items of a partition of 200,000, and 4.6 ms this way. (Measured on 18.4; 4.0 ms by places in arrays.)
 * - **The first rows of a range** are asked for as that range of the index, `(a, b) > ($1, $2) AND a <= $1 ORDER BY a, b LIMIT $3`. With `a = $1`
 *   PostgreSQL believes that few rows meet it, fetches all of them and sorts them.
 * - **Flags** that go with such a range are said by what they are not (`leased <> 1`): equality is believed to be met by one row in 200, and a LIMIT
 *   then to be reached only at the end.
 * - **The first n of each** is a LATERAL subquery with a LIMIT: nothing else stops there.
 * - **A look at one row** in a list of columns is a scalar subquery: EXISTS may be answered by reading all rows into a hash table.
 *
 * What is only another word in the other store is translated, see database.ts.
 */

/** What was given with the row whose key is `key`, at a place; a text. `given` is the parameter: `$3`. */
export const givenWith = (key: string, given: string, place: number): string =>
  `(${given}::jsonb -> ${key}::text ->> ${place})`

type Given = readonly (string | number | null)[]

/** What goes with rows, as the parameter that `givenWith` reads. An object with these keys first would take twice the time. */
export const givenByKey = <T>(
  rows: readonly T[],
  of: (row: T, at: number) => readonly [key: number, given: Given],
): string => {
  const entries = rows.map((row, at) => {
    const [key, given] = of(row, at)
    return `"${key}":${JSON.stringify(given)}`
  })
  return `{${entries.join(',')}}`
}
