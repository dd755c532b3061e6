/** clear: empties a queue in bounded transactions, so that neither memory nor others' leases suffer. */
import type { Clock } from '../core/clock.ts'
import type { Database } from '../db/database.ts'
import { lyingSerials } from '../letters/lying/read.ts'
import { inOffice, type OfficeWork } from '../letters/work.ts'
import { count } from './counts.ts'
import { resolveFromDeadQueue } from './dead-queue.ts'
import type { ClearRequest } from './queue.ts'
import type { Partition, QueueRecord } from './records.ts'
import { type Removal, type RemovalDesk, tellOfRemoval } from './removed.ts'
import { SHELF } from './schema.ts'
import { nextSerials, removeAny } from './sql/remove.ts'

const BATCH = 1_000

/** What removing many items and letters needs. */
export interface Clearing extends RemovalDesk {
  readonly db: Database
  readonly clock: Clock
}

/** Where on a shelf to go on, and how far. */
interface ShelfPage {
  readonly shelf: number
  readonly after: number
  readonly limit: number
  readonly leasedToo: boolean
}

/** Takes the next of a shelf away, in the transaction of the call; gives their serials. */
type ClearNext = (
  work: OfficeWork,
  desk: RemovalDesk,
  partition: Partition,
  page: ShelfPage,
  by: Removal['by'],
) => Promise<readonly number[]>

/** Removes items, and tells the letters that were sent back as them. */
export const clearItems: ClearNext = async (work, desk, { part, idPrefix }, { shelf, ...page }, by) => {
  const serials = await nextSerials(work.tx, part, shelf, page)
  if (serials.length === 0) return serials
  const { change, cases } = await removeAny(work.tx, part, serials, [shelf])
  count(work.tx, part, change)
  await tellOfRemoval(work, desk, { by, idPrefix }, cases)
  return serials
}

/** Resolves letters of a dead queue. */
export const clearLetters: ClearNext = async (work, _desk, partition, { shelf, ...page }, by) => {
  const serials = await lyingSerials(work.tx, partition.part, shelf, page)
  if (serials.length === 0) return serials
  const resolving = { act: 'discard', by, shelves: [shelf] } as const
  count(work.tx, partition.part, (await resolveFromDeadQueue(work, partition, serials, resolving)).change)
  return serials
}

/** Removes what the request names from all partitions. */
export async function clearQueue(
  clearing: Clearing,
  queue: QueueRecord,
  { queue: queued, scheduled, destructive: leasedToo = false }: ClearRequest,
): Promise<void> {
  const { db, clock } = clearing
  const shelves = [
    ...(queued === true ? [SHELF.queue, SHELF.held] : []),
    ...(scheduled === true ? [SHELF.scheduled] : []),
  ]
  for (const partition of queue.partitions) {
    const kinds = partition.holdsLetters ? [clearItems, clearLetters] : [clearItems]
    for (const [shelf, clearNext] of shelves.flatMap((shelf) =>
      kinds.map((kind) => [shelf, kind] as const),
    )) {
      let after: number | undefined = 0
      while (after !== undefined) {
        const page: ShelfPage = { shelf, after, limit: BATCH, leasedToo }
        const cleared = await inOffice(db, clock, 'queue.clear', (work) =>
          clearNext(work, clearing, partition, page, 'queues.clear'),
        )
        after = cleared.at(-1)
      }
    }
  }
}
