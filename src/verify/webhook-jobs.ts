/**
 * W1: a dead job has one Pending letter, which lies in a drawer of its consumer, and every Pending letter of webhooks has its dead job.
 * W3: a job belongs to a message and lies in the range of ids that the message names, so that the jobs of a message are all found.
 */
import { xid, xidAfter } from '../core/xid.ts'
import { STATUS } from '../letters/letter.ts'
import { JOB, queueOfConsumer, WEBHOOKS } from '../sources/webhooks/webhook.ts'
import type { Audit, FoundRow, Invariant } from './invariant.ts'
import { batchesOf, read, type Side, textKey, together } from './walk.ts'
import { JOB_LETTERS, readSubjectNames, type SubjectName } from './webhook-counts.ts'

/** Jobs by their ids. */
const JOBS: Side = {
  statement: read('jobs', 'SELECT id AS key, consumer, state, letter FROM bartleby.webhook_jobs ORDER BY id'),
  keyOf: textKey,
}

export const deadJobs: Invariant = {
  id: 'W1',
  promise: 'a dead webhook job has one pending letter, and such a letter its dead job',
  rows: ({ jobs }) => jobs,
  async *check(audit) {
    const names = await readSubjectNames(audit.session)
    /** Consumers and drawers that do not fit, each told once. */
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

/** Jobs by their ids, each with what its message says of all of them. Those of a message lie beside each other. */
const readMessages = read(
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

export const jobRangesHold: Invariant = {
  id: 'W3',
  promise: 'the jobs of a webhook message are the range of ids that it names',
  rows: ({ jobs }) => jobs,
  async *check(audit) {
    let told: string | undefined
    for await (const jobs of batchesOf<JobRow>(audit, readMessages)) {
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
