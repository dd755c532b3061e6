/** Moving letters within and between dead queues, and back into one. */
import type { Instant } from '../../core/clock.ts'
import { integerList, sql, type Transaction } from '../../db/database.ts'
import type { LetterId } from '../letter.ts'

/**
 * What goes with each letter is found by its place in the list of serials, which is in ascending order. A join with the
 * unnested lists would be left to the planner, which on a table without statistics reads all that lies in the part.
 */
const placeIn = (serials: string): string => `width_bucket(letter.serial, ${serials}::bigint[])`

/** Rewrites the place of letters that are as they were read: new serial, not leased, on the queue's shelf. */
const moveToTail = sql('lying.toTail', {
  postgres: `
    UPDATE bartleby.letters AS letter SET serial = ($4::bigint[])[${placeIn('$2')}], shelf = 0, leased = 0,
      lease_deadline = NULL, enqueue_at = NULL, leased_by = NULL
    WHERE letter.part = $1 AND letter.shelf = $3 AND letter.serial = ANY($2::bigint[]) AND letter.leased = $5`,
  sqlite: `UPDATE letters SET serial = $4, shelf = 0, leased = 0, lease_deadline = NULL, enqueue_at = NULL, leased_by = NULL
           WHERE part = $1 AND shelf = $3 AND serial = $2 AND leased = $5`,
})

/** Sends letters to the tail of their dead queue; gives how many were as expected. */
export async function moveLyingToTail(
  tx: Transaction,
  from: { readonly part: number; readonly shelf: number; readonly leased: boolean },
  moves: readonly { readonly serial: number; readonly tail: number }[],
): Promise<number> {
  const leased = from.leased ? 1 : 0
  if (tx.dialect === 'postgres') {
    const ordered = moves.toSorted((a, b) => a.serial - b.serial)
    const serials = integerList(
      tx.dialect,
      ordered.map(({ serial }) => serial),
    )
    const tails = integerList(
      tx.dialect,
      ordered.map(({ tail }) => tail),
    )
    return tx.run(moveToTail, from.part, serials, from.shelf, tails, leased)
  }
  let moved = 0
  for (const { serial, tail } of moves)
    moved += await tx.run(moveToTail, from.part, serial, from.shelf, tail, leased)
  return moved
}

/** By their places; the new ones lie in another part. */
const moveToPart = sql('lying.toPart', {
  postgres: `
    UPDATE bartleby.letters AS letter SET part = $4, serial = ($3::bigint[])[${placeIn('$2')}], leased = 0,
      lease_deadline = NULL, attempts = 0, leased_by = NULL, dead_queue = $5, laid_at = $6
    WHERE letter.part = $1 AND letter.shelf = 0 AND letter.serial = ANY($2::bigint[]) AND letter.leased = 1`,
  sqlite: `UPDATE letters SET part = $4, serial = $3, leased = 0, lease_deadline = NULL, attempts = 0, leased_by = NULL,
             dead_queue = $5, laid_at = $6
           WHERE part = $1 AND shelf = 0 AND serial = $2 AND leased = 1`,
})

/** Moves leased letters to another dead queue; gives how many were as expected. */
export async function relocateLying(
  tx: Transaction,
  part: number,
  moves: readonly { readonly serial: number; readonly tail: number }[],
  to: { readonly part: number; readonly deadQueue: string; readonly at: Instant },
): Promise<number> {
  if (tx.dialect === 'postgres') {
    const ordered = moves.toSorted((a, b) => a.serial - b.serial)
    const serials = integerList(
      tx.dialect,
      ordered.map(({ serial }) => serial),
    )
    const tails = integerList(
      tx.dialect,
      ordered.map(({ tail }) => tail),
    )
    return tx.run(moveToPart, part, serials, tails, to.part, to.deadQueue, to.at)
  }
  let moved = 0
  for (const { serial, tail } of moves)
    moved += await tx.run(moveToPart, part, serial, tail, to.part, to.deadQueue, to.at)
  return moved
}

const moveToSchedule = sql('lying.toSchedule', {
  postgres: `
    UPDATE bartleby.letters AS letter SET shelf = 1, leased = 0, lease_deadline = NULL, leased_by = NULL,
      enqueue_at = ($3::bigint[])[${placeIn('$2')}]
    WHERE letter.part = $1 AND letter.shelf = 0 AND letter.serial = ANY($2::bigint[]) AND letter.leased = 1`,
  sqlite: `UPDATE letters SET shelf = 1, leased = 0, lease_deadline = NULL, leased_by = NULL, enqueue_at = $3
           WHERE part = $1 AND shelf = 0 AND serial = $2 AND leased = 1`,
})

/** Sets leased letters aside until their instants; gives how many were as expected. */
export async function scheduleLying(
  tx: Transaction,
  part: number,
  letters: readonly { readonly serial: number; readonly enqueueAt: Instant }[],
): Promise<number> {
  if (tx.dialect === 'postgres') {
    const ordered = letters.toSorted((a, b) => a.serial - b.serial)
    const serials = integerList(
      tx.dialect,
      ordered.map(({ serial }) => serial),
    )
    const instants = `{${ordered.map(({ enqueueAt }) => enqueueAt).join(',')}}`
    return tx.run(moveToSchedule, part, serials, instants)
  }
  let moved = 0
  for (const { serial, enqueueAt } of letters) moved += await tx.run(moveToSchedule, part, serial, enqueueAt)
  return moved
}

const layThis = sql(
  'lying.lay',
  `UPDATE bartleby.letters SET part = $2, shelf = 0, serial = $3, laid_at = $4, leased = 0, attempts = 0 WHERE id = $1`,
)

/** Lays a pending letter into a dead queue's partition. */
export async function layLetter(
  tx: Transaction,
  id: LetterId,
  place: { readonly part: number; readonly serial: number; readonly at: Instant },
): Promise<void> {
  await tx.run(layThis, id, place.part, place.serial, place.at)
}
