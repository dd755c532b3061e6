/** clear: empties a queue in bounded transactions, so that neither memory nor others' leases suffer. */
import type { Database } from '../db/database.ts'
import { CountChanges } from './counts.ts'
import type { ClearRequest } from './queue.ts'
import type { QueueRecord } from './records.ts'
import { SHELF } from './schema.ts'
import { nextSerials, removeAny } from './sql/remove.ts'

const BATCH = 1_000

/** Removes what the request names from all partitions. */
export async function clearQueue(db: Database, queue: QueueRecord, request: ClearRequest): Promise<void> {
  const leasedToo = request.destructive === true
  for (const { part } of queue.partitions) {
    if (request.queue === true) {
      await clearShelf(db, part, SHELF.queue, leasedToo)
      await clearShelf(db, part, SHELF.held, leasedToo)
    }
    if (request.scheduled === true) await clearShelf(db, part, SHELF.scheduled, leasedToo)
  }
}

async function clearShelf(db: Database, part: number, shelf: number, leasedToo: boolean): Promise<void> {
  let after = 0
  for (;;) {
    const last = await db.transaction('queue.clear', async (tx) => {
      const serials = await nextSerials(tx, part, shelf, { after, limit: BATCH, leasedToo })
      if (serials.length === 0) return null
      const changes = new CountChanges()
      changes.add(part, await removeAny(tx, part, serials, [shelf]))
      changes.write(tx)
      return serials.at(-1) ?? null
    })
    if (last === null) return
    after = last
  }
}
