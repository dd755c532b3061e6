/** Opens an audit: reads what is small, and estimates how much there is to check. */
import type { Instant } from '../../core/clock.ts'
import { readOperationKinds } from '../../history/entry.ts'
import { plainCaptureKind } from '../../history/plain-capture.ts'
import { type Integer, type Session, type Snapshot, sql } from '../../store/database.ts'
import { DAY_US } from '../numbers/counts.ts'
import { readDrawers } from '../numbers/find-drawers.ts'
import { lettersIn, readPlaceCounts, summaryOf } from '../numbers/summary.ts'
import type { Audit } from './invariant.ts'

/** Oldest and newest rows of history: two looks into the index per operation kind. */
const readHistoryEnds = sql(
  'verify.historyEnds',
  `SELECT min(first) AS first, min(since) AS since, max(last) AS last FROM (
     SELECT (SELECT min(id) FROM (SELECT id FROM bartleby.history
         WHERE series = each.id ORDER BY created_at, history.id LIMIT 1000) AS oldest) AS first,
       (SELECT min(created_at) FROM bartleby.history WHERE series = each.id) AS since,
       (SELECT id FROM bartleby.history WHERE series = each.id ORDER BY created_at DESC, history.id DESC LIMIT 1) AS last
     FROM bartleby.history_series AS each) AS ends`,
  { bigints: true },
)

const readFirstLetter = sql(
  'verify.firstLetter',
  'SELECT captured_at FROM bartleby.letters ORDER BY id LIMIT 1',
  { bigints: true },
)

/** `looked` hears of rows as they are checked. */
export async function openAudit(
  session: Snapshot,
  now: Instant,
  looked: (rows: number) => void,
): Promise<Audit> {
  const drawers = new Map((await readDrawers(session)).map((drawer) => [drawer.number, drawer]))
  const history = await historyEnds(session, now)
  // As counted; a check tells whether that is right.
  const booked = summaryOf(await readPlaceCounts(session))
  const operationKinds = await readOperationKinds(session)
  return {
    ...{ session, now, drawers, operationKinds },
    historySince: history.since,
    plainCaptureKind: plainCaptureKind(operationKinds),
    sizes: { letters: lettersIn(booked), cases: booked.unconfirmed, history: history.rows },
    async looked(rows: number) {
      looked(rows)
      // SQLite answers at once: without this a server in the same process would not get a turn.
      await new Promise((resolve) => setImmediate(resolve))
    },
  }
}

/**
 * Estimates the rows of history, and since when it has all of them. History is whole if its first row is there and no letter is much
 * older: an empty history on SQLite starts again at 1. Otherwise retention has removed the oldest, perhaps part of the oldest
 * instant, but nothing younger than a day.
 */
async function historyEnds(
  session: Session,
  now: Instant,
): Promise<{ readonly rows: number; readonly since: bigint }> {
  const [ends] = await session.rows<{ first: Integer | null; since: Integer | null; last: Integer | null }>(
    readHistoryEnds,
  )
  if (ends?.first == null || ends.since === null) return { rows: 0, since: now - DAY_US }
  const [letter] = await session.rows<{ captured_at: Integer }>(readFirstLetter)
  const oldest = BigInt(ends.since)
  const isWhole =
    Number(ends.first) === 1 && (letter === undefined || oldest - BigInt(letter.captured_at) < DAY_US)
  return {
    rows: Math.max(0, Number(ends.last) - Number(ends.first) + 1),
    since: isWhole ? 0n : oldest + 1n,
  }
}
