/** Taking letters out of a dead queue by the calls of queues: that resolves them. */
import { type Instant, instant } from '../../core/clock.ts'
import { type Integer, integerList, sql, type Transaction } from '../../db/database.ts'
import type { HistoryEntry } from '../../history/record.ts'
import { change } from '../change.ts'
import { type LetterId, letterId } from '../letter.ts'
import type { OfficeWork } from '../work.ts'
import { optionalInstant } from './place.ts'

const FACTS = 'id, engine, serial, shelf, leased, laid_at, lease_deadline, leased_by'

/** By their places, on letters_lying; locked until the transaction ends. */
const lockThese = sql(
  'lying.lockToResolve',
  {
    postgres: `SELECT ${FACTS} FROM bartleby.letters
               WHERE part = $1 AND shelf = ANY($3::int[]) AND serial = ANY($2::bigint[]) AND leased >= $4
               ORDER BY part, shelf, serial FOR UPDATE`,
    sqlite: `SELECT ${FACTS} FROM letters INDEXED BY letters_lying
             WHERE part = $1 AND shelf IN (SELECT value FROM json_each($3)) AND serial IN (SELECT value FROM json_each($2))
               AND leased >= $4`,
  },
  { bigints: true },
)

interface LockedRow {
  readonly id: Integer
  readonly engine: string
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
  readonly engine: string
  readonly leasedBy: string | null
  readonly serial: number
  readonly shelf: number
  readonly leased: boolean
  readonly laidAt: Instant
  readonly leaseDeadline: Instant | null
}

/** What a queue call that takes letters out of a dead queue does to them. */
export interface Resolving {
  readonly act: 'complete' | 'discard'
  /** Who; null for the client that holds the lease. */
  readonly by: string | null
  /** The history rows of the runs that led to it, by serial: each doubles as the row of its letter's resolution. */
  readonly runs?: ReadonlyMap<number, HistoryEntry>
  readonly leasedOnly: boolean
  readonly shelves: readonly number[]
}

/** Resolves what is there of these letters; the counts of their dead queue are up to the caller. */
export async function resolveLying(
  work: OfficeWork,
  part: number,
  serials: readonly number[],
  { act, by, runs, ...which }: Resolving,
): Promise<readonly Lifted[]> {
  if (serials.length === 0) return []
  const lifted = await lockLying(work.tx, part, serials, which)
  const letters = lifted.map(({ id, engine, serial, leasedBy }) => ({
    id,
    engine,
    actor: by ?? leasedBy,
    run: runs?.get(serial),
  }))
  await change(work, act, letters, { actor: by, notes: null })
  return lifted
}

async function lockLying(
  tx: Transaction,
  part: number,
  serials: readonly number[],
  { shelves, leasedOnly }: Pick<Resolving, 'shelves' | 'leasedOnly'>,
): Promise<Lifted[]> {
  const rows = await tx.rows<LockedRow>(
    lockThese,
    part,
    integerList(tx.dialect, serials),
    integerList(tx.dialect, shelves),
    leasedOnly ? 1 : 0,
  )
  return rows.map((row) => ({
    id: letterId(row.id),
    engine: row.engine,
    leasedBy: row.leased_by,
    serial: Number(row.serial),
    shelf: Number(row.shelf),
    leased: Number(row.leased) === 1,
    laidAt: instant(BigInt(row.laid_at)),
    leaseDeadline: optionalInstant(row.lease_deadline),
  }))
}
