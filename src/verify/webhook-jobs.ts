/**
 * W1: a dead job has one Pending letter, which lies in a drawer of its consumer, and every Pending letter of webhooks has its dead job.
 * W3: a job belongs to a message and lies in the range of ids that the message names, so that the jobs of a message are all found.
 */
import { xid, xidAfter } from '../core/xid.ts'
import { type Integer, sql } from '../db/database.ts'
import { STATUS } from '../letters/letter.ts'
import { JOB, queueOfConsumer, WEBHOOKS } from '../webhooks/webhook.ts'
import type { Audit, Finding, Invariant } from './invariant.ts'
import { readSubjectNames } from './webhook-census.ts'
import { jobLetterRanges, jobRanges } from './webhook-walk.ts'

/** Dead jobs of a range whose letter is not the one they name, or not Pending: one look into letters_by_source for each. */
const readUnlettered = sql(
  'verify.deadWithoutLetter',
  `SELECT id, consumer, letter FROM (
     SELECT id, consumer, letter, (SELECT letters.id FROM bartleby.letters
       WHERE engine = '${WEBHOOKS}' AND source_id = job.id AND status = ${STATUS.Pending}) AS pending
     FROM bartleby.webhook_jobs AS job WHERE id > $1 AND id <= $2 AND state = ${JOB.dead}
   ) AS dead WHERE coalesce(pending, -1) <> coalesce(letter, -2)`,
  { bigints: true },
)

/** Pending letters of a range by where they lie and whose job it was. The range stands on both sides: see i2-one-letter.ts. */
const readDrawers = sql(
  'verify.drawersOfJobs',
  `SELECT job.consumer, letter.drawer, min(job.id) AS example
   FROM bartleby.webhook_jobs AS job JOIN bartleby.letters AS letter ON letter.source_id = job.id
   WHERE job.id > $1 AND job.id <= $2 AND job.state = ${JOB.dead}
     AND letter.engine = '${WEBHOOKS}' AND letter.source_id > $1 AND letter.source_id <= $2
     AND letter.status = ${STATUS.Pending}
   GROUP BY job.consumer, letter.drawer`,
)

/** Pending letters of a range whose job is gone or not dead: one look at a job for each. */
const readJobless = sql(
  'verify.letterWithoutDead',
  `SELECT id, source_id FROM bartleby.letters AS letter
   WHERE engine = '${WEBHOOKS}' AND source_id > $1 AND source_id <= $2 AND status = ${STATUS.Pending}
     AND coalesce((SELECT state FROM bartleby.webhook_jobs WHERE webhook_jobs.id = letter.source_id), -1) <> ${JOB.dead}`,
  { bigints: true },
)

/** The first and the last job of a range that each message has, and what the message says: one look at a message for each. */
const readSpans = sql('verify.jobSpans', {
  postgres: `
    SELECT held.message, held.first, held.last, held.jobs, message.first_job, message.jobs AS said
    FROM (SELECT message, min(id) AS first, max(id) AS last, count(*) AS jobs FROM bartleby.webhook_jobs
      WHERE id > $1 AND id <= $2 GROUP BY message) AS held
    LEFT JOIN LATERAL (SELECT first_job, jobs FROM bartleby.webhook_messages
      WHERE id = held.message LIMIT 1) AS message ON true`,
  sqlite: `
    SELECT held.message, held.first, held.last, held.jobs, message.first_job, message.jobs AS said
    FROM (SELECT message, min(id) AS first, max(id) AS last, count(*) AS jobs FROM webhook_jobs
      WHERE id > $1 AND id <= $2 GROUP BY message) AS held
    LEFT JOIN webhook_messages AS message ON message.id = held.message`,
})

interface SpanRow {
  readonly message: string
  readonly first: string
  readonly last: string
  readonly jobs: Integer
  readonly first_job: string | null
  readonly said: Integer | null
}

export const deadJobs: Invariant = {
  id: 'W1',
  promise: 'a dead webhook job has one pending letter, and such a letter its dead job',
  rows: ({ jobs }) => jobs,
  async *check(audit) {
    yield* lettersOfJobs(audit)
    yield* jobsOfLetters(audit)
  },
}

export const jobRangesHold: Invariant = {
  id: 'W3',
  promise: 'the jobs of a webhook message are the range of ids that it names',
  rows: ({ jobs }) => jobs,
  async *check(audit) {
    for await (const { after, through } of jobRanges(audit)) {
      for (const row of await audit.session.rows<SpanRow>(readSpans, after, through)) {
        const what = faultOf(row)
        if (what !== null)
          yield { what, row: { message: row.message, job: row.first, jobs: String(row.jobs) } }
      }
    }
  },
}

async function* lettersOfJobs(audit: Audit): AsyncGenerator<Finding> {
  const names = await readSubjectNames(audit.session)
  for await (const { after, through } of jobRanges(audit)) {
    const unlettered = await audit.session.rows<{ id: string; consumer: Integer; letter: Integer | null }>(
      readUnlettered,
      after,
      through,
    )
    for (const { id, consumer, letter } of unlettered) {
      yield {
        what: `job ${id} is dead, and ${letter === null ? 'names no letter' : `letter ${letter} is not its pending one`}`,
        row: { job: id, consumer: String(consumer), ...(letter === null ? {} : { letter: String(letter) }) },
      }
    }
    const lying = await audit.session.rows<{ consumer: Integer; drawer: Integer; example: string }>(
      readDrawers,
      after,
      through,
    )
    for (const { consumer, drawer, example } of lying) {
      const name = names.get(Number(consumer))
      const queue = name?.consumerId == null ? null : queueOfConsumer(name.channelId, name.consumerId)
      const label = audit.drawers.get(Number(drawer))
      if (label?.source === WEBHOOKS && label.queue === queue) continue
      yield {
        what: `the letter of job ${example} lies in drawer ${drawer}, which is not one of its consumer`,
        row: { job: example, consumer: String(consumer), drawer: String(drawer), queue: label?.queue ?? '' },
      }
    }
  }
}

async function* jobsOfLetters(audit: Audit): AsyncGenerator<Finding> {
  for await (const { after, through } of jobLetterRanges(audit)) {
    const rows = await audit.session.rows<{ id: Integer; source_id: string }>(readJobless, after, through)
    for (const { id, source_id } of rows) {
      yield {
        what: `letter ${id} is pending, and its job ${source_id} is gone or not dead`,
        row: { letter: String(id), job: source_id },
      }
    }
  }
}

function faultOf({ message, first, last, jobs, first_job, said }: SpanRow): string | null {
  if (said === null) return `job ${first} belongs to message ${message}, which is not there`
  const most = Number(said)
  if (first_job === null || most === 0)
    return `message ${message} names no jobs, and job ${first} is one of it`
  if (first < first_job || last > xidAfter(xid(first_job), most - 1))
    return `message ${message} has a job that is not in the range it names`
  return Number(jobs) > most ? `message ${message} has more jobs than the ${most} it names` : null
}
