/** Taking letters out of a dead queue by the calls of queues: that resolves them. */
import { sql } from '../../db/database.ts'
import { at, flag, integer, orNull, type RowOf, rowShape, text } from '../../db/row.ts'
import type { HistoryEntry } from '../../history/record.ts'
import { change } from '../change.ts'
import { letterId } from '../letter.ts'
import type { OfficeWork } from '../work.ts'
import { lockingAt } from './read.ts'

/** A letter that left its dead queue, with where it lay. */
const LIFTED = rowShape({
  id: letterId,
  engine: text,
  leasedBy: orNull(text),
  serial: integer,
  shelf: integer,
  leased: flag,
  laidAt: at,
  leaseDeadline: orNull(at),
})
export type Lifted = RowOf<typeof LIFTED>

/** By their places, on letters_lying. */
const lockThese = sql('lying.lockToResolve', lockingAt(LIFTED.columns, 'leased >= $4'), { bigints: true })

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
  { act, by, runs, shelves, leasedOnly }: Resolving,
): Promise<readonly Lifted[]> {
  if (serials.length === 0) return []
  const rows = await work.tx.rows<object>(lockThese, part, serials, shelves, leasedOnly ? 1 : 0)
  const lifted = rows.map(LIFTED.read)
  const letters = lifted.map(({ id, engine, serial, leasedBy }) => ({
    id,
    engine,
    actor: by ?? leasedBy,
    run: runs?.get(serial),
  }))
  await change(work, act, letters, { actor: by, notes: null })
  return lifted
}
