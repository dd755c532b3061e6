/** The statements of burying jobs: what is known about them, their locks, and the step from a job in flight to a dead one. */
import { type Instant, instant } from '../../core/clock.ts'
import { textBytes } from '../../core/content.ts'
import { type Xid, xid } from '../../core/xid.ts'
import { type Integer, integerList, sql, type Transaction, textList } from '../../db/database.ts'
import {
  type CapturedRow,
  capture,
  captureStatement,
  countCaptured,
  noteList,
} from '../../letters/capture.ts'
import type { DeathNote } from '../../letters/death-note.ts'
import { type LetterId, letterId } from '../../letters/letter.ts'
import type { OfficeWork } from '../../letters/work.ts'
import { JOB, queueOfConsumer } from '../webhook.ts'

/** What a death needs to know about a job. */
export interface JobFacts {
  readonly id: Xid
  readonly letter: LetterId | null
  readonly consumer: number
  readonly attempts: number
  readonly pulls: boolean
  /** How its letters call where they come from. */
  readonly queue: string
  /** The public id of its message. */
  readonly messageId: string
}

/** Jobs by primary key; consumer, channel and message of each by unique indexes. */
const readFacts = sql(
  'webhooks.dyingJobs',
  {
    postgres: `
      SELECT job.id, job.letter, job.consumer, job.attempts, job.state, job.claim, consumer.pulls, consumer.consumer_id,
        (SELECT channel_id FROM bartleby.webhook_channels AS channel WHERE channel.number = consumer.channel) AS channel_id,
        (SELECT message_id FROM bartleby.webhook_messages AS message WHERE message.id = job.message) AS message_id
      FROM bartleby.webhook_jobs AS job
      LEFT JOIN LATERAL (SELECT channel, consumer_id, pulls FROM bartleby.webhook_consumers
        WHERE number = job.consumer LIMIT 1) AS consumer ON true
      WHERE job.id = ANY($1::text[])`,
    sqlite: `
      SELECT job.id, job.letter, job.consumer, job.attempts, job.state, job.claim, consumer.pulls, consumer.consumer_id,
        (SELECT channel_id FROM webhook_channels AS channel WHERE channel.number = consumer.channel) AS channel_id,
        (SELECT message_id FROM webhook_messages AS message WHERE message.id = job.message) AS message_id
      FROM json_each($1) AS asked CROSS JOIN webhook_jobs AS job ON job.id = asked.value
      LEFT JOIN webhook_consumers AS consumer ON consumer.number = job.consumer`,
  },
  { bigints: true },
)

interface HeldRow {
  readonly id: string
  readonly state: Integer
  readonly claim: string | null
}

interface FactsRow extends HeldRow {
  readonly letter: Integer | null
  readonly consumer: Integer
  readonly attempts: Integer
  readonly pulls: Integer | null
  readonly consumer_id: string | null
  readonly channel_id: string | null
  readonly message_id: string | null
}

/** Jobs in flight by the claims that they must be under. */
type Claims = ReadonlyMap<Xid, string>

const isHeld = (claims: Claims, { id, state, claim }: HeldRow): boolean =>
  Number(state) === JOB.inFlight && claim !== null && claims.get(xid(id)) === claim

const listOf = (tx: Transaction, ids: Iterable<Xid>): string => textList(tx.dialect, [...ids].sort())

/** Those of these jobs that are in flight under their claims, in the order of their ids. Locks nothing. */
export async function readDying(tx: Transaction, claims: Claims): Promise<JobFacts[]> {
  const rows = await tx.rows<FactsRow>(readFacts, listOf(tx, claims.keys()))
  return rows
    .filter((row) => isHeld(claims, row))
    .map((row) => ({
      id: xid(row.id),
      letter: row.letter === null ? null : letterId(row.letter),
      consumer: Number(row.consumer),
      attempts: Number(row.attempts),
      pulls: Number(row.pulls) === 1,
      queue: queueOfConsumer(row.channel_id ?? '', row.consumer_id ?? ''),
      messageId: row.message_id ?? row.id,
    }))
    .sort((a, b) => (a.id < b.id ? -1 : 1))
}

