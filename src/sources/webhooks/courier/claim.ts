/**
 * Claiming: ready jobs become this server's, for as many consumers as have room, in one transaction. What the courier must know
 * about a consumer is read in the same transaction, so that a change of it holds from the next attempt on, on every server.
 */
import type { Instant } from '../../../core/clock.ts'
import { xid } from '../../../core/xid.ts'
import { letterId } from '../../../letters/letter.ts'
import { type Database, type Integer, type Session, sql, type Transaction } from '../../../store/database.ts'
import { rowsGiven } from '../../../store/idioms.ts'
import { at, integer, number, orNull, type RowOf, rowShape, text } from '../../../store/row.ts'
import { Tallies } from '../numbers/tallies.ts'
import { JOB } from '../webhook.ts'
import { holdProbe, releaseProbe } from './pauses.ts'

const RECEIVER = rowShape({
  number: integer,
  channelId: text,
  consumerId: text,
  token: text,
  callbackUrl: text,
  secret: orNull(text),
  previousSecret: orNull(text),
  mostAtOnce: orNull(integer),
  mostPerSecond: orNull(number),
  /** Nothing is claimed for it before; null: it is not paused. */
  pausedUntil: orNull(at),
})

/** A push consumer as it was when its jobs were claimed. */
export interface Receiver extends Omit<RowOf<typeof RECEIVER>, 'secret' | 'previousSecret'> {
  /** Deliveries are signed with these; the second one while the first replaces it. */
  readonly secrets: readonly string[]
}

const READY_JOB = rowShape({
  id: xid,
  /** The internal id of its message. */
  message: xid,
  consumer: integer,
  createdAt: at,
  priority: integer,
  /** Attempts before this one. */
  attempts: integer,
  /** The case of its failures; null when there were none. */
  letter: orNull(letterId),
})
type ReadyJob = RowOf<typeof READY_JOB>

export interface ClaimedJob extends Omit<ReadyJob, 'consumer'> {
  readonly claim: string
  /** Then anybody may take it for lost. */
  readonly claimedUntil: Instant
  readonly receiver: Receiver
  /** Its consumer was paused, and this job shows whether it works again. */
  readonly isProbe: boolean
}

/** Push consumers by their numbers, each with one look for its channel. No locks. */
const readReceivers = sql(
  'webhooks.receivers',
  `
    SELECT number, consumer_id, token, callback_url, secret, previous_secret, most_at_once, most_per_second, paused_until,
      (SELECT channel_id FROM bartleby.webhook_channels AS home WHERE home.number = consumer.channel) AS channel_id
    FROM bartleby.webhook_consumers AS consumer WHERE number = ANY($1::int[]) AND pulls = 0`,
  { bigints: true },
)

/**
 * The first ready jobs of each consumer, from the front of webhook_jobs_ready, whatever stands behind them; those that
 * another server is claiming at the moment are passed over. Cost: the jobs that are claimed. SQLite claims for one consumer
 * at a time. Whether the consumer is still a push consumer is asked once more, where the jobs are taken.
 */
const claimReady = sql(
  'webhooks.claim',
  `UPDATE bartleby.webhook_jobs SET state = ${JOB.inFlight}, claim = $3, changed_at = $4, due_at = $5
   WHERE id = ANY(ARRAY(SELECT job.id FROM unnest($1::int[], $2::int[]) AS given (consumer, room) CROSS JOIN LATERAL (
     SELECT id FROM bartleby.webhook_jobs INDEXED BY webhook_jobs_ready
     WHERE state = ${JOB.ready} AND consumer = given.consumer
       AND (SELECT pulls FROM bartleby.webhook_consumers WHERE number = given.consumer) = 0
     ORDER BY priority DESC, created_at, id LIMIT given.room FOR UPDATE SKIP LOCKED) AS job))
   RETURNING ${READY_JOB.columns}`,
  { bigints: true },
)

export interface ClaimRequest {
  /** The consumers that may have ready jobs. */
  readonly consumers: readonly number[]
  /** Jobs in all, at most. */
  readonly most: number
  /** Jobs of one consumer, at most. Asked within the transaction, and again when that is run again. */
  roomOf(receiver: Receiver): number
  readonly claim: string
  readonly now: Instant
  readonly claimedUntil: Instant
}

