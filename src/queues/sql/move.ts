/** Moves of items and letters within their queue: to the tail, or onto another shelf. */
import type { Instant } from '../../core/clock.ts'
import { moveLettersToTail, scheduleLetters } from '../../letters/in-dead-queue/move.ts'
import { sql, type Transaction } from '../../store/database.ts'
import { runGiven } from '../../store/idioms.ts'
import { insistOn } from '../cycles/cycle.ts'
import { allocateSerials } from '../records.ts'
import { SHELF } from '../schema.ts'
import type { ItemFacts } from './inspect.ts'

/** Items of a part and a shelf, still as they were read: the lease was not extended. */
const THERE = `WHERE item.part = $3 AND item.shelf = $4 AND item.leased = $5 AND item.id = ANY($1::bigint[])
  AND coalesce(item.lease_deadline, 0) = given.deadline`

/** Un-leases items and gives them serials at the tail. By primary key. */
const moveToTail = sql(
  'items.toTail',
  `UPDATE bartleby.items AS item SET id = given.tail, shelf = ${SHELF.queue}, leased = 0, lease_deadline = NULL, enqueue_at = NULL
   ${THERE}`,
  { under: ['item.id', 'deadline', 'tail'] },
)

/** Un-leases items and schedules them; they keep their serials. */
const moveToSchedule = sql(
  'items.toSchedule',
  `UPDATE bartleby.items AS item SET shelf = ${SHELF.scheduled}, leased = 0, lease_deadline = NULL, enqueue_at = given.enqueue_at
   ${THERE}`,
  { under: ['item.id', 'deadline', 'enqueue_at'] },
)

/** Un-leases items that should die and cannot. */
const moveToHeld = sql(
  'items.toHeld',
  `UPDATE bartleby.items SET shelf = ${SHELF.held}, leased = 0, lease_deadline = NULL
   WHERE part = $1 AND shelf = ${SHELF.queue} AND id = ANY($2::bigint[])`,
)

/** Removes items whose letters take their place. By primary key. */
const takeReopened = sql('items.takeRelapsed', `DELETE FROM bartleby.items AS item ${THERE}`, {
  under: ['item.id', 'deadline'],
})

/** An item as it was read. A deadline moved meanwhile fails the move, because sums would be off. */
export type Moving = Pick<ItemFacts, 'serial' | 'leaseDeadline' | 'isLetter'>

/** Where moving items are; anything else fails the move. */
export interface Origin {
  readonly part: number
  readonly shelf: number
  readonly leased: boolean
}

/** Sends items to the tail in order; gives their new serials. */
export async function sendToTail(tx: Transaction, from: Origin, items: readonly Moving[]): Promise<number[]> {
  const tail = await allocateSerials(tx, items.length)
  await placeAtTail(tx, from, items, tail)
  return tail
}

/** Gives items the serials in `tail`. */
export async function placeAtTail(
  tx: Transaction,
  { part, shelf, leased }: Origin,
  items: readonly Moving[],
  tail: readonly number[],
): Promise<void> {
  const all = items.map((item, i) => ({ ...item, to: tail[i] ?? 0 }))
  const letters = all.filter((move) => move.isLetter).map(({ serial, to }) => ({ serial, tail: to }))
  if (letters.length > 0)
    insistOn(letters.length, await moveLettersToTail(tx, { part, shelf, leased }, letters))
  if (letters.length === all.length) return
  const moves = all
    .filter((move) => !move.isLetter)
    .map((item) => ({ id: item.serial, deadline: deadlineOf(item), tail: item.to }))
  insistOn(moves.length, await runGiven(tx, moveToTail, moves, part, shelf, leased ? 1 : 0))
}

export async function scheduleItems(
  tx: Transaction,
  part: number,
  items: readonly (Moving & { readonly enqueueAt: Instant })[],
): Promise<void> {
  const letters = items.filter((item) => item.isLetter)
  if (letters.length > 0) insistOn(letters.length, await scheduleLetters(tx, part, letters))
  const moves = items
    .filter((item) => !item.isLetter)
    .map((item) => ({ id: item.serial, deadline: deadlineOf(item), enqueue_at: item.enqueueAt }))
  insistOn(moves.length, await runGiven(tx, moveToSchedule, moves, part, SHELF.queue, 1))
}

const uncountDelivery = sql(
  'items.uncountDelivery',
  `UPDATE bartleby.items SET attempts = attempts - 1
   WHERE part = $1 AND shelf = ${SHELF.queue} AND id = ANY($2::bigint[]) AND attempts > 0`,
)

/** Uncounts a delivery that nobody worked on. */
export async function takeBackAttempts(
  tx: Transaction,
  part: number,
  serials: readonly number[],
): Promise<void> {
  await tx.run(uncountDelivery, part, serials)
}

export async function holdItems(tx: Transaction, part: number, serials: readonly number[]): Promise<void> {
  await tx.run(moveToHeld, part, serials)
}

/** Removes items whose letters are reopened; all must be as they were read. */
export async function removeReopened(tx: Transaction, from: Origin, items: readonly Moving[]): Promise<void> {
  const rows = items.map((item) => ({ id: item.serial, deadline: deadlineOf(item) }))
  insistOn(items.length, await runGiven(tx, takeReopened, rows, from.part, from.shelf, from.leased ? 1 : 0))
}

const deadlineOf = ({ leaseDeadline }: Moving): bigint => leaseDeadline ?? 0n
