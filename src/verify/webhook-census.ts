/** Counts what webhooks have, row by row: what their books are compared with. */
import { type Integer, type Session, sql } from '../db/database.ts'
import { STATUS } from '../letters/letter.ts'
import type { TallyName } from '../webhooks/tallies.ts'
import { type JobStatus, statusOf, WEBHOOKS } from '../webhooks/webhook.ts'
import { jobLetterRanges, jobRanges, messageRanges, type Walker } from './webhook-walk.ts'

/** Jobs of a range by consumer and state; few groups, added up by the store. */
const countJobs = sql(
  'verify.countJobs',
  `SELECT consumer, state, count(*) AS jobs FROM bartleby.webhook_jobs WHERE id > $1 AND id <= $2
   GROUP BY consumer, state`,
)

/** Messages of a range by channel: those that were sent out, those that wait, those that have waited. */
const countMessages = sql(
  'verify.countMessages',
  `SELECT channel, count(received_at) AS dispatched, count(next_try_at) AS scheduled,
     count(CASE WHEN received_at IS NOT NULL THEN scheduled_for END) AS "scheduledDispatched"
   FROM bartleby.webhook_messages WHERE id > $1 AND id <= $2 GROUP BY channel`,
)

/** Pending letters of a range by drawer. */
const countLetters = sql(
  'verify.countJobLetters',
  `SELECT drawer, count(*) AS letters FROM bartleby.letters
   WHERE engine = '${WEBHOOKS}' AND source_id > $1 AND source_id <= $2 AND status = ${STATUS.Pending} GROUP BY drawer`,
)

/** By their numbers: the jobs of consumers per tally, the messages of channels. */
export type Census = ReadonlyMap<number, ReadonlyMap<TallyName | 'dead', number>>

const TALLY_OF: Readonly<Record<JobStatus, TallyName | 'dead'>> = {
  QUEUED: 'queued',
  INFLIGHT: 'inFlight',
  DELIVERED: 'delivered',
  DEAD: 'dead',
}

/** Counts all jobs and messages. */
export async function takeCensus(walker: Walker): Promise<Census> {
  const census = new Map<number, Map<TallyName | 'dead', number>>()
  const add = (subject: Integer, tally: TallyName | 'dead', amount: Integer) => {
    const counts = census.get(Number(subject)) ?? new Map<TallyName | 'dead', number>()
    census.set(Number(subject), counts.set(tally, (counts.get(tally) ?? 0) + Number(amount)))
  }
  const { session } = walker
  for await (const { after, through } of jobRanges(walker)) {
    const groups = await session.rows<{ consumer: Integer; state: Integer; jobs: Integer }>(
      countJobs,
      after,
      through,
    )
    for (const { consumer, state, jobs } of groups) add(consumer, TALLY_OF[statusOf(Number(state))], jobs)
  }
  const MESSAGES = ['dispatched', 'scheduled', 'scheduledDispatched'] as const
  for await (const { after, through } of messageRanges(walker)) {
    const groups = await session.rows<{ channel: Integer } & Record<(typeof MESSAGES)[number], Integer>>(
      countMessages,
      after,
      through,
    )
    for (const group of groups) for (const tally of MESSAGES) add(group.channel, tally, group[tally])
  }
  return census
}

/** Counts the Pending letters of dead jobs, by drawer. */
export async function countPendingLetters(walker: Walker): Promise<ReadonlyMap<number, number>> {
  const found = new Map<number, number>()
  for await (const { after, through } of jobLetterRanges(walker)) {
    const groups = await walker.session.rows<{ drawer: Integer; letters: Integer }>(
      countLetters,
      after,
      through,
    )
    for (const { drawer, letters } of groups) {
      found.set(Number(drawer), (found.get(Number(drawer)) ?? 0) + Number(letters))
    }
  }
  return found
}

/** All channels and consumers, by their numbers. Registered by hand: a few thousand at most. */
const readNames = sql('verify.webhookNames', {
  postgres: `
    SELECT number, channel_id, NULL AS consumer_id FROM bartleby.webhook_channels
    UNION ALL SELECT consumer.number, channel.channel_id, consumer.consumer_id FROM bartleby.webhook_consumers AS consumer
    CROSS JOIN LATERAL (SELECT channel_id FROM bartleby.webhook_channels WHERE number = consumer.channel LIMIT 1) AS channel`,
  sqlite: `
    SELECT number, channel_id, NULL AS consumer_id FROM webhook_channels
    UNION ALL SELECT consumer.number, channel.channel_id, consumer.consumer_id FROM webhook_consumers AS consumer
    CROSS JOIN webhook_channels AS channel ON channel.number = consumer.channel`,
})

/** A channel, or one of its consumers. */
export interface SubjectName {
  readonly channelId: string
  /** null: it is the channel. */
  readonly consumerId: string | null
}

export async function readSubjectNames(session: Session): Promise<ReadonlyMap<number, SubjectName>> {
  const rows = await session.rows<{ number: Integer; channel_id: string; consumer_id: string | null }>(
    readNames,
  )
  return new Map(
    rows.map((row) => [Number(row.number), { channelId: row.channel_id, consumerId: row.consumer_id }]),
  )
}