export interface Claim {
  /** The most urgent first, then the oldest. */
  readonly jobs: readonly ClaimedJob[]
  /** Those of the consumers that are push consumers. */
  readonly receivers: readonly Receiver[]
  /** The consumers that have no more ready jobs now, or that must not get any. */
  readonly finished: ReadonlySet<number>
}

/** How much of a consumer is claimed. */
interface Allotment {
  readonly consumer: number
  /** What it has room for. */
  readonly room: number
  /** Ready jobs that are there, as far as it has room; null when nobody has looked. */
  readonly ready: number | null
  readonly allotted: number
}

/** Claims jobs, the most urgent ones first where there is not room for all. */
export function claimJobs(db: Database, request: ClaimRequest): Promise<Claim> {
  return db.transaction('webhooks.claim', async (tx) => {
    const receivers = await receiversOf(tx, request.consumers)
    const { rooms, probes, closed } = await roomsOf(tx, receivers, request)
    const allotments = await allot(tx, rooms, request.most)
    const wanted = allotments.flatMap(({ consumer, allotted }) =>
      allotted === 0 ? [] : { consumer, room: allotted },
    )
    const { claim, now, claimedUntil } = request
    const rows = (await rowsGiven<object>(tx, claimReady, wanted, claim, now, claimedUntil)).map(
      READY_JOB.read,
    )
    const taken = countsOf(rows)
    const known = new Set(receivers.map(({ number }) => number))
    const finished = new Set([...closed, ...request.consumers.filter((consumer) => !known.has(consumer))])
    for (const each of allotments) if (isFinished(each, taken)) finished.add(each.consumer)
    const tallies = new Tallies()
    for (const [consumer, jobs] of taken) tallies.moved(consumer, JOB.ready, JOB.inFlight, jobs)
    tallies.write(tx)
    for (const consumer of probes)
      if (!taken.has(consumer)) await releaseProbe(tx, consumer, now, claimedUntil)
    return { jobs: jobsOf(rows, receivers, probes, request), receivers, finished }
  })
}

/** Fewer were there than asked for; or all that were seen are taken, and they were fewer than there was room for. */
function isFinished(
  { consumer, room, ready, allotted }: Allotment,
  taken: ReadonlyMap<number, number>,
): boolean {
  return (taken.get(consumer) ?? 0) < allotted || (ready !== null && ready < room && ready === allotted)
}

async function receiversOf(tx: Transaction, consumers: readonly number[]): Promise<readonly Receiver[]> {
  const rows = await tx.rows<object>(readReceivers, consumers)
  const receivers = rows.map((row) => {
    const { secret, previousSecret, ...receiver } = RECEIVER.read(row)
    return { ...receiver, secrets: [secret, previousSecret].filter((each) => each !== null) }
  })
  // Those that are tried after a pause are locked one by one: in an order that all servers keep.
  return receivers.sort((a, b) => a.number - b.number)
}

/** What each consumer has room for. One that was paused gets a single job, on one server at a time. */
async function roomsOf(tx: Transaction, receivers: readonly Receiver[], request: ClaimRequest) {
  const { now, claimedUntil } = request
  const rooms = new Map<number, number>()
  const probes = new Set<number>()
  const closed = new Set<number>()
  for (const receiver of receivers) {
    const { number, pausedUntil } = receiver
    const room = request.roomOf(receiver)
    if (pausedUntil !== null && pausedUntil > now) closed.add(number)
    else if (room <= 0) continue
    else if (pausedUntil === null) rooms.set(number, room)
    else if (await holdProbe(tx, number, now, claimedUntil)) {
      probes.add(number)
      rooms.set(number, 1)
    } else closed.add(number)
  }
  return { rooms, probes, closed }
}

/** Who gets how many. Where there is not room for all, the jobs themselves decide. */
async function allot(
  tx: Transaction,
  rooms: ReadonlyMap<number, number>,
  most: number,
): Promise<readonly Allotment[]> {
  const sum = [...rooms.values()].reduce((all, room) => all + room, 0)
  if (sum <= most) {
    return [...rooms].map(([consumer, room]) => ({ consumer, room, ready: null, allotted: room }))
  }
  // A few more than its share of each: what is not looked at now is looked at in the next round.
  const each = Math.max(1, Math.ceil((2 * most) / rooms.size))
  const asked = new Map([...rooms].map(([consumer, room]) => [consumer, Math.min(room, each)]))
  const ready = await peekReady(tx, asked)
  const seen = countsOf(ready)
  const shares = countsOf(ready.toSorted(byUrgency).slice(0, most))
  return [...asked].map(([consumer, room]) => ({
    consumer,
    room,
    ready: seen.get(consumer) ?? 0,
    allotted: shares.get(consumer) ?? 0,
  }))
}

