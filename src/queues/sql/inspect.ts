/** Reading items: facts for requests, lists, peeks. */
import { type Instant, instant } from '../../core/clock.ts'
import { storedText } from '../../core/content.ts'
import { itemIdOf } from '../../core/source-id.ts'
import {
  type DeadQueueRow,
  leaseMarks,
  listDeadQueue,
  lockLeaseFacts,
} from '../../letters/in-dead-queue/read.ts'
import { type LetterId, letterId } from '../../letters/letter.ts'
import { type Integer, type Session, type Statement, sql, type Transaction } from '../../store/database.ts'
import { at, orNull } from '../../store/row.ts'
import type { StoredItem } from '../queue.ts'
import { itemIdIn, type Partition } from '../records.ts'
import { SHELF } from '../schema.ts'
import { type ContentRow, contentOf } from './lease.ts'

const optionalInstant = orNull(at)

export interface ItemFacts {
  readonly serial: number
  readonly leased: boolean
  readonly attempts: number
  readonly createdAt: Instant
  readonly expireAt: Instant | null
  readonly leaseDeadline: Instant | null
  readonly enqueueAt: Instant | null
  /** A dead letter neither expires nor runs out of attempts. */
  readonly isLetter: boolean
  /** The case that its failures are filed under. */
  readonly caseId: LetterId | null
  /** Only its serial is known: it is believed to be leased and without a case. */
  readonly isUnread?: true
}

export const unread = (serial: number): ItemFacts => ({
  ...{ serial, leased: true, attempts: 0, createdAt: ZERO, expireAt: null, leaseDeadline: null },
  ...{ enqueueAt: null, isLetter: false, caseId: null, isUnread: true },
})
const ZERO = instant(0n)

interface FactsRow {
  readonly id: Integer
  readonly leased: Integer
  readonly attempts: Integer
  readonly created_at: Integer
  readonly expire_at: Integer | null
  readonly lease_deadline: Integer | null
  readonly enqueue_at: Integer | null
  readonly case_id: Integer | null
}

const FACTS = 'id, leased, attempts, created_at, expire_at, lease_deadline, enqueue_at, case_id'

const facts = `SELECT ${FACTS} FROM bartleby.items WHERE part = $1 AND shelf = $3 AND id = ANY($2::bigint[])
  ORDER BY part, shelf, id`
const readFacts = sql('items.facts', facts, { bigints: true })

const lockFacts = sql('items.lockFacts', `${facts} FOR UPDATE`, { bigints: true })

/** By primary key; held items count as queued. */
const readLeased = sql(
  'items.readLeased',
  `SELECT id, leased FROM bartleby.items
   WHERE part = $1 AND shelf IN (${SHELF.queue}, ${SHELF.held}) AND id = ANY($2::bigint[])`,
)

const ITEM = `id, shelf, leased, attempts, lease_deadline, created_at, expire_at, enqueue_at, max_attempts, encoding, kind,
  reference, source_id, case_id, payload`

/** One shelf from serial `$3` on, on the primary key; stops at the limit. */
const readShelf = sql(
  'items.shelf',
  `SELECT ${ITEM} FROM bartleby.items INDEXED BY items_in_order
   WHERE part = $1 AND shelf = $2 AND id >= $3 ORDER BY part, shelf, id LIMIT $4`,
  { bigints: true },
)

/** Ready items at the head, as a lease would take them. */
const readHead = sql(
  'items.head',
  `SELECT ${ITEM} FROM bartleby.items INDEXED BY items_in_order
   WHERE (part, shelf, id) > ($1, ${SHELF.queue}, 0) AND (part, shelf) <= ($1, ${SHELF.queue})
     AND leased <> 1 AND (expire_at IS NULL OR expire_at >= $2)
   ORDER BY part, shelf, id LIMIT $3`,
  { bigints: true },
)

/** The first queued item of each part: one step into the primary key each. */
const readHeads = sql(
  'items.heads',
  {
    postgres: `SELECT asked.part, head.id, head.created_at FROM unnest($1::int[]) AS asked (part)
               CROSS JOIN LATERAL (SELECT id, created_at FROM bartleby.items WHERE part = asked.part AND shelf = ${SHELF.queue}
                 ORDER BY part, shelf, id LIMIT 1) AS head`,
    sqlite: `SELECT head.part, head.id, head.created_at FROM json_each($1) AS asked CROSS JOIN items AS head
             WHERE head.id = (SELECT id FROM items INDEXED BY items_in_order
               WHERE part = asked.value AND shelf = ${SHELF.queue} ORDER BY id LIMIT 1)`,
  },
  { bigints: true },
)

/** Facts in serial order. Items are not locked: their moves check that all are still as read, which is cheaper. Letters are. */
export const readItems = (
  session: Session,
  partition: Partition,
  serials: readonly number[],
): Promise<ItemFacts[]> => factsFrom(session, readFacts, partition, serials, SHELF.queue)

/** The same, locked: no lease or extension comes in between. */
export const lockItems = (
  tx: Transaction,
  partition: Partition,
  serials: readonly number[],
  shelf: number = SHELF.queue,
): Promise<ItemFacts[]> => factsFrom(tx, lockFacts, partition, serials, shelf)

