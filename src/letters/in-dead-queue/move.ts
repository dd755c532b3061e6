/** Letters that calls of queues move within and between dead queues, lease there, or take out. */
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

/** Letters still at the position where they were read; found by the whole position, on letters_lying. */
const FROM_THERE = `FROM unnest($1::int[], $2::int[], $3::bigint[], $4::bigint[]) AS given (part, shelf, serial, next)
  WHERE letters.part = given.part AND letters.shelf = given.shelf AND letters.serial = given.serial`

const FREE = 'leased = 0, lease_deadline = NULL, leased_by = NULL'

/** A new seq, queued, not leased. */
const moveToTail = sql(
  'lying.toTail',
  `UPDATE bartleby.letters SET serial = given.next, shelf = 0, ${FREE}, enqueue_at = NULL ${FROM_THERE} AND leased = $5`,
)

interface TailMove {
  readonly serial: number
  readonly tail: number
}

/** Moves letters to the tail of their dead queue; returns how many were as expected. */
export const moveLettersToTail = (
  tx: Transaction,
  { part, shelf, leased }: { readonly part: number; readonly shelf: number; readonly leased: boolean },
  moves: readonly TailMove[],
): Promise<number> => {
  const rows = moves.map(({ serial, tail }) => ({ part, shelf, serial, next: tail }))
  return runGiven(tx, moveToTail, rows, leased ? 1 : 0)
}

const moveToPart = sql(
  'lying.toPart',
  `UPDATE bartleby.letters SET part = $5, serial = given.next, ${FREE}, attempts = 0, dead_queue = $6, laid_at = $7
   ${FROM_THERE} AND leased = 1`,
)

/** Moves leased letters to another dead queue; returns how many were as expected. */
export const relocateLetters = (
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

/** Schedules leased letters; returns how many were as expected. */
export const scheduleLetters = (
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
const enterThese = sql(
  'lying.lay',
  `UPDATE bartleby.letters SET part = $3, shelf = 0, serial = given.serial, laid_at = $4, leased = 0, attempts = 0
   FROM unnest($1::bigint[], $2::bigint[]) AS given (id, serial) WHERE letters.id = given.id AND letters.part IS NULL`,
)

/** Puts pending letters at the tail of a dead queue's partition, in order. */
export async function enterDeadQueue(
  tx: Transaction,
  ids: readonly LetterId[],
  { part, serials, at }: { readonly part: number; readonly serials: readonly number[]; readonly at: Instant },
): Promise<void> {
  const rows = ids.map((id, i) => ({ id, serial: serials[i] }))
  await runGiven(tx, enterThese, rows, part, at)
}

const MAX_CLIENT_BYTES = 1_024

/** Touches no index. Skips letters that somebody acts on instead of waiting for them. */
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

export const leaseLetters = (
  tx: Transaction,
  part: number,
  serials: readonly number[],
  deadline: Instant,
): Promise<LeasedLetterRow[]> => tx.rows<LeasedLetterRow>(leaseThese, part, serials, 0, deadline)

const nameLessee = sql('lying.lessee', `UPDATE bartleby.letters SET leased_by = $4 WHERE ${OURS}`)

/** Remembers the client that got these letters: history names it as who resolves them. */
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

/** Extends leases; returns how many there were. */
export const extendLetterLeases = (
  tx: Transaction,
  part: number,
  serials: readonly number[],
  deadline: Instant,
): Promise<number> => tx.run(extendThese, part, serials, 0, deadline)

/** By primary key. */
const markOne = sql('lying.markHeld', 'UPDATE bartleby.letters SET leased = $2 WHERE id = $1')

/** Marks a locked letter outside dead queues as being sent, or not any more: bulk work leaves leased letters alone. */
export async function markHeld(tx: Transaction, id: LetterId, isHeld: boolean): Promise<void> {
  await tx.run(markOne, id, isHeld ? 1 : 0)
}

/** A letter that left its dead queue, with its former position. */
const DEPARTED = rowShape({
  id: letterId,
  engine: text,
  leasedBy: orNull(text),
  serial: integer,
  shelf: integer,
  leased: flag,
  laidAt: at,
  leaseDeadline: orNull(at),
})
export type DepartedLetter = RowOf<typeof DEPARTED>

const lockThese = sql('lying.lockToResolve', lockingAt(DEPARTED.columns, 'leased >= $4'), { bigints: true })

/** A queue call that takes letters out of a dead queue. */
export interface Resolving {
  readonly act: 'complete' | 'discard'
  /** null: the client that holds the lease. */
  readonly by: string | null
  /** History rows of runs by seq; each doubles as that of the resolution. */
  readonly runs?: ReadonlyMap<number, HistoryEntry>
  readonly leasedOnly: boolean
  readonly shelves: readonly number[]
}

/** Resolves those of the letters that are there; the caller changes the counts of the dead queue. */
export async function resolveInDeadQueue(
  work: OfficeWork,
  part: number,
  serials: readonly number[],
  { act, by, runs, shelves, leasedOnly }: Resolving,
): Promise<readonly DepartedLetter[]> {
  if (serials.length === 0) return []
  const lifted = await DEPARTED.all(work.tx, lockThese, part, serials, shelves, leasedOnly ? 1 : 0)
  const letters = lifted.map(({ id, engine, serial, leasedBy }) => ({
    id,
    engine,
    actor: by ?? leasedBy,
    run: runs?.get(serial),
  }))
  await change(work, act, letters, { actor: by, notes: null })
  return lifted
}
