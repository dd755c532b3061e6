/**
 * Restoring: jobs of letters that are pending again are dead again. A job that is gone is made anew from letter and message; without
 * message or consumer the letter stays what it is. The number of statements does not depend on that of letters.
 */
import { storedText } from '../../../core/content.ts'
import { BartlebyError, failure } from '../../../core/errors.ts'
import { type Xid, xid, xidAfter } from '../../../core/xid.ts'
import { type LetterId, letterId } from '../../../letters/letter.ts'
import type { OfficeWork } from '../../../letters/work.ts'
import { type Integer, sql, type Transaction } from '../../../store/database.ts'
import { integer, orNull, type RowOf, rowShape, text } from '../../../store/row.ts'
import { shareChannels } from '../messages/dispatch.ts'
import { CountChanges } from '../numbers/counts.ts'
import { isStorable } from '../registry/texts.ts'
import { idsOfQueue, JOB, type JobState } from '../webhook.ts'
import { endJobs } from './bury.ts'

/** By primary key. */
const readLetters = sql(
  'webhooks.lettersToLay',
  `SELECT id, source_id, reference, reason, (SELECT queue FROM bartleby.drawers WHERE drawers.id = drawer) AS queue
   FROM bartleby.letters WHERE letters.id = ANY($1::bigint[])`,
  { bigints: true },
)

const LETTER = rowShape({ id: letterId, sourceId: xid, reference: storedText, reason: text, queue: text })

function restoringOf(row: object) {
  const { id, sourceId: job, reference: message, reason, queue } = LETTER.read(row)
  const [channel, consumer] = idsOfQueue(queue) ?? ['', queue]
  return { id, job, exhausted: reason === 'attempts' ? 1 : 0, queue, channel, consumer, message }
}
type RestoringJob = ReturnType<typeof restoringOf>

/** By unique index. */
const readChannels = sql(
  'webhooks.channelsToLay',
  'SELECT channel_id, number FROM bartleby.webhook_channels WHERE channel_id = ANY($1::text[])',
)

/** One look into the unique index for each pair. */
const readConsumers = sql(
  'webhooks.consumersToLay',
  `SELECT channel, consumer_id, (SELECT number FROM bartleby.webhook_consumers AS consumer
     WHERE consumer.channel = pair.channel AND consumer.consumer_id = pair.consumer_id) AS number
   FROM (SELECT CAST(value ->> 0 AS int) AS channel, value ->> 1 AS consumer_id
     FROM json_array_elements($1::json) AS asked (value)) AS pair`,
)

const MESSAGE = rowShape({
  ...{ id: xid, channel: integer, messageId: text, priority: String, firstJob: orNull(xid), jobs: integer },
})

/** One look for each pair, then by primary key. Locked, so that none is pruned before its job is there. */
const lockMessages = sql(
  'webhooks.messagesToLay',
  `SELECT ${MESSAGE.columns} FROM bartleby.webhook_messages WHERE id = ANY(ARRAY(
     SELECT (SELECT id FROM bartleby.webhook_messages AS found
       WHERE found.channel = CAST(value ->> 0 AS int) AND found.message_id = value ->> 1)
     FROM json_array_elements($1::json) AS asked (value))) ORDER BY id FOR UPDATE`,
  { bigints: true },
)

// The store keeps no other states.
const JOB_ROW = rowShape({
  ...{ id: xid, consumer: integer, state: (value: Integer) => Number(value) as JobState, attempts: integer },
})

/** By primary key, locked in the order of ids. */
const lockJobs = sql(
  'webhooks.lockJobsToLay',
  `SELECT ${JOB_ROW.columns} FROM bartleby.webhook_jobs WHERE id = ANY($1::text[]) ORDER BY id FOR UPDATE`,
)

/** By primary key; `$3` has consumer, message and priority of each. */
const insertDead = sql(
  'webhooks.insertDeadJobs',
  `INSERT INTO bartleby.webhook_jobs (created_at, changed_at, priority, letter, consumer, attempts, state, exhausted, id, message)
   SELECT coalesce(item_created_at, captured_at), $2, CAST($3::jsonb -> source_id ->> 2 AS bigint), id, CAST($3::jsonb -> source_id ->> 0 AS int),
     greatest(dequeue_count - 1, 0), ${JOB.dead}, CASE WHEN reason = 'attempts' THEN 1 ELSE 0 END, source_id,
     $3::jsonb -> source_id ->> 1
   FROM bartleby.letters WHERE id = ANY($1::bigint[])`,
)

/** A job made anew counts as dead. */
const GONE = { state: JOB.dead, consumer: 0, attempts: 0 } as const

/** The attempts of a job that waited, null of any other; or why it cannot be dead again. */
export type Restored = number | null | BartlebyError

