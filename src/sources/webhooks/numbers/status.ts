/**
 * The status endpoints of webhooks, each read at one moment from counts and the ends of indexes: the cost grows with consumers, never with
 * jobs or messages.
 */
import { type Instant, instant } from '../../../core/clock.ts'
import { formatSeconds } from '../../../core/timestamp.ts'
import { type Database, type Integer, type Session, sql } from '../../../store/database.ts'
import { integer, rowShape, text } from '../../../store/row.ts'
import { CHANNELS } from '../registry/holders.ts'
import {
  JOB,
  JOB_STATUS_CODE,
  JOB_STATUSES,
  type JobState,
  type JobStatus,
  MESSAGE_STATUS_CODE,
} from '../webhook.ts'
import { COUNT_OF_STATUS, type Counted, readAllCounts, readCountsOf } from './counts.ts'
import { readDeadCounts, readJobEnds } from './dead-counts.ts'

/** Two looks into unique indexes each. */
const readConsumers = sql(
  'webhooks.consumersOf',
  `
    SELECT number, id, consumer_id, name,
      (SELECT channel_id FROM bartleby.webhook_channels AS home WHERE home.number = consumer.channel) AS channel_id
    FROM bartleby.webhook_consumers AS consumer WHERE number = ANY($1::int[])`,
)

const CONSUMER = rowShape({ number: integer, id: text, consumerId: text, name: text, channelId: text })

/** One look into webhook_messages_waiting. */
const readNextScheduled = sql(
  'webhooks.nextScheduled',
  `SELECT scheduled_for FROM bartleby.webhook_messages
   WHERE channel = $1 AND next_try_at IS NOT NULL ORDER BY scheduled_for LIMIT 1`,
  { bigints: true },
)

export class Status {
  readonly #db: Database

  constructor(db: Database) {
    this.#db = db
  }

  /** `GET /job-status`, by public channel id, then by internal consumer id. */
  jobs() {
    return this.#db.snapshot('webhooks.jobStatus', jobStatus)
  }

  /** `GET /dlq-status` */
  async dead() {
    const counts = await this.#db.session('webhooks.deadStatus', (session) => readDeadCounts(session))
    return { consumers: counts.map(({ consumer, oldestAt, newestAt, ...shown }) => shown) }
  }

  /** `GET /channel/{channelId}/messages-status` */
  messages(channelId: string) {
    return this.#db.snapshot('webhooks.messagesStatus', async (session) => {
      const channel = await CHANNELS.read(session, [channelId])
      if (channel === null) return { counts: {} }
      const [counted, [next]] = await Promise.all([
        readCountsOf(session, channel.number),
        session.rows<{ scheduled_for: Integer }>(readNextScheduled, channel.number),
      ])
      const counts = messageCounts(channelId, counted)
      if (next === undefined) return { counts }
      return { counts, next_scheduled_message_at: formatSeconds(instant(BigInt(next.scheduled_for))) }
    })
  }
}

const STATES: Readonly<Record<JobStatus, readonly JobState[]>> = {
  QUEUED: [JOB.later, JOB.ready],
  INFLIGHT: [JOB.inFlight],
  DELIVERED: [JOB.delivered],
  DEAD: [JOB.dead],
}

async function jobStatus(session: Session) {
  const counts = await readAllCounts(session)
  const counted = [...counts].flatMap(([consumer, numbers]) =>
    JOB_STATUSES.flatMap((status) => {
      const count = numbers[COUNT_OF_STATUS[status]] ?? 0
      return count === 0 ? [] : { consumer, status, count, states: STATES[status] }
    }),
  )
  const [consumers, ends] = await Promise.all([
    CONSUMER.all(session, readConsumers, [...new Set(counted.map(({ consumer }) => consumer))]),
    readJobEnds(
      session,
      counted.flatMap(({ consumer, states }) => states.map((state) => ({ consumer, state }))),
    ),
  ])
  const byConsumer = Map.groupBy(counted, ({ consumer }) => consumer)
  const shown = consumers.map(({ number, id, consumerId, name: consumerName, channelId }) => {
    const entries = (byConsumer.get(number) ?? []).flatMap(({ status, count, states }) => {
      const known = states.flatMap((state) => ends.get(`${number} ${state}`) ?? [])
      const times = known.flatMap(({ oldestAt, newestAt }) => [oldestAt, newestAt]).sort(earlier)
      const [oldest, newest] = [times[0], times.at(-1)]
      if (oldest === undefined || newest === undefined) return []
      return {
        status: JOB_STATUS_CODE[status],
        count,
        oldestItemTimestamp: formatSeconds(oldest),
        newestItemTimestamp: formatSeconds(newest),
        consumerId,
        consumerName,
      }
    })
    return { channelId, of: [id, entries] as const }
  })
  const channels = Map.groupBy(shown, ({ channelId }) => channelId)
  // From entries, not by assignment: a channel may be called '__proto__'.
  return Object.fromEntries(
    [...channels].map(([id, ofChannel]) => [id, Object.fromEntries(ofChannel.map(({ of }) => of))]),
  )
}

const earlier = (a: Instant, b: Instant): number => (a < b ? -1 : a > b ? 1 : 0)

function messageCounts(channelId: string, counted: Counted) {
  const list = (path: string, status: number) =>
    `/channel/${encodeURIComponent(channelId)}/${path}?status=${status}`
  const { dispatched = 0, scheduled = 0, scheduledDispatched = 0 } = counted
  const { SCHEDULED, DISPATCHED } = MESSAGE_STATUS_CODE
  const all = {
    DISPATCHED: { Count: dispatched, Links: { messages: list('messages', DISPATCHED) } },
    SCHEDULED_SCHEDULED: { Count: scheduled, Links: { messages: list('scheduled-messages', SCHEDULED) } },
    SCHEDULED_DISPATCHED: {
      Count: scheduledDispatched,
      Links: { messages: list('scheduled-messages', DISPATCHED) },
    },
  }
  return Object.fromEntries(Object.entries(all).filter(([, { Count }]) => Count !== 0))
}
