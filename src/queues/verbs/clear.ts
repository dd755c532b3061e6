/**
 * Items and letters taken away: by id, or all of a queue, in bounded transactions that spare memory and other leases. A deletion takes
 * everything out of reach in one small transaction and begins a run that removes the rows. A round every ten minutes looks once more,
 * because a server that did not know of the deletion may have been writing.
 */
import { type Clock, type Instant, later } from '../../core/clock.ts'
import { serialsInDeadQueue } from '../../letters/in-dead-queue/read.ts'
import { inOffice, type OfficeRuns, type OfficeWork } from '../../letters/work.ts'
import { type Database, type Integer, sql, type Transaction } from '../../store/database.ts'
import type { Run, Step } from '../../work/run.ts'
import { CountChanges, count, partitionCounter } from '../counts.ts'
import { resolveFromDeadQueue } from '../death/dead-queue.ts'
import type { ClearRequest } from '../queue.ts'
import type { Partition, QueueRecord } from '../records.ts'
import { SHELF } from '../schema.ts'
import { nextSerials, removeAny } from '../sql/remove.ts'
import { type Removal, type RemovalContext, reopenRemoved } from './removed.ts'

/** Rows per transaction: a few milliseconds, also on SQLite, where everybody waits. */
const BATCH = 1_000

export interface Clearing extends RemovalContext {
  readonly db: Database
  readonly clock: Clock
}

interface ShelfPage {
  readonly shelf: number
  readonly after: number
  readonly limit: number
  readonly leasedToo: boolean
}

/** Takes the next items or letters of a shelf away; gives their serials. */
type ClearNext = (
  work: OfficeWork,
  context: RemovalContext,
  partition: Partition,
  page: ShelfPage,
  by: Removal['by'],
) => Promise<readonly number[]>

/** Removes items and reopens the letters that were sent back as them. */
const clearItems: ClearNext = async (work, context, { part, idPrefix }, { shelf, ...page }, by) => {
  const serials = await nextSerials(work.tx, part, shelf, page)
  if (serials.length === 0) return serials
  const { change, cases } = await removeAny(work.tx, part, serials, [shelf])
  count(work.tx, part, change)
  await reopenRemoved(work, context, { by, idPrefix }, cases)
  return serials
}

const clearLetters: ClearNext = async (work, _context, partition, { shelf, ...page }, by) => {
  const serials = await serialsInDeadQueue(work.tx, partition.part, shelf, page)
  if (serials.length === 0) return serials
  const resolving = { act: 'discard', by, shelves: [shelf] } as const
  count(work.tx, partition.part, (await resolveFromDeadQueue(work, partition, serials, resolving)).change)
  return serials
}

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

/** Removes items and resolves letters of one partition. Serials ascend; missing ones do not matter. */
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
    await reopenRemoved(work, clearing, { by, idPrefix: partition.idPrefix }, removed.cases)
  })
}

export const REMOVAL = 'queue-removal'
/** How long rows may still arrive after a deletion. */
const REMEMBER_US = 600_000_000n
const ROUNDS = { about: 'what is left of deleted queues', firstUs: 0n, everyUs: REMEMBER_US }
/** Empty stages that one step passes. */
const MOST_STAGES = 60

/** What is removed of a partition, in this order. */
const STAGES = Object.values(SHELF).flatMap((shelf) =>
  [clearItems, clearLetters].map((clearNext) => ({ shelf, clearNext })),
)

/** null: partitions of all queues deleted long enough ago. */
type Subject = readonly number[] | null

/** Progress of a run: a serial in a stage of the first partition behind `behind`. */
interface Place {
  readonly behind: number
  readonly stage: number
  readonly after: number
}

export const defineRemoval = (runs: OfficeRuns, context: RemovalContext): void =>
  runs.define<Subject, Place | null>({
    kind: REMOVAL,
    batch: BATCH,
    rounds: ROUNDS,
    step: (work, run, most) => step(work, run, most, context),
  })

/** Begins the removal in the transaction that deletes the queue. */
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
  context: RemovalContext,
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
      // Letters may be in any of them, and the beginning of its ids is gone.
      const partition = { part, number: 0, idPrefix: '', holdsLetters: true }
      const page = { shelf: at.shelf, after, limit, leasedToo: true }
      const removed = await at.clearNext(work, context, partition, page, 'queues.delete')
      after = removed.at(-1) ?? 0
      if (after > 0) return { place: { behind, stage, after }, done: removed.length, next: 'more' }
      stage++
    }
  }
  return { place: { behind, stage, after }, next: 'more' }
}

/** Few rows, and only until they were looked at once more. */
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

/** Forgets parts whose items are gone; `dropped_parts` keeps recent ones for another look. */
async function forgetParts(tx: Transaction, parts: readonly number[], before: Instant): Promise<void> {
  if (parts.length === 0) return
  await tx.run(deleteBatches, parts)
  await partitionCounter.forget(tx, parts)
  await tx.run(forgetOld, parts, before)
}
