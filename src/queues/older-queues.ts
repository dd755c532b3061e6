/**
 * Queues that were made before a queue could say what becomes of what dies in it. Up to then an item that died without a
 * dead queue was deleted, and now it is a letter. Whoever reads the log is told once for each store.
 */
import type { Log } from '../core/log.ts'
import { type Database, sql } from '../store/database.ts'

/** Queues are few, and this is read once per start. */
const readUntold = sql(
  'queues.untold',
  'SELECT name, dead_queue FROM bartleby.queues WHERE on_death IS NULL ORDER BY name',
)

/** Only those that nobody was told of: of several servers that start at once, one tells of each. */
const markTold = sql(
  'queues.markTold',
  `UPDATE bartleby.queues SET on_death = 'letter' WHERE name = $1 AND on_death IS NULL`,
)

/** Names the older queues without a dead queue, once. */
export async function tellOfOlderQueues(db: Database, log: Log): Promise<void> {
  const untold = await db.session('queues.untold', (session) =>
    session.rows<{ readonly name: string; readonly dead_queue: string | null }>(readUntold),
  )
  if (untold.length === 0) return
  const queues = await db.transaction('queues.markTold', async (tx) => {
    const mine: string[] = []
    for (const { name, dead_queue } of untold) {
      const marked = (await tx.run(markTold, name)) > 0
      if (marked && dead_queue === null) mine.push(name)
    }
    return mine
  })
  if (queues.length === 0) return
  log.warn(
    { queues },
    'what dies in these queues, which have no dead queue, is a letter from this version on and no longer deleted; where that is not wanted, as in a queue used as a timer: bartleby queues update NAME --on-death delete',
  )
}
