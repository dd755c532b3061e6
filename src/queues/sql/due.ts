/** What is due: ended leases, expired items, schedules, held items. Found by time, over all queues at once. */
import { type Instant, instant } from '../../core/clock.ts'
import { dueLying } from '../../letters/in-dead-queue/read.ts'
import { type Integer, type Session, sql, type Transaction } from '../../store/database.ts'
import { at, orNull } from '../../store/row.ts'
import { SHELF } from '../schema.ts'

export interface DueBatch {
  readonly batchId: number
  readonly part: number
  readonly deadline: Instant
  readonly runs: string
}

export interface DueItem {
  readonly part: number
  readonly serial: number
}

export interface DueWork {
  readonly leases: readonly DueBatch[]
  readonly expired: readonly DueItem[]
  readonly scheduled: readonly DueItem[]
  readonly held: readonly DueItem[]
}

/** Lease batches whose time is over, oldest first, on the index of due_at. */
const dueLeases = sql(
  'due.leases',
  `SELECT id, part, deadline, runs FROM bartleby.lease_batches
   WHERE due_at < $1 AND part <> ALL($3::int[]) ORDER BY due_at LIMIT $2`,
  { bigints: true },
)

/** Un-leased items past their deadline, on the partial index of expire_at. */
const dueExpired = sql(
  'due.expired',
  `SELECT part, id FROM bartleby.items INDEXED BY items_expiring
   WHERE shelf = ${SHELF.queue} AND expire_at IS NOT NULL AND expire_at < $1 AND leased = 0 AND part <> ALL($3::int[])
   ORDER BY expire_at LIMIT $2`,
)

/** Scheduled items whose time has come, by time and then id, on their partial index. */
const dueScheduled = sql(
  'due.scheduled',
  `SELECT part, id FROM bartleby.items INDEXED BY items_scheduled
   WHERE shelf = ${SHELF.scheduled} AND enqueue_at < $1 AND part <> ALL($3::int[]) ORDER BY enqueue_at, id LIMIT $2`,
)

/** Items that could not be moved to their dead queue, on the partial index of held items. */
const heldItems = sql(
  'due.held',
  `SELECT part, id FROM bartleby.items INDEXED BY items_held
   WHERE shelf = ${SHELF.held} AND part <> ALL($1::int[]) ORDER BY part, id LIMIT $2`,
)

/**
 * The next deadline of each kind below `$1`. Bounded above on purpose: without the bound the look-up would
 * walk over the index entries of all items that were completed since the last vacuum.
 */
const nextDeadline = sql(
  'due.next',
  `SELECT min(at) AS at FROM (
     SELECT * FROM (SELECT due_at AS at FROM bartleby.lease_batches WHERE due_at <= $1 ORDER BY due_at LIMIT 1) AS a
     UNION ALL
     SELECT * FROM (SELECT expire_at AS at FROM bartleby.items
       WHERE shelf = ${SHELF.queue} AND expire_at IS NOT NULL AND expire_at <= $1 AND leased = 0 ORDER BY expire_at LIMIT 1) AS b
     UNION ALL
     SELECT * FROM (SELECT enqueue_at AS at FROM bartleby.items
       WHERE shelf = ${SHELF.scheduled} AND enqueue_at <= $1 ORDER BY enqueue_at LIMIT 1) AS c
     UNION ALL
     SELECT * FROM (SELECT enqueue_at AS at FROM bartleby.letters
       WHERE shelf = ${SHELF.scheduled} AND enqueue_at <= $1 ORDER BY enqueue_at LIMIT 1) AS d
   ) AS soonest`,
  { bigints: true },
)

/** Takes lease batches off the list; of several servers only one gets each. */
const claimBatches = sql(
  'due.claim',
  'DELETE FROM bartleby.lease_batches WHERE id = ANY($1::bigint[]) RETURNING id',
)

/** Up to `limit` of each kind of due work; `pausedParts` are left alone, and held items when `heldExcept` is null. */
export async function findDue(
  session: Session,
  now: Instant,
  options: {
    readonly limit: number
    readonly pausedParts: readonly number[]
    readonly heldExcept: readonly number[] | null
  },
): Promise<DueWork> {
  const { limit, pausedParts, heldExcept } = options
  const unheld = heldExcept && [...pausedParts, ...heldExcept]
  const [leases, expired, scheduled, held, letters] = await Promise.all([
    session.rows<{ id: Integer; part: Integer; deadline: Integer; runs: string }>(
      dueLeases,
      now,
      limit,
      pausedParts,
    ),
    session.rows<{ part: Integer; id: Integer }>(dueExpired, now, limit, pausedParts),
    session.rows<{ part: Integer; id: Integer }>(dueScheduled, now, limit, pausedParts),
    unheld === null ? [] : session.rows<{ part: Integer; id: Integer }>(heldItems, unheld, limit),
    dueLying(session, now, limit, pausedParts),
  ])
  return {
    leases: leases.map((row) => ({
      batchId: Number(row.id),
      part: Number(row.part),
      deadline: instant(BigInt(row.deadline)),
      runs: row.runs,
    })),
    expired: expired.map(toDueItem),
    scheduled: [...scheduled.map(toDueItem), ...letters],
    held: held.map(toDueItem),
  }
}

export async function findNextDeadline(session: Session, horizon: Instant): Promise<Instant | null> {
  const [row] = await session.rows<{ at: Integer | null }>(nextDeadline, horizon)
  return orNull(at)(row?.at ?? null)
}

/** Claims lease batches for sweeping; gives the ids that were still there. */
export async function claimLeaseBatches(tx: Transaction, batchIds: readonly number[]): Promise<Set<number>> {
  const rows = await tx.rows<{ id: Integer }>(claimBatches, batchIds)
  return new Set(rows.map((row) => Number(row.id)))
}

const toDueItem = (row: { part: Integer; id: Integer }): DueItem => ({
  part: Number(row.part),
  serial: Number(row.id),
})
