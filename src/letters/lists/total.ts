/** How many letters a list has: exact where counts know it, else counted one by one up to a bound that is quickly reached. */

import { setImmediate as othersTurn } from 'node:timers/promises'
import { type Database, type Integer, type Session, sql } from '../../store/database.ts'
import { DrawerLabels } from '../numbers/find-drawers.ts'
import { readCounts } from '../numbers/summary.ts'
import type { LetterTotal } from '../shapes.ts'
import { type FilterPlan, type LetterFilter, planFilter, statusesOf } from './filter.ts'
import { readStretch } from './list.ts'
import type { Position, Stretch } from './positions.ts'
import { needleOf } from './search.ts'

const MOST_COUNTED = 10_000

export async function totalOf(
  db: Database,
  filter: LetterFilter,
  labels = new DrawerLabels(),
): Promise<LetterTotal> {
  if (isInBooks(filter)) {
    const total = await db.session('letters.total', (session) => totalInBooks(session, filter, labels))
    return { total, exact: true }
  }
  const needle = filter.q === undefined ? null : needleOf(filter.q)
  return db.snapshot('letters.count', async (session) => {
    const plan = await planFilter(session, filter)
    if (plan === null) return { total: 0, exact: true }
    const isOfRanges = plan.instanceId === null && plan.correlationId === null && plan.facts === null
    return isOfRanges && needle === null ? countRanges(session, plan) : countFound(session, plan, needle)
  })
}

function isInBooks(filter: LetterFilter): boolean {
  const { instanceId, correlationId, fromDate, toDate, minAttempts, q, outcome } = filter
  return (
    [instanceId, correlationId, fromDate, toDate, minAttempts, q].every((part) => part === undefined) &&
    outcome !== 'confirmed'
  )
}

async function totalInBooks(session: Session, filter: LetterFilter, labels: DrawerLabels): Promise<number> {
  const statuses = statusesOf(filter)
  const isUnconfirmed = filter.outcome === 'unconfirmed' && statuses.length > 0
  let total = 0
  for (const { letters, unconfirmed } of await readCounts(session, filter, labels)) {
    total += isUnconfirmed ? unconfirmed : statuses.reduce((sum, status) => sum + letters[status], 0)
  }
  return total
}

/** Entries of letters_newest between two instants, status by status, at most $4. */
const countNewest = sql('letters.countNewest', {
  postgres: `SELECT count(*) AS letters FROM (
      SELECT 1 FROM unnest($1::int[]) AS lane (status) CROSS JOIN LATERAL (
        SELECT id FROM bartleby.letters WHERE status = lane.status AND last_failure_at >= $2 AND last_failure_at < $3
        ORDER BY status, last_failure_at LIMIT $4) AS sighted
      LIMIT $4) AS counted`,
  sqlite: `SELECT count(*) AS letters FROM (
      SELECT 1 FROM json_each($1) AS asked CROSS JOIN letters INDEXED BY letters_newest
      ON status = asked.value AND last_failure_at >= $2 AND last_failure_at < $3 LIMIT $4)`,
})

/** The same on letters_in_drawer, as ranges, see `scan.ts`. */
const countInDrawers = sql('letters.countInDrawers', {
  postgres: `SELECT count(*) AS letters FROM (
      SELECT 1 FROM unnest($5::int[]) AS asked (drawer) CROSS JOIN unnest($1::int[]) AS lane (status) CROSS JOIN LATERAL (
        SELECT id FROM bartleby.letters
        WHERE (drawer, status, last_failure_at) >= (asked.drawer, lane.status, $2)
          AND (drawer, status, last_failure_at) < (asked.drawer, lane.status, $3)
        ORDER BY drawer, status, last_failure_at LIMIT $4) AS sighted
      LIMIT $4) AS counted`,
  sqlite: `SELECT count(*) AS letters FROM (
      SELECT 1 FROM json_each($5) AS asked CROSS JOIN json_each($1) AS lane CROSS JOIN letters INDEXED BY letters_in_drawer
      ON drawer = asked.value AND status = lane.value AND last_failure_at >= $2 AND last_failure_at < $3 LIMIT $4)`,
})

async function countRanges(session: Session, { statuses, drawers, span }: FilterPlan): Promise<LetterTotal> {
  const range = [statuses, span.from, span.below.at, MOST_COUNTED + 1] as const
  const [row] =
    drawers === null
      ? await session.rows<{ letters: Integer }>(countNewest, ...range)
      : await session.rows<{ letters: Integer }>(countInDrawers, ...range, drawers)
  const letters = Number(row?.letters ?? 0)
  return { total: Math.min(letters, MOST_COUNTED), exact: letters <= MOST_COUNTED }
}

/** Letters per look, and the time for all looks: a text may be in few of many letters. */
const LOOK = 500
const PATIENCE_MS = 200

async function countFound(session: Session, plan: FilterPlan, needle: string | null): Promise<LetterTotal> {
  const endsAtMs = performance.now() + PATIENCE_MS
  let found = 0
  let below: Position | null = plan.span.below
  do {
    const { positions, end }: Stretch = await readStretch(session, plan, below, needle, LOOK)
    found += positions.length
    below = end
    // A look at SQLite blocks the whole server.
    await othersTurn()
  } while (below !== null && found <= MOST_COUNTED && performance.now() < endsAtMs)
  return { total: Math.min(found, MOST_COUNTED), exact: below === null && found <= MOST_COUNTED }
}
