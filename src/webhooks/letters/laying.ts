/**
 * Restoring: the job of a letter that is pending again is dead again, whatever it was meanwhile. A job that is gone is made anew from
 * what its letter and its message say; without its message or its consumer it cannot be, and the letter stays what it is.
 */
import { storedText } from '../../core/content.ts'
import { failure } from '../../core/errors.ts'
import { type Xid, xid, xidAfter } from '../../core/xid.ts'
import { type Integer, sql, type Transaction } from '../../db/database.ts'
import type { LetterId } from '../../letters/letter.ts'
import type { OfficeWork } from '../../letters/work.ts'
import { shareChannel } from '../dispatch.ts'
import { CONSUMERS } from '../registry/consumers.ts'
import { CHANNELS } from '../registry/holders.ts'
import { Tallies } from '../tallies.ts'
import { idsOfQueue, JOB, type JobState } from '../webhook.ts'

/** What a letter keeps of its job: one letter by primary key. */
const readLetter = sql(
  'webhooks.letterToLay',
  `SELECT source_id, reference, item_created_at, reason, dequeue_count,
     (SELECT queue FROM bartleby.drawers WHERE drawers.id = drawer) AS queue
   FROM bartleby.letters WHERE letters.id = $1`,
  { bigints: true },
)

interface LetterRow {
  readonly source_id: string
  readonly reference: Uint8Array | null
  readonly item_created_at: Integer
  readonly reason: string
  readonly dequeue_count: Integer
  readonly queue: string
}

/** One job by primary key, locked until the transaction ends. */
const lockJob = sql(
  'webhooks.lockJobToLay',
  `SELECT consumer, state, attempts FROM bartleby.webhook_jobs WHERE id = $1 FOR UPDATE`,
)

const layBack = sql(
  'webhooks.layBack',
  `UPDATE bartleby.webhook_jobs SET state = ${JOB.dead}, exhausted = $2, changed_at = $3, due_at = NULL, claim = NULL
   WHERE id = $1`,
)

const insertDead = sql(
  'webhooks.insertDeadJob',
  `INSERT INTO bartleby.webhook_jobs (created_at, changed_at, priority, letter, consumer, attempts, state, exhausted, id, message)
   VALUES ($1, $2, $3, $4, $5, $6, ${JOB.dead}, $7, $8, $9)`,
)

/** Locked, so that it is not pruned before the job is there. */
const lockMessage = sql(
  'webhooks.messageToLay',
  `SELECT id, priority, first_job, jobs FROM bartleby.webhook_messages
    WHERE channel = $1 AND message_id = $2 FOR UPDATE`,
  { bigints: true },
)

interface MessageRow {
  readonly id: string
  readonly priority: Integer
  readonly first_job: string | null
  readonly jobs: Integer
}

/** Makes the job of a letter dead, and gives its attempts when it waited for one. Refuses before anything is written. */
export async function layJob(work: OfficeWork, letterId: LetterId): Promise<number | null> {
  const { tx, now } = work
  const [letter] = await tx.rows<LetterRow>(readLetter, letterId)
  if (letter === undefined) throw new Error(`letter ${letterId} is gone although it was locked`)
  const id = xid(letter.source_id)
  const exhausted = letter.reason === 'attempts' ? 1 : 0
  const target = await targetOf(tx, id, letter)
  const [job] = await tx.rows<{ consumer: Integer; state: Integer; attempts: Integer }>(lockJob, id)
  if (job === undefined) {
    const attempts = Math.max(Number(letter.dequeue_count) - 1, 0)
    const { message } = target
    await tx.run(
      insertDead,
      BigInt(letter.item_created_at),
      now,
      BigInt(message.priority),
      letterId,
      target.consumer,
      attempts,
      exhausted,
      id,
      message.id,
    )
    return null
  }
  // The store keeps nothing else.
  const state = Number(job.state) as JobState
  if (state === JOB.dead) return null
  if (state === JOB.inFlight) throw failure('letter_in_flight', { queue: letter.queue })
  await tx.run(layBack, id, exhausted, now)
  const tallies = new Tallies()
  tallies.moved(Number(job.consumer), state, JOB.dead)
  tallies.write(tx)
  return state === JOB.delivered ? null : Number(job.attempts)
}

/** The consumer and the message of a job, kept until the transaction ends; refuses when one of them is gone. */
async function targetOf(
  tx: Transaction,
  id: Xid,
  { queue, reference }: LetterRow,
): Promise<{ readonly consumer: number; readonly message: MessageRow }> {
  const [channel, consumer] = idsOfQueue(queue) ?? ['', queue]
  const messageId = storedText(reference)
  const home = await CHANNELS.read(tx, [channel])
  if (home === null) throw failure('letter_consumer_gone', { consumer, channel })
  await shareChannel(tx, home.number)
  const receiver = await CONSUMERS.read(tx, [home.number, consumer])
  if (receiver === null) throw failure('letter_consumer_gone', { consumer, channel })
  const [message] = await tx.rows<MessageRow>(lockMessage, home.number, messageId)
  if (message === undefined || !isJobOf(id, message)) {
    throw failure('letter_message_gone', { message: messageId, channel })
  }
  return { consumer: receiver.number, message }
}

/** Whether it is a job of this message, and not of another that had the same id before it was pruned. */
function isJobOf(id: Xid, { first_job, jobs }: MessageRow): boolean {
  if (first_job === null) return false
  const first = xid(first_job)
  return first <= id && id <= xidAfter(first, Number(jobs) - 1)
}
