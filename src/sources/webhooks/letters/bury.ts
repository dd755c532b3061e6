/**
 * Death of webhook jobs: jobs in flight whose claim still holds die with their letters, in the transaction of whatever killed them. The job
 * stays; earlier failures are filed under the number of its letter.
 */

import type { Instant } from '../../../core/clock.ts'
import { textBytes } from '../../../core/content.ts'
import { type Xid, xid } from '../../../core/xid.ts'
import { bury, type Cause, type Death, PLAIN_RECORD, type Taking } from '../../../letters/bury.ts'
import { captureStatement } from '../../../letters/capture.ts'
import { type LetterId, letterId } from '../../../letters/letter.ts'
import type { Registers } from '../../../letters/registers.ts'
import type { OfficeWork } from '../../../letters/work.ts'
import { type Integer, type Session, sql, type Transaction } from '../../../store/database.ts'
import { at, flag, integer, orNull, type RowOf, rowShape, text } from '../../../store/row.ts'
import type { CountChanges } from '../numbers/counts.ts'
import { JOB, queueOfConsumer, WEBHOOKS } from '../webhook.ts'

export interface DyingJob {
  readonly id: Xid
  readonly claim: string
  readonly exhausted: boolean
  readonly reason: 'attempts' | 'rejected'
  readonly errorClass: string
  readonly errorMessage: string
  readonly failedBy: string
}

interface JobDeath extends Death, Pick<DyingJob, 'id' | 'claim' | 'exhausted'> {
  readonly consumer: number
}

/** Returns those that died. */
export async function buryJobs(
  work: OfficeWork,
  registers: Registers,
  counts: CountChanges,
  dying: readonly DyingJob[],
): Promise<ReadonlySet<Xid>> {
  if (dying.length === 0) return new Set()
  const { deaths } = await bury(work, registers, takingJobs(work), await deathsOf(work.tx, dying))
  for (const { consumer } of deaths) counts.moved(consumer, JOB.inFlight, JOB.dead)
  return new Set(deaths.map(({ id }) => id))
}

/** By primary key; consumer, channel and message by unique indexes. */
const readFacts = sql(
  'webhooks.dyingJobs',
  `SELECT job.id, job.letter, job.consumer, job.attempts, job.state, job.claim, consumer.pulls, consumer.consumer_id,
     (SELECT channel_id FROM bartleby.webhook_channels AS channel WHERE channel.number = consumer.channel) AS channel_id,
     (SELECT message_id FROM bartleby.webhook_messages AS message WHERE message.id = job.message) AS message_id
   FROM bartleby.webhook_jobs AS job
   LEFT JOIN bartleby.webhook_consumers AS consumer ON consumer.number = job.consumer
   WHERE job.id = ANY($1::text[])`,
  { bigints: true },
)

const orEmpty = (value: string | null): string => value ?? ''
const HELD = { id: xid, state: integer, claim: orNull(text) }
const HELD_ROW = rowShape(HELD)
type HeldRow = RowOf<typeof HELD_ROW>

const FACTS = rowShape({
  ...HELD,
  letter: orNull(letterId),
  consumer: integer,
  attempts: integer,
  pulls: orNull(flag),
  consumerId: orEmpty,
  channelId: orEmpty,
  messageId: orNull(text),
})

const isHeld = (job: { readonly claim: string } | undefined, { state, claim }: HeldRow): boolean =>
  state === JOB.inFlight && claim !== null && job?.claim === claim

const listOf = (jobs: Iterable<{ readonly id: Xid }>): Xid[] => Array.from(jobs, ({ id }) => id).sort()

