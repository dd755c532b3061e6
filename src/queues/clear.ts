/** clear: empties a queue in bounded transactions, so that neither memory nor others' leases suffer. */
import type { Clock } from '../core/clock.ts'
import type { Database } from '../db/database.ts'
import { lyingSerials } from '../letters/lying/read.ts'
import type { Resolving } from '../letters/lying/resolve.ts'
import { inOffice } from '../letters/work.ts'
import { CountChanges } from './counts.ts'
import { resolveFromDeadQueue } from './dead-queue.ts'
import type { ClearRequest } from './queue.ts'
import type { Partition, QueueRecord } from './records.ts'
import { type RemovalDesk, tellOfRemoval } from './removed.ts'
import { SHELF } from './schema.ts'
import { nextSerials, removeAny } from './sql/remove.ts'

const BATCH = 1_000

/** What removing many items and letters needs. */
export interface Clearing extends RemovalDesk {
  readonly db: Database
  readonly clock: Clock
}

/** Removes what the request names from all partitions. */
export async function clearQueue(
  clearing: Clearing,
  queue: QueueRecord,
  request: ClearRequest,
): Promise<void> {
  const leasedToo = request.destructive === true
  for (const partition of queue.partitions) {
    if (request.queue === true) {
      await clearShelf(clearing, partition, SHELF.queue, leasedToo)
      await clearShelf(clearing, partition, SHELF.held, leasedToo)
      await clearLetters(clearing, partition, SHELF.queue, leasedToo)
    }
    if (request.scheduled === true) {
      await clearShelf(clearing, partition, SHELF.scheduled, leasedToo)
      await clearLetters(clearing, partition, SHELF.scheduled, leasedToo)
    }
  }
}

async function clearShelf(
  { db, clock, ...desk }: Clearing,
  { part, idPrefix }: Partition,
  shelf: number,
  leasedToo: boolean,
): Promise<void> {
  let after: number | null = 0
  while (after !== null) {
    const behind: number = after
    after = await inOffice(db, clock, 'queue.clear', async (work) => {
      const serials = await nextSerials(work.tx, part, shelf, { after: behind, limit: BATCH, leasedToo })
      if (serials.length === 0) return null
      const changes = new CountChanges()
      const { change, cases } = await removeAny(work.tx, part, serials, [shelf])
      changes.add(part, change)
      changes.write(work.tx)
      await tellOfRemoval(work, desk, { by: 'queues.clear', idPrefix }, cases)
      return serials.at(-1) ?? null
    })
  }
}

async function clearLetters(
  { db, clock }: Clearing,
  partition: Partition,
  shelf: number,
  leasedToo: boolean,
): Promise<void> {
  if (!partition.holdsLetters) return
  const resolving = { act: 'discard', by: 'queues.clear' } as const
  let after: number | null = 0
  while (after !== null) {
    after = await resolveNext(db, clock, partition, shelf, { after, leasedToo }, resolving)
  }
}

/** Resolves the next letters of a shelf, in one transaction; the last serial, or null when there were none. */
export const resolveNext = (
  db: Database,
  clock: Clock,
  partition: Partition,
  shelf: number,
  { after, leasedToo }: { readonly after: number; readonly leasedToo: boolean },
  resolving: Pick<Resolving, 'act' | 'by'>,
): Promise<number | null> =>
  inOffice(db, clock, 'queue.clear', async (work) => {
    const serials = await lyingSerials(work.tx, partition.part, shelf, { after, limit: BATCH, leasedToo })
    if (serials.length === 0) return null
    const letters = await resolveFromDeadQueue(work, partition, serials, { ...resolving, shelves: [shelf] })
    const changes = new CountChanges()
    changes.add(partition.part, letters.change)
    changes.write(work.tx)
    return serials.at(-1) ?? null
  })
