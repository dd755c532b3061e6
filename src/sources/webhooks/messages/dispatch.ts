/**
 * Dispatch: one job for each present consumer of the channel, in the message's transaction. Whoever makes jobs shares the channel's lock;
 * whoever deletes a consumer holds it alone before it looks for jobs, so no job is left without its consumer. SQLite has one writer and
 * needs no lock.
 */
import type { Instant } from '../../../core/clock.ts'
import { type Xid, type Xids, xidsFrom } from '../../../core/xid.ts'
import { type Integer, sql, type Transaction, type Value } from '../../../store/database.ts'
import { rowsGiven } from '../../../store/idioms.ts'
import type { CountChanges } from '../numbers/counts.ts'
import { JOB } from '../webhook.ts'

interface Addressee {
  readonly number: number
  readonly pulls: boolean
}

/** In the order of consumer numbers. */
type Audience = ReadonlyMap<number, readonly Addressee[]>

/** Their ids follow each other. */
export interface JobBlock {
  readonly message: Xid
  readonly priority: number
  readonly addressees: readonly Addressee[]
  /** Null when there are none. */
  readonly first: Xid | null
}

/** Waits only while a consumer of one of them is being deleted. */
const share = sql('webhooks.shareChannels', {
  postgres: 'SELECT pg_advisory_xact_lock_shared(1853, number) FROM unnest($1::int[]) AS channel (number)',
  sqlite: '',
})

/** Waits for transactions that are making jobs of the channel. */
const hold = sql('webhooks.holdChannel', {
  postgres: 'SELECT pg_advisory_xact_lock(1853, $1)',
  sqlite: '',
})

/**
 * Call it before the consumers are read. It may travel with that read: statements run in order, and each sees what was committed when it
 * began.
 */
export async function shareChannels(tx: Transaction, channels: readonly number[]): Promise<void> {
  if (tx.dialect === 'postgres') await tx.rows(share, channels)
}

/** Call it before jobs are looked for, to delete their consumer. */
export async function holdChannel(tx: Transaction, channel: number): Promise<void> {
  if (tx.dialect === 'postgres') await tx.rows(hold, channel)
}

interface ConsumerRow {
  readonly channel: Integer
  readonly consumer_id: string
  readonly number: Integer
  readonly pulls: Integer
}

/** Read at once. */
const MOST_CONSUMERS = 1_000

/** Along the unique index of channel and id. */
const readConsumers = sql(
  'webhooks.audience',
  `SELECT found.* FROM unnest($1::int[], $2::text[]) AS given (channel, after) CROSS JOIN LATERAL (
     SELECT channel, consumer_id, number, pulls FROM bartleby.webhook_consumers
     WHERE (channel, consumer_id) > (given.channel, given.after) AND channel <= given.channel
     ORDER BY channel, consumer_id LIMIT ${MOST_CONSUMERS}) AS found`,
)

/** Kept so until the transaction ends. */
export async function readAudience(tx: Transaction, channels: Iterable<number>): Promise<Audience> {
  const numbers = [...new Set(channels)].sort((a, b) => a - b)
  const audience = new Map<number, Addressee[]>(numbers.map((number) => [number, []]))
  if (numbers.length === 0) return audience
  const locked = shareChannels(tx, numbers)
  let asked = numbers.map((channel) => ({ channel, after: '' }))
  while (asked.length > 0) {
    // Travels behind the locks: it sees what is committed when they are held.
    const [rows] = await Promise.all([rowsGiven<ConsumerRow>(tx, readConsumers, asked), locked])
    for (const { channel, number, pulls } of rows)
      audience.get(Number(channel))?.push({ number: Number(number), pulls: Number(pulls) === 1 })
    asked = [...Map.groupBy(rows, ({ channel }) => Number(channel))].flatMap(([channel, some]) => {
      const last = some[MOST_CONSUMERS - 1]
      return last === undefined ? [] : { channel, after: last.consumer_id }
    })
  }
  for (const addressees of audience.values()) addressees.sort((a, b) => a.number - b.number)
  return audience
}

export function jobBlock(
  xids: Xids,
  audience: Audience,
  message: { readonly id: Xid; readonly channel: number; readonly priority: number },
): JobBlock {
  const { id, channel, priority } = message
  const addressees = audience.get(channel) ?? []
  const first = addressees.length === 0 ? null : xids.block(addressees.length)
  return { message: id, priority, addressees, first }
}

/** One statement for all on PostgreSQL. No locks but those of the new rows. */
const insertMany = sql(
  'webhooks.insertJobs',
  `INSERT INTO bartleby.webhook_jobs (created_at, changed_at, state, id, message, priority, consumer)
   SELECT $5, $5, ${JOB.ready}, given.id, given.message, given.priority, given.consumer
   FROM unnest($1::text[], $2::text[], $3::bigint[], $4::int[]) AS given (id, message, priority, consumer)`,
)

/** Written with the commit. */
export async function insertJobs(
  tx: Transaction,
  now: Instant,
  blocks: readonly JobBlock[],
  counts: CountChanges,
): Promise<void> {
  for (const [addressees, messages] of countedAudiences(blocks)) {
    for (const { number } of addressees) counts.moved(number, null, JOB.ready, messages)
  }
  if (tx.dialect === 'sqlite') {
    await tx.runEach(insertMany, rowsOf(now, blocks))
    return
  }
  const ids: Xid[] = []
  const messages: Xid[] = []
  const priorities: number[] = []
  const consumers: number[] = []
  for (const { message, priority, addressees, first } of blocks) {
    if (first === null) continue
    for (const id of xidsFrom(first, addressees.length)) ids.push(id)
    for (const { number } of addressees) {
      messages.push(message)
      priorities.push(priority)
      consumers.push(number)
    }
  }
  if (ids.length === 0) return
  tx.atCommit(insertMany, `{${ids.join(',')}}`, `{${messages.join(',')}}`, priorities, consumers, now)
}

function* rowsOf(now: Instant, blocks: readonly JobBlock[]): Iterable<Value[]> {
  for (const { message, priority, addressees, first } of blocks) {
    if (first === null) continue
    const ids = xidsFrom(first, addressees.length)
    for (const [i, { number }] of addressees.entries()) yield [ids[i] ?? null, message, priority, number, now]
  }
}

/** Push consumers only. */
export function pushedTo(blocks: readonly JobBlock[]): ReadonlySet<number> {
  const pushed = new Set<number>()
  for (const [addressees] of countedAudiences(blocks)) {
    for (const { number, pulls } of addressees) if (!pulls) pushed.add(number)
  }
  return pushed
}

/** Messages of a channel share one list of consumers. */
function countedAudiences(blocks: readonly JobBlock[]): ReadonlyMap<readonly Addressee[], number> {
  const counted = new Map<readonly Addressee[], number>()
  for (const { addressees } of blocks) counted.set(addressees, (counted.get(addressees) ?? 0) + 1)
  return counted
}

/** As far as the jobs of one transaction reach; the first itself may have more. */
export function upToJobs<T>(
  messages: readonly T[],
  most: number,
  jobsOf: (message: T) => number,
): readonly T[] {
  let jobs = 0
  const end = messages.findIndex((message, i) => {
    jobs += jobsOf(message)
    return i > 0 && jobs > most
  })
  return end < 0 ? messages : messages.slice(0, end)
}
