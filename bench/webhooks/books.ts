/** The end of every measurement: what was sent is delivered, dead, waiting or removed, and every count says the same. */
import { type Loader, openLoader } from '../letters/loader.ts'
import { words } from '../letters/sql.ts'

/** Jobs of the store, by what became of them. */
export interface Books {
  readonly sent: number
  readonly delivered: number
  readonly dead: number
  /** Queued and in flight. */
  readonly waiting: number
  readonly removed: number
}

export interface Expected {
  /** Jobs that were made: messages times consumers. */
  readonly sent: number
  /** When it is known. */
  readonly delivered?: number
  readonly dead?: number
  readonly removed?: number
}

/** Throws unless the books balance. Nobody may write to the store meanwhile. */
export async function balance(store: string, { sent, removed = 0, ...expected }: Expected): Promise<Books> {
  const loader = await openLoader(store)
  try {
    await compareCounts(loader)
    const { schema } = words[loader.dialect]
    const rows = await loader.rows(`SELECT state, count(*) AS jobs FROM ${schema}webhook_jobs GROUP BY state`)
    const jobs = (...states: readonly number[]) =>
      rows.reduce((sum, row) => sum + (states.includes(Number(row.state)) ? Number(row.jobs) : 0), 0)
    const books = { sent, delivered: jobs(3), dead: jobs(4), waiting: jobs(0, 1, 2), removed }
    const isBalanced =
      books.delivered + books.dead + books.waiting + removed === sent &&
      books.delivered === (expected.delivered ?? books.delivered) &&
      books.dead === (expected.dead ?? books.dead)
    if (!isBalanced) throw new Error(`the books do not balance: ${JSON.stringify({ ...books, expected })}`)
    return books
  } finally {
    await loader.close()
  }
}

/** For every consumer: what is kept of queued, in-flight and delivered jobs, and of pending letters, is what lies there. */
async function compareCounts(loader: Loader): Promise<void> {
  const { schema } = words[loader.dialect]
  const isPostgres = loader.dialect === 'postgres'
  const tallied = isPostgres
    ? `UNION ALL SELECT subject, tally, amount FROM ${schema}webhook_deltas WHERE tally < 10`
    : ''
  const filed = isPostgres
    ? `UNION ALL SELECT drawer, letters FROM ${schema}letter_changes WHERE status = 0`
    : ''
  const ofWebhooks = `SELECT id FROM ${schema}drawers WHERE source = 'webhooks'`
  const differing = await loader.rows(`
    SELECT consumer, kind, sum(counted) AS counted, sum(there) AS there FROM (
      SELECT subject AS consumer, tally AS kind, amount AS counted, 0 AS there FROM (
        SELECT subject, tally, amount FROM ${schema}webhook_totals WHERE tally < 10 ${tallied}) AS kept
      UNION ALL
      SELECT consumer, CASE state WHEN 0 THEN 1 ELSE state END, 0, count(*) FROM ${schema}webhook_jobs
      WHERE state < 4 GROUP BY consumer, state
      UNION ALL
      SELECT 0, 4, letters, 0 FROM (
        SELECT drawer, letters FROM ${schema}letter_totals WHERE status = 0 ${filed}) AS letters_kept
      WHERE drawer IN (${ofWebhooks})
      UNION ALL
      SELECT 0, 4, 0, count(*) FROM ${schema}webhook_jobs WHERE state = 4
    ) AS books GROUP BY consumer, kind HAVING sum(counted) <> sum(there) LIMIT 5`)
  if (differing.length > 0) throw new Error(`the counts do not balance: ${JSON.stringify(differing)}`)
}
