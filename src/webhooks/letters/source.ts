/**
 * The way back of letters that came from webhook jobs: the job is still there and starts over. While a letter is pending its job is
 * dead, and the other way round; when it is discarded or expires the job is gone, and when it is restored the job is dead again.
 * A job is delivered as its message was broadcast, to all consumers alike: there is nothing to edit.
 */
import { failure } from '../../core/errors.ts'
import { type Xid, xid } from '../../core/xid.ts'
import { type Integer, sql, type Transaction } from '../../db/database.ts'
import { idList } from '../../letters/id-list.ts'
import type { Edit, Letter, LocalLetterSource, Outgoing, Recall, SendReceipt } from '../../letters/letter.ts'
import type { OfficeWork } from '../../letters/work.ts'
import { Tallies } from '../tallies.ts'
import { JOB, type JobState, WEBHOOKS } from '../webhook.ts'
import { removeJobsOf, startJobsOver } from './dead-rows.ts'
import { layJob } from './laying.ts'
import { attemptsBefore } from './rounds.ts'

export interface WebhookSourceOptions {
  /** Jobs of these push consumers are ready; called after the commit. */
  readonly onJobs: (consumers: ReadonlySet<number>) => void
}

/** The source of letters that come from webhook jobs. */
export const webhookLetterSource = ({ onJobs }: WebhookSourceOptions): LocalLetterSource => ({
  name: WEBHOOKS,
  render,
  send: (work, outgoing) => send(work, outgoing, onJobs),
  recall,
  async lift(work, letters, before) {
    // A retry needs the job: `send` makes it ready.
    if (before !== 'retry') await removeJobsOf(work.tx, idList(work.tx.dialect, letters))
  },
  async lay(work, letters) {
    for (const { id } of letters) await layJob(work, id)
  },
})

/** One job by primary key, and whether its message is there. */
const readJob = sql(
  'webhooks.jobOfLetter',
  `SELECT state, (SELECT message.id FROM bartleby.webhook_messages AS message WHERE message.id = job.message) AS message
   FROM bartleby.webhook_jobs AS job WHERE job.id = $1`,
)

async function render(tx: Transaction, letter: Letter, edit: Edit | null): Promise<Outgoing> {
  if (edit?.payload != null && !Buffer.from(edit.payload).equals(letter.payload)) {
    throw failure('parameter_invalid', {
      parameter: 'payload',
      reason: 'a webhook job is delivered as it was broadcast; broadcast the corrected message anew',
    })
  }
  const id = letter.sourceId
  const [job] = await tx.rows<{ state: Integer; message: string | null }>(readJob, id)
  // A consumer is not deleted while it has jobs.
  if (job === undefined || job.message === null || Number(job.state) !== JOB.dead) {
    throw failure('letter_job_gone', { id })
  }
  return {
    letterId: letter.id,
    queue: letter.originalQueue ?? '',
    encoding: letter.encoding,
    kind: letter.kind,
    reference: letter.reference,
    payload: letter.payload,
    correlationId: letter.correlationId,
    idempotencyKey: `${letter.id}-${letter.version}`,
  }
}

/** The job of a letter, by the letter's primary key and its own; and whether its consumer pulls. */
const readTarget = sql(
  'webhooks.targetOfLetter',
  `SELECT job.id, job.consumer,
     (SELECT pulls FROM bartleby.webhook_consumers AS target WHERE target.number = job.consumer) AS pulls
   FROM bartleby.webhook_jobs AS job WHERE job.id = (SELECT source_id FROM bartleby.letters WHERE letters.id = $1)`,
)

async function send(
  work: OfficeWork,
  { letterId, queue }: Outgoing,
  onJobs: WebhookSourceOptions['onJobs'],
): Promise<SendReceipt> {
  const [job] = await work.tx.rows<{ id: string; consumer: Integer; pulls: Integer }>(readTarget, letterId)
  const [started] = job === undefined ? [] : await startJobsOver(work.tx, [xid(job.id)], work.now)
  if (job === undefined || started === undefined) throw failure('letter_job_gone', { id: job?.id ?? '' })
  const consumer = Number(job.consumer)
  tally(work, consumer, JOB.dead, JOB.ready)
  if (Number(job.pulls) === 0) work.afterCommit(() => onJobs(new Set([consumer])))
  return { messageId: job.id, queue }
}

/** One job by primary key, locked until the transaction ends. */
const lockJob = sql('webhooks.lockJobOfLetter', {
  postgres: 'SELECT consumer, state, attempts FROM bartleby.webhook_jobs WHERE id = $1 FOR UPDATE',
  sqlite: 'SELECT consumer, state, attempts FROM webhook_jobs WHERE id = $1',
})

/** A job that waits, by primary key, is dead as it was before its retry. */
const takeBack = sql(
  'webhooks.takeBack',
  `UPDATE bartleby.webhook_jobs SET state = ${JOB.dead}, exhausted = $2, changed_at = $3, due_at = NULL WHERE id = $1`,
)

async function recall(work: OfficeWork, letter: Letter): Promise<Recall> {
  const id: Xid = xid(letter.sourceId)
  const [job] = await work.tx.rows<{ consumer: Integer; state: Integer; attempts: Integer }>(lockJob, id)
  if (job === undefined) return { outcome: 'gone' }
  // The store keeps nothing else.
  const state = Number(job.state) as JobState
  switch (state) {
    case JOB.inFlight:
      return { outcome: 'running' }
    case JOB.delivered:
    case JOB.dead:
      return { outcome: 'gone' }
    case JOB.later:
    case JOB.ready: {
      const before = await attemptsBefore(work.tx, [letter.id])
      await work.tx.run(takeBack, id, letter.reason === 'attempts' ? 1 : 0, work.now)
      tally(work, Number(job.consumer), state, JOB.dead)
      return { outcome: 'recalled', attempts: Number(job.attempts) - (before.get(letter.id) ?? 0) }
    }
  }
}

function tally(work: OfficeWork, consumer: number, from: JobState, to: JobState): void {
  const tallies = new Tallies()
  tallies.moved(consumer, from, to)
  tallies.write(work.tx)
}
