/** lease, extend: give items to a client until a deadline. */
import { type Instant, later } from '../../core/clock.ts'
import { type Integer, integerList, sql, type Transaction } from '../../db/database.ts'
import { storedPayload, storedText } from '../content.ts'
import { insistOn } from '../mismatch.ts'
import type { ItemContent } from '../queue.ts'
import { formatRuns } from '../runs.ts'
import { SHELF } from '../schema.ts'

/**
 * An ended lease is offered again this much later: clients count the deadline from the moment the reply
 * reached them, and would otherwise see the item out of order.
 */
export const LEASE_GRACE_US = 7_000n

export interface LeasedRow extends ItemContent {
  readonly serial: number
  readonly attempts: number
}

/** The wire's and PostgreSQL's limit. An import may begin there; counting on would fail every lease after it. */
const MAX_ATTEMPTS = 2 ** 31 - 1

/**
 * Leases the first `$4` ready items behind serial `$2`, in order. Scans the primary key of one partition from
 * there; rows that another server is leasing are skipped. The update is heap-only (see schema.ts).
 */
const leaseReady = sql('items.lease', {
  postgres: `
    UPDATE bartleby.items SET leased = 1, lease_deadline = $5, attempts = least(attempts, ${MAX_ATTEMPTS - 1}) + 1
    WHERE part = $1 AND shelf = ${SHELF.queue} AND id = ANY(ARRAY(
      SELECT id FROM bartleby.items
      WHERE part = $1 AND shelf = ${SHELF.queue} AND id > $2 AND leased = 0 AND (expire_at IS NULL OR expire_at >= $3)
      ORDER BY part, shelf, id LIMIT $4 FOR UPDATE SKIP LOCKED))
    RETURNING id, attempts, encoding, kind, reference, payload`,
  sqlite: `
    UPDATE items SET leased = 1, lease_deadline = $5, attempts = min(attempts, ${MAX_ATTEMPTS - 1}) + 1
    WHERE id IN (
      SELECT id FROM items INDEXED BY items_in_order
      WHERE part = $1 AND shelf = ${SHELF.queue} AND id > $2 AND leased = 0 AND (expire_at IS NULL OR expire_at >= $3)
      ORDER BY id LIMIT $4)
    RETURNING id, attempts, encoding, kind, reference, payload`,
})

const insertBatch = sql(
  'leases.insert',
  'INSERT INTO bartleby.lease_batches (part, due_at, deadline, runs) VALUES ($1, $2, $3, $4)',
)

/** New deadline for leased items. Touches no index. */
const extendLeased = sql('items.extend', {
  postgres: `UPDATE bartleby.items SET lease_deadline = $3
             WHERE part = $1 AND shelf = ${SHELF.queue} AND id = ANY($2::bigint[]) AND leased = 1`,
  sqlite: `UPDATE items SET lease_deadline = $3
           WHERE part = $1 AND shelf = ${SHELF.queue} AND leased = 1 AND id IN (SELECT value FROM json_each($2))`,
})

/** Leases up to `limit` ready items with a serial greater than `after`, in ascending order. */
export async function leaseItems(
  tx: Transaction,
  part: number,
  lease: {
    readonly after: number
    readonly limit: number
    readonly now: Instant
    readonly deadline: Instant
  },
): Promise<LeasedRow[]> {
  const rows = await tx.rows<{
    id: Integer
    attempts: Integer
    encoding: Uint8Array | null
    kind: Uint8Array | null
    reference: Uint8Array | null
    payload: Uint8Array | null
  }>(leaseReady, part, lease.after, lease.now, lease.limit, lease.deadline)
  if (rows.length === 0) return []
  const leased = rows
    .map((row) => ({
      serial: Number(row.id),
      attempts: Number(row.attempts),
      encoding: storedText(row.encoding),
      kind: storedText(row.kind),
      reference: storedText(row.reference),
      payload: storedPayload(row.payload),
    }))
    .sort((a, b) => a.serial - b.serial)
  noteLease(
    tx,
    part,
    leased.map(({ serial }) => serial),
    lease.deadline,
  )
  return leased
}

/** Moves the deadline of leased items. Serials must ascend. */
export async function extendLeases(
  tx: Transaction,
  part: number,
  serials: readonly number[],
  deadline: Instant,
): Promise<void> {
  insistOn(serials.length, await tx.run(extendLeased, part, integerList(tx.dialect, serials), deadline))
  noteLease(tx, part, serials, deadline)
}

/** Leaves a note for the sweep: these leases end then. Serials must ascend. */
export function noteLease(
  tx: Transaction,
  part: number,
  serials: readonly number[],
  deadline: Instant,
): void {
  tx.atCommit(insertBatch, part, later(deadline, LEASE_GRACE_US), deadline, formatRuns(serials))
}
