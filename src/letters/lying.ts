/**
 * Letters that lie in a dead queue, as the queue verbs see them: by part, shelf and serial, with a lease. Leasing and
 * requeuing change only their place; taking one out of the dead queue resolves it.
 */
import { type Instant, instant } from '../core/clock.ts'
import {
  type Integer,
  integerList,
  type Session,
  type Statement,
  sql,
  type Transaction,
} from '../db/database.ts'
import { storable } from './death-note.ts'
import { type Act, type DeathReason, type LetterId, letterId, STATUS } from './letter.ts'

const MAX_CLIENT_BYTES = 1_024

const ours = {
  postgres: 'part = $1 AND shelf = $3 AND serial = ANY($2::bigint[])',
  sqlite: 'part = $1 AND shelf = $3 AND serial IN (SELECT value FROM json_each($2))',
}

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

/** Touches no index. */
const leaseThese = sql('lying.lease', {
  postgres: `UPDATE bartleby.letters SET leased = 1, lease_deadline = $4, attempts = attempts + 1
             WHERE ${ours.postgres} AND leased = 0
             RETURNING serial, attempts, encoding, kind, reference, payload`,
  sqlite: `UPDATE letters SET leased = 1, lease_deadline = $4, attempts = attempts + 1
           WHERE ${ours.sqlite} AND leased = 0
           RETURNING serial, attempts, encoding, kind, reference, payload`,
})

export interface LeasedLetterRow {
  readonly serial: Integer
  readonly attempts: Integer
  readonly encoding: Uint8Array | null
  readonly kind: Uint8Array | null
  readonly reference: Uint8Array | null
  readonly payload: Uint8Array | null
}

/** Leases those of `serials` that are still free. */
export const leaseLying = (
  tx: Transaction,
  part: number,
  serials: readonly number[],
  deadline: Instant,
): Promise<LeasedLetterRow[]> =>
  tx.rows<LeasedLetterRow>(leaseThese, part, integerList(tx.dialect, serials), 0, deadline)

const nameLessee = sql('lying.lessee', {
  postgres: `UPDATE bartleby.letters SET leased_by = $4 WHERE ${ours.postgres}`,
  sqlite: `UPDATE letters SET leased_by = $4 WHERE ${ours.sqlite}`,
})

/** Remembers which client got these letters: it is who resolves them. */
export function noteLessee(
  tx: Transaction,
  part: number,
  serials: readonly number[],
  clientId: string,
): void {
  tx.atCommit(nameLessee, part, integerList(tx.dialect, serials), 0, storable(clientId, MAX_CLIENT_BYTES))
}

const extendThese = sql('lying.extend', {
  postgres: `UPDATE bartleby.letters SET lease_deadline = $4 WHERE ${ours.postgres} AND leased = 1`,
  sqlite: `UPDATE letters SET lease_deadline = $4 WHERE ${ours.sqlite} AND leased = 1`,
})

/** Moves the deadline of leased letters; gives how many there were. */
export const extendLying = (
  tx: Transaction,
  part: number,
  serials: readonly number[],
  deadline: Instant,
): Promise<number> => tx.run(extendThese, part, integerList(tx.dialect, serials), 0, deadline)

