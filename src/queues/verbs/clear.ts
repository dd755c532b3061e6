/**
 * Items and letters that are taken away: some by their ids, or all of a queue, in bounded transactions, so that neither memory nor others'
 * leases suffer: of one that is cleared, at once, and what is left of deleted ones. A deletion takes everything out of reach in one small transaction and begins a run, which removes the
 * rows in steps that hold nobody up. A round every ten minutes looks once more: a server that did not know of the deletion yet may have
 * been writing.
 */
import { type Clock, type Instant, later } from '../../core/clock.ts'
import { lyingSerials } from '../../letters/in-dead-queue/read.ts'
import { inOffice, type OfficeRuns, type OfficeWork } from '../../letters/work.ts'
import { type Database, type Integer, sql, type Transaction } from '../../store/database.ts'
import type { Run, Step } from '../../work/run.ts'
import { CountChanges, count, partitionCounter } from '../counts.ts'
import { resolveFromDeadQueue } from '../death/dead-queue.ts'
import type { ClearRequest } from '../queue.ts'
import type { Partition, QueueRecord } from '../records.ts'
import { SHELF } from '../schema.ts'
import { nextSerials, removeAny } from '../sql/remove.ts'
import { type Removal, type RemovalDesk, tellOfRemoval } from './removed.ts'

/** Rows of one transaction: a few milliseconds, also on SQLite, where everybody waits for it. */
const BATCH = 1_000

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
const clearItems: ClearNext = async (work, desk, { part, idPrefix }, { shelf, ...page }, by) => {
  const serials = await nextSerials(work.tx, part, shelf, page)
  if (serials.length === 0) return serials
  const { change, cases } = await removeAny(work.tx, part, serials, [shelf])
  count(work.tx, part, change)
  await tellOfRemoval(work, desk, { by, idPrefix }, cases)
  return serials
}

const clearLetters: ClearNext = async (work, _desk, partition, { shelf, ...page }, by) => {
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

/** Removes items and resolves letters of one partition, whatever they are. Serials ascend; those that are not there do not matter. */
export async function deleteItems(
  clearing: Clearing,
  partition: Partition,
  serials: readonly number[],
): Promise<void> {
  const by = 'items.delete'
  await inOffice(clearing.db, clearing.clock, by, async (work) => {
    const changes = new CountChanges()
    const letters = await resolveFromDeadQueue(work, partition, serials, { act: 'discard', by })
    changes.add(partition.part, letters.change)
    const items = serials.filter((serial) => !letters.serials.has(serial))
    const removed = await removeAny(work.tx, partition.part, items)
    changes.add(partition.part, removed.change)
    changes.write(work.tx)
    await tellOfRemoval(work, clearing, { by, idPrefix: partition.idPrefix }, removed.cases)
  })
}

export const REMOVAL = 'queue-removal'
/** How long rows may still come to a partition after its deletion. */
const REMEMBER_US = 600_000_000n
const ROUNDS = { about: 'what is left of deleted queues', firstUs: 0n, everyUs: REMEMBER_US }
/** Stages without rows that one step passes. */
const MOST_STAGES = 60

/** What is removed of a partition, one after the other. */
const STAGES = Object.values(SHELF).flatMap((shelf) =>
  [clearItems, clearLetters].map((clearNext) => ({ shelf, clearNext })),
)

/** null: the partitions of all queues that were deleted long enough before. */
type Subject = readonly number[] | null

/** How far a run is: behind a serial, in a stage of the first partition behind `behind`. */
interface Place {
  readonly behind: number
  readonly stage: number
  readonly after: number
}

/** Says how the runs are carried out. */
export const defineRemoval = (runs: OfficeRuns, desk: RemovalDesk): void =>
  runs.define<Subject, Place | null>({
    kind: REMOVAL,
    batch: BATCH,
    rounds: ROUNDS,
    step: (work, run, most) => step(work, run, most, desk),
  })

/** Begins the removal of a queue, in the transaction that deletes it. */
export async function beginRemoval(
  work: OfficeWork,
  runs: OfficeRuns,
  { queueName, partitions }: QueueRecord,
): Promise<void> {
  const subject = partitions.map(({ part }) => part).sort((a, b) => a - b)
  await runs.begin(work, { kind: REMOVAL, about: queueName, subject, place: null, actor: 'queues.delete' })
}

async function step(
  work: OfficeWork,
  run: Run<Subject, Place | null>,
  limit: number,
  desk: RemovalDesk,
): Promise<Step<Place>> {
  const before = later(run.startedAt, -REMEMBER_US)
  const parts = run.subject ?? (await droppedParts(work.tx, before))
  let { behind, stage, after }: Place = run.place ?? { behind: 0, stage: 0, after: 0 }
  for (let looked = 0; looked < MOST_STAGES; looked++) {
    const part = parts.find((each) => each > behind)
    if (part === undefined) {
      await forgetParts(work.tx, parts, before)
      return { next: 'finished' }
    }
    const at = STAGES[stage]
    if (at === undefined) [behind, stage] = [part, 0]
    else {
      // Whatever it was, letters may lie there, and nothing tells any more how its ids began.
      const partition = { part, number: 0, idPrefix: '', holdsLetters: true }
      const page = { shelf: at.shelf, after, limit, leasedToo: true }
      const removed = await at.clearNext(work, desk, partition, page, 'queues.delete')
      after = removed.at(-1) ?? 0
      if (after > 0) return { place: { behind, stage, after }, done: removed.length, next: 'more' }
      stage++
    }
  }
  return { place: { behind, stage, after }, next: 'more' }
}

/** There are few of them, and only until they were looked at once more. */
const readDropped = sql(
  'deletedQueues.read',
  'SELECT part FROM bartleby.dropped_parts WHERE dropped_at < $1 ORDER BY part',
)

async function droppedParts(tx: Transaction, before: Instant): Promise<readonly number[]> {
  return (await tx.rows<{ part: Integer }>(readDropped, before)).map(({ part }) => Number(part))
}

const ofParts = (table: string): string => `DELETE FROM bartleby.${table} WHERE part = ANY($1::int[])`

/** Reads all lease batches, once for all parts: an index on the part would cost every lease an entry. */
const deleteBatches = sql('deletedQueues.batches', ofParts('lease_batches'))
const forgetOld = sql('deletedQueues.forget', `${ofParts('dropped_parts')} AND dropped_at < $2`)

/** Their items are gone; those that were looked at late enough are done with. */
async function forgetParts(tx: Transaction, parts: readonly number[], before: Instant): Promise<void> {
  if (parts.length === 0) return
  await tx.run(deleteBatches, parts)
  await partitionCounter.forget(tx, parts)
  await tx.run(forgetOld, parts, before)
}
