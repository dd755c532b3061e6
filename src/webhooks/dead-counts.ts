/**
 * How many dead jobs each consumer has. A dead job is a Pending letter, so these are the counts of the letters and nothing of
 * their own: exact at every moment, equal on every server, never counted and never kept in memory. All that tell the number of
 * dead jobs read it here.
 */
import type { Instant } from '../core/clock.ts'
import { type Integer, type Session, sql } from '../db/database.ts'
import { rowsGiven } from '../db/idioms.ts'
import { type Account, readAccounts } from '../letters/books.ts'
import { readJobEnds } from './job-ends.ts'
import { idsOfQueue, JOB, WEBHOOKS } from './webhook.ts'

/** The dead jobs of one consumer. */
export interface DeadCount {
  readonly channelId: string
  readonly channelName: string
  readonly consumerId: string
  readonly consumerName: string
  /** The number of the consumer. */
  readonly consumer: number
  readonly deadCount: number
  /** When those died that are dead for the longest and the shortest time; null without one, and when nobody asked. */
  readonly oldestAt: Instant | null
  readonly newestAt: Instant | null
}

/** A consumer as it is called now: two looks into unique indexes. */
const readConsumers = sql(
  'webhooks.deadConsumers',
  `SELECT found.* FROM unnest($1::text[], $2::text[]) AS given (channel_id, consumer_id) CROSS JOIN LATERAL (
     SELECT channel_id, channel.name AS channel_name, consumer_id, consumer.name AS consumer_name, consumer.number, consumer.created_at
     FROM bartleby.webhook_channels AS channel JOIN bartleby.webhook_consumers AS consumer ON consumer.channel = channel.number
     WHERE channel.channel_id = given.channel_id AND consumer.consumer_id = given.consumer_id LIMIT 1) AS found`,
  { bigints: true },
)

interface ConsumerRow {
  readonly channel_id: string
  readonly channel_name: string
  readonly consumer_id: string
  readonly consumer_name: string
  readonly number: Integer
  readonly created_at: Integer
}

/**
 * The consumers that ever had a dead job, also when they have none now, by channel and consumer id in the order of their bytes.
 * `ends` tells since when they are dead, for two more looks into an index per consumer.
 */
export async function readDeadCounts(
  session: Session,
  { ends = false }: { readonly ends?: boolean } = {},
): Promise<readonly DeadCount[]> {
  const pending = new Map<string, Account>()
  const asked: { readonly channel_id: string; readonly consumer_id: string }[] = []
  for (const account of await readAccounts(session, { source: WEBHOOKS, engine: WEBHOOKS })) {
    const ids = idsOfQueue(account.place.queue)
    if (ids === null) continue
    pending.set(JSON.stringify(ids), account)
    const [channel_id, consumer_id] = ids
    asked.push({ channel_id, consumer_id })
  }
  // Not necessarily of the same moment: who is gone by then is not told, who is new has no letters yet.
  const consumers = await rowsGiven<ConsumerRow>(session, readConsumers, asked)
  const counts = consumers.flatMap((row): DeadCount[] => {
    const counted = pending.get(JSON.stringify([row.channel_id, row.consumer_id]))
    if (counted === undefined || isForerunner(counted, row)) return []
    return [
      {
        channelId: row.channel_id,
        channelName: row.channel_name,
        consumerId: row.consumer_id,
        consumerName: row.consumer_name,
        consumer: Number(row.number),
        deadCount: counted.letters.Pending,
        oldestAt: null,
        newestAt: null,
      },
    ]
  })
  const ordered = inOrder(counts)
  return ends ? withEnds(session, ordered) : ordered
}

/** Whether the letters were those of a consumer that is gone, whose ids were given to another. */
const isForerunner = ({ letters, lastSeenAt }: Account, { created_at }: ConsumerRow): boolean =>
  letters.Pending === 0 && lastSeenAt < BigInt(created_at)

/** By the bytes of channel and consumer id; U+0000, which is in no id, comes before all else. */
function inOrder(counts: readonly DeadCount[]): readonly DeadCount[] {
  const keyed = counts.map((count) => ({
    count,
    key: Buffer.from(`${count.channelId}\0${count.consumerId}`),
  }))
  return keyed.sort((a, b) => a.key.compare(b.key)).map(({ count }) => count)
}

async function withEnds(session: Session, counts: readonly DeadCount[]): Promise<readonly DeadCount[]> {
  const dead = counts.filter(({ deadCount }) => deadCount !== 0)
  const ends = await readJobEnds(
    session,
    dead.map(({ consumer }) => ({ consumer, state: JOB.dead })),
  )
  return counts.map((count) => {
    const end = ends.get(`${count.consumer} ${JOB.dead}`)
    return end === undefined ? count : { ...count, ...end }
  })
}