/** In the order of ids. Locks nothing. */
async function deathsOf(tx: Transaction, dying: readonly DyingJob[]): Promise<JobDeath[]> {
  const jobs = new Map(dying.map((job) => [job.id, job]))
  const found = await FACTS.all(tx, readFacts, listOf(dying))
  const rows = found.filter((row) => isHeld(jobs.get(row.id), row))
  // Only a pull consumer takes dead jobs as they are.
  const taken = rows.flatMap(({ letter, pulls }) => (pulls === true ? (letter ?? []) : []))
  const before = await attemptsBefore(tx, taken)
  const deaths = rows.flatMap(({ letter: caseId, consumer, channelId, consumerId, ...row }): JobDeath[] => {
    const job = jobs.get(row.id)
    if (job === undefined) return []
    const { id, claim, exhausted } = job
    return [
      {
        ...{ id, claim, exhausted, consumer, caseId },
        cause: causeOf(job, queueOfConsumer(channelId, consumerId)),
        sourceId: id,
        diedAs: id,
        attempts: row.attempts + 1 - (caseId === null ? 0 : (before.get(caseId) ?? 0)),
        position: null,
        correlationId: row.messageId ?? id,
      },
    ]
  })
  return deaths.sort((a, b) => (a.id < b.id ? -1 : 1))
}

const causeOf = ({ reason, errorClass, errorMessage, failedBy }: DyingJob, queue: string): Cause => ({
  source: WEBHOOKS,
  engine: WEBHOOKS,
  queue,
  reason,
  errorClass,
  errorMessage,
  errorStack: null,
  failedBy,
  record: { ...PLAIN_RECORD, actor: queue },
})

/** By primary key, locked in the order of ids. */
const lockJobs = sql(
  'webhooks.lockDying',
  'SELECT id, state, claim FROM bartleby.webhook_jobs WHERE id = ANY($1::text[]) ORDER BY id FOR UPDATE',
)

const DIED = `state = ${JOB.dead}, changed_at = $3, due_at = NULL, claim = NULL`

/** Locked, by primary key; `$2` says of each whether its attempts are used up. */
export const endJobs = sql(
  'webhooks.endJobs',
  `
    UPDATE bartleby.webhook_jobs SET ${DIED}, exhausted = CAST($2::jsonb -> id ->> 0 AS smallint) WHERE id = ANY($1::text[])`,
)

/**
 * Makes locked jobs dead, by primary key, and files them; contents go from table to table and do not travel. `$2` are the jobs, `$3` the
 * instant, `$4` has each job's note and whether its attempts are used up.
 */
const takeAll = captureStatement(
  'webhooks.bury',
  `gone AS (
     UPDATE bartleby.webhook_jobs SET ${DIED}, exhausted = ($4::jsonb -> id ->> 1)::smallint,
       letter = coalesce(letter, nextval('bartleby.letter_ids'))
     WHERE id = ANY($2::text[]) RETURNING id, letter, created_at, attempts, message
   ), taken AS (
     SELECT gone.letter AS letter_id, ($4::jsonb -> gone.id ->> 0)::int AS note, gone.id AS source_id, false AS skipped,
       gone.created_at AS item_created_at, NULL::bigint AS laid_at, NULL::bigint AS serial, NULL::int AS part,
       gone.attempts + 1 AS dequeue_count, NULL::int AS partition, NULL::text AS dead_queue,
       convert_to(message.content_type, 'UTF8') AS encoding,
       convert_to((SELECT channel_id FROM bartleby.webhook_channels WHERE number = message.channel), 'UTF8') AS kind,
       convert_to(message.message_id, 'UTF8') AS reference, convert_to(message.headers, 'UTF8') AS headers,
       nullif(message.payload, '') AS payload
     FROM gone
     LEFT JOIN bartleby.webhook_messages AS message ON message.id = gone.message
   )`,
)

/** Both by primary key. */
const takeOne = sql(
  'webhooks.buryOne',
  {
    postgres: '',
    sqlite: `UPDATE webhook_jobs SET ${DIED}, exhausted = $2, letter = $4 WHERE id = $1 RETURNING created_at, attempts, message`,
  },
  { bigints: true },
)
const readMessage = sql('webhooks.messageOfDead', {
  postgres: '',
  sqlite: `SELECT content_type, message_id, headers, payload,
             (SELECT channel_id FROM webhook_channels AS channel WHERE channel.number = message.channel) AS channel_id
           FROM webhook_messages AS message WHERE id = $1`,
})

const TAKEN = rowShape({ createdAt: at, attempts: integer, message: text })

