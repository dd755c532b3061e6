/** W2: the books of webhooks are exact: jobs per consumer and state, dead ones among them, and messages per channel. */
import type { Integer, Session } from '../db/database.ts'
import { STATUS } from '../letters/letter.ts'
import { readDeadCounts } from '../webhooks/dead-counts.ts'
import { readTallies, TALLY, type TallyName } from '../webhooks/tallies.ts'
import { type JobStatus, statusOf, WEBHOOKS } from '../webhooks/webhook.ts'
import type { Finding, Invariant } from './invariant.ts'
import { Sums } from './sums.ts'
import { JOB_LETTERS, JOBS, MESSAGES, read, rowsAlong, type Walker } from './walk.ts'

/** Jobs of a range by consumer and state; few groups, added up by the store. */
const countJobs = read(
  'countJobs',
  `SELECT consumer, state, count(*) AS jobs FROM bartleby.webhook_jobs WHERE id > $1 AND id <= $2
   GROUP BY consumer, state`,
)

/** Messages of a range by channel: those that were sent out, those that wait, those that have waited. */
const countMessages = read(
  'countMessages',
  `SELECT channel, count(received_at) AS dispatched, count(next_try_at) AS scheduled,
     count(CASE WHEN received_at IS NOT NULL THEN scheduled_for END) AS "scheduledDispatched"
   FROM bartleby.webhook_messages WHERE id > $1 AND id <= $2 GROUP BY channel`,
)

/** Pending letters of a range by drawer. */
const countLetters = read(
  'countJobLetters',
  `SELECT drawer, count(*) AS letters FROM bartleby.letters
   WHERE engine = '${WEBHOOKS}' AND source_id > $1 AND source_id <= $2 AND status = ${STATUS.Pending} GROUP BY drawer`,
)

type Tally = TallyName | 'dead'

const TALLY_OF: Readonly<Record<JobStatus, Tally>> = {
  QUEUED: 'queued',
  INFLIGHT: 'inFlight',
  DELIVERED: 'delivered',
  DEAD: 'dead',
}
const OF_MESSAGES = ['dispatched', 'scheduled', 'scheduledDispatched'] as const
/** The names of tallies are the keys of a constant record. */
const TALLIES = [...(Object.keys(TALLY) as TallyName[]), 'dead'] as const

/** Counts all jobs of consumers and all messages of channels, by the numbers of these. */
async function takeCensus(walker: Walker): Promise<ReadonlyMap<number, ReadonlyMap<Tally, number>>> {
  const census = new Map<number, Sums<Tally>>()
  const add = (subject: Integer, tally: Tally, amount: Integer): void => {
    const counts = census.get(Number(subject)) ?? new Sums<Tally>()
    census.set(Number(subject), counts)
    counts.add(tally, amount)
  }
  type Jobs = { readonly consumer: Integer; readonly state: Integer; readonly jobs: Integer }
  for await (const { consumer, state, jobs } of rowsAlong<Jobs>(walker, JOBS, countJobs))
    add(consumer, TALLY_OF[statusOf(Number(state))], jobs)
  type Messages = { readonly channel: Integer } & Readonly<Record<(typeof OF_MESSAGES)[number], Integer>>
  for await (const group of rowsAlong<Messages>(walker, MESSAGES, countMessages))
    for (const tally of OF_MESSAGES) add(group.channel, tally, group[tally])
  return census
}

/** Counts the Pending letters of dead jobs, by drawer. */
export async function countPendingLetters(walker: Walker): Promise<ReadonlyMap<number, number>> {
  const found = new Sums<number>()
  type Letters = { readonly drawer: Integer; readonly letters: Integer }
  for await (const { drawer, letters } of rowsAlong<Letters>(walker, JOB_LETTERS, countLetters))
    found.add(Number(drawer), letters)
  return found
}

/** All channels and consumers, by their numbers. Registered by hand: a few thousand at most. */
const readNames = read('webhookNames', {
  postgres: `
    SELECT number, channel_id AS "channelId", NULL AS "consumerId" FROM bartleby.webhook_channels
    UNION ALL SELECT consumer.number, channel.channel_id, consumer.consumer_id FROM bartleby.webhook_consumers AS consumer
    CROSS JOIN LATERAL (SELECT channel_id FROM bartleby.webhook_channels WHERE number = consumer.channel LIMIT 1) AS channel`,
  sqlite: `
    SELECT number, channel_id AS "channelId", NULL AS "consumerId" FROM webhook_channels
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
  const rows = await session.rows<SubjectName & { readonly number: Integer }>(readNames)
  return new Map(rows.map(({ number, ...name }) => [Number(number), name]))
}

/** A number in the books that is not what counting gives. */
export interface Miscount {
  readonly subject: number
  /** Of whom it is; undefined when there is no such consumer or channel. */
  readonly name: SubjectName | undefined
  readonly tally: Tally
  readonly counted: number
  readonly actual: number
}

/** What is in the books of webhooks and is not so. */
export async function* findMiscounts(walker: Walker): AsyncGenerator<Miscount> {
  const { session } = walker
  const census = await takeCensus(walker)
  const names = await readSubjectNames(session)
  const dead = new Map((await readDeadCounts(session)).map((each) => [each.consumer, each.deadCount]))
  const books = await readTallies(session)
  const subjects = new Set([...census.keys(), ...books.keys(), ...dead.keys()])
  for (const subject of [...subjects].sort((a, b) => a - b)) {
    const name = names.get(subject)
    for (const tally of TALLIES) {
      const counted = (tally === 'dead' ? dead.get(subject) : books.get(subject)?.[tally]) ?? 0
      const actual = census.get(subject)?.get(tally) ?? 0
      if (counted !== actual || (name === undefined && actual !== 0))
        yield { subject, name, tally, counted, actual }
    }
  }
}

export const webhookCounts: Invariant = {
  id: 'W2',
  promise: 'every count of webhook jobs and messages is what counting gives',
  rows: ({ jobs, messages }) => jobs + messages,
  async *check(audit) {
    for await (const miscount of findMiscounts(audit)) yield findingOf(miscount)
  },
}

function findingOf({ subject, name, tally, counted, actual }: Miscount): Finding {
  const what = `${tally} ${OF_MESSAGES.some((each) => each === tally) ? 'messages' : 'jobs'}`
  return {
    what:
      counted === actual
        ? `there are ${actual} ${what} of number ${subject}, which nobody has`
        : `${shown(subject, name)} has ${actual} ${what}, and the books say ${counted}`,
    row: {
      subject,
      channel: name?.channelId,
      consumer: name?.consumerId ?? undefined,
      ...{ tally, books: counted, found: actual },
    },
  }
}

function shown(subject: number, name: SubjectName | undefined): string {
  if (name === undefined) return `number ${subject}`
  return name.consumerId === null
    ? `channel '${name.channelId}'`
    : `consumer '${name.consumerId}' of channel '${name.channelId}'`
}
