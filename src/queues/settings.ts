/** Creating, updating and deleting queues. Checks against other queues and the write are one transaction. */
import type { Clock, Instant } from '../core/clock.ts'
import { failure } from '../core/errors.ts'
import type { Log } from '../core/log.ts'
import type { OfficeRuns } from '../letters/work.ts'
import { type Database, sql, type Transaction } from '../store/database.ts'
import type { QueueInfo, QueueSettings } from './queue.ts'
import {
  createQueue,
  dropQueue,
  expectLetters,
  type QueueRecord,
  readQueue,
  readQueueUsing,
  saveQueue,
  takeSettingsTurn,
} from './records.ts'
import {
  checkDeadQueueName,
  checkMerged,
  checkNewQueueName,
  checkOnDeath,
  checkQueueName,
  parseSettings,
  SYSTEM_NAMESPACE,
} from './validate.ts'
import { beginRemoval } from './verbs/clear.ts'
import { forgetDedupeKeysOf } from './verbs/dedupe.ts'

export async function createFromSettings(
  db: Database,
  clock: Clock,
  settings: QueueSettings,
): Promise<QueueRecord> {
  // Before a transaction is begun.
  checkNew(settings)
  return db.transaction('queues.create', async (tx) => {
    await takeSettingsTurn(tx)
    return createInTurn(tx, clock.now(), settings)
  })
}

/** Checks that need no other queue. */
function checkNew(settings: QueueSettings) {
  const timeouts = parseSettings(settings)
  checkNewQueueName(settings.queueName)
  const namespace = settings.namespace || SYSTEM_NAMESPACE
  if (namespace !== SYSTEM_NAMESPACE) throw failure('namespace_unknown', { name: namespace })
  return { timeouts, namespace }
}

/** Creates a queue in a transaction that has the settings turn. */
export async function createInTurn(
  tx: Transaction,
  now: Instant,
  settings: QueueSettings,
): Promise<QueueRecord> {
  const { timeouts, namespace } = checkNew(settings)
  const name = settings.queueName
  if ((await readQueue(tx, name)) !== null) throw failure('queue_exists', { name })
  await checkDeadQueue(tx, settings)
  const queue: QueueInfo = {
    queueName: name,
    createdAt: now,
    updatedAt: now,
    ...timeouts,
    deadQueue: settings.deadQueue ?? '',
    reference: settings.reference ?? '',
    maxAttempts: settings.maxAttempts ?? 0,
    requestedPartitions: settings.requestedPartitions ?? 0,
    namespace,
    onDeath: 'letter',
  }
  checkMerged(queue, true)
  const onDeath = checkOnDeath(settings, queue.onDeath)
  return createQueue(tx, { ...queue, onDeath }, (await readQueueUsing(tx, name)) !== null)
}

/**
 * Changes a queue. Timeouts, partitions and on_death change only when given; attempts, reference and dead queue are always overwritten,
 * as the contract has it.
 */
export async function updateFromSettings(
  db: Database,
  clock: Clock,
  settings: QueueSettings,
): Promise<QueueRecord> {
  const timeouts = parseSettings(settings)
  return db.transaction('queues.update', async (tx) => {
    await takeSettingsTurn(tx)
    const name = settings.queueName
    const stored = await readQueue(tx, name)
    if (stored === null) throw failure('queue_unknown', { name })
    await checkDeadQueue(tx, settings)
    const merged: QueueInfo = {
      ...stored,
      updatedAt: clock.now(),
      leaseTimeoutNs: timeouts.leaseTimeoutNs || stored.leaseTimeoutNs,
      expireTimeoutNs: timeouts.expireTimeoutNs || stored.expireTimeoutNs,
      requestedPartitions: settings.requestedPartitions || stored.requestedPartitions,
      maxAttempts: settings.maxAttempts ?? 0,
      reference: settings.reference ?? '',
      deadQueue: settings.deadQueue ?? '',
    }
    checkMerged(merged, false)
    const queue = { ...merged, onDeath: checkOnDeath(settings, stored.onDeath) }
    await saveQueue(tx, stored.queueId, queue)
    return { ...stored, ...queue, version: stored.version + 1 }
  })
}

/** Deletes a queue; its rows are out of reach at once, and a run removes them. */
export async function deleteByName(
  runs: OfficeRuns,
  { queueName: name, force }: { readonly queueName: string; readonly force?: boolean },
): Promise<QueueRecord> {
  checkQueueName(name)
  return runs.inWork('queues.delete', async (work) => {
    const { tx } = work
    await takeSettingsTurn(tx)
    const stored = await readQueue(tx, name)
    if (stored === null) throw failure('queue_unknown', { name })
    const other = await readQueueUsing(tx, name)
    if (other !== null && force !== true) throw failure('queue_in_use', { name, other })
    await dropQueue(tx, stored, work.now)
    await forgetDedupeKeysOf(tx, stored.queueId)
    await beginRemoval(work, runs, stored)
    return stored
  })
}

async function checkDeadQueue(tx: Transaction, { queueName, deadQueue }: QueueSettings): Promise<void> {
  if (deadQueue === undefined || deadQueue === '') return
  checkDeadQueueName(deadQueue, queueName)
  const target = await readQueue(tx, deadQueue)
  if (target === null) throw failure('dead_queue_unknown', { name: deadQueue })
  if (target.deadQueue !== '') throw failure('dead_queue_chained', { name: deadQueue })
  if ((await readQueueUsing(tx, queueName)) !== null) throw failure('dead_queue_in_use', { name: queueName })
  await expectLetters(tx, target)
}

/** Queues older than the choice of what becomes of their dead; read once per start. */
const readUnannounced = sql(
  'queues.untold',
  'SELECT name, dead_queue FROM bartleby.queues WHERE on_death IS NULL ORDER BY name',
)

/** Of several servers starting at once, one marks each queue. */
const markAnnounced = sql(
  'queues.markTold',
  `UPDATE bartleby.queues SET on_death = 'letter' WHERE name = $1 AND on_death IS NULL`,
)

/** Says once per store that items which used to be deleted in older queues now become letters. */
export async function warnOfOlderQueues(db: Database, log: Log): Promise<void> {
  const older = await db.session('queues.untold', (session) =>
    session.rows<{ readonly name: string; readonly dead_queue: string | null }>(readUnannounced),
  )
  if (older.length === 0) return
  const queues = await db.transaction('queues.markTold', async (tx) => {
    const mine: string[] = []
    for (const { name, dead_queue } of older) {
      const marked = (await tx.run(markAnnounced, name)) > 0
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
