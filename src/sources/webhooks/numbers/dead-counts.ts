/**
 * How many dead jobs each consumer has: the counts of its Pending letters, exact at every moment and equal on every server. All that show
 * the number of dead jobs read it here.
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

export interface DeadCount extends Omit<ConsumerRow, 'number' | 'createdAt'> {
  readonly consumer: number
  readonly deadCount: number
  /** When the first and the last of them died; null without one, and unless asked for. */
  readonly oldestAt: Instant | null
  readonly newestAt: Instant | null
}

/** Two looks into unique indexes each. */
const readConsumers = sql(
  'webhooks.deadConsumers',
  `SELECT found.* FROM unnest($1::text[], $2::text[]) AS given (channel_id, consumer_id) CROSS JOIN LATERAL (
     SELECT channel_id, channel.name AS channel_name, consumer_id, consumer.name AS consumer_name, consumer.number, consumer.created_at
     FROM bartleby.webhook_channels AS channel JOIN bartleby.webhook_consumers AS consumer ON consumer.channel = channel.number
     WHERE channel.channel_id = given.channel_id AND consumer.consumer_id = given.consumer_id LIMIT 1) AS found`,
  { bigints: true },
)

/** Consumers that ever had a dead job, in the order of the bytes of their ids. `ends` costs two more looks into an index each. */
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
  // Not necessarily of the same moment: who is gone by then is left out, who is new has no letters yet.
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

/** The letters of a deleted consumer, whose ids were given to another. */
const isForerunner = ({ letters, lastSeenAt }: PlaceCounts, { createdAt }: ConsumerRow): boolean =>
  letters.Pending === 0 && lastSeenAt < createdAt

/** U+0000, which is in no id, comes before all else. */
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

/** The oldest and the newest change of a consumer's jobs in one state. */
interface JobEnds {
  readonly oldestAt: Instant
  readonly newestAt: Instant
}

/** On webhook_jobs_by_state. */
const endOf = (which: 'min' | 'max'): string =>
  `(SELECT ${which}(changed_at) FROM bartleby.webhook_jobs AS job INDEXED BY webhook_jobs_by_state
    WHERE job.consumer = pair.consumer AND job.state = pair.state)`

/** Two looks for each pair, whatever the number of jobs. No locks. */
const readEnds = sql(
  'webhooks.jobEnds',
  `SELECT consumer, state, ${endOf('min')} AS oldest_at, ${endOf('max')} AS newest_at
   FROM (SELECT CAST(value ->> 0 AS int) AS consumer, CAST(value ->> 1 AS int) AS state
     FROM json_array_elements($1::json) AS asked (value)) AS pair`,
  { bigints: true },
)

const ENDS = rowShape({ consumer: integer, state: integer, oldestAt: orNull(at), newestAt: orNull(at) })

/** By `<consumer> <state>`. */
export async function readJobEnds(
  session: Session,
  asked: readonly { readonly consumer: number; readonly state: JobState }[],
): Promise<ReadonlyMap<string, JobEnds>> {
  if (asked.length === 0) return new Map()
  const pairs = JSON.stringify(asked.map(({ consumer, state }) => [consumer, state]))
  const rows = await ENDS.all(session, readEnds, pairs)
  return new Map(
    rows.flatMap(({ consumer, state, oldestAt, newestAt }) =>
      oldestAt === null || newestAt === null
        ? []
        : [[`${consumer} ${state}`, { oldestAt, newestAt }] as const],
    ),
  )
}
