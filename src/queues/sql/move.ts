/** Moves of items that stay in the store: to the tail, onto another shelf, into a dead queue. */
import type { Instant } from '../../core/clock.ts'
import { KSUID_LENGTH } from '../../core/ksuid.ts'
import { type Integer, integerList, sql, type Transaction } from '../../db/database.ts'
import { insistOn } from '../mismatch.ts'
import { DEATH_REASONS, type DeathReason } from '../queue.ts'
import { SHELF } from '../schema.ts'
import type { ItemFacts } from './inspect.ts'
import { allocateSerials } from './serials.ts'

/*
 * What goes with each item travels in lists beside the list of serials, and is found by the item's place in that
 * list. A join with the unnested lists would be left to the planner, which on a table without statistics compared
 * every item of the partition with every row of the list: 1,800 burials per second instead of 22,000. All lists
 * are in ascending order of the serials.
 */
const placeIn = (serials: string): string => `width_bucket(item.id, ${serials}::bigint[])`

/** Items of a list that are still as they were read: not leased anew, their lease not extended. */
const asRead = (serials: string, leased: string, deadlines: string): string =>
  `item.id = ANY(${serials}::bigint[]) AND item.leased = ${leased}
   AND coalesce(item.lease_deadline, 0) = (${deadlines}::bigint[])[${placeIn(serials)}]`

/** Un-leases items and gives them new serials at the tail of the queue. By primary key. */
const moveToTail = sql('items.toTail', {
  postgres: `
    UPDATE bartleby.items AS item
    SET id = ($3::bigint[])[${placeIn('$2')}], shelf = ${SHELF.queue}, leased = 0, lease_deadline = NULL, enqueue_at = NULL
    WHERE item.part = $1 AND item.shelf = $4 AND ${asRead('$2', '$5', '$6')}`,
  sqlite: `UPDATE items SET id = $3, shelf = ${SHELF.queue}, leased = 0, lease_deadline = NULL, enqueue_at = NULL
           WHERE part = $1 AND id = $2 AND shelf = $4 AND leased = $5`,
})

/** Un-leases items and puts them on the scheduled shelf, where they keep their serials. */
const moveToSchedule = sql('items.toSchedule', {
  postgres: `
    UPDATE bartleby.items AS item
    SET shelf = ${SHELF.scheduled}, leased = 0, lease_deadline = NULL, enqueue_at = ($3::bigint[])[${placeIn('$2')}]
    WHERE item.part = $1 AND item.shelf = ${SHELF.queue} AND ${asRead('$2', '1', '$4')}`,
  sqlite: `UPDATE items SET shelf = ${SHELF.scheduled}, leased = 0, lease_deadline = NULL, enqueue_at = $3
           WHERE part = $1 AND id = $2 AND shelf = ${SHELF.queue} AND leased = 1`,
})

/** Un-leases items that should die and cannot, and keeps them from being leased. */
const moveToHeld = sql('items.toHeld', {
  postgres: `UPDATE bartleby.items SET shelf = ${SHELF.held}, leased = 0, lease_deadline = NULL
             WHERE part = $1 AND shelf = ${SHELF.queue} AND id = ANY($2::bigint[])`,
  sqlite: `UPDATE items SET shelf = ${SHELF.held}, leased = 0, lease_deadline = NULL
           WHERE part = $1 AND shelf = ${SHELF.queue} AND id IN (SELECT value FROM json_each($2))`,
})

/**
 * One statement takes the items out of their queue and puts them into the dead queue, with the record of their
 * death. A letter whose source id is already there is dropped: the first one stays.
 */
const moveToDeadQueue = sql('items.bury', {
  postgres: `
    WITH gone AS (
      DELETE FROM bartleby.items AS item
      WHERE item.part = $1 AND item.shelf = $2 AND ${asRead('$3', '$11', '$12')}
      RETURNING ${placeIn('$3')} AS place,
        item.encoding, item.kind, item.reference, item.payload, item.attempts, item.created_at
    ), buried AS (
      INSERT INTO bartleby.items
        (id, part, shelf, leased, attempts, created_at, encoding, kind, reference, payload, source_id,
         died_at, death_reason, death_queue, death_partition, death_attempts, death_created_at)
      SELECT ($4::bigint[])[place], $7, ${SHELF.queue}, 0, 0, $8, encoding, kind, reference, payload,
        substring($5::bytea FROM (place - 1) * ${KSUID_LENGTH} + 1 FOR ${KSUID_LENGTH}),
        $8, ('{${DEATH_REASONS.join(',')}}'::text[])[($6::int[])[place]], $9, $10, attempts, created_at
      FROM gone
      ON CONFLICT (part, source_id) WHERE source_id IS NOT NULL DO NOTHING
      RETURNING 1
    )
    SELECT (SELECT count(*) FROM gone) AS gone, (SELECT count(*) FROM buried) AS buried`,
  sqlite: '',
})