/** Rewrites the place of letters that are as they were read: new serial, not leased, on the queue's shelf. */
const moveToTail = sql('lying.toTail', {
  postgres: `
    UPDATE bartleby.letters AS letter SET serial = move.tail, shelf = 0, leased = 0, lease_deadline = NULL,
      enqueue_at = NULL, leased_by = NULL
    FROM unnest($2::bigint[], $4::bigint[]) AS move (serial, tail)
    WHERE letter.part = $1 AND letter.shelf = $3 AND letter.serial = move.serial AND letter.leased = $5`,
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
    const serials = integerList(
      tx.dialect,
      moves.map(({ serial }) => serial),
    )
    const tails = integerList(
      tx.dialect,
      moves.map(({ tail }) => tail),
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
    UPDATE bartleby.letters AS letter SET part = $4, serial = move.tail, leased = 0, lease_deadline = NULL, attempts = 0,
      leased_by = NULL, dead_queue = $5, laid_at = $6
    FROM unnest($2::bigint[], $3::bigint[]) AS move (serial, tail)
    WHERE letter.part = $1 AND letter.shelf = 0 AND letter.serial = move.serial AND letter.leased = 1`,
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
    const serials = integerList(
      tx.dialect,
      moves.map(({ serial }) => serial),
    )
    const tails = integerList(
      tx.dialect,
      moves.map(({ tail }) => tail),
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
      enqueue_at = move.enqueue_at
    FROM unnest($2::bigint[], $3::bigint[]) AS move (serial, enqueue_at)
    WHERE letter.part = $1 AND letter.shelf = 0 AND letter.serial = move.serial AND letter.leased = 1`,
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
    const serials = integerList(
      tx.dialect,
      letters.map(({ serial }) => serial),
    )
    const instants = `{${letters.map(({ enqueueAt }) => enqueueAt).join(',')}}`
    return tx.run(moveToSchedule, part, serials, instants)
  }
  let moved = 0
  for (const { serial, enqueueAt } of letters) moved += await tx.run(moveToSchedule, part, serial, enqueueAt)
  return moved
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

const readHead = sql(
  'lying.head',
  {
    postgres: `SELECT serial, laid_at FROM bartleby.letters WHERE part = $1 AND shelf = 0 ORDER BY part, shelf, serial LIMIT 1`,
    sqlite: `SELECT serial, laid_at FROM letters INDEXED BY letters_lying WHERE part = $1 AND shelf = 0 ORDER BY serial LIMIT 1`,
  },
  { bigints: true },
)

/** The letter at the head of a dead queue's partition, and when it was laid there. */
export async function headOfLying(
  session: Session,
  part: number,
): Promise<{ readonly serial: number; readonly at: Instant } | null> {
  const [row] = await session.rows<{ serial: Integer; laid_at: Integer }>(readHead, part)
  return row === undefined ? null : { serial: Number(row.serial), at: instant(BigInt(row.laid_at)) }
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

const NO_PLACE = `part = NULL, shelf = NULL, serial = NULL, leased = 0, lease_deadline = NULL, enqueue_at = NULL,
  attempts = 0, laid_at = NULL, leased_by = NULL`

const GONE = `letter.id, letter.drawer, letter.version + 1 AS version, letter.engine, letter.source_id,
  letter.instance_id, letter.correlation_id, old.serial, old.shelf, old.leased, old.laid_at, old.lease_deadline, old.leased_by`

/** Takes letters out of their dead queue and resolves them, by their places. PostgreSQL's old row is joined by id. */
const resolveThese = sql('lying.resolve', {
  postgres: `
    WITH old AS (
      SELECT id, serial, shelf, leased, laid_at, lease_deadline, leased_by FROM bartleby.letters
      WHERE part = $1 AND shelf = ANY($3::int[]) AND serial = ANY($2::bigint[]) AND leased >= $4
      ORDER BY part, shelf, serial FOR UPDATE
    )
    UPDATE bartleby.letters AS letter SET status = ${STATUS.Resolved}, version = version + 1, resolved_at = $5, resolution = $6,
      resolved_by = coalesce($7, old.leased_by), ${NO_PLACE}
    FROM old WHERE letter.id = old.id AND letter.id = ANY(ARRAY(SELECT id FROM old))
    RETURNING ${GONE.replace('letter.version + 1', 'letter.version')}`,
  sqlite: '',
})
const readThese = sql(
  'lying.readToResolve',
  {
    postgres: '',
    sqlite: `SELECT ${GONE.replaceAll('old.', 'letter.')} FROM letters AS letter INDEXED BY letters_lying
             WHERE part = $1 AND shelf IN (SELECT value FROM json_each($3)) AND serial IN (SELECT value FROM json_each($2))
               AND leased >= $4`,
  },
  { bigints: true },
)
const resolveOne = sql('lying.resolveOne', {
  postgres: '',
  sqlite: `UPDATE letters SET status = ${STATUS.Resolved}, version = version + 1, resolved_at = $2, resolution = $3,
             resolved_by = $4, ${NO_PLACE} WHERE id = $1`,
})

interface GoneRow {
  readonly id: Integer
  readonly drawer: Integer
  readonly version: Integer
  readonly engine: string
  readonly source_id: string
  readonly instance_id: string | null
  readonly correlation_id: string | null
  readonly serial: Integer
  readonly shelf: Integer
  readonly leased: Integer
  readonly laid_at: Integer
  readonly lease_deadline: Integer | null
  readonly leased_by: string | null
}

/** A letter that left its dead queue, with where it lay. */
export interface Lifted {
  readonly id: LetterId
  readonly drawer: number
  readonly version: number
  readonly engine: string
  readonly instanceId: string | null
  readonly correlationId: string
  readonly resolvedBy: string | null
  readonly serial: number
  readonly shelf: number
  readonly leased: boolean
  readonly laidAt: Instant
  readonly leaseDeadline: Instant | null
}

/**
 * Resolves what is there of these letters. With `by` null it is the client that holds the lease who resolves them.
 * History and counts are up to the caller.
 */
export async function resolveLying(
  tx: Transaction,
  part: number,
  serials: readonly number[],
  how: {
    readonly shelves: readonly number[]
    readonly leasedOnly: boolean
    readonly at: Instant
    readonly act: Act
    readonly by: string | null
  },
): Promise<Lifted[]> {
  if (serials.length === 0) return []
  const place = [
    part,
    integerList(tx.dialect, serials),
    integerList(tx.dialect, how.shelves),
    how.leasedOnly ? 1 : 0,
  ] as const
  const read: Statement = tx.dialect === 'postgres' ? resolveThese : readThese
  const rows = await tx.rows<GoneRow>(
    read,
    ...place,
    ...(tx.dialect === 'postgres' ? [how.at, how.act, how.by] : []),
  )
  const lifted = rows.map((row) => toLifted(row, how.by))
  if (tx.dialect === 'sqlite') {
    await tx.runEach(
      resolveOne,
      lifted.map((letter) => [letter.id, how.at, how.act, letter.resolvedBy]),
    )
  }
  return lifted
}

const toLifted = (row: GoneRow, by: string | null): Lifted => ({
  id: letterId(row.id),
  drawer: Number(row.drawer),
  version: Number(row.version),
  engine: row.engine,
  instanceId: row.instance_id,
  correlationId: row.correlation_id ?? row.source_id,
  resolvedBy: by ?? row.leased_by,
  serial: Number(row.serial),
  shelf: Number(row.shelf),
  leased: Number(row.leased) === 1,
  laidAt: instant(BigInt(row.laid_at)),
  leaseDeadline: optionalInstant(row.lease_deadline),
})

const liftThese = sql('lying.lift', {
  postgres: `UPDATE bartleby.letters SET ${NO_PLACE} WHERE id = ANY($1::bigint[])`,
  sqlite: `UPDATE letters SET ${NO_PLACE} WHERE id IN (SELECT value FROM json_each($1))`,
})

/** Takes letters out of their dead queues; they are no longer pending. */
export async function liftLetters(tx: Transaction, ids: readonly LetterId[]): Promise<void> {
  await tx.run(liftThese, integerList(tx.dialect, ids.map(Number)))
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

/**
 * Which of these texts are the source ids of letters lying in a part; for imports, which must not double them. On
 * letters_by_source: written as an equality, the part would lead PostgreSQL to all that lies in it.
 */
const readHolders = sql('lying.holders', {
  postgres: `SELECT source_id FROM bartleby.letters WHERE engine = 'queues' AND source_id = ANY($2::text[])
               AND part IS NOT DISTINCT FROM $1`,
  sqlite: `SELECT source_id FROM letters WHERE engine = 'queues' AND source_id IN (SELECT value FROM json_each($2)) AND part = $1`,
})

/** The source ids among `sourceIds` that letters lying in this part have. */
export async function heldSourceIds(
  session: Session,
  part: number,
  sourceIds: readonly string[],
): Promise<Set<string>> {
  if (sourceIds.length === 0) return new Set()
  const list =
    session.dialect === 'postgres'
      ? `{${sourceIds.map((id) => JSON.stringify(id)).join(',')}}`
      : JSON.stringify(sourceIds)
  const rows = await session.rows<{ source_id: string }>(readHolders, part, list)
  return new Set(rows.map((row) => row.source_id))
}

const optionalInstant = (value: Integer | null): Instant | null =>
  value === null ? null : instant(BigInt(value))
