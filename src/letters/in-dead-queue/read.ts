/** Reading letters in dead queues: lists, heads, schedules, and the facts about ended leases. */
import type { Instant } from '../../core/clock.ts'
import { engineSourceId, itemIdOf } from '../../core/source-id.ts'
import { type Integer, type Session, type Statement, sql, type Value } from '../../store/database.ts'
import { rowsGiven } from '../../store/idioms.ts'
import { at, flag, integer, oneOf, orNull, type RowOf, rowShape, text } from '../../store/row.ts'
import { type Act, type DeathReason, isUnconfirmed, STATUS } from '../letter.ts'

/** Condition on letters_lying. Parameters: part, serials, shelf. */
export const OURS = 'part = $1 AND shelf = $3 AND serial = ANY($2::bigint[])'

/** Locks letters by position, in the order of their numbers like everybody who locks letters. Sorts those of one call. */
export const lockingAt = (columns: string, condition: string): string =>
  `SELECT ${columns} FROM bartleby.letters INDEXED BY letters_lying
   WHERE part = $1 AND shelf = ANY($3::int[]) AND serial = ANY($2::bigint[]) AND ${condition} ORDER BY id FOR UPDATE`

/** Columns of a position, with their values outside dead queues. */
export const POSITION_COLUMNS = {
  part: 'NULL',
  shelf: 'NULL',
  serial: 'NULL',
  laid_at: 'NULL',
  leased: '0',
  lease_deadline: 'NULL',
  leased_by: 'NULL',
  enqueue_at: 'NULL',
  attempts: '0',
} as const

/** Decides what becomes of a letter whose lease has ended. */
const FACTS = rowShape({
  serial: integer,
  leased: flag,
  attempts: integer,
  laidAt: at,
  leaseDeadline: orNull(at),
  enqueueAt: orNull(at),
})

const lockFacts = sql('lying.lockFacts', lockingAt(FACTS.columns, 'leased >= 0'), { bigints: true })
const MARK = rowShape({ serial: integer, leased: flag })

/** Not locked. */
const readMarks = sql(
  'lying.marks',
  `SELECT ${MARK.columns} FROM bartleby.letters INDEXED BY letters_lying WHERE ${OURS}`,
)

/** In order, locked against extensions. */
export async function lockLeaseFacts(
  session: Session,
  part: number,
  shelf: number,
  serials: readonly number[],
): Promise<RowOf<typeof FACTS>[]> {
  if (serials.length === 0) return []
  const facts = await FACTS.all(session, lockFacts, part, serials, [shelf])
  return facts.sort((a, b) => a.serial - b.serial)
}

/** Which of `serials` are queued letters, and whether they are leased. */
export const leaseMarks = (session: Session, part: number, serials: readonly number[]) =>
  MARK.all(session, readMarks, part, serials, 0)

/** The first `$3` free letters after serial `$2`, in order, on letters_lying. */
const readReady = sql(
  'lying.ready',
  `SELECT serial FROM bartleby.letters INDEXED BY letters_lying WHERE part = $1 AND shelf = 0 AND serial > $2 AND leased = 0
             ORDER BY part, shelf, serial LIMIT $3`,
)

async function serialsOf(
  session: Session,
  statement: Statement,
  ...values: readonly Value[]
): Promise<number[]> {
  const rows = await session.rows<{ serial: Integer }>(statement, ...values)
  return rows.map(({ serial }) => Number(serial))
}

export const readySerials = (session: Session, part: number, after: number, limit: number) =>
  serialsOf(session, readReady, part, after, limit)

const LISTED_COLUMNS = `letters.id, serial, shelf, leased, attempts, lease_deadline, laid_at, enqueue_at, encoding, kind, reference,
  coalesce(died_as, source_id) AS source_id, reason,
  (SELECT queue FROM bartleby.drawers WHERE drawers.id = drawer) AS queue, partition, dequeue_count, item_created_at, last_failure_at, payload`

/** From serial `$3` on, in order, on letters_lying; stops at the limit. `$5` = 0 leaves leased ones out. */
const readShelf = sql(
  'lying.shelf',
  `SELECT ${LISTED_COLUMNS} FROM bartleby.letters INDEXED BY letters_lying
               WHERE part = $1 AND shelf = $2 AND serial >= $3 AND leased <= $5 ORDER BY part, shelf, serial LIMIT $4`,
  { bigints: true },
)

