/**
 * Consumers as those see them who look after them: what waits, is under way, was delivered and is dead, whether deliveries are
 * paused, and what they are limited to. By channel and consumer, a page at a time, at one moment of the store.
 */
import { type Instant, instant } from '../core/clock.ts'
import { type Xid, xid } from '../core/xid.ts'
import { type Database, type Integer, type Session, sql } from '../db/database.ts'
import { readDeadCounts } from './dead-counts.ts'
import { readTallies } from './tallies.ts'
import type { ConsumerType } from './webhook.ts'

/** Deliveries to a consumer are paused: nothing until then, and then one at a time to see whether it works again. */
export interface ConsumerPause {
  readonly since: Instant
  readonly until: Instant
  readonly reason: string
}

export interface ConsumerOverview {
  readonly id: Xid
  readonly number: number
  readonly channelNumber: number
  readonly channelId: string
  readonly channelName: string
  readonly consumerId: string
  readonly consumerName: string
  readonly type: ConsumerType
  readonly callbackUrl: string
  readonly queued: number
  readonly inFlight: number
  readonly delivered: number
  readonly dead: number
  readonly oldestDeadAt: Instant | null
  readonly pause: ConsumerPause | null
  /** null: the defaults hold. */
  readonly mostAtOnce: number | null
  readonly mostPerSecond: number | null
  readonly isSigned: boolean
  /** Deliveries are signed with the previous secret too, since then; null when they are not. */
  readonly previousSecretSince: Instant | null
}

/** Where a page begins: behind this consumer. */
export interface OverviewPlace {
  readonly channelNumber: number
  readonly consumerId: string
}

const START: OverviewPlace = { channelNumber: -1, consumerId: '' }

const ofChannel = (column: string): string =>
  `(SELECT ${column} FROM bartleby.webhook_channels AS home WHERE home.number = consumer.channel)`

/** The consumers behind a place, on the unique index of channel and id; of all channels, or with `$4` of one. No locks. */
const page = (channels: string): string => `
  SELECT id, number, channel, consumer_id, name, pulls, callback_url, paused_since, paused_until, pause_reason,
    most_at_once, most_per_second, secret IS NOT NULL AS is_signed, previous_secret IS NOT NULL AS is_signed_twice, secret_changed_at,
    ${ofChannel('channel_id')} AS channel_id, ${ofChannel('name')} AS channel_name
  FROM bartleby.webhook_consumers AS consumer WHERE (channel, consumer_id) > ($1, $2) ${channels}
  ORDER BY channel, consumer_id LIMIT $3`
const readPage = sql('webhooks.overview', page(''), { bigints: true })
const readPageOf = sql('webhooks.overviewOf', page('AND channel = $4'), { bigints: true })

interface Row {
  readonly id: string
  readonly number: Integer
  readonly channel: Integer
  readonly channel_id: string
  readonly channel_name: string
  readonly consumer_id: string
  readonly name: string
  readonly pulls: Integer
  readonly callback_url: string
  readonly paused_since: Integer | null
  readonly paused_until: Integer | null
  readonly pause_reason: string | null
  readonly most_at_once: Integer | null
  readonly most_per_second: number | null
  readonly is_signed: Integer | boolean
  readonly is_signed_twice: Integer | boolean
  readonly secret_changed_at: Integer | null
}

/** At most `limit` consumers behind `after`, of one channel or of all. */
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
    const rows =
      request.channel === null
        ? await session.rows<Row>(readPage, ...place)
        : await session.rows<Row>(readPageOf, ...place, request.channel)
    return rows.length === 0 ? [] : withCounts(session, rows)
  })
}

async function withCounts(session: Session, rows: readonly Row[]): Promise<readonly ConsumerOverview[]> {
  const [tallies, deadCounts] = await Promise.all([
    readTallies(session),
    readDeadCounts(session, { ends: true }),
  ])
  const dead = new Map(deadCounts.map((count) => [count.consumer, count]))
  return rows.map((row) => {
    const number = Number(row.number)
    const { queued = 0, inFlight = 0, delivered = 0 } = tallies.get(number) ?? {}
    return {
      id: xid(row.id),
      number,
      channelNumber: Number(row.channel),
      channelId: row.channel_id,
      channelName: row.channel_name,
      consumerId: row.consumer_id,
      consumerName: row.name,
      type: Number(row.pulls) === 1 ? 'pull' : 'push',
      callbackUrl: row.callback_url,
      queued,
      inFlight,
      delivered,
      dead: dead.get(number)?.deadCount ?? 0,
      oldestDeadAt: dead.get(number)?.oldestAt ?? null,
      pause: pauseOf(row),
      mostAtOnce: row.most_at_once === null ? null : Number(row.most_at_once),
      mostPerSecond: row.most_per_second,
      isSigned: Boolean(Number(row.is_signed)),
      previousSecretSince: Number(row.is_signed_twice) === 0 ? null : instantOf(row.secret_changed_at),
    }
  })
}

function pauseOf({ paused_since, paused_until, pause_reason }: Row): ConsumerPause | null {
  const since = instantOf(paused_since)
  const until = instantOf(paused_until)
  return since === null || until === null ? null : { since, until, reason: pause_reason ?? '' }
}

const instantOf = (value: Integer | null): Instant | null => (value === null ? null : instant(BigInt(value)))
