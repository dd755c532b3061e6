/** Reading letters that lie in a dead queue: what decides their fate, lists, heads, schedules. */
import { type Instant, instant } from '../../core/clock.ts'
import { type Integer, integerList, type Session, sql, textList } from '../../db/database.ts'
import { engineSourceId, itemIdOf } from '../item-source-id.ts'
import { type DeathReason, STATUS } from '../letter.ts'
import { optionalInstant, ours } from './place.ts'

/** What decides the fate of a letter whose lease has ended. */
export interface LyingFacts {
  readonly serial: number
  readonly leased: boolean
  readonly attempts: number
  readonly laidAt: Instant
  readonly leaseDeadline: Instant | null
  readonly enqueueAt: Instant | null
}

const FACTS = 'serial, leased, attempts, laid_at, lease_deadline, enqueue_at'
const factsOf = {
  postgres: `SELECT ${FACTS} FROM bartleby.letters WHERE ${ours.postgres} ORDER BY part, shelf, serial`,
  sqlite: `SELECT ${FACTS} FROM letters INDEXED BY letters_lying WHERE ${ours.sqlite} ORDER BY serial`,
}

/** By their places, on letters_lying; locked until the transaction ends. */
const lockFacts = sql(
  'lying.lockFacts',
  { postgres: `${factsOf.postgres} FOR UPDATE`, sqlite: factsOf.sqlite },
  { bigints: true },
)
/** The same, not locked. */
const readMarks = sql('lying.marks', {
  postgres: `SELECT serial, leased FROM bartleby.letters WHERE ${ours.postgres}`,
  sqlite: `SELECT serial, leased FROM letters INDEXED BY letters_lying WHERE ${ours.sqlite}`,
})

interface FactsRow {
  readonly serial: Integer
  readonly leased: Integer
  readonly attempts: Integer
  readonly laid_at: Integer
  readonly lease_deadline: Integer | null
  readonly enqueue_at: Integer | null
}

/** What is there of these letters, in order of their serials, locked: no extension comes in between. */
export async function lyingFacts(
  session: Session,
  part: number,
  shelf: number,
  serials: readonly number[],
): Promise<LyingFacts[]> {
  if (serials.length === 0) return []
  const rows = await session.rows<FactsRow>(lockFacts, part, integerList(session.dialect, serials), shelf)
  return rows.map((row) => ({
    serial: Number(row.serial),
    leased: Number(row.leased) === 1,
    attempts: Number(row.attempts),
    laidAt: instant(BigInt(row.laid_at)),
    leaseDeadline: optionalInstant(row.lease_deadline),
    enqueueAt: optionalInstant(row.enqueue_at),
  }))
}

/** Which of `serials` are queued letters, and whether they are leased. */
export async function lyingMarks(
  session: Session,
  part: number,
  serials: readonly number[],
): Promise<{ readonly serial: number; readonly leased: boolean }[]> {
  const list = integerList(session.dialect, serials)
  const rows = await session.rows<{ serial: Integer; leased: Integer }>(readMarks, part, list, 0)
  return rows.map((row) => ({ serial: Number(row.serial), leased: Number(row.leased) === 1 }))
}

/** The first `$3` that can be leased behind serial `$2`, in order, on letters_lying. */
const readReady = sql('lying.ready', {
  postgres: `SELECT serial FROM bartleby.letters WHERE part = $1 AND shelf = 0 AND serial > $2 AND leased = 0
             ORDER BY part, shelf, serial LIMIT $3`,
  sqlite: `SELECT serial FROM letters INDEXED BY letters_lying WHERE part = $1 AND shelf = 0 AND serial > $2 AND leased = 0
           ORDER BY serial LIMIT $3`,
})

/** The serials of the next letters that a lease would get. */
export async function readySerials(
  session: Session,
  part: number,
  after: number,
  limit: number,
): Promise<number[]> {
  const rows = await session.rows<{ serial: Integer }>(readReady, part, after, limit)
  return rows.map((row) => Number(row.serial))
}

const LYING = `letters.id, serial, shelf, leased, attempts, lease_deadline, laid_at, enqueue_at, encoding, kind, reference,
  coalesce(died_as, source_id) AS source_id, reason,
  (SELECT queue FROM bartleby.drawers WHERE drawers.id = drawer) AS queue, partition, dequeue_count, item_created_at, last_failure_at, payload`

