/**
 * Which queue belongs to which engine, and the queue that is made for one. The store knows it, because an item may die on a
 * server that has not heard of the engine. An engine may have several queues; a queue has one engine, the one that was
 * defined last.
 */
import type { Log } from '../core/log.ts'
import { type Database, type Session, sql } from '../db/database.ts'
import type { OfficeWork } from '../letters/work.ts'
import type { QueueSettings } from './queue.ts'
import { readQueue, takeSettingsTurn } from './records.ts'
import { createInTurn } from './settings.ts'

export interface EngineQueue {
  readonly queue: string
  readonly engine: string
}

/** One row by primary key. */
const readOne = sql('engineQueues.read', 'SELECT engine FROM bartleby.engine_queues WHERE queue = $1')

/** All of them; there are as many as engines were ever defined. */
const readAll = sql('engineQueues.readAll', 'SELECT queue, engine FROM bartleby.engine_queues ORDER BY queue')

const writeOne = sql(
  'engineQueues.write',
  `INSERT INTO bartleby.engine_queues (queue, engine) VALUES ($1, $2)
   ON CONFLICT (queue) DO UPDATE SET engine = excluded.engine`,
)

/** The engine that a queue belongs to; null when it is a plain queue. */
export async function readEngineOf(session: Session, queue: string): Promise<string | null> {
  const [row] = await session.rows<{ readonly engine: string }>(readOne, queue)
  return row?.engine ?? null
}

/** All queues of engines, by the name of the queue. */
export const readEngineQueues = (session: Session): Promise<readonly EngineQueue[]> =>
  session.rows<EngineQueue>(readAll)

/** Records that these engines are defined on these queues. Writes only what is new. */
export async function recordEngineQueues(
  db: Database,
  log: Log,
  defined: readonly EngineQueue[],
): Promise<void> {
  if (defined.length === 0) return
  const known = new Map(
    (await db.session('engineQueues.read', readEngineQueues)).map(({ queue, engine }) => [queue, engine]),
  )
  const last = new Map(defined.map((each) => [each.queue, each]))
  const news = [...last.values()].filter(({ queue, engine }) => known.get(queue) !== engine)
  if (news.length === 0) return
  await db.transaction('engineQueues.record', async (tx) => {
    for (const { queue, engine } of news) await tx.run(writeOne, queue, engine)
  })
  for (const { queue, engine } of news) {
    const before = known.get(queue)
    if (before !== undefined)
      log.warn(
        { queue, engine, before },
        'the queue is now that of another engine: what dies in it is filed under this one',
      )
  }
}

/** Long enough for a pause of the worker, short enough that a crashed one is noticed soon. */
const LEASE_TIMEOUT = '1m'
/** The longest there is: messages of engines do not expire, they succeed or become letters. */
const EXPIRE_TIMEOUT = '2562047h47m16s'

/** How the queue of an engine is made, by its first worker or by the first letter that goes back to it. */
export const engineQueueSettings = (engine: string, queueName: string): QueueSettings => ({
  queueName,
  leaseTimeout: LEASE_TIMEOUT,
  expireTimeout: EXPIRE_TIMEOUT,
  maxAttempts: 0,
  requestedPartitions: 1,
  reference: `engine ${engine}`,
})

/**
 * Makes a queue that is missing, if it is the engine's own; false when it is not. Of two transactions at once the second waits
 * for the first and finds its queue.
 */
export async function makeEngineQueue(
  { tx, now }: Pick<OfficeWork, 'tx' | 'now'>,
  engine: string,
  queueName: string,
): Promise<boolean> {
  if ((await readEngineOf(tx, queueName)) !== engine) return false
  await takeSettingsTurn(tx)
  if ((await readQueue(tx, queueName)) === null) {
    await createInTurn(tx, now, engineQueueSettings(engine, queueName))
  }
  return true
}