const copyToDeadQueue = sql('items.buryOne', {
  postgres: '',
  sqlite: `
    INSERT INTO items (id, part, shelf, leased, attempts, created_at, encoding, kind, reference, payload, source_id,
      died_at, death_reason, death_queue, death_partition, death_attempts, death_created_at)
    SELECT $4, $5, ${SHELF.queue}, 0, 0, $6, encoding, kind, reference, payload, CAST($7 AS BLOB),
      $6, $8, $9, $10, attempts, created_at
    FROM items WHERE part = $1 AND shelf = $2 AND id = $3
    ON CONFLICT (part, source_id) WHERE source_id IS NOT NULL DO NOTHING`,
})

const deleteBuried = sql('items.deleteBuried', {
  postgres: '',
  sqlite: 'DELETE FROM items WHERE part = $1 AND shelf = $2 AND id IN (SELECT value FROM json_each($3))',
})

/** An item as it was read: one whose deadline was moved meanwhile makes the move fail, because sums would be off. */
type Moving = Pick<ItemFacts, 'serial' | 'leaseDeadline'>

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
  if (tx.dialect === 'postgres') {
    const moves = inOrder(items.map((item, i) => ({ ...item, to: tail[i] ?? 0 })))
    const to = integerList(
      tx.dialect,
      moves.map((move) => move.to),
    )
    const moved = await tx.run(moveToTail, part, serialList(moves), to, shelf, mark, deadlineList(moves))
    insistOn(items.length, moved)
  } else {
    await tx.runEach(
      moveToTail,
      items.map(({ serial }, i) => [part, serial, tail[i] ?? 0, shelf, mark]),
    )
  }
}

/** Puts leased items on the scheduled shelf until the instant beside each. */
export async function scheduleItems(
  tx: Transaction,
  part: number,
  items: readonly (Moving & { readonly enqueueAt: Instant })[],
): Promise<void> {
  if (tx.dialect === 'postgres') {
    const moves = inOrder(items)
    const instants = `{${moves.map((item) => item.enqueueAt).join(',')}}`
    const moved = await tx.run(moveToSchedule, part, serialList(moves), instants, deadlineList(moves))
    insistOn(items.length, moved)
  } else {
    await tx.runEach(
      moveToSchedule,
      items.map((item) => [part, item.serial, item.enqueueAt]),
    )
  }
}

/** Puts queued items on the held shelf. */
export async function holdItems(tx: Transaction, part: number, serials: readonly number[]): Promise<void> {
  await tx.run(moveToHeld, part, integerList(tx.dialect, serials))
}

export interface Burial {
  readonly from: Origin & { readonly queueName: string; readonly partition: number }
  readonly toPart: number
  readonly at: Instant
  /** In the order in which they shall lie in the dead queue. */
  readonly items: readonly (Moving & { readonly sourceId: string; readonly reason: DeathReason })[]
}

/** Moves items into a dead queue's partition; gives how many letters are new there and the first new serial. */
export async function buryItems(
  tx: Transaction,
  { from, toPart, at, items }: Burial,
): Promise<{ readonly buried: number; readonly firstSerial: number }> {
  const fresh = await allocateSerials(tx, items.length)
  const firstSerial = fresh[0] ?? 0
  if (tx.dialect === 'postgres') {
    const letters = inOrder(items.map((item, i) => ({ ...item, to: fresh[i] ?? 0 })))
    const [row] = await tx.rows<{ gone: Integer; buried: Integer }>(
      moveToDeadQueue,
      from.part,
      from.shelf,
      serialList(letters),
      integerList(
        tx.dialect,
        letters.map((letter) => letter.to),
      ),
      Buffer.from(letters.map((letter) => letter.sourceId).join(''), 'latin1'),
      integerList(
        tx.dialect,
        letters.map((letter) => DEATH_REASONS.indexOf(letter.reason) + 1),
      ),
      toPart,
      at,
      from.queueName,
      from.partition,
      from.leased ? 1 : 0,
      deadlineList(letters),
    )
    insistOn(items.length, Number(row?.gone ?? 0))
    return { buried: Number(row?.buried ?? 0), firstSerial }
  }
  let buried = 0
  for (const [i, item] of items.entries()) {
    buried += await tx.run(
      copyToDeadQueue,
      from.part,
      from.shelf,
      item.serial,
      fresh[i] ?? 0,
      toPart,
      at,
      item.sourceId,
      item.reason,
      from.queueName,
      from.partition,
    )
  }
  const serials = items.map((item) => item.serial)
  await tx.run(deleteBuried, from.part, from.shelf, integerList(tx.dialect, serials))
  return { buried, firstSerial }
}

const inOrder = <T extends Moving>(items: readonly T[]): T[] => [...items].sort((a, b) => a.serial - b.serial)

const serialList = (items: readonly Moving[]): string => `{${items.map(({ serial }) => serial).join(',')}}`

const deadlineList = (items: readonly Moving[]): string =>
  `{${items.map(({ leaseDeadline }) => leaseDeadline ?? 0n).join(',')}}`
