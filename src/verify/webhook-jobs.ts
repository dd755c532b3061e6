/**
 * W1: a dead job has one Pending letter, which lies in a drawer of its consumer, and every Pending letter of webhooks has its dead job.
 * W3: a job belongs to a message and lies in the range of ids that the message names, so that the jobs of a message are all found.
 */
import { xid, xidAfter } from '../core/xid.ts'
import { STATUS } from '../letters/letter.ts'
import { JOB, queueOfConsumer, WEBHOOKS } from '../webhooks/webhook.ts'
import type { FoundRow, Invariant } from './invariant.ts'
import { fault, faultsAlong, JOB_LETTERS, JOBS } from './walk.ts'
import { readSubjectNames } from './webhook-counts.ts'

/** Dead jobs of a range whose letter is not the one they name, or not Pending: one look into letters_by_source for each. */
const unlettered = fault(
  'deadWithoutLetter',
  `SELECT id, consumer, letter FROM (
     SELECT id, consumer, letter, (SELECT letters.id FROM bartleby.letters
       WHERE engine = '${WEBHOOKS}' AND source_id = job.id AND status = ${STATUS.Pending}) AS pending
     FROM bartleby.webhook_jobs AS job WHERE id > $1 AND id <= $2 AND state = ${JOB.dead}
   ) AS dead WHERE coalesce(pending, -1) <> coalesce(letter, -2)`,
  ({ id, consumer, letter }) => ({
    what: `job ${id} is dead, and ${letter === null ? 'names no letter' : `letter ${letter} is not its pending one`}`,
    row: { job: id, consumer, letter: letter ?? undefined },
  }),
)

/** Pending letters of a range by where they lie and whose job it was. The range stands on both sides: see i2-one-letter.ts. */
const DRAWERS = `
  SELECT min(job.id) AS job, job.consumer, letter.drawer
  FROM bartleby.webhook_jobs AS job JOIN bartleby.letters AS letter ON letter.source_id = job.id
  WHERE job.id > $1 AND job.id <= $2 AND job.state = ${JOB.dead}
    AND letter.engine = '${WEBHOOKS}' AND letter.source_id > $1 AND letter.source_id <= $2
    AND letter.status = ${STATUS.Pending}
  GROUP BY job.consumer, letter.drawer`

/** Pending letters of a range whose job is gone or not dead: one look at a job for each. */
const jobless = fault(
  'letterWithoutDead',
  `SELECT id AS letter, source_id AS job FROM bartleby.letters AS letter
   WHERE engine = '${WEBHOOKS}' AND source_id > $1 AND source_id <= $2 AND status = ${STATUS.Pending}
     AND coalesce((SELECT state FROM bartleby.webhook_jobs WHERE webhook_jobs.id = letter.source_id), -1) <> ${JOB.dead}`,
  ({ letter, job }) => `letter ${letter} is pending, and its job ${job} is gone or not dead`,
)

const HELD = `SELECT held.message, held.first, held.last, held.jobs, message.first_job, message.jobs AS said
  FROM (SELECT message, min(id) AS first, max(id) AS last, count(*) AS jobs FROM bartleby.webhook_jobs
    WHERE id > $1 AND id <= $2 GROUP BY message) AS held LEFT JOIN`

/** The first and the last job of a range that each message has, and what the message says: one look at a message for each. */
const spans = fault<Span>(
  'jobSpans',
  {
    postgres: `${HELD} LATERAL (SELECT first_job, jobs FROM bartleby.webhook_messages
      WHERE id = held.message LIMIT 1) AS message ON true`,
    sqlite: `${HELD} webhook_messages AS message ON message.id = held.message`,
  },
  (span) => {
    const what = faultOf(span)
    return what === null ? [] : { what, row: { message: span.message, job: span.first, jobs: span.jobs } }
  },
)

type Span = FoundRow & {
  readonly message: string
  readonly first: string
  readonly last: string
  readonly first_job: string | null
}

export const deadJobs: Invariant = {
  id: 'W1',
  promise: 'a dead webhook job has one pending letter, and such a letter its dead job',
  rows: ({ jobs }) => jobs,
  async *check(audit) {
    const names = await readSubjectNames(audit.session)
    const misfiled = fault('drawersOfJobs', DRAWERS, ({ job, consumer, drawer }, { drawers }) => {
      const name = names.get(Number(consumer))
      const label = drawers.get(Number(drawer))
      const isOfConsumer =
        name?.consumerId != null && label?.queue === queueOfConsumer(name.channelId, name.consumerId)
      if (label?.source === WEBHOOKS && isOfConsumer) return []
      return {
        what: `the letter of job ${job} lies in drawer ${drawer}, which is not one of its consumer`,
        row: { job, consumer, drawer, queue: label?.queue ?? '' },
      }
    })
    yield* faultsAlong(audit, JOBS, [unlettered, misfiled])
    yield* faultsAlong(audit, JOB_LETTERS, [jobless])
  },
}

export const jobRangesHold: Invariant = {
  id: 'W3',
  promise: 'the jobs of a webhook message are the range of ids that it names',
  rows: ({ jobs }) => jobs,
  check: (audit) => faultsAlong(audit, JOBS, [spans]),
}

function faultOf({ message, first, last, jobs, first_job, said }: Span): string | null {
  if (said == null) return `job ${first} belongs to message ${message}, which is not there`
  const most = Number(said)
  if (first_job === null || most === 0)
    return `message ${message} names no jobs, and job ${first} is one of it`
  if (first < first_job || last > xidAfter(xid(first_job), most - 1))
    return `message ${message} has a job that is not in the range it names`
  return Number(jobs) > most ? `message ${message} has more jobs than the ${most} it names` : null
}
