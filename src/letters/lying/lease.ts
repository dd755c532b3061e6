/** Leasing letters from a dead queue. */
import type { Instant } from '../../core/clock.ts'
import { storable } from '../../core/content.ts'
import { type Integer, sql, type Transaction } from '../../db/database.ts'
import type { LetterId } from '../letter.ts'
import { OURS } from './place.ts'

const MAX_CLIENT_BYTES = 1_024

/** Touches no index. A lease does not wait for letters that somebody is acting on: they are skipped. */
const leaseThese = sql(
  'lying.lease',
  `UPDATE bartleby.letters SET leased = 1, lease_deadline = $4, attempts = attempts + 1
   WHERE id = ANY(ARRAY(SELECT id FROM bartleby.letters INDEXED BY letters_lying WHERE ${OURS} AND leased = 0 FOR UPDATE SKIP LOCKED))
   RETURNING serial, attempts, encoding, kind, reference, payload`,
)

export interface LeasedLetterRow {
  readonly serial: Integer
  readonly attempts: Integer
  readonly encoding: Uint8Array | null
  readonly kind: Uint8Array | null
  readonly reference: Uint8Array | null
  readonly payload: Uint8Array | null
}

/** Leases those of `serials` that are still free. */
export const leaseLying = (
  tx: Transaction,
  part: number,
  serials: readonly number[],
  deadline: Instant,
): Promise<LeasedLetterRow[]> => tx.rows<LeasedLetterRow>(leaseThese, part, serials, 0, deadline)

const nameLessee = sql('lying.lessee', `UPDATE bartleby.letters SET leased_by = $4 WHERE ${OURS}`)

/** Remembers which client got these letters: it is who resolves them. */
export function noteLessee(
  tx: Transaction,
  part: number,
  serials: readonly number[],
  clientId: string,
): void {
  tx.atCommit(nameLessee, part, serials, 0, storable(clientId, MAX_CLIENT_BYTES))
}

const extendThese = sql(
  'lying.extend',
  `UPDATE bartleby.letters SET lease_deadline = $4 WHERE ${OURS} AND leased = 1`,
)

/** Moves the deadline of leased letters; gives how many there were. */
export const extendLying = (
  tx: Transaction,
  part: number,
  serials: readonly number[],
  deadline: Instant,
): Promise<number> => tx.run(extendThese, part, serials, 0, deadline)

/** One row by primary key. */
const markOne = sql('lying.markHeld', 'UPDATE bartleby.letters SET leased = $2 WHERE id = $1')

/** A locked letter that lies in no dead queue is being sent, or is not any more: what is leased is left alone by bulk work. */
export async function markHeld(tx: Transaction, id: LetterId, isHeld: boolean): Promise<void> {
  await tx.run(markOne, id, isHeld ? 1 : 0)
}
