/** Due work, found by time over all queues at once: ended leases, expired items, schedules, held items. */
import { type Instant, instant } from '../../core/clock.ts'
import { dueInDeadQueues } from '../../letters/in-dead-queue/read.ts'
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

/** Ended lease batches, oldest first, on the index of due_at. */
const dueLeases = sql(
  'due.leases',
  `SELECT id, part, deadline, runs FROM bartleby.lease_batches
   WHERE due_at < $1 AND part <> ALL($3::int[]) ORDER BY due_at LIMIT $2`,
  { bigints: true },
)

/** Expired items without a lease, on the partial index of expire_at. */
const dueExpired = sql(
  'due.expired',
  `SELECT part, id FROM bartleby.items INDEXED BY items_expiring
   WHERE shelf = ${SHELF.queue} AND expire_at IS NOT NULL AND expire_at < $1 AND leased = 0 AND part <> ALL($3::int[])
   ORDER BY expire_at LIMIT $2`,
)

/** Due schedules by time and id, on their partial index. */
const dueScheduled = sql(
  'due.scheduled',
  `SELECT part, id FROM bartleby.items INDEXED BY items_scheduled
   WHERE shelf = ${SHELF.scheduled} AND enqueue_at < $1 AND part <> ALL($3::int[]) ORDER BY enqueue_at, id LIMIT $2`,
)

/** Items without the dead queue they should go to, on the partial index of held items. */
const heldItems = sql(
  'due.held',
  `SELECT part, id FROM bartleby.items INDEXED BY items_held
   WHERE shelf = ${SHELF.held} AND part <> ALL($1::int[]) ORDER BY part, id LIMIT $2`,
)

/**
 * The next deadline of each kind up to `$1`. Without this bound the look-up would walk over the index entries of all items completed since
 * the last vacuum.
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

/** Claims lease batches; only one server gets each. */
const claimBatches = sql(
  'due.claim',
  'DELETE FROM bartleby.lease_batches WHERE id = ANY($1::bigint[]) RETURNING id',
)

/** Up to `limit` of each kind of due work, without `pausedParts`; no held items when `heldExcept` is null. */
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
    dueInDeadQueues(session, now, limit, pausedParts),
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

export async function claimLeaseBatches(tx: Transaction, batchIds: readonly number[]): Promise<Set<number>> {
  const rows = await tx.rows<{ id: Integer }>(claimBatches, batchIds)
  return new Set(rows.map((row) => Number(row.id)))
}

const toDueItem = (row: { part: Integer; id: Integer }): DueItem => ({
  part: Number(row.part),
  serial: Number(row.id),
})
