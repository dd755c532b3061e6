/** Consumers for operators: their jobs, pauses and limits. By channel and consumer, a page at a time, at one moment of the store. */
import type { Instant } from '../../../core/clock.ts'
import { xid } from '../../../core/xid.ts'
import { type Database, type Integer, sql } from '../../../store/database.ts'
import { at, integer, number, orNull, type RowOf, rowShape, text } from '../../../store/row.ts'
import { consumerType } from '../webhook.ts'
import { readCounts } from './counts.ts'
import { readDeadCounts } from './dead-counts.ts'

const ROW = rowShape({
  id: xid,
  number: integer,
  channelNumber: integer,
  channelId: text,
  channelName: text,
  consumerId: text,
  consumerName: text,
  type: consumerType,
  callbackUrl: text,
  /** Nothing until `pausedUntil`, then one job at a time. */
  pausedSince: orNull(at),
  pausedUntil: orNull(at),
  pauseReason: orNull(text),
  /** Null: the defaults hold. */
  mostAtOnce: orNull(integer),
  mostPerSecond: orNull(number),
  signed: (value: Integer | boolean) => Boolean(Number(value)),
  /** Null: only the newest secret signs. */
  previousSecretSince: orNull(at),
})

export interface ConsumerOverview extends RowOf<typeof ROW> {
  readonly queued: number
  readonly inFlight: number
  readonly delivered: number
  readonly dead: number
  readonly oldestDeadAt: Instant | null
}

export interface OverviewPlace {
  readonly channelNumber: number
  readonly consumerId: string
}

const START: OverviewPlace = { channelNumber: -1, consumerId: '' }

const ofChannel = (column: string): string =>
  `(SELECT ${column} FROM bartleby.webhook_channels AS home WHERE home.number = consumer.channel)`

/** On the unique index of channel and id; of all channels, or with `$4` of one. No locks. */
const page = (channels: string): string => `
  SELECT id, number, channel AS channel_number, consumer_id, name AS consumer_name, pulls AS type, callback_url, paused_since, paused_until, pause_reason,
    most_at_once, most_per_second, secret IS NOT NULL AS signed,
    CASE WHEN previous_secret IS NOT NULL THEN secret_changed_at END AS previous_secret_since,
    ${ofChannel('channel_id')} AS channel_id, ${ofChannel('name')} AS channel_name
  FROM bartleby.webhook_consumers AS consumer WHERE (channel, consumer_id) > ($1, $2) ${channels}
  ORDER BY channel, consumer_id LIMIT $3`
const readPage = sql('webhooks.overview', page(''), { bigints: true })
const readPageOf = sql('webhooks.overviewOf', page('AND channel = $4'), { bigints: true })

export function readOverview(
  db: Database,
  request: {
    readonly channel: number | null
    readonly after: OverviewPlace | null
    readonly limit: number
  },
): Promise<readonly ConsumerOverview[]> {
  return db.snapshot('webhooks.overview', async (session) => {
    const { consumerId, channelNumber } = request.after ?? START
    const place = [channelNumber, consumerId, request.limit] as const
    const rows = await (request.channel === null
      ? ROW.all(session, readPage, ...place)
      : ROW.all(session, readPageOf, ...place, request.channel))
    if (rows.length === 0) return []
    const [counts, deadCounts] = await Promise.all([
      readCounts(session),
      readDeadCounts(session, { ends: true }),
    ])
    const byConsumer = new Map(deadCounts.map((count) => [count.consumer, count]))
    return rows.map((row) => {
      const { queued = 0, inFlight = 0, delivered = 0 } = counts.get(row.number) ?? {}
      const { deadCount: dead = 0, oldestAt: oldestDeadAt = null } = byConsumer.get(row.number) ?? {}
      return { ...row, queued, inFlight, delivered, dead, oldestDeadAt }
    })
  })
}
