/**
 * Removes the rows of deleted queues. Deleting a queue takes its items out of reach in one small transaction;
 * the rows go afterwards, in batches that hold nobody up.
 */
import { type Clock, instant, later } from '../core/clock.ts'
import { type Database, type Integer, sql } from '../db/database.ts'
import { inOffice } from '../letters/work.ts'
import { type Clearing, resolveNext } from './clear.ts'
import { tellOfRemoval } from './removed.ts'
import { SHELF } from './schema.ts'
import { nextSerials, removeAny } from './sql/remove.ts'

const BATCH = 1_000

/** A server that did not know of the deletion yet may still have been writing for this long. */
const REMEMBER_US = 600_000_000n

const readDropped = sql(
  'purge.read',
  'SELECT part, dropped_at FROM bartleby.dropped_parts ORDER BY part LIMIT 1000',
  { bigints: true },
)
const inParts = { postgres: 'part = ANY($1::int[])', sqlite: 'part IN (SELECT value FROM json_each($1))' }

/** Reads all lease batches, once for all parts: an index on the part would cost every lease an entry. */
const deleteBatches = sql('purge.batches', {
  postgres: `DELETE FROM bartleby.lease_batches WHERE ${inParts.postgres}`,
  sqlite: `DELETE FROM lease_batches WHERE ${inParts.sqlite}`,
})
const deleteTotals = sql('purge.totals', {
  postgres: `DELETE FROM bartleby.partition_totals WHERE ${inParts.postgres}`,
  sqlite: `DELETE FROM partition_totals WHERE ${inParts.sqlite}`,
})
const deleteDeltas = sql('purge.deltas', {
  postgres: `DELETE FROM bartleby.partition_deltas WHERE ${inParts.postgres}`,
  sqlite: 'SELECT $1',
})
const forgetParts = sql('purge.forget', {
  postgres: `DELETE FROM bartleby.dropped_parts WHERE ${inParts.postgres}`,
  sqlite: `DELETE FROM dropped_parts WHERE ${inParts.sqlite}`,
})

/** One round over the parts of deleted queues. */
export async function purgeDroppedParts(clearing: Clearing, signal: AbortSignal): Promise<void> {
  const { db, clock } = clearing
  const now = clock.now()
  const dropped = await db.session('purge.read', (session) =>
    session.rows<{ part: Integer; dropped_at: Integer }>(readDropped),
  )
  if (dropped.length === 0) return
  for (const { part } of dropped) {
    for (const shelf of Object.values(SHELF)) {
      while (!signal.aborted && (await purgeBatch(clearing, Number(part), shelf)) === BATCH);
      await resolveLetters(db, clock, Number(part), shelf, signal)
    }
  }
  if (signal.aborted) return
  const old = dropped.filter((row) => now > later(instant(BigInt(row.dropped_at)), REMEMBER_US))
  const listOf = (rows: typeof dropped) => rows.map(({ part }) => Number(part))
  await db.transaction('purge', async (tx) => {
    await tx.run(deleteBatches, listOf(dropped))
    await tx.run(deleteTotals, listOf(dropped))
    if (tx.dialect === 'postgres') await tx.run(deleteDeltas, listOf(dropped))
    if (old.length > 0) await tx.run(forgetParts, listOf(old))
  })
}

/** The letters of a deleted dead queue are resolved, and kept as long as others. */
async function resolveLetters(
  db: Database,
  clock: Clock,
  part: number,
  shelf: number,
  signal: AbortSignal,
): Promise<void> {
  const gone = { part, number: 0, idPrefix: '', holdsLetters: true }
  const resolving = { act: 'discard', by: 'queues.delete' } as const
  let after: number | null = 0
  while (after !== null && !signal.aborted) {
    after = await resolveNext(db, clock, gone, shelf, { after, leasedToo: true }, resolving)
  }
}

function purgeBatch({ db, clock, ...desk }: Clearing, part: number, shelf: number): Promise<number> {
  return inOffice(db, clock, 'purge', async (work) => {
    const serials = await nextSerials(work.tx, part, shelf, { after: 0, limit: BATCH, leasedToo: true })
    if (serials.length === 0) return 0
    const { cases } = await removeAny(work.tx, part, serials, [shelf])
    await tellOfRemoval(work, desk, { by: 'queues.delete', idPrefix: null }, cases)
    return serials.length
  })
}
