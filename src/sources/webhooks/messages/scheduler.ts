/**
 * Scheduled messages go out: every interval a server takes what is due and not held by others, oldest first. One that fails is tried alone
 * and put back for a growing while. What is due is looked for, not waited for: timers end after 24 days.
 */
import { backoffDelayMs } from '../../../core/backoff.ts'
import { type Instant, later, microseconds } from '../../../core/clock.ts'
import { Rounds } from '../../../core/rounds.ts'
import { xid } from '../../../core/xid.ts'
import { eachAlone } from '../../../store/bad-rows.ts'
import { StoreUnavailable, sql, type Transaction } from '../../../store/database.ts'
import { runGiven } from '../../../store/idioms.ts'
import { integer, type RowOf, rowShape } from '../../../store/row.ts'
import { CountChanges } from '../numbers/counts.ts'
import type { Parts, WebhookSettings } from '../settings.ts'
import { insertJobs, type JobBlock, jobBlock, pushedTo, readAudience, upToJobs } from './dispatch.ts'

const DUE = rowShape({ id: xid, channel: integer, priority: integer, tries: integer })
type DueMessage = RowOf<typeof DUE>

/** In the order of webhook_messages_due, without payloads. Locked; what others have locked is left to them. */
const takeFirst = sql(
  'webhooks.takeDue',
  `
    SELECT ${DUE.columns} FROM bartleby.webhook_messages INDEXED BY webhook_messages_due
    WHERE next_try_at <= $1 ORDER BY next_try_at, id LIMIT $2 FOR UPDATE SKIP LOCKED`,
)

/** By primary key. `received_at` and not `next_try_at`, which would invite its indexes. */
const takeById = sql(
  'webhooks.takeDueOne',
  `SELECT ${DUE.columns} FROM bartleby.webhook_messages WHERE id = $1 AND received_at IS NULL FOR UPDATE SKIP LOCKED`,
)

/** Locked, by primary key. */
const mark = sql(
  'webhooks.markDispatched',
  `UPDATE bartleby.webhook_messages SET received_at = $4, next_try_at = NULL, first_job = given.first_job, jobs = given.jobs
   FROM unnest($1::text[], $2::text[], $3::int[]) AS given (id, first_job, jobs) WHERE webhook_messages.id = given.id`,
)

/** By primary key, unless it was dispatched meanwhile. */
const delayOne = sql(
  'webhooks.putBack',
  'UPDATE bartleby.webhook_messages SET tries = tries + 1, next_try_at = $2 WHERE id = $1 AND received_at IS NULL',
)

interface SchedulerParts extends Pick<Parts, 'db' | 'clock' | 'log' | 'xids' | 'onJobs'> {
  readonly settings: Pick<WebhookSettings, 'scheduler'>
}

/** Of a message that cannot be dispatched. */
const DELAY = { baseMs: 10_000, factor: 2, maxMs: 3_600_000, jitter: 0 }
/** Of one transaction: some 50 ms on SQLite, where everybody waits for it. */
const MOST_JOBS = 5_000

type Take = (tx: Transaction, now: Instant) => Promise<readonly DueMessage[]>

export function scheduling(parts: SchedulerParts): Rounds {
  const { clock, log, settings } = parts
  return new Rounds({
    ...{ name: 'webhooks.schedule', clock, log },
    everyUs: microseconds(settings.scheduler.intervalMs / 1_000),
    act: async (signal) => {
      let more = true
      while (more && !signal.aborted) more = await dispatchBatch(parts, signal)
    },
    trouble: 'dispatching scheduled messages failed; the next round tries again',
  })
}

/** Whether there may be more. */
async function dispatchBatch(parts: SchedulerParts, signal: AbortSignal): Promise<boolean> {
  const { db, clock, log, settings } = parts
  const { batchSize } = settings.scheduler
  let taken: readonly DueMessage[] = []
  try {
    const dispatched = await dispatch(parts, async (tx, now) => {
      taken = await DUE.all(tx, takeFirst, now, batchSize)
      return taken
    })
    return dispatched < taken.length || taken.length === batchSize
  } catch (error) {
    if (error instanceof StoreUnavailable || taken.length === 0) throw error
  }
  // It may have gone out meanwhile, or somebody else has taken it.
  const alone = ({ id }: DueMessage) => dispatch(parts, (tx) => DUE.all(tx, takeById, id))
  const putBack = ({ id, tries }: DueMessage, error: unknown) => {
    // The text alone: a store's error may carry the row itself.
    const reason = error instanceof Error ? error.message : String(error)
    log.error({ message: id, tries: tries + 1, reason }, 'a scheduled message failed; it is put back')
    const againAt = later(clock.now(), microseconds(backoffDelayMs(tries + 1, DELAY) / 1_000))
    return db.statement('webhooks.putBack', (tx) => tx.run(delayOne, id, againAt))
  }
  await eachAlone(taken, alone, putBack, signal)
  return taken.length === batchSize
}

async function dispatch({ db, clock, xids, onJobs }: SchedulerParts, take: Take): Promise<number> {
  const blocks = await db.transaction('webhooks.dispatchScheduled', async (tx) => {
    const now = clock.now()
    const taken = await take(tx, now)
    if (taken.length === 0) return []
    const audience = await readAudience(
      tx,
      taken.map(({ channel }) => channel),
    )
    const due = upToJobs(taken, MOST_JOBS, ({ channel }) => audience.get(channel)?.length ?? 0)
    const blocks = due.map((message) => jobBlock(xids, audience, message))
    const counts = new CountChanges()
    for (const { channel } of due) {
      counts.add(channel, 'scheduled', -1)
      counts.add(channel, 'scheduledDispatched', 1)
      counts.add(channel, 'dispatched', 1)
    }
    await markDispatched(tx, now, blocks)
    await insertJobs(tx, now, blocks, counts)
    counts.write(tx)
    return blocks
  })
  const pushed = pushedTo(blocks)
  if (pushed.size > 0) onJobs(pushed)
  return blocks.length
}

async function markDispatched(tx: Transaction, now: Instant, blocks: readonly JobBlock[]): Promise<void> {
  const given = blocks.map(({ message, first, addressees }) => {
    return { id: message, first_job: first, jobs: addressees.length }
  })
  await runGiven(tx, mark, given, now)
}
