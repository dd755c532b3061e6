/**
 * How many dead jobs each consumer has. A dead job is a Pending letter, so these are the counts of the letters and nothing of
 * their own: exact at every moment, equal on every server, never counted and never kept in memory. All that tell the number of
 * dead jobs read it here.
 */
import type { Instant } from '../../../core/clock.ts'
import { type PlaceCounts, readPlaceCounts } from '../../../letters/numbers/summary.ts'
import { type Session, sql } from '../../../store/database.ts'
import { rowsGiven } from '../../../store/idioms.ts'
import { at, integer, orNull, type RowOf, rowShape, text } from '../../../store/row.ts'
import { idsOfQueue, JOB, type JobState, WEBHOOKS } from '../webhook.ts'

const CONSUMER = rowShape({
  channelId: text,
  channelName: text,
  consumerId: text,
  consumerName: text,
  number: integer,
  createdAt: at,
})
type ConsumerRow = RowOf<typeof CONSUMER>

/** The dead jobs of one consumer. */
export interface DeadCount extends Omit<ConsumerRow, 'number' | 'createdAt'> {
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

/**
 * The consumers that ever had a dead job, also when they have none now, by channel and consumer id in the order of their bytes.
 * `ends` tells since when they are dead, for two more looks into an index per consumer.
 */
export async function readDeadCounts(
  session: Session,
  { ends = false }: { readonly ends?: boolean } = {},
): Promise<readonly DeadCount[]> {
  const pending = new Map<string, PlaceCounts>()
  const asked: { readonly channel_id: string; readonly consumer_id: string }[] = []
  for (const account of await readPlaceCounts(session, { source: WEBHOOKS, engine: WEBHOOKS })) {
    const ids = idsOfQueue(account.place.queue)
    if (ids === null) continue
    pending.set(JSON.stringify(ids), account)
    const [channel_id, consumer_id] = ids
    asked.push({ channel_id, consumer_id })
  }
  // Not necessarily of the same moment: who is gone by then is not told, who is new has no letters yet.
  const consumers = (await rowsGiven<object>(session, readConsumers, asked)).map(CONSUMER.read)
  const counts = consumers.flatMap((row): DeadCount[] => {
    const { number: consumer, createdAt, ...names } = row
    const counted = pending.get(JSON.stringify([row.channelId, row.consumerId]))
    if (counted === undefined || isForerunner(counted, row)) return []
    return [{ ...names, consumer, deadCount: counted.letters.Pending, oldestAt: null, newestAt: null }]
  })
  const ordered = inOrder(counts)
  return ends ? withEnds(session, ordered) : ordered
}

/** Whether the letters were those of a consumer that is gone, whose ids were given to another. */
const isForerunner = ({ letters, lastSeenAt }: PlaceCounts, { createdAt }: ConsumerRow): boolean =>
  letters.Pending === 0 && lastSeenAt < createdAt

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

/** Since when jobs are in a state: the oldest and the newest change of a state of a consumer's jobs. */
export interface JobEnds {
  readonly oldestAt: Instant
  readonly newestAt: Instant
}

/** An end of the changes of a state, on webhook_jobs_by_state. */
const endOf = (which: 'min' | 'max'): string =>
  `(SELECT ${which}(changed_at) FROM bartleby.webhook_jobs AS job INDEXED BY webhook_jobs_by_state
    WHERE job.consumer = pair.consumer AND job.state = pair.state)`

/** Two looks for each pair of a consumer and a state, whatever the number of jobs. No locks. */
const readEnds = sql(
  'webhooks.jobEnds',
  `SELECT consumer, state, ${endOf('min')} AS oldest_at, ${endOf('max')} AS newest_at
   FROM (SELECT CAST(value ->> 0 AS int) AS consumer, CAST(value ->> 1 AS int) AS state
     FROM json_array_elements($1::json) AS asked (value)) AS pair`,
  { bigints: true },
)

const ENDS = rowShape({ consumer: integer, state: integer, oldestAt: orNull(at), newestAt: orNull(at) })

/** The ends of these, by `<consumer> <state>`; nothing where there is no job. */
export async function readJobEnds(
  session: Session,
  asked: readonly { readonly consumer: number; readonly state: JobState }[],
): Promise<ReadonlyMap<string, JobEnds>> {
  if (asked.length === 0) return new Map()
  const pairs = JSON.stringify(asked.map(({ consumer, state }) => [consumer, state]))
  const rows = (await session.rows<object>(readEnds, pairs)).map(ENDS.read)
  return new Map(
    rows.flatMap(({ consumer, state, oldestAt, newestAt }) =>
      oldestAt === null || newestAt === null
        ? []
        : [[`${consumer} ${state}`, { oldestAt, newestAt }] as const],
    ),
  )
}
