/** Moving letters within and between dead queues, and back into one. */
import type { Instant } from '../../core/clock.ts'
import { type Statement, sql, type Transaction, type Value } from '../../db/database.ts'
import type { LetterId } from '../letter.ts'

/**
 * Rewrites the places of letters; `$1` is the part, `$2` what they are found by, ascending, `$3` what goes with each. On PostgreSQL that
 * is found by the letter's place in the list: a join with the unnested lists would be left to the planner, which on a table without
 * statistics reads all that lies in the part. SQLite takes one letter after the other.
 */
const moving = (
  name: string,
  key: 'serial' | 'id',
  set: (given: string) => string,
  where: string,
): Statement =>
  sql(name, {
    postgres: `UPDATE bartleby.letters SET ${set(`($3::bigint[])[width_bucket(${key}, $2::bigint[])]`)}
               WHERE ${key} = ANY($2::bigint[]) AND ${where}`,
    sqlite: `UPDATE letters SET ${set('$3')} WHERE ${key} = $2 AND ${where}`,
  })

/** A letter and what goes with it. */
type Move = readonly [key: number | bigint, given: number | bigint]

/** Gives how many were as expected. */
async function moveEach(
  tx: Transaction,
  statement: Statement,
  part: number,
  moves: readonly Move[],
  ...values: readonly Value[]
): Promise<number> {
  if (tx.dialect === 'postgres') {
    const ordered = moves.toSorted(([a], [b]) => (a < b ? -1 : 1))
    const [keys, given] = [ordered.map(([key]) => key), ordered.map(([, each]) => each)]
    return tx.run(statement, part, keys, given, ...values)
  }
  let moved = 0
  for (const [key, given] of moves) moved += await tx.run(statement, part, key, given, ...values)
  return moved
}

const FREE = 'leased = 0, lease_deadline = NULL, leased_by = NULL'

/** Letters that are as they were read: new serial, not leased, on the queue's shelf. */
const moveToTail = moving(
  'lying.toTail',
  'serial',
  (tail) => `serial = ${tail}, shelf = 0, ${FREE}, enqueue_at = NULL`,
  'part = $1 AND shelf = $4 AND leased = $5',
)

/** A letter in a dead queue, and the serial that it gets. */
export interface TailMove {
  readonly serial: number
  readonly tail: number
}

const tailsOf = (moves: readonly TailMove[]): Move[] => moves.map(({ serial, tail }) => [serial, tail])

/** Sends letters to the tail of their dead queue; gives how many were as expected. */
export const moveLyingToTail = (
  tx: Transaction,
  { part, shelf, leased }: { readonly part: number; readonly shelf: number; readonly leased: boolean },
  moves: readonly TailMove[],
): Promise<number> => moveEach(tx, moveToTail, part, tailsOf(moves), shelf, leased ? 1 : 0)

/** By their places; the new ones lie in another part. */
const moveToPart = moving(
  'lying.toPart',
  'serial',
  (tail) => `part = $4, serial = ${tail}, ${FREE}, attempts = 0, dead_queue = $5, laid_at = $6`,
  'part = $1 AND shelf = 0 AND leased = 1',
)

/** Moves leased letters to another dead queue; gives how many were as expected. */
export const relocateLying = (
  tx: Transaction,
  part: number,
  moves: readonly TailMove[],
  to: { readonly part: number; readonly deadQueue: string; readonly at: Instant },
): Promise<number> => moveEach(tx, moveToPart, part, tailsOf(moves), to.part, to.deadQueue, to.at)

const moveToSchedule = moving(
  'lying.toSchedule',
  'serial',
  (enqueueAt) => `shelf = 1, ${FREE}, enqueue_at = ${enqueueAt}`,
  'part = $1 AND shelf = 0 AND leased = 1',
)

/** Sets leased letters aside until their instants; gives how many were as expected. */
export const scheduleLying = (
  tx: Transaction,
  part: number,
  letters: readonly { readonly serial: number; readonly enqueueAt: Instant }[],
): Promise<number> =>
  moveEach(
    tx,
    moveToSchedule,
    part,
    letters.map(({ serial, enqueueAt }) => [serial, enqueueAt]),
  )

/** By primary key. */
const layThese = moving(
  'lying.lay',
  'id',
  (serial) => `part = $1, shelf = 0, serial = ${serial}, laid_at = $4, leased = 0, attempts = 0`,
  'part IS NULL',
)

/** Lays pending letters that lie nowhere into a dead queue's partition, at its tail, in their order; `serials` has one for each. */
export async function layLetters(
  tx: Transaction,
  ids: readonly LetterId[],
  { part, serials, at }: { readonly part: number; readonly serials: readonly number[]; readonly at: Instant },
): Promise<void> {
  const moves = ids.map((id, i): Move => [id, serials[i] ?? 0])
  await moveEach(tx, layThese, part, moves, at)
}
