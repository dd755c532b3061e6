/** What webhooks promise and `verify` proves: dead jobs and letters, counts, ranges of jobs. */
import { xid, xidAfter } from '../../core/xid.ts'
import type { Audit, Finding, FoundRow, Invariant, Side } from '../../letters/audit/invariant.ts'
import { batchesOf, read, Sums, textKey, together, type Walker } from '../../letters/audit/walk.ts'
import { STATUS } from '../../letters/letter.ts'
import type { Integer, Session } from '../../store/database.ts'
import {
  COUNT_NAMES,
  COUNT_OF_STATUS,
  type CountName,
  MESSAGE_COUNTS,
  readAllCounts,
} from './numbers/counts.ts'
import { JOB, queueOfConsumer, statusOf, WEBHOOKS } from './webhook.ts'

/** As counted; a check tells whether that is right. */
const counted =
  (...names: readonly CountName[]) =>
  async ({ session }: Audit): Promise<number> => {
    const counts = [...(await readAllCounts(session)).values()]
    return counts.reduce((sum, each) => names.reduce((all, name) => all + (each[name] ?? 0), sum), 0)
  }
const countedJobs = counted('queued', 'inFlight', 'delivered', 'dead')

const readJobs = read('jobStates', 'SELECT consumer, state FROM bartleby.webhook_jobs')

const readMessages = read(
  'messageStates',
  `SELECT channel, CASE WHEN received_at IS NULL THEN 0 ELSE 1 END AS dispatched, CASE WHEN next_try_at IS NULL THEN 0 ELSE 1 END AS scheduled,
     CASE WHEN received_at IS NULL OR scheduled_for IS NULL THEN 0 ELSE 1 END AS "scheduledDispatched"
   FROM bartleby.webhook_messages`,
)

const JOB_LETTERS: Side = {
  statement: read(
    'jobLetters',
    `SELECT source_id AS key, id, drawer, status FROM bartleby.letters WHERE engine = '${WEBHOOKS}' ORDER BY source_id`,
  ),
  keyOf: textKey,
}

async function takeCensus(walker: Walker): Promise<ReadonlyMap<number, ReadonlyMap<CountName, number>>> {
  const census = new Map<number, Sums<CountName>>()
  const add = (subject: FoundRow[string], tally: CountName, amount: number): void => {
    const counts = census.get(Number(subject)) ?? new Sums<CountName>()
    census.set(Number(subject), counts)
    counts.add(tally, amount)
  }
  for await (const jobs of batchesOf(walker, readJobs))
    for (const { consumer, state } of jobs) add(consumer, COUNT_OF_STATUS[statusOf(Number(state))], 1)
  for await (const messages of batchesOf(walker, readMessages))
    for (const message of messages)
      for (const tally of MESSAGE_COUNTS) add(message.channel, tally, Number(message[tally]))
  return census
}

/** By drawer. */
export async function countPendingLetters(walker: Walker): Promise<ReadonlyMap<number, number>> {
  const found = new Sums<number>()
  for await (const letters of batchesOf(walker, JOB_LETTERS.statement))
    for (const { drawer, status } of letters)
      if (Number(status) === STATUS.Pending) found.add(Number(drawer), 1)
  return found
}

/** Registered by hand: a few thousand at most. */
const readNames = read(
  'webhookNames',
  `SELECT number, channel_id AS "channelId", NULL AS "consumerId" FROM bartleby.webhook_channels
   UNION ALL SELECT consumer.number, channel.channel_id, consumer.consumer_id FROM bartleby.webhook_consumers AS consumer
   JOIN bartleby.webhook_channels AS channel ON channel.number = consumer.channel`,
)

interface SubjectName {
  readonly channelId: string
  /** Null: the channel itself. */
  readonly consumerId: string | null
}

export async function readSubjectNames(session: Session): Promise<ReadonlyMap<number, SubjectName>> {
  const rows = await session.rows<SubjectName & { readonly number: Integer }>(readNames)
  return new Map(rows.map(({ number, ...name }) => [Number(number), name]))
}

export interface Miscount {
  readonly subject: number
  /** Undefined when there is no such consumer or channel. */
  readonly name: SubjectName | undefined
  readonly tally: CountName
  readonly counted: number
  readonly actual: number
}

export async function* findMiscounts(walker: Walker): AsyncGenerator<Miscount> {
  const { session } = walker
  const census = await takeCensus(walker)
  const names = await readSubjectNames(session)
  const counts = await readAllCounts(session)
  const subjects = new Set([...census.keys(), ...counts.keys()])
  for (const subject of [...subjects].sort((a, b) => a - b)) {
    const name = names.get(subject)
    for (const tally of COUNT_NAMES) {
      const counted = counts.get(subject)?.[tally] ?? 0
      const actual = census.get(subject)?.get(tally) ?? 0
      if (counted !== actual || (name === undefined && actual !== 0))
        yield { subject, name, tally, counted, actual }
    }
  }
}

