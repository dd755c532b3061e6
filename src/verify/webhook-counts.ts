/** W2: the books of webhooks are exact: jobs per consumer and state, dead ones among them, and messages per channel. */

import { STATUS } from '../letters/letter.ts'
import { readDeadCounts } from '../sources/webhooks/dead-counts.ts'
import { readTallies, TALLY, type TallyName } from '../sources/webhooks/tallies.ts'
import { type JobStatus, statusOf, WEBHOOKS } from '../sources/webhooks/webhook.ts'
import type { Integer, Session } from '../store/database.ts'
import type { Finding, FoundRow, Invariant } from './invariant.ts'
import { Sums } from './sums.ts'
import { batchesOf, read, type Side, textKey, type Walker } from './walk.ts'

const readJobs = read('jobStates', 'SELECT consumer, state FROM bartleby.webhook_jobs')

/** Messages: whether they were sent out, wait, or have waited. */
const readMessages = read(
  'messageStates',
  `SELECT channel, CASE WHEN received_at IS NULL THEN 0 ELSE 1 END AS dispatched, CASE WHEN next_try_at IS NULL THEN 0 ELSE 1 END AS scheduled,
     CASE WHEN received_at IS NULL OR scheduled_for IS NULL THEN 0 ELSE 1 END AS "scheduledDispatched"
   FROM bartleby.webhook_messages`,
)

/** Letters of webhook jobs, by the ids of these. */
export const JOB_LETTERS: Side = {
  statement: read(
    'jobLetters',
    `SELECT source_id AS key, id, drawer, status FROM bartleby.letters WHERE engine = '${WEBHOOKS}' ORDER BY source_id`,
  ),
  keyOf: textKey,
}

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
  const add = (subject: FoundRow[string], tally: Tally, amount: number): void => {
    const counts = census.get(Number(subject)) ?? new Sums<Tally>()
    census.set(Number(subject), counts)
    counts.add(tally, amount)
  }
  for await (const jobs of batchesOf(walker, readJobs))
    for (const { consumer, state } of jobs) add(consumer, TALLY_OF[statusOf(Number(state))], 1)
  for await (const messages of batchesOf(walker, readMessages))
    for (const message of messages)
      for (const tally of OF_MESSAGES) add(message.channel, tally, Number(message[tally]))
  return census
}

/** Counts the Pending letters of dead jobs, by drawer. */
export async function countPendingLetters(walker: Walker): Promise<ReadonlyMap<number, number>> {
  const found = new Sums<number>()
  for await (const letters of batchesOf(walker, JOB_LETTERS.statement))
    for (const { drawer, status } of letters)
      if (Number(status) === STATUS.Pending) found.add(Number(drawer), 1)
  return found
}

/** All channels and consumers, by their numbers. Registered by hand: a few thousand at most. */
const readNames = read(
  'webhookNames',
  `SELECT number, channel_id AS "channelId", NULL AS "consumerId" FROM bartleby.webhook_channels
   UNION ALL SELECT consumer.number, channel.channel_id, consumer.consumer_id FROM bartleby.webhook_consumers AS consumer
   JOIN bartleby.webhook_channels AS channel ON channel.number = consumer.channel`,
)

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
