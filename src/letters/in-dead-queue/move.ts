/** Letters moved within and between dead queues and back into one, leased from one, and taken out by the calls of queues. */
import type { Instant } from '../../core/clock.ts'
import { type StoredContent, storable } from '../../core/content.ts'
import type { HistoryEntry } from '../../history/record.ts'
import { type Integer, sql, type Transaction } from '../../store/database.ts'
import { runGiven } from '../../store/idioms.ts'
import { at, flag, integer, orNull, type RowOf, rowShape, text } from '../../store/row.ts'
import { change } from '../change.ts'
import { type LetterId, letterId } from '../letter.ts'
import type { OfficeWork } from '../work.ts'
import { lockingAt, OURS } from './read.ts'

/** Letters that are where they were read, and either leased or not; each is found by its whole place, on letters_lying. */
const FROM_THERE = `FROM unnest($1::int[], $2::int[], $3::bigint[], $4::bigint[]) AS given (part, shelf, serial, next)
  WHERE letters.part = given.part AND letters.shelf = given.shelf AND letters.serial = given.serial`

const FREE = 'leased = 0, lease_deadline = NULL, leased_by = NULL'

/** New serial, not leased, on the queue's shelf. */
const moveToTail = sql(
  'lying.toTail',
  `UPDATE bartleby.letters SET serial = given.next, shelf = 0, ${FREE}, enqueue_at = NULL ${FROM_THERE} AND leased = $5`,
)

/** A letter in a dead queue, and the serial that it gets. */
interface TailMove {
  readonly serial: number
  readonly tail: number
}

/** Sends letters to the tail of their dead queue; gives how many were as expected. */
export const moveLyingToTail = (
  tx: Transaction,
  { part, shelf, leased }: { readonly part: number; readonly shelf: number; readonly leased: boolean },
  moves: readonly TailMove[],
): Promise<number> => {
  const rows = moves.map(({ serial, tail }) => ({ part, shelf, serial, next: tail }))
  return runGiven(tx, moveToTail, rows, leased ? 1 : 0)
}

/** The new places lie in another part. */
const moveToPart = sql(
  'lying.toPart',
  `UPDATE bartleby.letters SET part = $5, serial = given.next, ${FREE}, attempts = 0, dead_queue = $6, laid_at = $7
   ${FROM_THERE} AND leased = 1`,
)

/** Moves leased letters to another dead queue; gives how many were as expected. */
export const relocateLying = (
  tx: Transaction,
  part: number,
  moves: readonly TailMove[],
  to: { readonly part: number; readonly deadQueue: string; readonly at: Instant },
): Promise<number> => {
  const rows = moves.map(({ serial, tail }) => ({ part, shelf: 0, serial, next: tail }))
  return runGiven(tx, moveToPart, rows, to.part, to.deadQueue, to.at)
}

const moveToSchedule = sql(
  'lying.toSchedule',
  `UPDATE bartleby.letters SET shelf = 1, ${FREE}, enqueue_at = given.next ${FROM_THERE} AND leased = 1`,
)

/** Sets leased letters aside until their instants; gives how many were as expected. */
export const scheduleLying = (
  tx: Transaction,
  part: number,
  letters: readonly { readonly serial: number; readonly enqueueAt: Instant }[],
): Promise<number> =>
  runGiven(
    tx,
    moveToSchedule,
    letters.map(({ serial, enqueueAt }) => ({ part, shelf: 0, serial, next: enqueueAt })),
  )

/** By primary key. */
const layThese = sql(
  'lying.lay',
  `UPDATE bartleby.letters SET part = $3, shelf = 0, serial = given.serial, laid_at = $4, leased = 0, attempts = 0
   FROM unnest($1::bigint[], $2::bigint[]) AS given (id, serial) WHERE letters.id = given.id AND letters.part IS NULL`,
)

/** Lays pending letters that lie nowhere into a dead queue's partition, at its tail, in their order; `serials` has one for each. */
export async function layLetters(
  tx: Transaction,
  ids: readonly LetterId[],
  { part, serials, at }: { readonly part: number; readonly serials: readonly number[]; readonly at: Instant },
): Promise<void> {
  const rows = ids.map((id, i) => ({ id, serial: serials[i] }))
  await runGiven(tx, layThese, rows, part, at)
}

const MAX_CLIENT_BYTES = 1_024

/** Touches no index. A lease does not wait for letters that somebody is acting on: they are skipped. */
const leaseThese = sql(
  'lying.lease',
  `UPDATE bartleby.letters SET leased = 1, lease_deadline = $4, attempts = attempts + 1
   WHERE id = ANY(ARRAY(SELECT id FROM bartleby.letters INDEXED BY letters_lying WHERE ${OURS} AND leased = 0 FOR UPDATE SKIP LOCKED))
   RETURNING serial, attempts, encoding, kind, reference, payload`,
)

interface LeasedLetterRow extends StoredContent {
  readonly serial: Integer
  readonly attempts: Integer
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

/** A letter that left its dead queue, with where it lay. */
const LIFTED = rowShape({
  id: letterId,
  engine: text,
  leasedBy: orNull(text),
  serial: integer,
  shelf: integer,
  leased: flag,
  laidAt: at,
  leaseDeadline: orNull(at),
})
export type Lifted = RowOf<typeof LIFTED>

/** By their places, on letters_lying. */
const lockThese = sql('lying.lockToResolve', lockingAt(LIFTED.columns, 'leased >= $4'), { bigints: true })

/** What a queue call that takes letters out of a dead queue does to them. */
export interface Resolving {
  readonly act: 'complete' | 'discard'
  /** Who; null for the client that holds the lease. */
  readonly by: string | null
  /** The history rows of the runs that led to it, by serial: each doubles as the row of its letter's resolution. */
  readonly runs?: ReadonlyMap<number, HistoryEntry>
  readonly leasedOnly: boolean
  readonly shelves: readonly number[]
}

/** Resolves what is there of these letters; the counts of their dead queue are up to the caller. */
export async function resolveLying(
  work: OfficeWork,
  part: number,
  serials: readonly number[],
  { act, by, runs, shelves, leasedOnly }: Resolving,
): Promise<readonly Lifted[]> {
  if (serials.length === 0) return []
  const lifted = await LIFTED.all(work.tx, lockThese, part, serials, shelves, leasedOnly ? 1 : 0)
  const letters = lifted.map(({ id, engine, serial, leasedBy }) => ({
    id,
    engine,
    actor: by ?? leasedBy,
    run: runs?.get(serial),
  }))
  await change(work, act, letters, { actor: by, notes: null })
  return lifted
}
