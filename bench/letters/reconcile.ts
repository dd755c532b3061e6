/** The end of every run: what the office counts is what lies in the table, for every drawer and status. */
import { openLoader } from './loader.ts'
import { words } from './sql.ts'

/** Throws unless totals and unfolded changes together equal COUNT, per drawer and status, and over all. */
export async function reconcile(store: string): Promise<number> {
  const loader = await openLoader(store)
  try {
    const { schema } = words[loader.dialect]
    const deltas =
      loader.dialect === 'postgres'
        ? `UNION ALL SELECT drawer, status, letters FROM ${schema}letter_changes WHERE status < 3`
        : ''
    const differing = await loader.rows(`
      SELECT drawer, status, sum(counted) AS counted, sum(there) AS there FROM (
        SELECT drawer, status, letters AS counted, 0 AS there FROM (
          SELECT drawer, status, letters FROM ${schema}letter_totals WHERE status < 3 ${deltas}) AS kept
        UNION ALL SELECT drawer, status, 0, count(*) FROM ${schema}letters GROUP BY drawer, status
      ) AS books GROUP BY drawer, status HAVING sum(counted) <> sum(there) LIMIT 5`)
    if (differing.length > 0) throw new Error(`the counts do not balance: ${JSON.stringify(differing)}`)
    const [all] = await loader.rows(`SELECT count(*) AS letters FROM ${schema}letters`)
    return Number(all?.letters)
  } finally {
    await loader.close()
  }
}