/** W2: counts are exact: jobs per consumer and state, dead ones among them, and messages per channel. */
const counts: Invariant = {
  id: 'W2',
  promise: 'every count of webhook jobs and messages is what counting gives',
  rows: counted('queued', 'inFlight', 'delivered', 'dead', 'dispatched', 'scheduled'),
  async *check(audit) {
    for await (const miscount of findMiscounts(audit)) yield findingOf(miscount)
  },
}

function findingOf({ subject, name, tally, counted, actual }: Miscount): Finding {
  const what = `${tally} ${MESSAGE_COUNTS.some((each) => each === tally) ? 'messages' : 'jobs'}`
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

const JOBS: Side = {
  statement: read('jobs', 'SELECT id AS key, consumer, state, letter FROM bartleby.webhook_jobs ORDER BY id'),
  keyOf: textKey,
}

/** W1: a dead job has one Pending letter, in a drawer of its consumer, and every such letter its dead job. */
const deadJobs: Invariant = {
  id: 'W1',
  promise: 'a dead webhook job has one pending letter, and such a letter its dead job',
  rows: countedJobs,
  async *check(audit) {
    const names = await readSubjectNames(audit.session)
    /** Each told once. */
    const misfiled = new Set<string>()
    for await (const { key: id, jobs, letters } of together(audit, { jobs: JOBS, letters: JOB_LETTERS })) {
      const dead = jobs.find(({ state }) => Number(state) === JOB.dead)
      const letter = letters.find(({ status }) => Number(status) === STATUS.Pending)
      if (dead !== undefined && (letter === undefined || String(letter.id) !== String(dead.letter)))
        yield {
          what: `job ${id} is dead, and ${dead.letter === null ? 'names no letter' : `letter ${dead.letter} is not its pending one`}`,
          row: { job: id, consumer: dead.consumer, letter: dead.letter ?? undefined },
        }
      if (letter === undefined) continue
      if (dead === undefined) {
        yield {
          what: `letter ${letter.id} is pending, and its job ${id} is gone or not dead`,
          row: { letter: letter.id, job: id },
        }
        continue
      }
      const { consumer } = dead
      const { drawer } = letter
      if (isOfConsumer(audit, names.get(Number(consumer)), drawer) || misfiled.has(`${consumer} ${drawer}`))
        continue
      misfiled.add(`${consumer} ${drawer}`)
      yield {
        what: `the letter of job ${id} lies in drawer ${drawer}, which is not one of its consumer`,
        row: { job: id, consumer, drawer, queue: audit.drawers.get(Number(drawer))?.queue ?? '' },
      }
    }
  },
}

function isOfConsumer({ drawers }: Audit, name: SubjectName | undefined, drawer: FoundRow[string]): boolean {
  const label = drawers.get(Number(drawer))
  return (
    name?.consumerId != null &&
    label?.source === WEBHOOKS &&
    label.queue === queueOfConsumer(name.channelId, name.consumerId)
  )
}

/** In the order of ids: those of a message lie beside each other. */
const readJobMessages = read(
  'jobMessages',
  `SELECT job.id, job.message, message.first_job, message.jobs AS said
   FROM bartleby.webhook_jobs AS job LEFT JOIN bartleby.webhook_messages AS message ON message.id = job.message ORDER BY job.id`,
)

interface JobRow {
  readonly id: string
  readonly message: string
  readonly first_job: string | null
  readonly said: FoundRow[string]
}

/** W3: a job lies in the range of ids that its message names, so that all jobs of a message are found. */
const jobRanges: Invariant = {
  id: 'W3',
  promise: 'the jobs of a webhook message are the range of ids that it names',
  rows: countedJobs,
  async *check(audit) {
    let told: string | undefined
    for await (const jobs of batchesOf<JobRow>(audit, readJobMessages)) {
      for (const job of jobs) {
        const what = faultOf(job)
        if (what === null || told === job.message) continue
        told = job.message
        yield { what, row: { message: job.message, job: job.id } }
      }
    }
  },
}

function faultOf({ id, message, first_job, said }: JobRow): string | null {
  if (said == null) return `job ${id} belongs to message ${message}, which is not there`
  const most = Number(said)
  if (first_job === null || most === 0) return `message ${message} names no jobs, and job ${id} is one of it`
  return id < first_job || id > xidAfter(xid(first_job), most - 1)
    ? `message ${message} has a job that is not in the range it names`
    : null
}

export const webhookInvariants: readonly Invariant[] = [deadJobs, counts, jobRanges]