function jobsOf(
  ready: readonly ReadyJob[],
  receivers: readonly Receiver[],
  probes: ReadonlySet<number>,
  { claim, claimedUntil }: ClaimRequest,
): readonly ClaimedJob[] {
  const byNumber = new Map(receivers.map((receiver) => [receiver.number, receiver]))
  const jobs = ready.flatMap(({ consumer, ...job }) => {
    const receiver = byNumber.get(consumer)
    return receiver === undefined
      ? []
      : { ...job, claim, claimedUntil, receiver, isProbe: probes.has(consumer) }
  })
  return jobs.sort(byUrgency)
}

/**
 * The push consumers that have ready jobs and are not paused: one look into webhook_jobs_ready for each consumer that has
 * any, behind the one before, however many jobs each has. A pull consumer costs one look. No locks.
 */
const findConsumers = sql(
  'webhooks.consumersWithReady',
  `WITH RECURSIVE found (consumer) AS (
     SELECT -1
     UNION ALL
     SELECT (SELECT job.consumer FROM bartleby.webhook_jobs AS job INDEXED BY webhook_jobs_ready
             WHERE job.state = ${JOB.ready} AND job.consumer > found.consumer
             ORDER BY job.consumer, job.priority DESC, job.created_at, job.id LIMIT 1)
     FROM found WHERE found.consumer IS NOT NULL
   )
   SELECT consumer FROM found
   WHERE (SELECT known.pulls = 0 AND (known.paused_until IS NULL OR known.paused_until <= $1)
          FROM bartleby.webhook_consumers AS known WHERE known.number = found.consumer)`,
)

/** The numbers of the push consumers that have ready jobs and are not paused. */
export async function consumersWithReady(session: Session, now: Instant): Promise<readonly number[]> {
  const rows = await session.rows<{ consumer: Integer }>(findConsumers, now)
  return rows.map(({ consumer }) => Number(consumer))
}

const READY = rowShape({ consumer: integer, priority: integer, createdAt: at, id: text })

/** The keys of the first ready jobs of each consumer, from webhook_jobs_ready. Cost: the keys that are asked for. No locks. */
const readReady = sql(
  'webhooks.peek',
  `SELECT found.* FROM unnest($1::int[], $2::int[]) AS given (consumer, room) CROSS JOIN LATERAL (
     SELECT ${READY.columns} FROM bartleby.webhook_jobs INDEXED BY webhook_jobs_ready
     WHERE state = ${JOB.ready} AND consumer = given.consumer ORDER BY priority DESC, created_at, id LIMIT given.room) AS found`,
  { bigints: true },
)

/** What decides the order of jobs. */
interface Urgency {
  readonly priority: number
  readonly createdAt: Instant
  readonly id: string
}

/** The highest priority first, then the oldest. */
export function byUrgency(a: Urgency, b: Urgency): number {
  if (a.priority !== b.priority) return b.priority - a.priority
  if (a.createdAt !== b.createdAt) return a.createdAt < b.createdAt ? -1 : 1
  return a.id < b.id ? -1 : 1
}

/** The first ready jobs of these consumers, up to so many of each. */
export async function peekReady(
  session: Session,
  rooms: ReadonlyMap<number, number>,
): Promise<readonly RowOf<typeof READY>[]> {
  const asked = [...rooms].map(([consumer, room]) => ({ consumer, room }))
  return (await rowsGiven<object>(session, readReady, asked)).map(READY.read)
}

/** How many there are of each consumer. */
export function countsOf(jobs: readonly { readonly consumer: Integer }[]): ReadonlyMap<number, number> {
  const counts = new Map<number, number>()
  for (const { consumer } of jobs) counts.set(Number(consumer), (counts.get(Number(consumer)) ?? 0) + 1)
  return counts
}