const orBytes = orNull(textBytes)
const MESSAGE = rowShape({
  contentType: orBytes,
  messageId: orBytes,
  headers: orBytes,
  channelId: orBytes,
  payload: (value: Uint8Array | null) => (value?.length === 0 ? null : value),
})

const mark = ({ exhausted }: JobDeath): number => (exhausted ? 1 : 0)

const takingJobs = ({ tx, now }: { readonly tx: Transaction; readonly now: Instant }): Taking<JobDeath> => ({
  async hold(deaths) {
    if (deaths.length === 0) return deaths
    const rows = await HELD_ROW.all(tx, lockJobs, listOf(deaths))
    const found = new Map(rows.map((row) => [row.id, row]))
    return deaths.filter((death) => {
      const row = found.get(death.id)
      return row !== undefined && isHeld(death, row)
    })
  },
  async end(deaths) {
    const exhausted = Object.fromEntries(deaths.map((death) => [death.id, [mark(death)]]))
    await tx.run(endJobs, listOf(deaths), JSON.stringify(exhausted), now)
  },
  all(deaths, notes) {
    const given = deaths.map((death, i) => [death.id, [notes[i], mark(death)]])
    return {
      statement: takeAll,
      values: [listOf(deaths), now, JSON.stringify(Object.fromEntries(given))],
    }
  },
  async each(death, id) {
    const job = await TAKEN.one(tx, takeOne, death.id, mark(death), now, id)
    if (job === null) throw new Error(`job ${death.id} is not there to be buried`)
    const message = await MESSAGE.one(tx, readMessage, job.message)
    return {
      itemCreatedAt: job.createdAt,
      dequeueCount: job.attempts + 1,
      partition: null,
      encoding: message?.contentType ?? null,
      kind: message?.channelId ?? null,
      reference: message?.messageId ?? null,
      headers: message?.headers ?? null,
      payload: message?.payload ?? null,
    }
  },
})

/** In the history row of a retry. */
export type TakenFacts = { readonly attemptsBefore: number }

/** The newest history row of each letter, on history_of_letter: of a retried letter, that of its retry. */
const newestOf = (columns: string, letter: string): string =>
  `SELECT ${columns} FROM bartleby.history INDEXED BY history_of_letter
   WHERE letter_id = ${letter} AND correlation_id IS NOT NULL ORDER BY created_at DESC, id DESC LIMIT 1`
const IS_RETRY = `(SELECT operation FROM bartleby.history_series AS kind WHERE kind.id = newest.series) = 'retry'`
const readNewest = sql(
  'webhooks.retriesOfLetters',
  {
    postgres: `SELECT letter_id, output FROM unnest($1::bigint[]) AS asked (letter) CROSS JOIN LATERAL (
                 ${newestOf('letter_id, output, series', 'asked.letter')}) AS newest WHERE ${IS_RETRY}`,
    // No row has its number twice there, and nothing joins a list with the first of each.
    sqlite: `SELECT letter_id, output FROM bartleby.history AS newest WHERE id IN (
               SELECT (${newestOf('id', 'asked.value')}) FROM json_each($1) AS asked) AND ${IS_RETRY}`,
  },
  { bigints: true },
)

/**
 * Attempts before the latest retries of these letters; 0 where absent. A requeue counts anew; a pull consumer that takes a dead job goes on
 * counting, and the history row of that retry says so.
 */
export async function attemptsBefore(
  session: Session,
  letters: readonly LetterId[],
): Promise<ReadonlyMap<LetterId, number>> {
  if (letters.length === 0) return new Map()
  const rows = await session.rows<{ letter_id: Integer; output: Uint8Array | null }>(readNewest, letters)
  return new Map(rows.map(({ letter_id, output }) => [letterId(letter_id), attemptsIn(output)]))
}

function attemptsIn(output: Uint8Array | null): number {
  if (output === null) return 0
  // Receipts of retries, as the office writes them.
  const { attemptsBefore = 0 } = JSON.parse(Buffer.from(output).toString()) as Partial<TakenFacts>
  return attemptsBefore
}
