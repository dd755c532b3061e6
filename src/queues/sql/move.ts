/** Moves of items and of lying letters within their queue: to the tail, onto another shelf. */
import type { Instant } from '../../core/clock.ts'
import { sql, type Transaction } from '../../db/database.ts'
import { givenByKey, givenWith } from '../../db/idioms.ts'
import { moveLyingToTail, scheduleLying } from '../../letters/lying/move.ts'
import { insistOn } from '../cycle.ts'
import { allocateSerials } from '../records.ts'
import { SHELF } from '../schema.ts'
import type { ItemFacts } from './inspect.ts'

/** Items of a list that are still as they were read: not leased anew, their lease not extended. `given` has their deadlines first. */
const asRead = (serials: string, leased: string, given: string): string =>
  `item.id = ANY(${serials}::bigint[]) AND item.leased = ${leased}
   AND coalesce(item.lease_deadline, 0) = ${givenWith('item.id', given, 0)}::bigint`

/** Un-leases items and gives them new serials at the tail of the queue. By primary key. */
const moveToTail = sql('items.toTail', {
  postgres: `
    UPDATE bartleby.items AS item
    SET id = ${givenWith('item.id', '$3', 1)}::bigint, shelf = ${SHELF.queue}, leased = 0, lease_deadline = NULL, enqueue_at = NULL
    WHERE item.part = $1 AND item.shelf = $4 AND ${asRead('$2', '$5', '$3')}`,
  sqlite: `UPDATE items SET id = $3, shelf = ${SHELF.queue}, leased = 0, lease_deadline = NULL, enqueue_at = NULL
           WHERE part = $1 AND id = $2 AND shelf = $4 AND leased = $5`,
})

/** Un-leases items and puts them on the scheduled shelf, where they keep their serials. */
const moveToSchedule = sql('items.toSchedule', {
  postgres: `
    UPDATE bartleby.items AS item
    SET shelf = ${SHELF.scheduled}, leased = 0, lease_deadline = NULL, enqueue_at = ${givenWith('item.id', '$3', 1)}::bigint
    WHERE item.part = $1 AND item.shelf = ${SHELF.queue} AND ${asRead('$2', '1', '$3')}`,
  sqlite: `UPDATE items SET shelf = ${SHELF.scheduled}, leased = 0, lease_deadline = NULL, enqueue_at = $3
           WHERE part = $1 AND id = $2 AND shelf = ${SHELF.queue} AND leased = 1`,
})

/** Un-leases items that should die and cannot, and keeps them from being leased. */
const moveToHeld = sql(
  'items.toHeld',
  `UPDATE bartleby.items SET shelf = ${SHELF.held}, leased = 0, lease_deadline = NULL
   WHERE part = $1 AND shelf = ${SHELF.queue} AND id = ANY($2::bigint[])`,
)

/** Items that leave for good because their letter takes their place. By primary key. */
const takeRelapsed = sql('items.takeRelapsed', {
  postgres: `DELETE FROM bartleby.items AS item WHERE item.part = $1 AND item.shelf = $2 AND ${asRead('$3', '$4', '$5')}`,
  sqlite: `DELETE FROM items WHERE part = $1 AND shelf = $2 AND id IN (SELECT value FROM json_each($3)) AND leased = $4 AND $5 IS NOT NULL`,
})

/** An item as it was read: one whose deadline was moved meanwhile makes the move fail, because sums would be off. */
export type Moving = Pick<ItemFacts, 'serial' | 'leaseDeadline' | 'isLetter'>

/** Where the items of one move lie, and whether they are leased: on anything else the move fails. */
export interface Origin {
  readonly part: number
  readonly shelf: number
  readonly leased: boolean
}

/** Sends items to the tail, in the order given; returns their new serials. */
export async function sendToTail(tx: Transaction, from: Origin, items: readonly Moving[]): Promise<number[]> {
  const tail = await allocateSerials(tx, items.length)
  await placeAtTail(tx, from, items, tail)
  return tail
}

/** Gives items the serials in `tail`, which were taken for them. */
export async function placeAtTail(
  tx: Transaction,
  { part, shelf, leased }: Origin,
  items: readonly Moving[],
  tail: readonly number[],
): Promise<void> {
  const mark = leased ? 1 : 0
  const all = items.map((item, i) => ({ ...item, to: tail[i] ?? 0 }))
  const letters = all.filter((move) => move.isLetter).map(({ serial, to }) => ({ serial, tail: to }))
  if (letters.length > 0)
    insistOn(letters.length, await moveLyingToTail(tx, { part, shelf, leased }, letters))
  if (letters.length === all.length) return
  const others = all.filter((move) => !move.isLetter)
  if (tx.dialect === 'postgres') {
    const given = givenByKey(others, ({ serial, to, ...item }) => [serial, [deadlineOf(item), to]])
    const moved = await tx.run(moveToTail, part, serialsOf(others), given, shelf, mark)
    insistOn(others.length, moved)
  } else {
    await tx.runEach(
      moveToTail,
      others.map(({ serial, to }) => [part, serial, to, shelf, mark]),
    )
  }
}

/** Puts leased items on the scheduled shelf until the instant beside each. */
export async function scheduleItems(
  tx: Transaction,
  part: number,
  items: readonly (Moving & { readonly enqueueAt: Instant })[],
): Promise<void> {
  const letters = items.filter((item) => item.isLetter)
  if (letters.length > 0) insistOn(letters.length, await scheduleLying(tx, part, letters))
  const others = items.filter((item) => !item.isLetter)
  if (others.length === 0) return
  if (tx.dialect === 'postgres') {
    const given = givenByKey(others, (item) => [item.serial, [deadlineOf(item), `${item.enqueueAt}`]])
    const moved = await tx.run(moveToSchedule, part, serialsOf(others), given)
    insistOn(others.length, moved)
  } else {
    await tx.runEach(
      moveToSchedule,
      others.map((item) => [part, item.serial, item.enqueueAt]),
    )
  }
}

const uncountDelivery = sql(
  'items.uncountDelivery',
  `UPDATE bartleby.items SET attempts = attempts - 1
   WHERE part = $1 AND shelf = ${SHELF.queue} AND id = ANY($2::bigint[]) AND attempts > 0`,
)

/** Their latest delivery does not count: it ended without anybody having worked on them. */
export async function takeBackAttempts(
  tx: Transaction,
  part: number,
  serials: readonly number[],
): Promise<void> {
  await tx.run(uncountDelivery, part, serials)
}

/** Puts queued items on the held shelf. */
export async function holdItems(tx: Transaction, part: number, serials: readonly number[]): Promise<void> {
  await tx.run(moveToHeld, part, serials)
}

/** Removes items whose letters are reopened; all of them must be as they were read. */
export async function removeRelapsed(tx: Transaction, from: Origin, items: readonly Moving[]): Promise<void> {
  const deadlines = givenByKey(items, (item) => [item.serial, [deadlineOf(item)]])
  const mark = from.leased ? 1 : 0
  const removed = await tx.run(takeRelapsed, from.part, from.shelf, serialsOf(items), mark, deadlines)
  insistOn(items.length, removed)
}

export const serialsOf = (items: readonly Moving[]): number[] => items.map(({ serial }) => serial)

/** As text: JSON numbers would lose the digits beyond 2^53. */
export const deadlineOf = ({ leaseDeadline }: Pick<Moving, 'leaseDeadline'>): string =>
  String(leaseDeadline ?? 0n)