/** Jobs by primary key, locked in the order of their ids; gives them as they are then. */
const lockJobs = sql('webhooks.lockDying', {
  postgres:
    'SELECT id, state, claim FROM bartleby.webhook_jobs WHERE id = ANY($1::text[]) ORDER BY id FOR UPDATE',
  sqlite: '',
})

/** Locks jobs; gives those that are still in flight under their claims. */
export async function holdDying(
  tx: Transaction,
  jobs: readonly JobFacts[],
  claims: Claims,
): Promise<readonly JobFacts[]> {
  // On SQLite nobody can have come between.
  if (tx.dialect === 'sqlite') return jobs
  const ids = listOf(
    tx,
    jobs.map(({ id }) => id),
  )
  const rows = await tx.rows<HeldRow>(lockJobs, ids)
  const held = new Set(rows.filter((row) => isHeld(claims, row)).map(({ id }) => id))
  return jobs.filter(({ id }) => held.has(id))
}

/** The first failures of cases, by primary key. */
const readFirst = sql(
  'webhooks.firstFailures',
  {
    postgres: `SELECT letter_id, failed_at FROM bartleby.letter_attempts WHERE letter_id = ANY($1::bigint[]) AND number = 1`,
    sqlite: `SELECT letter_id, failed_at FROM letter_attempts
             WHERE letter_id IN (SELECT value FROM json_each($1)) AND number = 1`,
  },
  { bigints: true },
)

/** When the first failure of each of these cases was, as far as one is on file. */
export async function readFirstFailures(
  tx: Transaction,
  cases: readonly LetterId[],
): Promise<ReadonlyMap<LetterId, Instant>> {
  if (cases.length === 0) return new Map()
  const rows = await tx.rows<{ letter_id: Integer; failed_at: Integer }>(
    readFirst,
    integerList(tx.dialect, cases.map(Number)),
  )
  return new Map(rows.map((row) => [letterId(row.letter_id), instant(BigInt(row.failed_at))]))
}

const DIED = `state = ${JOB.dead}, changed_at = $3, due_at = NULL, claim = NULL`

/** Jobs by primary key, which are locked; `$2` says of each whether its attempts are used up. */
const endJobs = sql('webhooks.endJobs', {
  postgres: `UPDATE bartleby.webhook_jobs SET ${DIED}, exhausted = ($2::jsonb ->> id)::smallint WHERE id = ANY($1::text[])`,
  sqlite: `UPDATE webhook_jobs SET ${DIED}, exhausted = $2 ->> id WHERE id IN (SELECT value FROM json_each($1))`,
})

/** Makes jobs dead that have a letter. */
export async function endLetteredJobs(
  tx: Transaction,
  now: Instant,
  jobs: readonly JobFacts[],
  exhausted: ReadonlySet<Xid>,
): Promise<void> {
  if (jobs.length === 0) return
  const ids = jobs.map(({ id }) => id)
  const used = Object.fromEntries(ids.map((id) => [id, exhausted.has(id) ? 1 : 0]))
  await tx.run(endJobs, listOf(tx, ids), JSON.stringify(used), now)
}

/**
 * Makes locked jobs dead, by primary key, and files them: what their message carries goes from table to table and does not travel.
 * `$2` are the jobs, `$3` the instant, `$4` has for each job the number of its note and whether its attempts are used up, not for a join:
 * PostgreSQL would go through the list for every job. A job keeps the number of its case.
 */