/** One shelf from serial `$3` on, in order, on letters_lying; stops at the limit. `$5` = 0 leaves leased ones out. */
const readShelf = sql(
  'lying.shelf',
  {
    postgres: `SELECT ${LYING} FROM bartleby.letters
               WHERE part = $1 AND shelf = $2 AND serial >= $3 AND leased <= $5 ORDER BY part, shelf, serial LIMIT $4`,
    sqlite: `SELECT ${LYING} FROM letters INDEXED BY letters_lying
             WHERE part = $1 AND shelf = $2 AND serial >= $3 AND leased <= $5 ORDER BY serial LIMIT $4`,
  },
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

/** The first of each part that was asked for: one step into letters_lying for each. */
const readHeads = sql(
  'lying.heads',
  {
    postgres: `SELECT asked.part, head.serial, head.laid_at FROM unnest($1::int[]) AS asked (part)
               CROSS JOIN LATERAL (SELECT serial, laid_at FROM bartleby.letters WHERE part = asked.part AND shelf = 0
                 ORDER BY part, shelf, serial LIMIT 1) AS head`,
    sqlite: `SELECT head.part, head.serial, head.laid_at FROM json_each($1) AS asked CROSS JOIN letters AS head
             WHERE head.id = (SELECT id FROM letters INDEXED BY letters_lying WHERE part = asked.value AND shelf = 0
               ORDER BY serial LIMIT 1)`,
  },
  { bigints: true },
)

/** The letters at the heads of partitions of dead queues, and when they were laid there. Empty partitions are left out. */
export async function headsOfLying(
  session: Session,
  parts: readonly number[],
): Promise<{ readonly part: number; readonly serial: number; readonly at: Instant }[]> {
  if (parts.length === 0) return []
  const rows = await session.rows<{ part: Integer; serial: Integer; laid_at: Integer }>(
    readHeads,
    integerList(session.dialect, parts),
  )
  return rows.map(({ part, serial, laid_at }) => ({
    part: Number(part),
    serial: Number(serial),
    at: instant(BigInt(laid_at)),
  }))
}

/** Scheduled letters whose time has come, by time, on letters_scheduled. */
const readDue = sql('lying.due', {
  postgres: `SELECT part, serial FROM bartleby.letters WHERE shelf = 1 AND enqueue_at < $1 AND part <> ALL($3::int[])
             ORDER BY enqueue_at, serial LIMIT $2`,
  sqlite: `SELECT part, serial FROM letters INDEXED BY letters_scheduled
           WHERE shelf = 1 AND enqueue_at < $1 AND part NOT IN (SELECT value FROM json_each($3))
           ORDER BY enqueue_at, serial LIMIT $2`,
})

/** Up to `limit` scheduled letters that are due, apart from those of `exceptParts`. */
export async function dueLying(
  session: Session,
  now: Instant,
  limit: number,
  exceptParts: readonly number[],
): Promise<{ readonly part: number; readonly serial: number }[]> {
  const rows = await session.rows<{ part: Integer; serial: Integer }>(
    readDue,
    now,
    limit,
    integerList(session.dialect, exceptParts),
  )
  return rows.map((row) => ({ part: Number(row.part), serial: Number(row.serial) }))
}

/** Letters that lie in a part that is about to be removed. */
const serialsOfPart = sql('lying.ofPart', {
  postgres: `SELECT serial FROM bartleby.letters WHERE part = $1 AND shelf = $2 AND serial > $3 AND leased <= $5
             ORDER BY part, shelf, serial LIMIT $4`,
  sqlite: `SELECT serial FROM letters INDEXED BY letters_lying WHERE part = $1 AND shelf = $2 AND serial > $3 AND leased <= $5
           ORDER BY serial LIMIT $4`,
})

/** Serials of a shelf behind `after`, in order, for removal in bounded steps. */
export async function lyingSerials(
  session: Session,
  part: number,
  shelf: number,
  page: { readonly after: number; readonly limit: number; readonly leasedToo: boolean },
): Promise<number[]> {
  const rows = await session.rows<{ serial: Integer }>(
    serialsOfPart,
    part,
    shelf,
    page.after,
    page.limit,
    page.leasedToo ? 1 : 0,
  )
  return rows.map((row) => Number(row.serial))
}

/** Not done with: pending, or sent back and nothing heard of it yet. The plus and the empty text keep the stores from looking among all such. */
const OPEN = `(+status = ${STATUS.Pending} OR (resolution || '' = 'retry' AND confirmed_at IS NULL))`

/**
 * Open letters by the source ids among `$1`, whatever their engine, and by the ids among `$2` that their items died as: on letters_by_source,
 * one step for each engine there is, and on letters_by_death.
 */
const readHolders = sql('lying.holders', {
  postgres: holdersOf((column, list) => `${column} = ANY(${list})`, {
    first: `'' COLLATE "C"`,
    engines: 'ARRAY(SELECT engine FROM engines)',
    listOf: (parameter) => `${parameter}::text[]`,
  }),
  sqlite: holdersOf((column, list) => `${column} IN (${list})`, {
    first: `''`,
    engines: 'SELECT engine FROM engines',
    listOf: (parameter) => `SELECT value FROM json_each(${parameter})`,
  }),
})

function holdersOf(
  among: (column: string, list: string) => string,
  words: { readonly first: string; readonly engines: string; readonly listOf: (parameter: string) => string },
): string {
  return `
    WITH RECURSIVE engines (engine) AS (
      SELECT ${words.first}
      UNION ALL
      SELECT (SELECT min(engine) FROM bartleby.letters WHERE letters.engine > engines.engine) FROM engines WHERE engine IS NOT NULL
    )
    SELECT source_id AS id FROM bartleby.letters
    WHERE ${among('engine', words.engines)} AND ${among('source_id', words.listOf('$1'))} AND ${OPEN}
    UNION ALL
    SELECT died_as FROM bartleby.letters WHERE ${among('died_as', words.listOf('$2'))} AND ${OPEN}`
}

/** The ids of items among `itemIds` whose letters are not done with, wherever these lie: what an import into a dead queue must not double. */
export async function heldItemIds(session: Session, itemIds: readonly string[]): Promise<Set<string>> {
  if (itemIds.length === 0) return new Set()
  const rows = await session.rows<{ id: string }>(
    readHolders,
    textList(session.dialect, [...itemIds, ...itemIds.map(engineSourceId)]),
    textList(session.dialect, itemIds),
  )
  return new Set(rows.map(({ id }) => itemIdOf(id)))
}