async function factsFrom(
  session: Session,
  statement: Statement,
  { part, holdsLetters }: Partition,
  serials: readonly number[],
  shelf: number,
): Promise<ItemFacts[]> {
  if (serials.length === 0) return []
  const rows = await session.rows<FactsRow>(statement, part, serials, shelf)
  const items = rows.map(
    (row): ItemFacts => ({
      serial: Number(row.id),
      leased: Number(row.leased) === 1,
      attempts: Number(row.attempts),
      createdAt: instant(BigInt(row.created_at)),
      expireAt: optionalInstant(row.expire_at),
      leaseDeadline: optionalInstant(row.lease_deadline),
      enqueueAt: optionalInstant(row.enqueue_at),
      isLetter: false,
      caseId: row.case_id === null ? null : letterId(row.case_id),
    }),
  )
  if (!holdsLetters || items.length === serials.length) return items
  const letters = await lockLeaseFacts(session, part, shelf, serials)
  return [...items, ...letters.map(asItem)].sort((a, b) => a.serial - b.serial)
}

const asItem = ({ laidAt, ...letter }: Awaited<ReturnType<typeof lockLeaseFacts>>[number]): ItemFacts => ({
  ...letter,
  createdAt: laidAt,
  expireAt: null,
  isLetter: true,
  caseId: null,
})

/** By serial, whether a queued item is leased. */
export type LeaseMarks = ReadonlyMap<number, boolean>

export async function readLeaseMarks(
  session: Session,
  partition: Partition,
  serials: readonly number[],
): Promise<LeaseMarks> {
  const { part, holdsLetters } = partition
  const rows = await session.rows<{ id: Integer; leased: Integer }>(readLeased, part, serials)
  const marks = new Map(rows.map((row) => [Number(row.id), Number(row.leased) === 1]))
  if (holdsLetters) {
    const letters = await leaseMarks(session, part, serials)
    for (const { serial, leased } of letters) marks.set(serial, leased)
  }
  return marks
}

/** Items of the given shelves from `from` on, in serial order. */
export async function listItems(
  session: Session,
  partition: Partition,
  shelves: readonly number[],
  page: { readonly from: number; readonly limit: number },
): Promise<StoredItem[]> {
  const { part, holdsLetters } = partition
  const pages: StoredItem[] = []
  for (const shelf of shelves) {
    const rows = await session.rows<RawItemRow>(readShelf, part, shelf, page.from, page.limit)
    pages.push(...rows.map((row) => storedItem(row, partition)))
    if (!holdsLetters || shelf === SHELF.held) continue
    const letters = await listDeadQueue(session, part, shelf, { ...page, leasedToo: true })
    pages.push(...letters.map((row) => letterAsItem(row, partition)))
  }
  return pages.sort(byId).slice(0, page.limit)
}

export async function readReady(
  session: Session,
  partition: Partition,
  now: Instant,
  limit: number,
): Promise<StoredItem[]> {
  const { part, holdsLetters } = partition
  const rows = await session.rows<RawItemRow>(readHead, part, now, limit)
  const items = rows.map((row) => storedItem(row, partition))
  if (!holdsLetters) return items
  const letters = await listDeadQueue(session, part, SHELF.queue, { from: 0, limit, leasedToo: false })
  return [...items, ...letters.map((row) => letterAsItem(row, partition))].sort(byId).slice(0, limit)
}

/** Ids of one partition sort as their serials. */
const byId = (a: StoredItem, b: StoredItem): number => (a.id < b.id ? -1 : 1)

export interface Head {
  readonly part: number
  readonly serial: number
  readonly at: Instant
}

/** Heads of the partitions that hold items. */
export async function headsOfItems(session: Session, parts: readonly number[]): Promise<Head[]> {
  if (parts.length === 0) return []
  const rows = await session.rows<{ part: Integer; id: Integer; created_at: Integer }>(readHeads, parts)
  return rows.map(({ part, id, created_at }) => ({
    part: Number(part),
    serial: Number(id),
    at: instant(BigInt(created_at)),
  }))
}

interface RawItemRow extends FactsRow, ContentRow {
  readonly max_attempts: Integer | null
  readonly source_id: Uint8Array | null
}

/** Fields that items and letters share. */
const sharedFields = (row: ContentRow & Pick<FactsRow, 'leased' | 'lease_deadline' | 'enqueue_at'>) => ({
  ...contentOf(row),
  isLeased: Number(row.leased) === 1,
  leaseDeadline: optionalInstant(row.lease_deadline),
  enqueueAt: optionalInstant(row.enqueue_at),
})

const storedItem = (row: RawItemRow, partition: Partition): StoredItem => ({
  ...sharedFields(row),
  id: itemIdIn(partition, Number(row.id)),
  sourceId: storedText(row.source_id),
  expireDeadline: optionalInstant(row.expire_at),
  createdAt: instant(BigInt(row.created_at)),
  maxAttempts: Number(row.max_attempts ?? 0),
  death: null,
})

const letterAsItem = (row: DeadQueueRow, partition: Partition): StoredItem => ({
  ...sharedFields(row),
  id: itemIdIn(partition, Number(row.serial)),
  sourceId: itemIdOf(row.source_id),
  expireDeadline: null,
  createdAt: instant(BigInt(row.laid_at)),
  maxAttempts: 0,
  death: {
    queueName: row.queue,
    partition: Number(row.partition),
    reason: row.reason,
    attempts: Number(row.dequeue_count),
    createdAt: instant(BigInt(row.item_created_at ?? 0)),
    diedAt: instant(BigInt(row.last_failure_at)),
  },
})
