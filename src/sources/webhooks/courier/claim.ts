/**
 * Claiming: ready jobs become this server's, for all consumers with room, in one transaction. It reads consumers anew, so that a change
 * holds from the next attempt on, on every server.
 */
import type { Instant } from '../../../core/clock.ts'
import { xid } from '../../../core/xid.ts'
import { letterId } from '../../../letters/letter.ts'
import { type Database, type Integer, type Session, sql, type Transaction } from '../../../store/database.ts'
import { rowsGiven } from '../../../store/idioms.ts'
import { at, integer, number, orNull, type RowOf, rowShape, text } from '../../../store/row.ts'
import { CountChanges } from '../numbers/counts.ts'
import { JOB } from '../webhook.ts'
import { holdProbe, releaseProbe } from './breaker.ts'

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
  /** Null: not paused. */
  pausedUntil: orNull(at),
})

/** As it was when its jobs were claimed. */
export interface Receiver extends Omit<RowOf<typeof RECEIVER>, 'secret' | 'previousSecret'> {
  /** The second while the first replaces it. */
  readonly secrets: readonly string[]
}

const READY_JOB = rowShape({
  id: xid,
  /** The internal id. */
  message: xid,
  consumer: integer,
  createdAt: at,
  priority: integer,
  /** Before this one. */
  attempts: integer,
  /** Null before its first failure. */
  letter: orNull(letterId),
})
type ReadyJob = RowOf<typeof READY_JOB>

export interface ClaimedJob extends Omit<ReadyJob, 'consumer'> {
  readonly claim: string
  /** Then anybody may take it for lost. */
  readonly claimedUntil: Instant
  readonly receiver: Receiver
  /** The job that shows whether a paused consumer works again. */
  readonly isProbe: boolean
}

/** By number, with one look for the channel. No locks. */
const readReceivers = sql(
  'webhooks.receivers',
  `
    SELECT number, consumer_id, token, callback_url, secret, previous_secret, most_at_once, most_per_second, paused_until,
      (SELECT channel_id FROM bartleby.webhook_channels AS home WHERE home.number = consumer.channel) AS channel_id
    FROM bartleby.webhook_consumers AS consumer WHERE number = ANY($1::int[]) AND pulls = 0`,
  { bigints: true },
)

/**
 * From the front of webhook_jobs_ready; jobs that another server is claiming are passed over. Cost: the jobs claimed. Asks once more
 * whether the consumer is still a push consumer. SQLite claims for one consumer at a time.
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
  /** Those that may have ready jobs. */
  readonly consumers: readonly number[]
  /** In all. */
  readonly most: number
  /** Of one consumer. Asked again when the transaction runs again. */
  roomOf(receiver: Receiver): number
  readonly claim: string
  readonly now: Instant
  readonly claimedUntil: Instant
}

export interface Claim {
  /** The most urgent first, then the oldest. */
  readonly jobs: readonly ClaimedJob[]
  /** Push consumers only. */
  readonly receivers: readonly Receiver[]
  /** Consumers without ready jobs, or that must not get any. */
  readonly finished: ReadonlySet<number>
}

interface Allotment {
  readonly consumer: number
  readonly room: number
  /** As far as it has room; null: not looked at. */
  readonly ready: number | null
  readonly allotted: number
}

/** The most urgent first where there is not room for all. */
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
    const counts = new CountChanges()
    for (const [consumer, jobs] of taken) counts.moved(consumer, JOB.ready, JOB.inFlight, jobs)
    counts.write(tx)
    for (const consumer of probes)
      if (!taken.has(consumer)) await releaseProbe(tx, consumer, now, claimedUntil)
    return { jobs: jobsOf(rows, receivers, probes, request), receivers, finished }
  })
}

/** Fewer came than asked for, or all that were seen are taken and left room. */
function isFinished(
  { consumer, room, ready, allotted }: Allotment,
  taken: ReadonlyMap<number, number>,
): boolean {
  return (taken.get(consumer) ?? 0) < allotted || (ready !== null && ready < room && ready === allotted)
}

async function receiversOf(tx: Transaction, consumers: readonly number[]): Promise<readonly Receiver[]> {
  const rows = await RECEIVER.all(tx, readReceivers, consumers)
  const receivers = rows.map(({ secret, previousSecret, ...receiver }) => ({
    ...receiver,
    secrets: [secret, previousSecret].filter((each) => each !== null),
  }))
  // Probes are locked one by one, in an order that all servers keep.
  return receivers.sort((a, b) => a.number - b.number)
}

/** A paused consumer gets one job, on one server at a time. */
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

/** Where there is not room for all, the jobs decide. */
async function allot(
  tx: Transaction,
  rooms: ReadonlyMap<number, number>,
  most: number,
): Promise<readonly Allotment[]> {
  const sum = [...rooms.values()].reduce((all, room) => all + room, 0)
  if (sum <= most) {
    return [...rooms].map(([consumer, room]) => ({ consumer, room, ready: null, allotted: room }))
  }
  // A few more than its share: the next round looks at the rest.
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
 * Push consumers with ready jobs that are not paused: one look into webhook_jobs_ready per consumer, however many jobs it has. No locks.
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

export async function consumersWithReady(session: Session, now: Instant): Promise<readonly number[]> {
  const rows = await session.rows<{ consumer: Integer }>(findConsumers, now)
  return rows.map(({ consumer }) => Number(consumer))
}

const READY = rowShape({ consumer: integer, priority: integer, createdAt: at, id: text })

/** Keys from webhook_jobs_ready. Cost: the keys asked for. No locks. */
const readReady = sql(
  'webhooks.peek',
  `SELECT found.* FROM unnest($1::int[], $2::int[]) AS given (consumer, room) CROSS JOIN LATERAL (
     SELECT ${READY.columns} FROM bartleby.webhook_jobs INDEXED BY webhook_jobs_ready
     WHERE state = ${JOB.ready} AND consumer = given.consumer ORDER BY priority DESC, created_at, id LIMIT given.room) AS found`,
  { bigints: true },
)

type Urgency = Omit<RowOf<typeof READY>, 'consumer'>

/** The highest priority first, then the oldest. */
function byUrgency(a: Urgency, b: Urgency): number {
  if (a.priority !== b.priority) return b.priority - a.priority
  if (a.createdAt !== b.createdAt) return a.createdAt < b.createdAt ? -1 : 1
  return a.id < b.id ? -1 : 1
}

async function peekReady(
  session: Session,
  rooms: ReadonlyMap<number, number>,
): Promise<readonly RowOf<typeof READY>[]> {
  const asked = [...rooms].map(([consumer, room]) => ({ consumer, room }))
  return (await rowsGiven<object>(session, readReady, asked)).map(READY.read)
}

export function countsOf(jobs: readonly { readonly consumer: Integer }[]): ReadonlyMap<number, number> {
  const counts = new Map<number, number>()
  for (const { consumer } of jobs) counts.set(Number(consumer), (counts.get(Number(consumer)) ?? 0) + 1)
  return counts
}