/** For locked letters. Nothing is written of those that are refused. */
export async function restoreJobs(
  { tx, now }: OfficeWork,
  letters: readonly LetterId[],
): Promise<ReadonlyMap<LetterId, Restored>> {
  const wanted = (await tx.rows<object>(readLetters, letters)).map(restoringOf)
  if (wanted.length < letters.length) throw new Error('a letter is gone although it was locked')
  const restored = new Map<LetterId, Restored>()
  const placed: (RestoringJob & { readonly place: Place })[] = []
  for (const [each, place] of await placesOf(tx, wanted)) {
    if (place instanceof BartlebyError) restored.set(each.id, place)
    else placed.push({ ...each, place })
  }
  const rows = await JOB_ROW.all(tx, lockJobs, placed.map(({ job }) => job).sort())
  const jobs = new Map(rows.map((job) => [job.id, job]))
  const counts = new CountChanges()
  const back: RestoringJob[] = []
  for (const each of placed) {
    const { state, consumer, attempts } = jobs.get(each.job) ?? GONE
    if (state === JOB.inFlight) restored.set(each.id, failure('letter_in_flight', { queue: each.queue }))
    else restored.set(each.id, state >= JOB.delivered ? null : attempts)
    if (state === JOB.inFlight || state === JOB.dead) continue
    counts.moved(consumer, state, JOB.dead)
    back.push(each)
  }
  const gone = placed.filter(({ job }) => !jobs.has(job))
  if (gone.length > 0)
    await tx.run(
      insertDead,
      gone.map(({ id }) => id),
      now,
      JSON.stringify(Object.fromEntries(gone.map(({ job, place }) => [job, place]))),
    )
  if (back.length > 0) {
    const exhausted = Object.fromEntries(back.map(({ job, exhausted }) => [job, [exhausted]]))
    await tx.run(endJobs, back.map(({ job }) => job).sort(), JSON.stringify(exhausted), now)
  }
  counts.write(tx)
  return restored
}

/** The priority in digits. */
type Place = readonly [consumer: number, message: string, priority: string]

/** Kept until the transaction ends; a refusal where consumer or message is gone. */
async function placesOf(
  tx: Transaction,
  wanted: readonly RestoringJob[],
): Promise<readonly (readonly [RestoringJob, Place | BartlebyError])[]> {
  const names = new Set(wanted.map(({ channel }) => channel).filter(isStorable))
  const channels = new Map(
    (await tx.rows<{ channel_id: string; number: Integer }>(readChannels, [...names])).map(
      ({ channel_id, number }) => [channel_id, Number(number)],
    ),
  )
  /** Null without the channel. */
  const pairOf = (channel: string, id: string): string | null =>
    channels.has(channel) ? JSON.stringify([channels.get(channel), id]) : null
  const listOf = (pairs: readonly (string | null)[]): string =>
    `[${[...new Set(pairs.filter((pair) => pair !== null))].join(',')}]`
  const storable = wanted.filter(({ consumer }) => isStorable(consumer))
  // Statements run in order, and each sees what was committed when it began.
  const [, found] = await Promise.all([
    shareChannels(
      tx,
      [...channels.values()].sort((a, b) => a - b),
    ),
    tx.rows<{ channel: Integer; consumer_id: string; number: Integer | null }>(
      readConsumers,
      listOf(storable.map(({ channel, consumer }) => pairOf(channel, consumer))),
    ),
  ])
  const consumers = new Map(
    found.flatMap(({ channel, consumer_id, number }) =>
      number === null ? [] : [[JSON.stringify([Number(channel), consumer_id]), Number(number)] as const],
    ),
  )
  const consumerOf = ({ channel, consumer }: RestoringJob) => consumers.get(pairOf(channel, consumer) ?? '')
  const received = wanted.filter((each) => consumerOf(each) !== undefined)
  const pairs = listOf(received.map(({ channel, message }) => pairOf(channel, message)))
  const rows = await MESSAGE.all(tx, lockMessages, pairs)
  const messages = new Map(rows.map((row) => [JSON.stringify([row.channel, row.messageId]), row]))
  return wanted.map((each) => {
    const { channel, consumer, message, job } = each
    const receiver = consumerOf(each)
    if (receiver === undefined) return [each, failure('letter_consumer_gone', { consumer, channel })]
    const row = messages.get(pairOf(channel, message) ?? '')
    if (row === undefined || !isJobOf(job, row))
      return [each, failure('letter_message_gone', { message, channel })]
    return [each, [receiver, row.id, row.priority]]
  })
}

/** Not of another message that had the same id before it was pruned. */
const isJobOf = (id: Xid, { firstJob, jobs }: RowOf<typeof MESSAGE>): boolean =>
  firstJob !== null && firstJob <= id && id <= xidAfter(firstJob, jobs - 1)
