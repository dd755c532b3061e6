/**
 * How much waits in an outbox, read from the small indexes of its table: it costs what the backlog costs to count, whatever
 * the number of processed rows. A million rows take some 100 ms where vacuum has been, and ten times that before.
 */
import type { Instant } from '../core/clock.ts'
import type { Integer, Session, Statement } from '../db/database.ts'
import { type Layout, perLayout, type Stored } from './layout.ts'

export interface Backlog {
  /** Messages that are still to be delivered. */
  readonly backlog: number
  /** Those of them that have failed before. */
  readonly failedPending: number
  /** The age of the oldest of them; 0 when there is none. */
  readonly oldestAgeSeconds: number
  /** Messages that nobody tries to deliver any more. */
  readonly dead: number
}

type BacklogRow = Stored<Omit<Backlog, 'oldestAgeSeconds'>> & { readonly oldest: Integer | null }

/** A row that waits although delivering it has failed. */
export const failedOf = ({ c, pending }: Layout): string => `${c.retryCount} > 0 AND ${pending}`

/** A row that was given up; one that was discarded afterwards counts as processed. */
export const deadOf = ({ c }: Layout): string => `${c.deadAt} IS NOT NULL AND ${c.processedAt} IS NULL`

/**
 * Counts in one statement, so that all numbers are of one moment. What waits and what is dead are read from their indexes
 * alone, and grow with these; the conditions stand here in the words of the indexes. What has failed is looked for among the
 * rows that wait.
 */
export const backlogStatementOf = perLayout((layout): Statement => {
  const { c, sqlTable: table } = layout
  return layout.statement(
    'backlog',
    `SELECT waiting.backlog, waiting.oldest, failed.failed AS "failedPending", dead.dead
     FROM (SELECT count(*) AS backlog, ${layout.finiteMicros('createdAt', `min(${c.createdAt})`)} AS oldest
           FROM ${table} WHERE ${layout.pending}) AS waiting
     CROSS JOIN (SELECT count(*) AS failed FROM ${table} WHERE ${failedOf(layout)}) AS failed
     CROSS JOIN (SELECT count(*) AS dead FROM ${table} WHERE ${deadOf(layout)}) AS dead`,
    { bigints: true },
  )
})

/** Counts what waits, what has failed and what is dead. Ages are up to `now`. */
export async function readBacklog(session: Session, layout: Layout, now: Instant): Promise<Backlog> {
  const [row] = await session.rows<BacklogRow>(backlogStatementOf(layout))
  if (row === undefined) throw new Error('a count gave no row')
  const { oldest } = row
  return {
    backlog: Number(row.backlog),
    failedPending: Number(row.failedPending),
    // Clocks of other machines may be ahead.
    oldestAgeSeconds: oldest === null ? 0 : Math.max(0, Number(now - BigInt(oldest)) / 1e6),
    dead: Number(row.dead),
  }
}
