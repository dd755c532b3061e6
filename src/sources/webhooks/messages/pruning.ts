/**
 * Pruning: an hourly round removes old messages whose jobs are all delivered, with jobs and counts. A message with a job that waits, runs
 * or is dead stays, whatever its age. Letters keep to the office's own retention.
 */
import { type Instant, later } from '../../../core/clock.ts'
import type { Log } from '../../../core/log.ts'
import { type Xid, xid, xidsFrom } from '../../../core/xid.ts'
import type { OfficeRuns, OfficeWork } from '../../../letters/work.ts'
import { type Integer, sql, type Transaction } from '../../../store/database.ts'
import { at, integer, orNull, type RowOf, rowShape, text } from '../../../store/row.ts'
import type { Run, Step } from '../../../work/run.ts'
import { CountChanges } from '../numbers/counts.ts'
import type { WebhookSettings } from '../settings.ts'
import { JOB } from '../webhook.ts'
import { upToJobs } from './dispatch.ts'

export const PRUNING = 'webhook-pruning'
const DAY_US = 86_400_000_000
const ROUNDS = { about: 'delivered webhook messages', firstUs: 0n, everyUs: 3_600_000_000n }
/** Passed in one step: most have nothing to remove. */
const MOST_CHANNELS = 20

/** `receivedAt` is an instant in digits. */
interface MessagePlace {
  readonly receivedAt: string
  readonly id: string
}

/** Null: the channel is done. */
interface Place {
  readonly channel: number
  readonly behind: MessagePlace | null
}

/** None when messages are kept for ever. */
export function definePruning(
  runs: OfficeRuns,
  {
    settings: { retention },
    log,
  }: { readonly settings: Pick<WebhookSettings, 'retention'>; readonly log: Log },
): void {
  if (retention.days === 0) return
  const keptUs = BigInt(Math.round(retention.days * DAY_US))
  runs.define<null, Place | null>({
    kind: PRUNING,
    batch: MOST_CHANNELS,
    rounds: ROUNDS,
    step: (work, run) => step(work, run, keptUs, log),
  })
}

async function step(
  { tx, afterCommit }: OfficeWork,
  run: Run<null, Place | null>,
  keptUs: bigint,
  log: Log,
): Promise<Step<Place>> {
  const before = later(run.startedAt, -keptUs)
  let { channel, behind }: Place = run.place ?? { channel: 0, behind: null }
  for (let looked = 0; looked < MOST_CHANNELS; looked++) {
    if (behind === null) {
      const [next] = await tx.rows<{ number: Integer }>(readChannel, channel)
      if (next === undefined) {
        if (run.done > 0)
          afterCommit(() =>
            log.info({ messages: run.done }, 'removed webhook messages that were past their time'),
          )
        return { next: 'finished' }
      }
      channel = Number(next.number)
    }
    const { removed, next } = await pruneBatch(tx, channel, before, behind ?? FROM_THE_START)
    behind = next
    if (removed > 0) return { place: { channel, behind }, done: removed, next: 'more' }
  }
  return { place: { channel, behind }, next: 'more' }
}

/** Of one transaction: a few milliseconds, also on SQLite, where everybody waits for it. */
const MOST_MESSAGES = 200
const MOST_JOBS = 1_000

/** By the unique index of numbers. */
const readChannel = sql(
  'webhooks.nextChannel',
  'SELECT number FROM bartleby.webhook_channels WHERE number > $1 ORDER BY number LIMIT 1',
)

const ROW = rowShape({
  ...{ id: text, receivedAt: String, firstJob: orNull(xid), jobs: integer, scheduledFor: orNull(at) },
})
type Row = RowOf<typeof ROW>

/**
 * Received before $2, behind ($3, $4), in the order of webhook_messages_newest. Locked, so that no job comes back meanwhile; what others
 * have locked is for the next round.
 */
const readNext = sql(
  'webhooks.nextToPrune',
  `
    SELECT ${ROW.columns}
    FROM bartleby.webhook_messages INDEXED BY webhook_messages_newest
    WHERE channel = $1 AND received_at < $2 AND (received_at, id) > ($3, $4)
    ORDER BY received_at, id LIMIT $5 FOR UPDATE SKIP LOCKED`,
  { bigints: true },
)

/** By primary key. */
const readUndelivered = sql(
  'webhooks.undelivered',
  `SELECT message FROM bartleby.webhook_jobs
    WHERE id = ANY($1::text[]) AND state <> ${JOB.delivered}`,
)

/** By primary key; they never change again, and nobody waits for them. */
const removeJobs = sql(
  'webhooks.pruneJobs',
  `DELETE FROM bartleby.webhook_jobs WHERE id = ANY($1::text[]) RETURNING consumer`,
)

/** Locked, by primary key. */
const removeMessages = sql(
  'webhooks.pruneMessages',
  `DELETE FROM bartleby.webhook_messages WHERE id = ANY($1::text[])`,
)

const FROM_THE_START: MessagePlace = { receivedAt: `${-(2n ** 63n)}`, id: '' }

/** `next` is null when the channel is done. */
async function pruneBatch(
  tx: Transaction,
  channel: number,
  before: Instant,
  after: MessagePlace,
): Promise<{ readonly removed: number; readonly next: MessagePlace | null }> {
  const place = [BigInt(after.receivedAt), after.id] as const
  const rows = await ROW.all(tx, readNext, channel, before, ...place, MOST_MESSAGES)
  const looked = upToJobs(rows, MOST_JOBS, ({ jobs }) => jobs)
  const last = looked.at(-1)
  if (last === undefined) return { removed: 0, next: null }
  const done = await doneAmong(tx, looked)
  const counts = new CountChanges()
  counts.add(channel, 'dispatched', -done.length)
  counts.add(channel, 'scheduledDispatched', -done.filter((row) => row.scheduledFor !== null).length)
  await remove(tx, done, counts)
  counts.write(tx)
  const ended = looked.length === rows.length && rows.length < MOST_MESSAGES
  return { removed: done.length, next: ended ? null : { receivedAt: last.receivedAt, id: last.id } }
}

const jobsOf = (rows: readonly Row[]): Xid[] =>
  rows.flatMap(({ firstJob, jobs }) => (firstJob === null ? [] : xidsFrom(firstJob, jobs)))

/** Erased jobs are in nobody's way. */
async function doneAmong(tx: Transaction, rows: readonly Row[]): Promise<readonly Row[]> {
  const jobs = jobsOf(rows)
  const waiting = await tx.rows<{ message: string }>(readUndelivered, jobs)
  const kept = new Set(waiting.map(({ message }) => message))
  return rows.filter(({ id }) => !kept.has(id))
}

async function remove(tx: Transaction, rows: readonly Row[], counts: CountChanges): Promise<void> {
  if (rows.length === 0) return
  const ids = rows.map(({ id }) => id).sort()
  const [jobs] = await Promise.all([
    tx.rows<{ consumer: Integer }>(removeJobs, jobsOf(rows)),
    tx.run(removeMessages, ids),
  ])
  for (const { consumer } of jobs) counts.moved(Number(consumer), JOB.delivered, null)
}