const buryMany = captureStatement(
  'webhooks.bury',
  `gone AS (
     UPDATE bartleby.webhook_jobs SET ${DIED}, exhausted = ($4::jsonb -> id ->> 1)::smallint,
       letter = coalesce(letter, nextval('bartleby.letter_ids'))
     WHERE id = ANY($2::text[]) RETURNING id, letter, created_at, attempts, message
   ), taken AS MATERIALIZED (
     SELECT gone.letter AS letter_id, ($4::jsonb -> gone.id ->> 0)::int AS note, gone.id AS source_id, false AS skipped,
       gone.created_at AS item_created_at, NULL::bigint AS laid_at, NULL::bigint AS serial, NULL::int AS part,
       gone.attempts + 1 AS dequeue_count, NULL::int AS partition, NULL::text AS dead_queue,
       convert_to(message.content_type, 'UTF8') AS encoding,
       convert_to((SELECT channel_id FROM bartleby.webhook_channels WHERE number = message.channel), 'UTF8') AS kind,
       convert_to(message.message_id, 'UTF8') AS reference, convert_to(message.headers, 'UTF8') AS headers,
       nullif(message.payload, '') AS payload
     FROM gone
     LEFT JOIN LATERAL (SELECT channel, message_id, content_type, headers, payload FROM bartleby.webhook_messages
       WHERE id = gone.message LIMIT 1) AS message ON true
   )`,
)

/** A job and its message by primary key. */
const readRemains = sql(
  'webhooks.remains',
  {
    postgres: '',
    sqlite: `SELECT job.created_at, message.content_type, message.message_id, message.headers, message.payload,
               (SELECT channel_id FROM webhook_channels AS channel WHERE channel.number = message.channel) AS channel_id
             FROM webhook_jobs AS job LEFT JOIN webhook_messages AS message ON message.id = job.message
             WHERE job.id = $1`,
  },
  { bigints: true },
)
const buryOne = sql('webhooks.buryOne', {
  postgres: '',
  sqlite: `UPDATE webhook_jobs SET ${DIED}, exhausted = $2, letter = $4 WHERE id = $1`,
})

interface RemainsRow {
  readonly created_at: Integer
  readonly content_type: string | null
  readonly message_id: string | null
  readonly headers: string | null
  readonly payload: Uint8Array | null
  readonly channel_id: string | null
}

/** Makes jobs dead that have no letter, and captures each; `notes` are theirs, in their order. */
export async function captureJobs(
  work: OfficeWork,
  jobs: readonly JobFacts[],
  exhausted: ReadonlySet<Xid>,
  notes: readonly DeathNote[],
): Promise<void> {
  if (jobs.length === 0) return
  const ids = jobs.map(({ id }) => id)
  const { tx, now } = work
  if (tx.dialect === 'sqlite') return captureEach(work, jobs, exhausted, notes)
  const given = ids.map((id, i) => [id, [i + 1, exhausted.has(id) ? 1 : 0]])
  const rows = await tx.rows<CapturedRow>(
    buryMany,
    noteList(notes),
    textList(tx.dialect, ids),
    now,
    JSON.stringify(Object.fromEntries(given)),
  )
  const { captured } = countCaptured(work, notes, rows)
  if (captured !== jobs.length) throw new Error(`${jobs.length} jobs died, and ${captured} letters are new`)
}

async function captureEach(
  work: OfficeWork,
  jobs: readonly JobFacts[],
  exhausted: ReadonlySet<Xid>,
  notes: readonly DeathNote[],
): Promise<void> {
  const { tx, now } = work
  const bytes = (text: string | null | undefined) => (text == null ? null : textBytes(text))
  for (const [i, { id, letter, attempts }] of jobs.entries()) {
    const [row] = await tx.rows<RemainsRow>(readRemains, id)
    const note = notes[i]
    if (row === undefined || note === undefined) throw new Error(`job ${id} is not there to be buried`)
    const made = await capture(work, note, {
      caseId: letter,
      sourceId: id,
      itemCreatedAt: instant(BigInt(row.created_at)),
      dequeueCount: attempts + 1,
      partition: null,
      grave: null,
      encoding: bytes(row.content_type),
      kind: bytes(row.channel_id),
      reference: bytes(row.message_id),
      headers: bytes(row.headers),
      payload: row.payload === null || row.payload.length === 0 ? null : row.payload,
    })
    if (made === null) throw new Error(`job ${id} has a letter that it does not know`)
    await tx.run(buryOne, id, exhausted.has(id) ? 1 : 0, now, made)
  }
}