/** A letter as the lists of its dead queue show it. */
export interface DeadQueueRow {
  readonly id: Integer
  readonly serial: Integer
  readonly shelf: Integer
  readonly leased: Integer
  readonly attempts: Integer
  readonly lease_deadline: Integer | null
  readonly laid_at: Integer
  readonly enqueue_at: Integer | null
  readonly encoding: Uint8Array | null
  readonly kind: Uint8Array | null
  readonly reference: Uint8Array | null
  readonly source_id: string
  readonly reason: DeathReason
  readonly queue: string
  readonly partition: Integer | null
  readonly dequeue_count: Integer
  readonly item_created_at: Integer | null
  readonly last_failure_at: Integer
  readonly payload: Uint8Array | null
}

export const listDeadQueue = (
  session: Session,
  part: number,
  shelf: number,
  page: { readonly from: number; readonly limit: number; readonly leasedToo: boolean },
): Promise<DeadQueueRow[]> =>
  session.rows<DeadQueueRow>(readShelf, part, shelf, page.from, page.limit, page.leasedToo ? 1 : 0)

const HEAD = rowShape({ part: integer, serial: integer, at })

/** The first of each given partition: one step into letters_lying each. */
const readHeads = sql(
  'lying.heads',
  `SELECT head.part, head.serial, head.laid_at AS at FROM unnest($1::int[]) AS given (part) CROSS JOIN LATERAL (
     SELECT part, serial, laid_at FROM bartleby.letters INDEXED BY letters_lying WHERE part = given.part AND shelf = 0
     ORDER BY part, shelf, serial LIMIT 1) AS head`,
  { bigints: true },
)

/** Heads of partitions of dead queues; empty partitions are left out. */
export async function headsOfDeadQueues(
  session: Session,
  parts: readonly number[],
): Promise<RowOf<typeof HEAD>[]> {
  const given = parts.map((part) => ({ part }))
  return (await rowsGiven<object>(session, readHeads, given)).map(HEAD.read)
}

const DUE = rowShape({ part: integer, serial: integer })

/** On letters_scheduled, by time. */
const readDue = sql(
  'lying.due',
  `SELECT part, serial FROM bartleby.letters INDEXED BY letters_scheduled WHERE shelf = 1 AND enqueue_at < $1 AND part <> ALL($3::int[])
             ORDER BY enqueue_at, serial LIMIT $2`,
)

export const dueInDeadQueues = (
  session: Session,
  now: Instant,
  limit: number,
  exceptParts: readonly number[],
) => DUE.all(session, readDue, now, limit, exceptParts)

/** In a partition that is about to be removed, on letters_lying. */
const serialsOfPart = sql(
  'lying.ofPart',
  `SELECT serial FROM bartleby.letters INDEXED BY letters_lying WHERE part = $1 AND shelf = $2 AND serial > $3 AND leased <= $5
             ORDER BY part, shelf, serial LIMIT $4`,
)

/** For removal in bounded steps, in order. */
export const serialsInDeadQueue = (
  session: Session,
  part: number,
  shelf: number,
  {
    after,
    limit,
    leasedToo,
  }: { readonly after: number; readonly limit: number; readonly leasedToo: boolean },
) => serialsOf(session, serialsOfPart, part, shelf, after, limit, leasedToo ? 1 : 0)

const HOLDER = rowShape({
  id: text,
  status: integer,
  resolution: orNull(oneOf<Act>()),
  confirmedAt: orNull(at),
})

/** By source id in any engine, on letters_by_source, a step per engine; and by the id of the dead item, on letters_by_death. */
const readHolders = sql(
  'lying.holders',
  `WITH RECURSIVE engines (engine) AS (
     SELECT min(engine) FROM bartleby.letters
     UNION ALL
     SELECT (SELECT min(engine) FROM bartleby.letters WHERE letters.engine > engines.engine) FROM engines WHERE engine IS NOT NULL
   )
   SELECT source_id AS id, status, resolution, confirmed_at FROM bartleby.letters
   WHERE engine = ANY(ARRAY(SELECT engine FROM engines)) AND source_id = ANY($1::text[])
   UNION ALL
   SELECT died_as, status, resolution, confirmed_at FROM bartleby.letters WHERE died_as = ANY($2::text[])`,
  { bigints: true },
)

/** Items whose letters are not done with: an import into a dead queue must not double them. */
export async function heldItemIds(session: Session, itemIds: readonly string[]): Promise<Set<string>> {
  if (itemIds.length === 0) return new Set()
  const named = [...itemIds, ...itemIds.map(engineSourceId)]
  const holders = await HOLDER.all(session, readHolders, named, itemIds)
  const open = holders.filter((letter) => letter.status === STATUS.Pending || isUnconfirmed(letter))
  return new Set(open.map(({ id }) => itemIdOf(id)))
}
