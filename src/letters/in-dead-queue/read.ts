/** Reading letters that lie in a dead queue: what decides their fate, lists, heads, schedules. */
import type { Instant } from '../../core/clock.ts'
import { engineSourceId, itemIdOf } from '../../core/source-id.ts'
import { type Integer, type Session, type Statement, sql, type Value } from '../../store/database.ts'
import { rowsGiven } from '../../store/idioms.ts'
import { at, flag, integer, oneOf, orNull, type RowOf, rowShape, text } from '../../store/row.ts'
import { type Act, type DeathReason, isUnconfirmed, STATUS } from '../letter.ts'

/** How a letter that lies in a dead queue is found, on letters_lying. Parameters: part, serials, shelf. */
export const OURS = 'part = $1 AND shelf = $3 AND serial = ANY($2::bigint[])'

/**
 * Letters at their places, on several shelves, locked until the transaction ends in the order of their numbers: that of everybody who
 * locks letters. Sorts those of one call.
 */
export const lockingAt = (columns: string, condition: string): string =>
  `SELECT ${columns} FROM bartleby.letters INDEXED BY letters_lying
   WHERE part = $1 AND shelf = ANY($3::int[]) AND serial = ANY($2::bigint[]) AND ${condition} ORDER BY id FOR UPDATE`

/** The columns of a letter's place in a dead queue, and what they are where it lies in none. */
export const PLACE_COLUMNS = {
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

/** What decides the fate of a letter whose lease has ended. */
const FACTS = rowShape({
  serial: integer,
  leased: flag,
  attempts: integer,
  laidAt: at,
  leaseDeadline: orNull(at),
  enqueueAt: orNull(at),
})

/** By their places, on letters_lying; locked until the transaction ends. */
const lockFacts = sql('lying.lockFacts', lockingAt(FACTS.columns, 'leased >= 0'), { bigints: true })
const MARK = rowShape({ serial: integer, leased: flag })

/** The same, not locked. */
const readMarks = sql(
  'lying.marks',
  `SELECT ${MARK.columns} FROM bartleby.letters INDEXED BY letters_lying WHERE ${OURS}`,
)

/** What is there of these letters, in order of their serials, locked: no extension comes in between. */
export async function lyingFacts(
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
export const lyingMarks = (session: Session, part: number, serials: readonly number[]) =>
  MARK.all(session, readMarks, part, serials, 0)

/** The first `$3` that can be leased behind serial `$2`, in order, on letters_lying. */
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

/** The serials of the next letters that a lease would get. */
export const readySerials = (session: Session, part: number, after: number, limit: number) =>
  serialsOf(session, readReady, part, after, limit)

const LYING = `letters.id, serial, shelf, leased, attempts, lease_deadline, laid_at, enqueue_at, encoding, kind, reference,
  coalesce(died_as, source_id) AS source_id, reason,
  (SELECT queue FROM bartleby.drawers WHERE drawers.id = drawer) AS queue, partition, dequeue_count, item_created_at, last_failure_at, payload`

/** One shelf from serial `$3` on, in order, on letters_lying; stops at the limit. `$5` = 0 leaves leased ones out. */
const readShelf = sql(
  'lying.shelf',
  `SELECT ${LYING} FROM bartleby.letters INDEXED BY letters_lying
               WHERE part = $1 AND shelf = $2 AND serial >= $3 AND leased <= $5 ORDER BY part, shelf, serial LIMIT $4`,
  { bigints: true },
)

/** A lying letter as the lists of its dead queue show it. */
export interface LyingRow {
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

/** Lying letters of one shelf from `from` on, in order of their serials. */
export const listLying = (
  session: Session,
  part: number,
  shelf: number,
  page: { readonly from: number; readonly limit: number; readonly leasedToo: boolean },
): Promise<LyingRow[]> =>
  session.rows<LyingRow>(readShelf, part, shelf, page.from, page.limit, page.leasedToo ? 1 : 0)

const HEAD = rowShape({ part: integer, serial: integer, at })

/** The first of each part that was asked for: one step into letters_lying for each. */
const readHeads = sql(
  'lying.heads',
  `SELECT head.part, head.serial, head.laid_at AS at FROM unnest($1::int[]) AS given (part) CROSS JOIN LATERAL (
     SELECT part, serial, laid_at FROM bartleby.letters INDEXED BY letters_lying WHERE part = given.part AND shelf = 0
     ORDER BY part, shelf, serial LIMIT 1) AS head`,
  { bigints: true },
)

/** The letters at the heads of partitions of dead queues, and when they were laid there. Empty partitions are left out. */
export async function headsOfLying(
  session: Session,
  parts: readonly number[],
): Promise<RowOf<typeof HEAD>[]> {
  const given = parts.map((part) => ({ part }))
  return (await rowsGiven<object>(session, readHeads, given)).map(HEAD.read)
}

const DUE = rowShape({ part: integer, serial: integer })

/** Scheduled letters whose time has come, by time, on letters_scheduled. */
const readDue = sql(
  'lying.due',
  `SELECT part, serial FROM bartleby.letters INDEXED BY letters_scheduled WHERE shelf = 1 AND enqueue_at < $1 AND part <> ALL($3::int[])
             ORDER BY enqueue_at, serial LIMIT $2`,
)

/** Up to `limit` scheduled letters that are due, apart from those of `exceptParts`. */
export const dueLying = (session: Session, now: Instant, limit: number, exceptParts: readonly number[]) =>
  DUE.all(session, readDue, now, limit, exceptParts)

/** Letters that lie in a part that is about to be removed. */
const serialsOfPart = sql(
  'lying.ofPart',
  `SELECT serial FROM bartleby.letters INDEXED BY letters_lying WHERE part = $1 AND shelf = $2 AND serial > $3 AND leased <= $5
             ORDER BY part, shelf, serial LIMIT $4`,
)

/** Serials of a shelf behind `after`, in order, for removal in bounded steps. */
export const lyingSerials = (
  session: Session,
  part: number,
  shelf: number,
  {
    after,
    limit,
    leasedToo,
  }: { readonly after: number; readonly limit: number; readonly leasedToo: boolean },
) => serialsOf(session, serialsOfPart, part, shelf, after, limit, leasedToo ? 1 : 0)

/** What tells whether a letter is done with. */
const HOLDER = rowShape({
  id: text,
  status: integer,
  resolution: orNull(oneOf<Act>()),
  confirmedAt: orNull(at),
})

/**
 * Letters by the source ids among `$1`, whatever their engine, and by the ids among `$2` that their items died as: on letters_by_source,
 * one step for each engine there is, and on letters_by_death.
 */
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

/** The ids of items among `itemIds` whose letters are not done with, wherever these lie: what an import into a dead queue must not double. */
export async function heldItemIds(session: Session, itemIds: readonly string[]): Promise<Set<string>> {
  if (itemIds.length === 0) return new Set()
  const named = [...itemIds, ...itemIds.map(engineSourceId)]
  const holders = await HOLDER.all(session, readHolders, named, itemIds)
  const open = holders.filter((letter) => letter.status === STATUS.Pending || isUnconfirmed(letter))
  return new Set(open.map(({ id }) => itemIdOf(id)))
}
