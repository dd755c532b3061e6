/**
 * One batch of a bulk run: the next dead jobs of a consumer are requeued or erased, with their letters, counts and history, and the run
 * is so much further, in one transaction. After a crash all of it has happened or nothing.
 */
import { type Instant, instant } from '../../core/clock.ts'
import { type Xid, xid } from '../../core/xid.ts'
import { type Integer, sql } from '../../db/database.ts'
import { eraseLetters } from '../../letters/erase.ts'
import { type LetterId, letterId } from '../../letters/letter.ts'
import { lockLetters } from '../../letters/reopen.ts'
import type { OfficeWork } from '../../letters/work.ts'
import { readConsumerNames } from '../job-sql.ts'
import { removeExhaustedJobs } from '../letters/dead-rows.ts'
import { requeueJobs, webhookLetterSource } from '../letters/source.ts'
import { JOB, queueOfConsumer, WEBHOOKS } from '../webhook.ts'
import { advanceRun, type HeldRun, holdRun, type Lease } from './run-rows.ts'

export interface BatchTerms {
  readonly lease: Lease
  /** Jobs of one transaction. */
  readonly size: number
  readonly maxRetry: number
  /** Jobs of these push consumers are ready; called after the commit. */
  readonly onJobs: (consumers: ReadonlySet<number>) => void
}

/** 'lost': it is another server's now, or done, or gone with its consumer. */
export type BatchOutcome = 'more' | 'finished' | 'lost'

/** The next of a consumer's dead jobs, in the order of webhook_jobs_dead. Locks nothing: their letters come first. */
const readNext = sql(
  'webhooks.nextDead',
  {
    postgres: `SELECT id, created_at, letter, attempts, exhausted FROM bartleby.webhook_jobs
               WHERE consumer = $1 AND state = ${JOB.dead} AND (created_at, id) > ($2, $3) AND (created_at, id) <= ($4, $5)
               ORDER BY created_at, id LIMIT $6`,
    sqlite: `SELECT id, created_at, letter, attempts, exhausted FROM webhook_jobs INDEXED BY webhook_jobs_dead
             WHERE consumer = $1 AND state = ${JOB.dead} AND (created_at, id) > ($2, $3) AND (created_at, id) <= ($4, $5)
             ORDER BY created_at, id LIMIT $6`,
  },
  { bigints: true },
)

interface DeadRow {
  readonly id: string
  readonly created_at: Integer
  readonly letter: Integer | null
  readonly attempts: Integer
  readonly exhausted: Integer
}

/** Does the next batch of a run. */
export async function runBatch(work: OfficeWork, id: Xid, terms: BatchTerms): Promise<BatchOutcome> {
  const { tx } = work
  const run = await holdRun(tx, id, terms.lease.owner)
  if (run === null) return 'lost'
  const { consumer, next, last } = run
  const [names, rows] = await Promise.all([
    readConsumerNames(tx, consumer),
    tx.rows<DeadRow>(readNext, consumer, next.createdAt, next.id, last.createdAt, last.id, terms.size),
  ])
  const queue = queueOfConsumer(names?.channelId ?? '', names?.consumerId ?? '')
  const done =
    run.kind === 'requeue'
      ? await requeue(work, run, queue, rows, terms)
      : await purge(work, run, queue, rows, terms)
  const end = rows.at(-1)
  const isLast = rows.length < terms.size
  advanceRun(tx, id, {
    next: end === undefined ? next : { createdAt: BigInt(end.created_at), id: end.id },
    done,
    until: terms.lease.until,
    finishedAt: isLast ? work.now : null,
  })
  return isLast ? 'finished' : 'more'
}

async function requeue(
  work: OfficeWork,
  { actor }: HeldRun,
  queue: string,
  rows: readonly DeadRow[],
  { onJobs }: BatchTerms,
): Promise<number> {
  const requeue = { queue, letters: lettersOf(rows), notes: 'Requeued', actor }
  return (await requeueJobs(work, webhookLetterSource({ onJobs }), requeue)).length
}

const lettersOf = (rows: readonly DeadRow[]): LetterId[] =>
  rows.flatMap(({ letter }) => (letter === null ? [] : letterId(letter)))

async function purge(
  work: OfficeWork,
  { id, actor }: HeldRun,
  queue: string,
  rows: readonly DeadRow[],
  { maxRetry }: BatchTerms,
): Promise<number> {
  const exhausted = rows.filter((row) => Number(row.exhausted) === 1 || Number(row.attempts) >= maxRetry)
  const ids = exhausted.map(({ id }) => xid(id)).sort()
  // Letters before jobs. Statements run in their order: the second need not wait for the answer to the first.
  const [, removed] = await Promise.all([
    lockLetters(work.tx, lettersOf(exhausted)),
    removeExhaustedJobs(work.tx, ids, maxRetry),
  ])
  await eraseLetters(work, {
    engine: WEBHOOKS,
    letters: removed.map(({ letter }) => letter),
    pendingSince: latest(removed),
    isRun: true,
    correlationId: id,
    instanceId: queue,
    actor,
    notes: 'Purged',
  })
  return removed.length
}

const latest = (removed: readonly { readonly diedAt: Instant }[]): Instant =>
  removed.reduce((newest, { diedAt }) => (diedAt > newest ? diedAt : newest), instant(0n))
